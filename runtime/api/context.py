"""What a handler is given: one tenant's tables and indexes, on a snapshot or inside the one write
transaction.

A context is bound to its tenant: each table and index that is reached through it begins every key
with that tenant's, and no public name of it leads to the rows of another. What the runtime needs
beside that, to find whose a key is or when a job is due, it reaches by private names, in functions
that do one thing each (tenants.py, erasures.py, jobs.py). Work that serves no single tenant has
contexts of its own (slot_context.py).

What the contexts of one shard share, the way to events and jobs among it, is their Environment; the
shard makes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from runtime import ids
from runtime.account_work import Work, account_work
from runtime.api.call import Call, Due, Event, Principal
from runtime.api.tiers import Offer
from runtime.errors import ApiError, NotFound, PermissionDenied
from runtime.installation import Secrets
from runtime.outbound import Outbound, OutboundOfAccount
from runtime.settings import Settings
from storage.store import BoundTable, Reader, Row, Scope, Table, Transaction

Ctx = TypeVar("Ctx", bound="ReadContext")
T = TypeVar("T")

COUNTERS: Table[bytes] = Table(
    "counters",
    key=("name",),
    row=bytes,
    doc="last number given out, 8 bytes big endian, by counter",
)


class Installed(Protocol):
    """What contexts know of what is installed: the Registry (runtime/api/plugin.py), whose
    declarations are functions of contexts.
    """

    @property
    def plugins(self) -> tuple[Any, ...]: ...
    @property
    def operations(self) -> Mapping[str, Any]: ...
    @property
    def tables(self) -> Mapping[str, Table]: ...
    @property
    def indexes(self) -> Mapping[str, Any]: ...
    @property
    def index_entries(self) -> Mapping[str, tuple[FurtherEntries, ...]]: ...
    @property
    def events(self) -> Mapping[str, Event]: ...
    @property
    def subscribers(self) -> Mapping[str, tuple[Subscriber, ...]]: ...
    @property
    def audiences(self) -> tuple[Audience, ...]: ...
    @property
    def figures(self) -> tuple[Figures, ...]: ...
    @property
    def access_counters(self) -> Mapping[str, AccessCounter]: ...
    @property
    def jobs(self) -> Mapping[str, Any]: ...
    @property
    def records(self) -> Mapping[str, Callable[[Any, str], bool]]: ...
    @property
    def retrievers(self) -> tuple[Any, ...]: ...
    @property
    def restore(self) -> Mapping[str, Any]: ...
    def offer(self, settings: Settings, /) -> Offer: ...


class Emit(Protocol):
    def __call__(
        self,
        ctx: WriteContext,
        event: Event,
        data: Mapping[str, Any] | BaseModel,
        resource_id: str,
        event_id: str | None,
        /,
    ) -> str: ...


class Enqueue(Protocol):
    def __call__(
        self,
        ctx: WriteContext,
        name: str,
        payload: Mapping[str, Any],
        /,
        *,
        delay_ms: int,
        group: str,
    ) -> str: ...


class Vocabulary(Protocol):
    """What an embedding model has met: the part of runtime/inference's Embedder that computes
    nothing worth waiting for, so that a snapshot may ask it.
    """

    def knows(self, word: str, /) -> bool: ...
    def spellings(self, word: str, /) -> list[str]: ...
    def slips_undone(self, word: str, /) -> dict[str, float]: ...
    def taught(self, language: str, /) -> bool: ...


def no_vocabulary(space: str | None) -> Vocabulary:
    raise LookupError(f"this process has no model, thus none of the space {space!r}")


@dataclass(frozen=True, slots=True)
class Environment:
    """What every context of one shard shares.

    emit     (ctx, event, data, resource_id, its id or None) -> event id: how a write records an
             event (runtime/api/outbox.py)
    enqueue  (ctx, job, payload, delay_ms=, group=) -> job id: how a write adds a job
             (runtime/api/jobs.py)
    mend     (ctx, transaction, environment, number) -> (repairs made, findings left): how an
             operator has an account's rows repaired
    owns     whether a slot belongs to the shard, rather than being on its way
    vocabulary_of  (embedding space, None: the service's) -> what its model has met. LookupError in
                   a process without models
    """

    registry: Installed
    settings: Settings
    secrets: Secrets
    outbound: Outbound
    emit: Emit
    enqueue: Enqueue
    mend: Callable[[Any, Reader, Environment, int], tuple[int, list[Any]]]
    owns: Callable[[int], bool] = lambda _slot: True
    vocabulary_of: Callable[[str | None], Vocabulary] = no_vocabulary


class ReadContext:
    """What a handler sees: one tenant's tables and indexes on one snapshot.

    ctx[TABLE]         the table, bound to this tenant. PermissionError for a table of level "slot",
                       which has rows of others
    ctx.index(INDEX)   a declared index, bound the same way
    ctx.scope          the tenant's place in the store
    ctx.now            Unix milliseconds of the call
    ctx.principal      who asks; None (NOBODY) in public and internal operations alone, which act on
                       a slot. It is typed as what all others find
    ctx.prepared       what `prepare` (or else `load`) made
    ctx.prefetched     what `prefetch` found; None where it did not run
    ctx.after          for an `export` that goes on: the place its last record named; None at the
                       start
    """

    after: Any = None
    prefetched: Any = None

    def __init__(
        self,
        reader: Reader,
        scope: Scope,
        call: Call,
        environment: Environment,
        principal: Principal,
        prepared: Any = None,
    ):
        self._reader = reader
        self._scope = scope
        self._environment = environment
        self.call = call
        self.principal = principal
        self.prepared = prepared
        self.announced: list[tuple[Event, Callable[[], Mapping[str, Any]], str]] = []
        self.accessed: list[tuple[str, Any]] = []
        self._bound: dict[str, Any] = {}

    @property
    def scope(self) -> Scope:
        return self._scope

    @property
    def now(self) -> int:
        return self.call.now_ms

    @property
    def path(self) -> dict[str, str]:
        return self.call.path

    @property
    def query(self) -> Any:
        return self.call.query

    @property
    def settings(self) -> Settings:
        return self._environment.settings

    @property
    def registry(self) -> Installed:
        return self._environment.registry

    def work(self) -> tuple[Work, float]:
        """What the account took of this process of late, and in how many seconds."""
        return account_work().of((self._scope.slot, self._scope.tenant))

    @property
    def resident_bytes(self) -> int:
        """What of the account is in the memory of this process."""
        return self._reader.store.residents.bytes_of(self._scope)

    def vocabulary_of(self, space: str | None) -> Vocabulary:
        """What the model of an embedding space has met. LookupError in a process without models."""
        return self._environment.vocabulary_of(space)

    @property
    def sequence(self) -> int:
        """The commit that is read, or that this write will be."""
        return self._reader.sequence

    @property
    def outbound(self) -> OutboundOfAccount:
        """The account's way to addresses that users give; for `load`, to hand on to `prepare`."""
        return self._environment.outbound.of((self._scope.slot, self._scope.tenant))

    def __getitem__(self, table: Table[Row]) -> BoundTable[Row]:
        bound = self._bound.get(table.name)
        if bound is None:
            bound = self._bound[table.name] = self._bind(table)
        return bound

    def index(self, index: Any) -> Any:
        bound = self._bound.get(index.name)
        if bound is None:
            if self.registry.indexes.get(index.name) is not index:
                raise PermissionError(f"index {index.name!r} is declared by no plugin")
            bound = self._bound[index.name] = index.bind(self._reader, self._scope)
        return bound

    def _bind(self, table: Table) -> BoundTable:
        if table.level != "tenant":
            raise PermissionError(
                f"table {table.name!r} has rows of every account of the slot; this is the context "
                "of one"
            )
        return self._reader.bind(table, self._scope)

    def _of_slot(self, table: Table) -> BoundTable:
        """A table of level "slot", for functions of the runtime that touch one tenant's rows of
        it.
        """
        return self._reader.bind(table, self._scope)

    def digest(self, label: str, text: str) -> bytes:
        """16 bytes that stand for a text of this tenant in a table's key, which cannot be sealed;
        `label` keeps uses apart.
        """
        said = label.encode() + b"\0" + text.encode()
        return hashlib.blake2b(
            said, digest_size=16, key=self._reader.secret(self._scope), person=b"key"
        ).digest()

    def share(self, other: ReadContext) -> None:
        """Use the tables and indexes another context of the same tenant and snapshot has bound, and
        what they remember.
        """
        self._bound = other._bound

    def announce(
        self, event: Event, data: Callable[[], Mapping[str, Any]], resource_id: str
    ) -> None:
        """Emit an event after the reply, in a write of its own, if anyone waits for it; only then
        is `data` asked for, without a snapshot.

        The reply does not wait for that write, so a crash in between loses the event. What must not
        be lost belongs into a write.
        """
        if any(audience(self, event.kind) for audience in self.registry.audiences):
            self.announced.append((event, data, resource_id))

    def count_accesses(self, name: str, keys: Iterable[Any]) -> None:
        """Count a read's access to these keys. The counts are handed to the plugin that declares
        the counter, some seconds later.

        They are no promise: a crash loses those seconds', and where too many wait, further ones are
        dropped.
        """
        if name in self.registry.access_counters:
            self.accessed += [(name, key) for key in keys]

    def check_id(self, prefix: str, text: str, missing: ApiError | None = None) -> str:
        """The id itself when it could be this tenant's: 404 when malformed, 403 when its tag is
        another tenant's.
        """
        tag = ids.id_tag(prefix, text)
        if tag is None:
            raise missing or NotFound("There is nothing with this id.")
        if tag != self.principal.tag:
            raise PermissionDenied("This id belongs to another account.")
        return text

    def _seen_as(self, kind: type[Ctx], principal: Principal, scope: Scope) -> Ctx:
        """The same snapshot or transaction as a context of this kind and of somebody else."""
        ctx = object.__new__(kind)
        ctx.__dict__.update(self.__dict__, _scope=scope, principal=principal, _bound={})
        return ctx


class _TakenBack(Exception):
    """Ends a rehearsal, with what came of it."""

    def __init__(self, result: Any):
        self.result = result


class WriteContext(ReadContext):
    """A ReadContext inside the one write transaction, with effects.

    Everything done through it commits together or not at all: rows, postings, events, jobs, usage,
    the idempotency record.

    credits   what this call will be charged; set to the operation's weight before the handler runs,
              0 in jobs. A handler that did less, or a job that did something, sets it
    metered   by how much this transaction raised what its tenant has used or reserved
    outbox_is_swept  whether an event of this call has found no old ones left to delete
    """

    _reader: Transaction

    def __init__(self, *args: Any, **fields: Any):
        super().__init__(*args, **fields)
        self._made = [0]
        self._answers: Scope | None = None
        self.due: list[Due] = []
        self.credits = 0
        self.metered = 0
        self.outbox_is_swept = False

    @property
    def answers(self) -> Scope | None:
        """Whose the reply is, where an operation of the slot makes it for an account."""
        return self._answers

    def rehearse(self, work: Callable[[WriteContext], T]) -> T:
        """What `work(ctx)` returns when it is done in a child of this transaction, which is then
        taken back: nothing of it stays. `ctx` is another context, and this one's tables must not be
        used meanwhile.
        """
        try:
            with self._reader.child() as child:
                ctx = WriteContext(
                    child, self._scope, self.call, self._environment, self.principal, self.prepared
                )
                raise _TakenBack(work(ctx))
        except _TakenBack as taken_back:
            return taken_back.result

    def random(self, count: int) -> bytes:
        """`count` (≤ 64) bytes derived from the call's seed; for ids and secrets."""
        self._made[0] += 1
        return ids.derived_random(self.call.seed, self._made[0], count)

    def new_id(self, prefix: str) -> str:
        return ids.make_id(prefix, self.now, self.principal.tag, self.random(10))

    def next_ordinal(self, counter: str, count: int = 1) -> int:
        """0, 1, 2, … without gaps inside a committed history, or the first of `count` in a row;
        each tenant (or slot) has its own counters.
        """
        row = self[COUNTERS].get(counter)
        number = 0 if row is None else int.from_bytes(row, "big") + 1
        self[COUNTERS].put((counter,), (number + count - 1).to_bytes(8, "big"))
        return number

    def emit(
        self,
        event: Event,
        data: Mapping[str, Any] | BaseModel,
        resource_id: str,
        event_id: str | None = None,
    ) -> str:
        """Record an event in this transaction and run its subscribers; -> the event's id.

        event_id  a new_id("evt"), where a row that its subscribers may read holds it already
        """
        return self._environment.emit(self, event, data, resource_id, event_id)

    def enqueue(
        self, job: str, payload: Mapping[str, Any], *, delay_ms: int = 0, group: str = ""
    ) -> str:
        """Add a job row in this transaction; it runs after the commit, in its concurrency group if
        it has one. -> the job's id.
        """
        return self._environment.enqueue(self, job, payload, delay_ms=delay_ms, group=group)


# Functions that plugins declare (runtime/api/plugin.py).
Subscriber = Callable[[WriteContext, str, str, Any, str], None]
Audience = Callable[[ReadContext, str], bool]
Figures = Callable[[ReadContext], Mapping[str, int]]
AccessCounter = Callable[[WriteContext, Mapping[Any, tuple[int, int]]], None]
FurtherEntries = Callable[[Any], Iterable[tuple[str, Any]]]
