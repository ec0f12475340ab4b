"""python -m tests.support.counting_jobs DIR: a shard whose jobs each add one row and count it,
until the process is killed.

Each job's effect is a row under its own number and one step of a counter, so twice would show as a
counter ahead of the rows, and half as a row without its step. What was asked for is said on
standard output, one number a line, once it is on disk.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from plugins import accounts
from runtime.api.context import WriteContext
from runtime.api.jobs import Again
from runtime.api.operation import Body, Idempotency, Write
from runtime.api.plugin import Job, Plugin, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.installation import Secrets
from storage.store import Table
from tests.support.shard_harness import ShardHarness

STEPS = 3  # a job runs in so many transactions, each with an effect of its own
EFFECTS: Table[bytes] = Table(
    "effects", key=("asked", "step"), row=bytes, doc="one row for each effect"
)


class Asked(Body):
    number: int


def effect(ctx: WriteContext, payload: dict[str, Any]) -> Again | dict[str, int]:
    place = (payload["number"], payload["step"])
    assert not ctx[EFFECTS].has(*place), f"the effect {place} happens twice"
    ctx[EFFECTS].put(place, ctx.next_ordinal("effects").to_bytes(4, "big"))
    following = payload["step"] + 1
    return (
        {"steps": following}
        if following == STEPS
        else Again({**payload, "step": following}, progress=following / STEPS)
    )


async def prepare(steps: JobSteps, loaded: None, payload: dict[str, Any], models: None) -> None:
    """A place to die between the attempt's count and its effect."""


def ask(ctx: WriteContext, body: Asked) -> dict[str, str]:
    return {"job_id": ctx.enqueue("counting.count", {"number": body.number, "step": 0})}


PLUGIN = Plugin(
    "counting",
    operations=(
        Write(
            "counting.ask",
            "POST",
            "/v1/count",
            ask,
            "",
            None,
            Asked,
            scope="write",
            idempotency=Idempotency.CACHED,
        ),
    ),
    tables=(EFFECTS,),
    jobs=(
        Job(
            "counting.count",
            effect,
            prepare=prepare,
            retry=RetryStrategy(attempts=1_000, base_ms=1),
        ),
    ),
)


SECRETS = Secrets(b"s" * 32, b"p" * 32, "mem_op_" + "0" * 64)


class CountingHarness(ShardHarness):
    """A ShardHarness that comes back to a directory; its account is known to nobody but the
    slot.
    """

    def __init__(self, directory: Path):
        self._exists = (directory / "data.mdb").exists()
        super().__init__(directory, (accounts.plugin, PLUGIN))

    def open(self, *, create: bool) -> None:
        self.secrets = SECRETS
        super().open(create=create and not self._exists)


def main() -> None:
    directory = Path(sys.argv[1])
    harness = CountingHarness(directory)
    me = harness.register(f"somebody-{sys.argv[2]}@example.com")
    for number in range(10_000):
        harness("counting.ask", {"number": number}, who=me)
        print(number, flush=True)


if __name__ == "__main__":
    main()
