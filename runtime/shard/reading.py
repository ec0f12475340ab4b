"""What a process beside a shard's own has of the shard: the store, to read it, the models, and the
same way of a read from `load` on.

It admits nobody, counts nothing and writes nothing; runtime/shard/readers.py says what it is asked
and told. What it is told comes in order: a change of an account that it may know before any call
that is to see it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from runtime.api.context import Environment, no_vocabulary
from runtime.api.operation import Call, Principal, Read, Reply
from runtime.api.plugin import Registry
from runtime.errors import ApiError
from runtime.inference import Models
from runtime.installation import Secrets
from runtime.settings import Settings
from runtime.shard.prepared_reads import PreparedReads
from runtime.shard.readers import Answered, account_bytes_max, reader_bytes_max
from storage.indexes import forget_tenants, load_kernels
from storage.store import Identity, Scope, Store


class ReadingShard:
    """A shard's store, opened to read beside the process that owns it. All methods are called on
    one event loop.
    """

    def __init__(
        self,
        directory: Path,
        registry: Registry,
        settings: Settings,
        models: Models | None,
        identity: Identity,
        secrets: Secrets,
        readers: int,
    ):
        """readers: how many the shard has."""
        load_kernels()
        self._registry = registry
        self.store = Store.open_to_read(
            directory,
            registry.tables.values(),
            identity=identity,
            map_bytes=settings.storage.map_bytes_max,
            service_key=secrets.service,
            earlier_keys=secrets.earlier_services,
        )
        self.store.residents.bytes_max = reader_bytes_max(settings, readers)
        self._account_bytes_max = account_bytes_max(settings, readers)
        environment = Environment(
            registry,
            settings,
            secrets,
            registry.outbound(settings),
            emit=_writes_nothing,
            enqueue=_writes_nothing,
            mend=_writes_nothing,
            vocabulary_of=no_vocabulary if models is None else models.embedder_of,
        )
        self._prepared = PreparedReads(self.store, environment, models)

    async def answer(self, call: Call, principal: Principal, scope: Scope) -> Answered:
        """What the shard's process would make of a call that it let in. Raises what is not a
        refusal.
        """
        operation = self._registry.operations[call.operation]
        assert isinstance(operation, Read)
        try:
            answered = await self._prepared.enter_and_run(operation, call, principal, scope)
        except ApiError as refused:
            return Answered(Reply(refused.status, error=refused.without_stack()), (), ())
        answered.reply.encoded()
        return answered

    def feed(self, sequence: int, notes: Mapping[str, list[tuple[Scope, Any]]]) -> None:
        """Take over what a commit changed of accounts that were asked about here."""
        self.store.saw(sequence)
        for name, changes in notes.items():
            self._registry.indexes[name].apply(self.store, changes)

    def follow_key(self, place: int) -> None:
        """Learn what the owner did to a record of the keyring; nothing stays here of its scope."""
        if self.store.keys is not None:
            prefix = self.store.keys.follow(place)
            self.forget(
                [Scope(int.from_bytes(prefix[:2], "big"), int.from_bytes(prefix[2:], "big"))]
            )

    def forget(self, scopes: Collection[Scope]) -> None:
        """Drop what is in memory of these accounts."""
        forget_tenants(self.store, self._registry.indexes.values(), scopes, files=False)

    def is_large(self, scope: Scope) -> bool:
        """Whether so much of the account is in memory here that it should be in one process
        alone.
        """
        return self.store.residents.bytes_of(scope) > self._account_bytes_max

    def close(self) -> None:
        self._prepared.close()
        self.store.close()


def _writes_nothing(*_: object, **__: object) -> Any:
    raise TypeError("a reader writes nothing")
