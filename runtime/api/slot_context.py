"""Contexts of work that serves no single tenant: of a slot with all its accounts, and of the
operator.

The shard hands them to what declares that it needs them, and to nothing else:

    SlotReadContext      a public operation with `accounts=True`: it looks for an account by what
    SlotWriteContext     the caller says, or makes one; and a job with `accounts=True`
    OperatorReadContext  an internal operation: the caller has the operator token
    OperatorWriteContext

Each is bound to the slot itself. From a slot's context `within` leads to one of its accounts; what
is found there is an ordinary context, which leads nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from runtime.account_work import Work, account_work
from runtime.api.call import Principal
from runtime.api.context import ReadContext, WriteContext
from runtime.installation import Secrets
from storage.indexes import forget_tenants
from storage.store import BoundTable, Scope, StoreError, Table


class SlotReadContext(ReadContext):
    """A ReadContext of a slot: its own tables, those of level "slot" among them, and its
    accounts.
    """

    @property
    def secrets(self) -> Secrets:
        return self._environment.secrets

    def within(self, principal: Principal, scope: Scope) -> ReadContext:
        """The context of one account of this slot, on the same snapshot."""
        return self._seen_as(ReadContext, principal, self._mine(scope))

    def _bind(self, table: Table) -> BoundTable:
        return self._reader.bind(table, self._scope)

    def _mine(self, scope: Scope) -> Scope:
        if scope.slot != self._scope.slot:
            raise PermissionError(f"slot {scope.slot} is not slot {self._scope.slot}")
        return scope


class SlotWriteContext(SlotReadContext, WriteContext):
    """A SlotReadContext inside the one write transaction."""

    def within(self, principal: Principal, scope: Scope) -> WriteContext:
        """The context of one account of this slot, in the same transaction."""
        return self._seen_as(WriteContext, principal, self._mine(scope))

    def answer_for(self, scope: Scope) -> None:
        """The reply is this account's: where a repeated Idempotency-Key is answered with it, it
        lies sealed as the account's own.
        """
        self._answers = self._mine(scope)

    def rows_of(self, table: Table, number: int) -> BoundTable:
        """The rows of an account of the slot that nobody opens any more, to be deleted."""
        return self._reader.bind(table, Scope(self._scope.slot, number))

    def tables_of_nobody(self) -> list[Table]:
        """The tables that the store has and no plugin declares: those of one that was removed. What
        they hold of an account is not opened, only found.
        """
        names = sorted(self._reader.store.places.keys() - self.registry.tables.keys())
        return [Table(name, key=("key",), row=bytes) for name in names]

    def shred(self, number: int) -> None:
        """Overwrite the data key of an account of the slot. What it sealed is noise from now on,
        and nothing of the account stays in memory.
        """
        store, scope = self._reader.store, Scope(self._scope.slot, number)
        if store.keys is None:
            raise StoreError("a store without the service key has no keys to shred")
        store.keys.shred(scope.prefix)
        forget_tenants(store, self.registry.indexes.values(), [scope], files=True)


class BusyAccount(NamedTuple):
    """within: its slot, where `number` is its row in TENANTS; work: what it took in so many
    seconds.
    """

    within: SlotReadContext
    number: int
    work: Work
    seconds: float
    resident_bytes: int


class OperatorReadContext(SlotReadContext):
    """What the operator sees: every slot of the shard."""

    def busiest(self, count: int) -> Iterator[BusyAccount]:
        """The accounts of the shard that took most of it of late, the first ones first."""
        accounts, seconds = account_work().busiest(
            count, lambda who: self._environment.owns(who[0])
        )
        for (slot, number), work in accounts:
            within = self._seen_as(SlotReadContext, self.principal, Scope.of_slot(slot))
            held = self._reader.store.residents.bytes_of(Scope(slot, number))
            yield BusyAccount(within, number, work, seconds, held)

    def slots(self) -> Iterator[tuple[int, SlotReadContext]]:
        """Each slot that the shard owns and that has rows, in order."""
        for slot in filter(self._environment.owns, self._reader.slots()):
            yield slot, self._seen_as(SlotReadContext, self.principal, Scope.of_slot(slot))


class OperatorWriteContext(OperatorReadContext, SlotWriteContext):
    """An OperatorReadContext inside the one write transaction."""

    def mend(self, number: int) -> tuple[int, list[Any]]:
        """Repair what derives from the rows of an account of the slot (0: from the slot's own);
        -> (repairs made, findings left).
        """
        return self._environment.mend(self, self._reader, self._environment, number)

    def beside(self, principal: Principal, scope: Scope) -> SlotWriteContext:
        """As `within`, with the tables of the slot at hand: for what must agree between both."""
        return self._seen_as(SlotWriteContext, principal, self._mine(scope))
