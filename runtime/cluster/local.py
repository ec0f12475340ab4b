"""Shards in the gateway's own process, for laptops and tests; needs no Ray."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from runtime.api.operation import Call, Reply
from runtime.cluster.process import ShardLike
from runtime.cluster.supervisor import Supervisor
from runtime.errors import Unavailable
from runtime.placement import Placement, PlacementError, PlacementTable, SlotMap

log = logging.getLogger("mneme.cluster")


class LocalShards:
    """Shards in this process, open already. Calls are not batched: without a process
    border there is nothing to save.

    table     the placement of the data directory; without one the slots are divided evenly, for
              good
    failed    a shard raised, which it does on a fault of the storage only; from then on every call
              is refused
    fenced    why this process serves no more: another owns one of the shards by now; one sentence
    on_fault  called once when that happens; the process has to end and open the stores anew
    """

    def __init__(
        self,
        shards: Sequence[ShardLike],
        on_fault: Callable[[], None] = lambda: None,
        table: PlacementTable | None = None,
    ):
        self._shards = shards
        self.on_fault = on_fault
        self.failed = False
        self.fenced = ""
        self._table = table
        self._made: SlotMap | None = None
        self._supervisor: Supervisor | None = None

    async def execute(self, call: Call) -> Reply:
        """The reply of the shard that owns call.slot, its body encoded. Raises Unavailable."""
        if self.failed:
            raise Unavailable(
                "The service is restarting. Retry in a moment with the same Idempotency-Key."
            )
        try:
            return await self._map.execute(call, self._ask)
        except Unavailable:
            raise
        except Exception as fault:
            log.critical("a shard failed; this process has to end", exc_info=True)
            self.failed = True
            self.on_fault()
            raise Unavailable(
                "The service failed under this request; its outcome is unknown."
            ) from fault

    async def watch(self) -> None:
        """Wait until another process owns one of the shards; from then on every call is refused, as
        after a fault.
        """

        async def wait(number: int, shard: ShardLike) -> None:
            why = await shard.until_fenced()
            self.fenced = (
                f"Shard {number} is owned by another process by now ({why}). This one acknowledges "
                "nothing more and ends; "
                "restore the shard from object storage before its directory is served again."
            )
            self.failed = True
            self.on_fault()

        await asyncio.gather(*(wait(number, shard) for number, shard in enumerate(self._shards)))

    @property
    def _map(self) -> SlotMap:
        """Made at the first call: the shards are opened one by one until then."""
        if self._made is None:
            placement = (
                Placement.even(len(self._shards)) if self._table is None else self._table.load()
            )
            self._made = SlotMap(placement, self._table)
        return self._made

    async def _ask(self, number: int, call: Call) -> Reply:
        return (await self._shards[number].execute(call)).encoded()

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]:
        """As Supervisor.order. Raises PlacementError."""
        if self._table is None:
            raise PlacementError("These shards have no placement that could change.")
        if self._supervisor is None:
            self._supervisor = Supervisor(
                self._table, lambda number, step, *given: self._shards[number].order(step, *given)
            )
        return await self._supervisor.order(name, **given)

    @property
    def placement_version(self) -> int:
        return self._map.placement.version

    async def status(self) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(shard.status() for shard in self._shards)))

    async def drain(self) -> None:
        """Stop moving slots, refuse new calls, finish those that run, write checkpoints."""
        if self._supervisor is not None:
            await self._supervisor.close()
        await asyncio.gather(*(shard.drain() for shard in self._shards))
        await asyncio.gather(*(shard.checkpoint() for shard in self._shards))

    async def close(self) -> None:
        await asyncio.gather(*(shard.close() for shard in self._shards))
