"""A gateway's view of the placement: which shard a call goes to, and what happens when the slot has
moved.

The view may be old. Then the shard that is asked says so (errors.Moved) and has done nothing, the
gateway reads the newest placement and asks again, all inside the one request. While a slot is
between two shards nobody answers for it; the call is asked again every few milliseconds, and
refused with Retry-After when that takes longer than SLOT_WAIT_MS_MAX.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from runtime.errors import Moved
from runtime.installation import LayoutError
from runtime.limits import SLOT_POLL_MS, SLOT_WAIT_MS_MAX
from runtime.placement.placement import Placement
from runtime.placement.table import PlacementTable
from storage.replication import ObjectStoreFailed

if TYPE_CHECKING:  # it stands on much that the command line does not need
    from runtime.api.operation import Call, Reply

    Ask = Callable[[int, Call], Awaitable[Reply]]  # (number of a shard, call) -> its reply

log = logging.getLogger("mneme.slot_map")


class SlotMap:
    """Lives on one event loop. table: None where nothing ever moves."""

    def __init__(self, placement: Placement, table: PlacementTable | None):
        self.placement = placement
        self._table = table
        self._refreshing: asyncio.Task[Placement] | None = None

    async def execute(self, call: Call, ask: Ask) -> Reply:
        """The reply of the shard that owns call.slot. Raises Unavailable, and what `ask` raises."""
        reply = await ask(self.placement.owners[call.slot], call)
        if not isinstance(reply.error, Moved):
            return reply
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SLOT_WAIT_MS_MAX / 1000
        while loop.time() < deadline:
            call.admitted = call.admitted or reply.error.admitted
            if reply.error.version <= self.placement.version:  # the shard knows no better
                await asyncio.sleep(SLOT_POLL_MS / 1000)
            await self.refresh()
            reply = await ask(self.placement.owners[call.slot], call)
            if not isinstance(reply.error, Moved):
                return reply
        raise reply.error

    async def refresh(self) -> None:
        """Read the newest placement; calls that ask for it together share one reading. What cannot
        be read just now stays as it was.
        """
        if self._table is None:
            return
        if self._refreshing is None:
            self._refreshing = asyncio.ensure_future(asyncio.to_thread(self._table.load))
        reading = self._refreshing
        try:
            placement = await asyncio.shield(reading)
        except (LayoutError, ObjectStoreFailed) as failed:
            log.warning("the placement cannot be read: %s", failed)
            return
        finally:
            if self._refreshing is reading:
                self._refreshing = None
        if placement.version > self.placement.version:
            self.placement = placement
