"""What accounts are owed when their shard is opened: each is looked at once, in the background, and
what is due of what plugins declare (`Plugin.catch_up`) begins in a transaction of its own.

It may be cut off at any moment: what has not begun by then is due at the next start as well. So is
what a plugin whose code raises owes; the others go on.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence

from runtime.api.call import Call
from runtime.api.context import ReadContext, WriteContext
from runtime.api.plugin import CatchUp
from runtime.errors import PLUGIN_RAISES, ApiError
from runtime.limits import ACCOUNTS_LOOKED_AT_PER_STEP
from runtime.shard.background import Background
from runtime.shard.head import Parts
from runtime.shard.writer import StorageFailed
from storage.store import KeyShredded, Scope

log = logging.getLogger("mneme.shard")


class CatchingUp:
    """The look at the accounts of one shard."""

    def __init__(self, parts: Parts, background: Background):
        self._parts, self._background = parts, background
        self._declared = [
            plugin.catch_up for plugin in parts.registry.plugins if plugin.catch_up is not None
        ]
        self._failed: list[CatchUp] = []
        self._stopping = False
        self._task: asyncio.Task | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Begin nothing further, and let what begins reach its commit."""
        self._stopping = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        """Begin what is due, account by account. A failure ends it until the next start."""
        if not self._declared:
            return
        try:
            scopes = await asyncio.to_thread(self._scopes)
            for first in range(0, len(scopes), ACCOUNTS_LOOKED_AT_PER_STEP):
                part = scopes[first : first + ACCOUNTS_LOOKED_AT_PER_STEP]
                for scope, owed in await asyncio.to_thread(self._due, part):
                    if self._stopping:
                        return
                    await self._begin(scope, owed)
        except (ApiError, StorageFailed) as failed:
            log.warning("what accounts are owed begins at the next start: %s", failed)

    def _scopes(self) -> list[Scope]:
        with self._parts.store.snapshot() as snapshot:
            return [
                scope
                for scope in snapshot.scopes()
                if scope.tenant and self._parts.gate.owns(scope.slot)
            ]

    def _due(self, scopes: Sequence[Scope]) -> list[tuple[Scope, CatchUp]]:
        found = []
        with self._parts.store.snapshot() as snapshot:
            for scope in scopes:
                owner = self._background.owner(snapshot, scope.slot, scope.tenant)
                if owner is None:
                    continue
                principal, own = owner
                try:
                    ctx = self._background.context(snapshot, own, principal, self._call(own))
                except KeyShredded:
                    continue
                found += [(own, each) for each in self._declared if self._is_due(each, ctx)]
        return found

    def _is_due(self, owed: CatchUp, ctx: ReadContext) -> bool:
        try:
            return owed not in self._failed and owed.is_due(ctx)
        except KeyShredded:
            return False
        except (ApiError, StorageFailed):
            raise
        except PLUGIN_RAISES as raised:
            self._give_up(owed, raised)
            return False

    def _give_up(self, owed: CatchUp, raised: BaseException) -> None:
        """Ask nothing further of it until the next start: the code of a plugin raised."""
        log.error("what a plugin owes accounts begins at the next start", exc_info=raised)
        self._failed.append(owed)

    async def _begin(self, scope: Scope, owed: CatchUp) -> None:
        with self._parts.store.snapshot() as snapshot:
            owner = self._background.owner(snapshot, scope.slot, scope.tenant)
        if owner is None:
            return

        def begin(ctx: WriteContext) -> None:
            if owed.is_due(ctx):
                owed.begin(ctx)

        if owed in self._failed:
            return
        try:
            await self._background.write("catch up", scope, owner[0], self._call(scope), begin)
        except (ApiError, StorageFailed):
            raise
        except PLUGIN_RAISES as raised:
            self._give_up(owed, raised)

    def _call(self, scope: Scope) -> Call:
        return Call(
            operation="job",
            slot=scope.slot,
            now_ms=self._parts.now_ms(),
            seed=os.urandom(32),
            request_id="",
        )
