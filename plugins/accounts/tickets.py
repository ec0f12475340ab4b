"""Tickets: texts that let their holder do one thing once, such as to register.

A ticket is `mem_tk_` + 68 hex digits of 34 bytes: 2 bytes slot, 16 bytes id, 16 bytes MAC over
both, over what it is for, and over a state that it dies with. The id begins with the time at which
it expires, 6 bytes of Unix milliseconds, so tables under ids are in the order in which they expire.
Nothing is stored of a ticket but its id, from which nobody without the service's secret makes one.
"""

from __future__ import annotations

import hmac
import os

from runtime.api.slot_context import SlotReadContext, SlotWriteContext
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, SLOTS
from storage.store import Table

PREFIX = "mem_tk_"
TEXT_CHARS_MAX = 100
_TIME_BYTES, _RANDOM_BYTES, _MAC_BYTES = 6, 10, 16
_NUMBER_BYTES = 4
_ID_BYTES = _TIME_BYTES + _RANDOM_BYTES


def new_id(ctx: SlotWriteContext, lifetime_seconds: int) -> bytes:
    """The id of a ticket that is good for so long."""
    return expires_after(ctx, lifetime_seconds).to_bytes(_TIME_BYTES, "big") + ctx.random(
        _RANDOM_BYTES
    )


def id_about(ctx: SlotReadContext, lifetime_seconds: int, number: int) -> bytes:
    """The id of a ticket about the account of this number in the slot. It is no row's key."""
    random = os.urandom(_RANDOM_BYTES - _NUMBER_BYTES)
    expires_at = expires_after(ctx, lifetime_seconds)
    return expires_at.to_bytes(_TIME_BYTES, "big") + number.to_bytes(_NUMBER_BYTES, "big") + random


def about(text: str) -> int:
    """The number of the account that a ticket is about; 0, which no account has, where it is
    none.
    """
    ticket_id = id_of(text) or bytes(_ID_BYTES)
    return int.from_bytes(ticket_id[_TIME_BYTES : _TIME_BYTES + _NUMBER_BYTES], "big")


def expires_after(ctx: SlotReadContext, lifetime_seconds: int) -> int:
    return ctx.now + lifetime_seconds * 1000


def text_of(ctx: SlotReadContext, purpose: str, ticket_id: bytes, state: bytes = b"") -> str:
    """The ticket itself. `state` is what it dies with when that changes."""
    head = ctx.scope.slot.to_bytes(2, "big") + ticket_id
    return PREFIX + (head + _mac(ctx.secrets.service, purpose, head, state)).hex()


def slot_of(text: str) -> int:
    """The slot in a ticket's text; 0 for what is none, where nothing is found."""
    raw = _raw(text)
    slot = 0 if raw is None else int.from_bytes(raw[:2], "big")
    return slot if slot < SLOTS else 0


def id_of(text: str) -> bytes | None:
    """The id that a text claims to have; None where it has the form of no ticket."""
    raw = _raw(text)
    return None if raw is None else raw[2 : 2 + _ID_BYTES]


def is_good(ctx: SlotReadContext, purpose: str, text: str, state: bytes = b"") -> bool:
    """Whether it is a ticket of the service for this purpose that has not expired."""
    raw = _raw(text)
    if raw is None:
        return False
    head, mac = raw[: 2 + _ID_BYTES], raw[2 + _ID_BYTES :]
    genuine = any(
        [
            hmac.compare_digest(mac, _mac(secret, purpose, head, state))
            for secret in ctx.secrets.services
        ]
    )
    return genuine and int.from_bytes(head[2 : 2 + _TIME_BYTES], "big") > ctx.now


def sweep(ctx: SlotWriteContext, table: Table) -> None:
    """Forget a few rows under the ids of tickets that have expired."""
    for (ticket_id,) in list(ctx[table].keys(limit=EXPIRED_ROWS_SWEPT_PER_WRITE)):
        if int.from_bytes(ticket_id[:_TIME_BYTES], "big") <= ctx.now:
            ctx[table].delete(ticket_id)


def _raw(text: str) -> bytes | None:
    try:
        raw = bytes.fromhex(text.removeprefix(PREFIX)) if text.startswith(PREFIX) else b""
    except ValueError:
        return None
    return raw if len(raw) == 2 + _ID_BYTES + _MAC_BYTES else None


def _mac(secret: bytes, purpose: str, head: bytes, state: bytes) -> bytes:
    said = b"ticket:" + purpose.encode() + b"\0" + head + state
    return hmac.digest(secret, said, "sha256")[:_MAC_BYTES]
