"""The tables themselves, held against the model: rows that nothing deleted may leave behind,
charges, and every check that the service declares.
"""

from __future__ import annotations

from collections.abc import Callable

from plugins.collections.store import COLLECTION_IDS, COLLECTIONS, DROPPED_COLLECTIONS
from plugins.memories import MEMORY_FIELDS, MEMORY_TEXT, MEMORY_VECTORS
from plugins.memories.limits import PASSAGE_TOKENS_MAX, PASSAGES_PER_MEMORY_MAX
from plugins.memories.passages import CHUNK_OWNERS, CHUNK_RUNS, MEMORY_CHUNKS
from plugins.memories.rows import (
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_EXPIRY,
    MEMORY_HISTORY,
    MEMORY_IDS,
)
from runtime.api import metering
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Principal
from runtime.http.credentials import read_authorization
from runtime.shard import verification
from runtime.shard.auth import resolve
from storage.store import Scope, Snapshot
from storage.text import passages
from tests.simulation.state import Access, Account
from tests.simulation.world import World


class Audit:
    """Looks at a world past its operations. `hold` takes whether something holds, and what is told
    if not.
    """

    def __init__(self, world: World, hold: Callable[[bool, str], None]):
        self._world, self._hold = world, hold

    def usage(self, account: Account, who: Access) -> None:
        """Every write that took effect was charged once, and all ways to count agree. A crash may
        lose charges of searches.
        """
        world = self._world
        with world.shard.store.snapshot() as snapshot:
            principal, scope = self.resolved(who, snapshot)
            ctx = ReadContext(
                snapshot,
                scope,
                Call("look", scope.slot, world.now_ms, b"", "r"),
                world.shard.environment,
                principal,
            )
            audits = [
                metering.audit(ctx, period) for (period,), _ in ctx[metering.USAGE_PERIODS].scan()
            ]
            shares = [
                (name, row.credits)
                for (_, kind, name), row in ctx[metering.USAGE_SHARES].scan()
                if kind == "operation"
            ]
        self._hold(all(audit["consistent"] for audit in audits), f"{account.email}: usage {audits}")
        spent = sum(credits for name, credits in shares if not name.startswith("search."))
        self._hold(
            spent == account.spent, f"{account.email}: writes cost {spent}, not {account.spent}"
        )

    def verify(self) -> None:
        """Every check that a plugin or the runtime declares holds, whatever was going on when the
        process ended.
        """
        shard = self._world.shard
        with shard.store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                found = verification.examine(
                    snapshot, shard.environment, account, self._world.now_ms
                )
                self._hold(
                    not found,
                    f"{account}: "
                    + "; ".join(f"{finding.table}: {finding.what}" for finding in found),
                )

    def rows(self, account: Account, who: Access) -> None:
        """With nothing left to do, the tables hold what can be seen and nothing else."""
        alive = account.readable(self._world.now_ms)
        with self._world.shard.store.snapshot() as snapshot:
            scope = self.resolved(who, snapshot)[1]
            rows = {
                table.name: snapshot.bind(table, scope).count()
                for table in (MEMORIES, MEMORY_IDS, MEMORIES_HIDDEN, MEMORY_EXPIRY)
            }
            rows |= {
                table.name: snapshot.bind(table, scope).count()
                for table in (MEMORY_HISTORY, DROPPED_COLLECTIONS)
            }
            rows["text"] = MEMORY_TEXT.bind(snapshot, scope).stats().documents
            rows["vectors"] = MEMORY_VECTORS.bind(snapshot, scope).count(self._world.embedder.space)
            rows["chunks"] = MEMORY_CHUNKS.bind(snapshot, scope).count(self._world.embedder.space)
            rows |= {
                index.name: snapshot.bind(index.records, scope).count()
                for index in (CHUNK_RUNS, CHUNK_OWNERS)
            }
            rows["live"] = len(MEMORY_FIELDS.bind(snapshot, scope).of("live", 1))
            rows["pending"] = len(MEMORY_FIELDS.bind(snapshot, scope).of("pending", 1))
            ids, collections = (
                snapshot.bind(COLLECTION_IDS, scope).count(),
                snapshot.bind(COLLECTIONS, scope).count(),
            )
        expected = dict.fromkeys(("memories", "memory_ids", "text", "vectors", "live"), len(alive))
        further = [
            len(passages(memory.content, PASSAGE_TOKENS_MAX, PASSAGES_PER_MEMORY_MAX)) - 1
            for memory in alive
        ]
        expected |= dict.fromkeys(("chunks", "memory_chunk_owners"), sum(further)) | {
            "memory_chunk_runs": sum(map(bool, further))
        }
        expected |= dict.fromkeys(("memories_hidden", "dropped_collections", "pending"), 0)
        expected["memory_expiry"] = sum(memory.expires_at is not None for memory in alive)
        expected["memory_history"] = sum(len(memory.versions) - 1 for memory in alive)
        self._hold(rows == expected, f"{account.email}: rows {rows}, not {expected}")
        self._hold(
            ids == collections,
            f"{account.email}: {ids} collection ids for {collections} collections",
        )

    def resolved(self, who: Access, snapshot: Snapshot) -> tuple[Principal, Scope]:
        """Whose access this is, and where their rows are."""
        world = self._world
        credential, slot = read_authorization(f"Bearer {who.text}", world.secrets, world.now_ms)
        return resolve(snapshot, slot, credential, world.now_ms, world.secrets)
