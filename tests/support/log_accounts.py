"""An account of the service in a store that a schedule writes to: wherever the store comes back, it
has to agree with itself.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import serve_app
from runtime.api import tenants
from runtime.api.context import WriteContext
from runtime.api.operation import Call
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.shard import verification
from storage.store import Store, Transaction
from tests.support.embedding import WordEmbedder
from tests.support.log_world import WORDS, Kind
from tests.support.shard_harness import ShardHarness


class Accounts:
    """Made once, in a directory of its own; `begin` gives each schedule a store with the account in
    it.
    """

    def __init__(self, directory: Path):
        self._directory = directory
        harness = ShardHarness(directory, serve_app.PLUGINS, Models(WordEmbedder()))
        token = harness.register()
        for number in range(3):
            assert harness(
                "memories.create_raw", {"content": f"The ferry {number} leaves at dawn."}, who=token
            ).status in (201, 202)
        harness.settle()
        self._scope = harness.scope_of(token)
        self._environment = harness.shard.environment
        self._now_ms, self._written = harness.now_ms, 0
        self.kind = Kind(
            (WORDS, *harness.registry.tables.values()),
            harness.shard.identity,
            harness.secrets.service,
        )
        harness.close()

    def begin(self, directory: Path) -> None:
        shutil.copytree(self._directory, directory)

    def remember(self, store: Store) -> str:
        """Store one more memory, as the shard would while no model embeds it; -> its id."""
        self._written += 1
        return self._write(
            store, "memories.create_raw", {"content": f"Parcel {self._written} went to the depot."}
        ).resource_id

    def forget(self, store: Store, memory_id: str) -> None:
        """Delete a memory, if the store still has it."""
        with contextlib.suppress(NotFound):
            self._write(store, "memories.delete", None, id=memory_id)

    def findings(self, store: Store) -> list[str]:
        """What `mneme admin verify` finds wrong in the store."""
        found = []
        with store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                found += [
                    str(each)
                    for each in verification.examine(
                        snapshot, self._environment, account, self._now_ms
                    )
                ]
        return found

    def _write(self, store: Store, name: str, body: dict | None, **path: str):  # type: ignore[no-untyped-def]
        operation, slot = self._environment.registry.operations[name], self._scope.slot
        self._now_ms += 1
        call = Call(
            name, slot, self._now_ms, self._now_ms.to_bytes(32, "big"), "schedule", path=path
        )

        def work(transaction: Transaction):  # type: ignore[no-untyped-def]
            principal, scope = tenants.tenant(transaction, slot, self._scope.tenant)
            ctx = WriteContext(transaction, scope, call, self._environment, principal)
            return operation.handler(ctx, body and operation.body.model_validate(body))

        return store.write(work).result
