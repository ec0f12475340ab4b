"""An account of the service in a store that a schedule writes to: wherever the store comes back, it has to agree with itself."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import serve_app
from runtime import auth, verification
from runtime.errors import NotFound
from runtime.inference import Models
from runtime.operation import Call, Environment, WriteContext
from runtime.outbound import Outbound
from storage.table import Store, Transaction
from tests.plugins import Desk
from tests.plugins.embedding import WordEmbedder
from tests.storage.log_world import WORDS, Kind


class Accounts:
    """Made once, in a directory of its own; `begin` gives each schedule a store with the account in it."""

    def __init__(self, directory: Path):
        self._directory = directory
        desk = Desk(directory, serve_app.PLUGINS, Models(WordEmbedder()))
        token = desk.register()
        for number in range(3):
            assert desk("memories.create_raw", {"content": f"The ferry {number} leaves at dawn."}, who=token).status in (201, 202)
        desk.settle()
        self._scope = desk.scope_of(token)
        self._environment = Environment(desk.registry, desk.settings, desk.secrets, Outbound(allow_private_networks=False))
        self._now_ms, self._written = desk.now_ms, 0
        self.kind = Kind((WORDS, *desk.registry.tables.values()), desk.shard.identity, desk.secrets.service)
        desk.close()

    def begin(self, directory: Path) -> None:
        shutil.copytree(self._directory, directory)

    def remember(self, store: Store) -> str:
        """Store one more memory, as the shard would while no model embeds it; -> its id."""
        self._written += 1
        return self._write(store, "memories.create_raw", {"content": f"Parcel {self._written} went to the depot."}).resource_id

    def forget(self, store: Store, memory_id: str) -> None:
        """Delete a memory, if the store still has it."""
        with contextlib.suppress(NotFound):
            self._write(store, "memories.delete", None, id=memory_id)

    def findings(self, store: Store) -> list[str]:
        """What `mneme admin verify` finds wrong in the store."""
        found = []
        with store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                found += [str(each) for each in verification.examine(snapshot, self._environment, account, self._now_ms)]
        return found

    def _write(self, store: Store, name: str, body: dict | None, **path: str):  # type: ignore[no-untyped-def]
        operation, slot = self._environment.registry.operations[name], self._scope.slot
        self._now_ms += 1
        call = Call(name, slot, self._now_ms, self._now_ms.to_bytes(32, "big"), "schedule", path=path)

        def work(transaction: Transaction):  # type: ignore[no-untyped-def]
            principal, scope = auth.tenant(transaction, slot, self._scope.tenant)
            ctx = WriteContext(transaction, scope, call, self._environment, principal)
            return operation.handler(ctx, body and operation.body.model_validate(body))

        return store.write(work).result
