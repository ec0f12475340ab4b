"""Where every call begins: the head that reads, writes and flows share, and what they are made of.

    credential, scope, ceilings   `admit`: who calls, and whether one more call may come in
    a repeated Idempotency-Key    what the first request with it was answered
    the key                       held while the call runs, where its twin is told to wait
    standing                      what costs credits is refused to a suspended account
    the month's credits           held until it is known what the call costs
    load                          what the operation reads before slow work; a heavy one does it
                                  apart (runtime/shard/heavy_reads.py)

`enter` takes these steps in that order, on one snapshot, and what a call held is given back where a
step refuses it. Credential and key are looked at once more in a write's transaction, since both may
have changed by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from runtime.account_work import account_work
from runtime.api import metering, tenants
from runtime.api.context import Environment, ReadContext, WriteContext
from runtime.api.operation import NOBODY, Call, Idempotency, Kind, Operation, Principal, Reply
from runtime.api.plugin import Registry
from runtime.api.slot_context import (
    OperatorReadContext,
    OperatorWriteContext,
    SlotReadContext,
    SlotWriteContext,
)
from runtime.errors import PermissionDenied, RateLimited, Unauthenticated
from runtime.inference import Models
from runtime.long_work import cores
from runtime.placement import SlotGate
from runtime.shard import auth, idempotency
from runtime.shard.admission import Admission, Reservation
from runtime.shard.durability import Durability
from runtime.shard.holds import Held, Holds
from runtime.shard.usage_buffer import UsageBuffer
from runtime.shard.writer import Ended, WriteOutcome, Writer
from storage.store import Reader, Scope, Snapshot, Store, Transaction


@dataclass(slots=True)
class Parts:
    """What an open shard is made of, for all that work on it.

    models      None where no plugin asks a model
    durability  the shard's log in object storage; None without
    now_ms      the shard's clock, Unix milliseconds
    """

    registry: Registry
    environment: Environment
    models: Models | None
    store: Store
    gate: SlotGate
    admission: Admission
    usage: UsageBuffer
    writer: Writer
    durability: Durability | None
    now_ms: Callable[[], int]


@dataclass(slots=True)
class Entered:
    """A call that was let in. ctx.prepared is what `load` gave.

    replayed  what the first request with its key was answered; then it holds nothing
    held      the key that it holds
    """

    ctx: OperatorReadContext
    reservation: Reservation
    replayed: Reply | None = None
    held: Held | None = None


class Head:
    def __init__(self, parts: Parts, holds: Holds):
        self._parts, self._holds, self._keys = parts, holds, auth.KeysInUse()

    def authorise_only(self, operation: Operation, call: Call) -> Reply:
        """Answer a preflight: whether the call is let in, and as whom, before its body is read."""
        with self._parts.store.snapshot() as snapshot:
            principal, _, reservation = self.admit(snapshot, operation, call)
        reservation.release()
        return Reply(200, {"tenant_id": principal.tenant_id}).encoded()

    def enter(
        self,
        snapshot: Snapshot,
        operation: Operation,
        call: Call,
        owner: bytes | None = None,
        *,
        loads: bool = True,
    ) -> Entered:
        """Let the call in, or raise what refuses it.

        owner  of the key, where that may be held longer than the shard knows of the call
        loads  whether to take the last step; else `load` takes it, or another process
        """
        parts, held = self._parts, None
        principal, scope, reservation = self.admit(snapshot, operation, call)
        cores().asked((scope.slot, scope.tenant))
        ctx = reading(operation)(snapshot, scope, call, parts.environment, principal)
        if call.idempotency_key is not None:
            replayed = self._replayed(ctx, snapshot, operation, call, reservation)
            if replayed is not None:
                return Entered(ctx, reservation, replayed)
            if operation.idempotency is Idempotency.CACHED:  # canonical twins queue up instead
                held = key_of(ctx, call.idempotency_key)
                gone = self._holds.take(held, call.fingerprint, owner)
                if gone is not None:
                    parts.admission.resume(gone).release()
        try:
            if reservation.credits:
                _check_standing(ctx, operation)
                self._reserve_credits(reservation, ctx, snapshot)
            if loads:
                load(operation, ctx)
        except BaseException:
            if held is not None:
                self._holds.release(held)
            reservation.release()
            raise
        return Entered(ctx, reservation, None, held)

    def admit(
        self, reader: Reader, operation: Operation, call: Call
    ) -> tuple[Principal, Scope, Reservation]:
        """Credential, scope of the operation, ceilings; then an error the gateway had already
        found.

        Part of a flow that was admitted as a whole passes without being counted, and costs nothing.
        """
        principal, scope = self.identify(reader, operation, call)
        if principal is not None:
            auth.authorise(principal, operation, call.body)
        if call.flow:
            return principal, scope, Reservation()
        try:
            reservation = self._parts.admission.admit(principal, operation, call)
        except RateLimited:
            self._parts.usage.refused(principal, call.now_ms)
            raise
        if not reservation.credits:
            self._count_request(principal, call)
        if call.rejected is not None:
            raise call.rejected
        return principal, scope, reservation

    def identify(
        self,
        reader: Reader,
        operation: Operation,
        call: Call,
        begun: Reservation | None = None,
        keys: auth.KeysInUse | None = None,
    ) -> tuple[Principal, Scope]:
        """Who calls, and on whose rows it acts.

        begun  of a flow that ends; where its credential is gone by then, whose account is there
               still, that is whoever began it
        keys   what is known of keys in a transaction that changes none of them
        """
        secrets = self._parts.environment.secrets
        if operation.internal:
            auth.authorise_operator(call.credential)
        if operation.scope == "public" or operation.internal:
            # No tenant yet: the operation acts on the slot, under a key of the service.
            return NOBODY, tenants.slot_itself(call.slot, secrets)[1]
        credential = call.credential
        keys = keys if reader.writable else self._keys
        try:
            if credential is not None and credential.kind == "key" and keys is not None:
                return keys.resolve(reader, call.slot, credential, call.now_ms)
            return auth.resolve(reader, call.slot, credential, call.now_ms, secrets)
        except Unauthenticated:
            account = None if begun is None else begun.account
            if account is None:
                raise
            if tenants.open_account(reader, call.slot, account[0].tenant_number) is None:
                raise
            return account

    def again(
        self,
        transaction: Transaction,
        operation: Operation,
        call: Call,
        prepared: Any,
        begun: Reservation | None = None,
        keys: auth.KeysInUse | None = None,
    ) -> OperatorWriteContext:
        """The context of the call's own transaction. Slot and credential are looked at once more.
        For `begun` and `keys` see identify.
        """
        self._parts.gate.check(call.slot, admitted=True)
        principal, scope = self.identify(transaction, operation, call, begun, keys)
        return writing(operation)(
            transaction, scope, call, self._parts.environment, principal, prepared
        )

    def ended(self, reservation: Reservation, scope: Scope) -> Ended:
        """What the writer calls when a call's transaction is over: what it held becomes what it
        used.
        """

        def ended(outcome: WriteOutcome | None) -> None:
            if outcome is not None and reservation.guess is not None:
                reservation.guess.right()
                reservation.guess = None
            reservation.release()
            if outcome is not None and outcome.metered:
                self._parts.admission.metered(scope, outcome.metered, outcome.sequence)

        return ended

    async def replay(self, entered: Entered) -> Reply:
        """What the first request with the call's key was answered, once searches find what it did:
        its commit may still be on its way.
        """
        assert entered.replayed is not None
        scope = entered.ctx.scope
        account = scope.slot, scope.tenant
        await self._parts.writer.until_fed(entered.replayed.sequence, account)
        return entered.replayed

    def _replayed(
        self,
        ctx: OperatorReadContext,
        reader: Reader,
        operation: Operation,
        call: Call,
        reservation: Reservation,
    ) -> Reply | None:
        """What the first request with the call's key was answered. It costs nothing, but it was a
        request.
        """
        replayed = idempotency.replay(ctx, reader, operation, call)
        if replayed is None:
            return None
        if reservation.credits:
            self._count_request(ctx.principal, call)
        reply = formed(operation, replayed)
        reply.sequence = reader.sequence
        return reply

    def _reserve_credits(self, reservation: Reservation, ctx: ReadContext, reader: Reader) -> None:
        """The month's part of admission; it comes after a repeated key was answered, since a replay
        costs nothing.
        """
        parts, principal, call = self._parts, ctx.principal, ctx.call
        parts.usage.check_room()
        try:
            parts.admission.reserve(reservation, principal, reader, ctx.scope, call.now_ms)
        except RateLimited:
            parts.usage.refused(principal, call.now_ms)
            raise
        self._count_request(principal, call)

    def _count_request(self, principal: Principal, call: Call) -> None:
        if not call.admitted:  # else its preflight was
            self._parts.usage.request(principal, call.operation, call.now_ms, call.client)
            if principal is not None:
                account_work().note((call.slot, principal.tenant_number), calls=1)
        if principal is not None and not call.preflight:
            self._parts.usage.begun(principal, call)


def _check_standing(ctx: ReadContext, operation: Operation) -> None:
    """What costs credits is for accounts in good standing, but for reads. Raises
    PermissionDenied.
    """
    held = None if operation.kind is Kind.READ else tenants.suspension(ctx)
    if held is not None:
        raise PermissionDenied(held.reason)


def reading(operation: Operation) -> type[OperatorReadContext]:
    """The kind of context that an operation's reading functions are given: typed as the widest,
    which is what their declaration says.
    """
    if operation.internal:
        return OperatorReadContext
    return cast(Any, SlotReadContext if operation.accounts else ReadContext)


def writing(operation: Operation) -> type[OperatorWriteContext]:
    """The kind of context that a write's handler is given, typed as the widest."""
    if operation.internal:
        return OperatorWriteContext
    return cast(Any, SlotWriteContext if operation.accounts else WriteContext)


def key_of(ctx: ReadContext, key: str) -> Held:
    """The key under which a caller's Idempotency-Key is held."""
    return ctx.scope.slot, ctx.scope.tenant, idempotency.key_hmac(ctx, key)


def load(operation: Operation, ctx: OperatorReadContext) -> None:
    """What the operation reads before slow work, in its context; a heavy one does it apart."""
    if operation.load is not None and not operation.is_heavy(ctx.call):
        ctx.prepared = operation.load(ctx, ctx.call.body)


def formed(operation: Operation, result: Any) -> Reply:
    """What a handler returned -> an encoded Reply."""
    if isinstance(result, Reply):
        return result.encoded()
    return Reply(operation.statuses[0], result).encoded()


def close(ctx: WriteContext, operation: Operation, reply: Reply) -> None:
    """The end of a call's transaction: its key is bound to the reply, and it is charged."""
    close_each([ctx], operation, [reply])


def close_each(
    contexts: Sequence[WriteContext], operation: Operation, replies: Sequence[Reply]
) -> None:
    """As close, of calls of one account in one transaction."""
    for ctx, reply in zip(contexts, replies, strict=True):
        idempotency.remember(ctx, operation, ctx.call, reply)
    metering.charge_calls(contexts, operation.name)
