"""A shard harness at a date of the test's choosing, with an account whose usage and bills are
looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import serve_app
from runtime.api import metering, tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Body, Call, Idempotency, Operation, Read, View, Write
from runtime.api.plugin import Plugin
from runtime.inference import Models
from runtime.timestamps import parse
from serve_app import Settings
from storage.store import Table
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, Answer, ShardHarness

EMAIL = "ada@example.com"

# --- a plugin whose operations cost what the test says --------------------------------------------


class Work(Body):
    credits: int = 1
    spent: int | None = None  # what the handler says it came to
    fails: bool = False
    reserve: int = 0
    settle: str | None = None
    release: str | None = None
    late_by_ms: int = 0


class Done(View):
    charge_id: str
    counted: bool


def work(ctx: WriteContext, body: Work) -> Done:
    charge_id, counted = b"", False
    if body.spent is not None:
        ctx.credits = body.spent
    if body.reserve:
        charge_id = metering.reserve(ctx, "work.do", body.reserve)
    if body.settle is not None:
        counted = metering.settle(ctx, bytes.fromhex(body.settle), "work.do", body.credits)
        ctx.credits = 0
    if body.release is not None:
        counted = metering.release(ctx, bytes.fromhex(body.release))
        ctx.credits = 0
    if body.fails:
        raise RuntimeError("half done")
    return Done(charge_id=charge_id.hex(), counted=counted)


def look(ctx: ReadContext, body: Work) -> Done:
    if body.fails:
        raise RuntimeError("half seen")
    return Done(charge_id="", counted=False)


def _operation(name: str, **fields: Any) -> Operation:
    return Write(
        f"work.{name}", "POST", f"/v1/work/{name}", work, summary="", response=Done, body=Work,
        scope="write", idempotency=Idempotency.CACHED,
        **{"credits": lambda body: body.credits, **fields},
    )  # fmt: skip


NOTHING: Table[bytes] = Table("work", key=("id",), row=bytes)
PLUGIN = Plugin(
    name="work",
    tables=(NOTHING,),
    operations=(
        _operation("do"),
        _operation("write_graph", feature="graph_write"),
        Read(
            "work.look", "POST", "/v1/work/look", look, summary="", response=Done, body=Work,
            credits=lambda body: body.credits,
        ),
        _operation("query_graph", feature=lambda body: "graph_query" if body.credits > 2 else None),
    ),
)  # fmt: skip


class MeteredHarness:
    """One account on a shard harness. `settings` by their dotted names."""

    def __init__(self, directory: Path, at: str, settings: dict[str, Any]):
        real_ms = int(time.time() * 1000)
        offset = {"clock": {"offset_seconds": (parse(at) - real_ms) // 1000 + 60}}
        limits = {"limits": {"requests_per_minute": 0, "endpoint_caps": False}}
        long_tokens = {"auth": {**CHEAP["auth"], "token_seconds": 366 * 24 * 3600}}
        loaded = Settings.load({**long_tokens, **limits, **offset}, settings)
        self.harness = ShardHarness(
            directory, (*serve_app.PLUGINS, PLUGIN), Models(WordEmbedder()), loaded
        )
        self.harness.now_ms = parse(at)
        self.token = self.harness.register(EMAIL)
        self.operator = self.harness.secrets.operator_token

    def __call__(self, operation: str, body: Any = None, **fields: Any) -> Answer:
        return self.harness(operation, body, **{"who": self.token, **fields})

    def work(self, **fields: Any) -> Answer:
        return self("work.do", fields)

    def operate(self, operation: str, **body: Any) -> Any:
        """An internal operation about the account; its answer's body."""
        answer = self.harness(f"internal.{operation}", {"email": EMAIL, **body}, who=self.operator)
        assert answer.status in (200, 201), answer
        return answer.body

    def used(self) -> int:
        return self("usage.get").body["credits"]["used"]

    def move_to(self, at: str) -> None:
        self.harness.now_ms = parse(at)

    def at_once(self, operation: str, bodies: list[Any], **fields: Any) -> list[Answer]:
        return self.harness.together(
            [self.harness.form(operation, body, who=self.token, **fields) for body in bodies]
        )

    def audited(self) -> list[dict[str, Any]]:
        """The account's months, every one of which adds up."""
        audit = self.operate("usage.audit")
        assert audit["consistent"], audit
        books = self.operate("billing.audit")
        assert books["consistent"], books
        return audit["periods"]

    def write(self, run: Any) -> Any:
        """run(ctx) in a transaction of the account's own, outside all operations."""
        scope = self.harness.scope_of(self.token)
        result: list[Any] = []

        def inside(transaction: Any) -> None:
            principal, _ = tenants.tenant(transaction, scope.slot, scope.tenant)
            call = Call("test", scope.slot, self.harness.now_ms, b"s" * 32, "r")
            result.append(
                run(
                    WriteContext(
                        transaction, scope, call, self.harness.shard.environment, principal
                    )
                )
            )

        self.harness.shard.store.write(inside)
        return result[-1]


@contextmanager
def metered(
    directory: Path, at: str = "2026-05-12T10:00:00Z", **settings: Any
) -> Iterator[MeteredHarness]:
    """Settings are written with two underscores: metered(path, billing__default_tier="free")."""
    account = MeteredHarness(
        directory, at, {name.replace("__", "."): value for name, value in settings.items()}
    )
    try:
        yield account
    finally:
        account.harness.close()
