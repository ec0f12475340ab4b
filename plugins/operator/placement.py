"""The placement, for the operator: which shards there are, which slots they hold, and moving slots
between them.

Internal routes behind `mneme admin cluster`, `move-slot`, `rebalance`, `drain` and `undrain`. Owns
no table: the placement is the runtime's (runtime/placement/placement.py), and so is the supervisor
that makes moves. An order answers when the moves are planned, not when they are made; the report
says what is left of them.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from runtime import limits
from runtime.api.operation import Body, Call, Flow, Operation, View
from runtime.errors import BadRequest
from runtime.placement import PlacementError


class MoveSlots(Body):
    slots: list[int] = Field(
        min_length=1,
        max_length=limits.SLOTS,
        description="Slots to move; those that are there already stay.",
    )
    shard: int = Field(ge=0, description="The shard that is to hold them.")


class Rebalance(Body):
    """Nothing to say."""


class NodeOrShard(Body):
    node: str | None = Field(
        default=None,
        max_length=limits.NAME_CHARS_MAX,
        description="Label of a node, for all its shards.",
    )
    shard: int | None = Field(default=None, ge=0, description="Or the number of one shard.")

    @model_validator(mode="after")
    def _one_of_both(self) -> NodeOrShard:
        if (self.node is None) == (self.shard is None):
            raise ValueError("name a node or a shard")
        return self


class ShardReport(View):
    shard: int = Field(description="Its number.")
    node: str = Field(description="Label of its node; empty on a single one.")
    draining: bool = Field(description="Whether it is being emptied.")
    slots: int = Field(description="Slots it holds.")
    open: bool = Field(description="Whether it answers.")
    bytes: int = Field(description="Size of its store.")
    sequence: int = Field(description="Its last commit.")
    jobs_waiting: int = Field(description="Background jobs that are due or run.")
    log_behind_seconds: float | None = Field(
        description=(
            "What was acknowledged in so many last seconds is not in object storage yet; `null` "
            "without one, or where it is silent."
        )
    )


class MoveReport(View):
    id: str
    slots: int = Field(description="How many slots it moves.")
    source: int = Field(description="The shard that gives them.")
    target: int = Field(description="The shard that takes them.")
    state: str = Field(
        description="`planned`, `copying`, `erasing` (they have arrived) or `undoing`."
    )
    attempts: int = Field(description="How often it came to nothing so far.")


class MoveFailure(View):
    id: str
    reason: str
    final: bool = Field(description="Whether it is not tried again.")


class NodeGone(View):
    node: str
    seconds: float = Field(description="Since something was last heard of it.")


class NodeUnfit(View):
    node: str
    problem: str = Field(description="Why it gets no shard.")


class Restoration(View):
    """A shard whose node was lost, and that lives on another one since."""

    shard: int
    source: str = Field(description="The node that was lost.")
    target: str = Field(description="The node that has the shard now.")
    done: bool = Field(description="Whether it answers there.")
    seconds: float = Field(description="From the loss until it answered, or until now.")
    behind_seconds_max: float | None = Field(
        description=(
            "What was acknowledged in so many seconds may be missing, those of the former owner's "
            "lease included; `null` until it answers, and where nothing bounds it "
            "(`durability.outage_writes_may_be_lost`)."
        )
    )


class Cluster(View):
    version: int = Field(description="Of the placement; each change makes the next one.")
    shards: list[ShardReport]
    moves: list[MoveReport] = Field(description="Moves that are planned or under way.")
    finished: int = Field(description="Moves the supervisor finished since it was started.")
    failures: list[MoveFailure] = Field(
        description="Moves that came to nothing since then, the last ones."
    )
    nodes: list[str] = Field(description="Nodes that are there; none on a single one.")
    gone: list[NodeGone] = Field(description="Nodes that have shards and are not there.")
    unfit: list[NodeUnfit] = Field(description="Nodes that are there and get no shard.")
    restorations: list[Restoration] = Field(
        description="Shards of lost nodes that came to another one, the last ones."
    )


async def _ordered(shards: Any, order: str, **given: Any) -> Cluster:
    """The report after an order. Raises BadRequest where the placement does not allow it."""
    try:
        report = await shards.supervise(order, **given)
    except PlacementError as refused:
        raise BadRequest(str(refused)) from None
    figures = {status["shard"]: status for status in await shards.status()}
    return Cluster(
        version=report["version"],
        shards=[
            ShardReport(**shard, **_figures(figures.get(shard["shard"], {})))
            for shard in report["shards"]
        ],
        moves=[MoveReport(**{**move, "slots": len(move["slots"])}) for move in report["moves"]],
        finished=report["finished"],
        failures=[MoveFailure(**failure) for failure in report["failures"]],
        nodes=report.get("nodes", []),
        gone=[NodeGone(**gone) for gone in report.get("gone", ())],
        unfit=[NodeUnfit(**unfit) for unfit in report.get("unfit", ())],
        restorations=[Restoration(**restoration) for restoration in report.get("restorations", ())],
    )


def _figures(status: dict[str, Any]) -> dict[str, Any]:
    return {
        "open": bool(status.get("open")),
        "bytes": status.get("store", {}).get("data_bytes", 0),
        "sequence": status.get("sequence", 0),
        "jobs_waiting": status.get("jobs_waiting", 0),
        "log_behind_seconds": status.get("log", {}).get("unshipped_seconds"),
    }


async def report(call: Call, shards: Any, models: Any) -> Cluster:
    return await _ordered(shards, "report")


async def move(call: Call, shards: Any, models: Any) -> Cluster:
    return await _ordered(shards, "move", slots=call.body.slots, shard=call.body.shard)


async def rebalance(call: Call, shards: Any, models: Any) -> Cluster:
    return await _ordered(shards, "rebalance")


async def drain(call: Call, shards: Any, models: Any) -> Cluster:
    return await _ordered(shards, "drain", node=call.body.node, shard=call.body.shard)


async def undrain(call: Call, shards: Any, models: Any) -> Cluster:
    return await _ordered(shards, "undrain", node=call.body.node, shard=call.body.shard)


_AT_REST = {"node": "", "draining": False, "open": True, "jobs_waiting": 0}
_EXAMPLE_REPLY = {
    "version": 3,
    "shards": [
        {
            "shard": 0,
            "slots": 2047,
            "bytes": 1_048_576,
            "sequence": 91,
            "log_behind_seconds": 0.2,
            **_AT_REST,
        },
        {
            "shard": 1,
            "slots": 2049,
            "bytes": 1_572_864,
            "sequence": 74,
            "log_behind_seconds": 0.0,
            **_AT_REST,
        },
    ],
    "moves": [],
    "finished": 1,
    "failures": [],
    "nodes": [],
    "gone": [],
    "unfit": [],
    "restorations": [],
}


def _operation(
    name: str, method: str, path: str, handler: Any, summary: str, **further: Any
) -> Operation:
    fields = {
        "response": Cluster,
        "scope": "admin",
        "internal": True,
        "example_reply": _EXAMPLE_REPLY,
    }
    return Flow(
        f"internal.cluster.{name}",
        method,
        f"/v1/internal/cluster{path}",
        handler,
        summary,
        **fields,
        **further,
    )


OPERATIONS = (
    _operation("report", "GET", "", report, "Shards, their slots, and moves under way"),
    _operation(
        "move",
        "POST",
        "/moves",
        move,
        "Move slots to a shard",
        body=MoveSlots,
        statuses=(202,),
        example={"slots": [2911], "shard": 1},
    ),
    _operation(
        "rebalance",
        "POST",
        "/rebalance",
        rebalance,
        "Even out the shards",
        body=Rebalance,
        statuses=(202,),
        example={},
    ),
    _operation(
        "drain",
        "POST",
        "/drain",
        drain,
        "Empty a node or a shard",
        body=NodeOrShard,
        statuses=(202,),
        example={"shard": 1},
    ),
    _operation(
        "undrain",
        "POST",
        "/undrain",
        undrain,
        "Take a drain back",
        body=NodeOrShard,
        statuses=(202,),
        example={"shard": 1},
    ),
)
