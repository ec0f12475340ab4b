"""Idempotency-Key: one logical write per key.

The record commits in the same transaction as the effect it stands for, so there is no state in
which one exists without the other, and no in-progress state on disk.

    canonical  the record binds key and fingerprint to a resource for good. A repeat reads the
               resource again: 202 becomes 201 once it is indexed, and 404 after a delete, since the
               record outlives what it made.
    cached     the record keeps the reply, sealed, for 24 hours, and repeats it byte for byte with
               X-Idempotent-Replay: true; 404 once a record that it is about was deleted.

The same key with another request is 409 in both. Failures store nothing, which releases the key.
What a public operation answered for an account (its registration) is sealed as that account's own,
and forgotten with it.

    idempotency         (HMAC of the key,)            -> IdempotencyRow
    idempotency_expiry  (expires_at, HMAC of the key) -> b""  in the order they expire
"""

from __future__ import annotations

import hmac
import re
from typing import Any

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from runtime.api import tenants
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Call, Idempotency, Operation, Reply
from runtime.api.slot_context import OperatorReadContext
from runtime.errors import Conflict, NotFound
from runtime.limits import EXPIRED_ROWS_SWEPT_PER_WRITE, REPLAY_WINDOW_SECONDS
from storage.store import Reader, Scope, Table


class IdempotencyRow(msgspec.Struct):
    fingerprint: bytes
    operation: str
    expires_at: int  # 0: never
    resource_id: str = ""
    reply: bytes = b""  # cached only: nonce ‖ AES-GCM of the encoded StoredReply
    tenant: int = 0  # whose key sealed the reply, where the record is the slot's
    about: list[str] = []  # cached only: ids in the reply, of records that could be read then


class StoredReply(msgspec.Struct):
    status: int
    body: bytes | None
    headers: dict[str, str]
    content_type: str


_decode_reply = msgspec.msgpack.Decoder(StoredReply).decode


IDEMPOTENCY: Table[IdempotencyRow] = Table(
    "idempotency",
    key=("key_hmac",),
    row=IdempotencyRow,
    doc="what an Idempotency-Key is bound to",
    version=2,  # 2: what a reply is about
)
IDEMPOTENCY_EXPIRY: Table[bytes] = Table(
    "idempotency_expiry", key=("expires_at", "key_hmac"), row=bytes, doc="cached records by expiry"
)
TABLES = (IDEMPOTENCY, IDEMPOTENCY_EXPIRY)
MIGRATIONS = {("idempotency", 1): lambda row: row}  # its reply is forgotten within a day

_NONCE_BYTES = 12
_ID = re.compile(rb"\b([a-z]{3})_[0-9a-z]{32}\b")


def key_hmac(ctx: ReadContext, key: str) -> bytes:
    """16 bytes under which a key is stored; the key's own text is kept nowhere."""
    # Callers without an account share a slot, so their address keeps their keys apart.
    caller = ctx.call.client if ctx.principal is None else ""
    return hmac.digest(
        ctx.scope.key, b"idempotency:" + caller.encode() + b"\0" + key.encode(), "sha256"
    )[:16]


def replay(
    ctx: OperatorReadContext, reader: Reader, operation: Operation, call: Call
) -> Reply | None:
    """The answer to a repeated key, or None when the key is new. Raises Conflict when the request
    differs, NotFound when what it made, or was answered with, was deleted.
    """
    if call.idempotency_key is None or operation.idempotency is Idempotency.NONE:
        return None
    digest = key_hmac(ctx, call.idempotency_key)
    row = ctx[IDEMPOTENCY].get(digest)
    if row is None or (row.expires_at and row.expires_at <= ctx.now):
        return None
    owner = (
        tenants.tenant(reader, ctx.scope.slot, row.tenant)
        if row.tenant
        else (ctx.principal, ctx.scope)
    )
    if owner is None:
        return None
    if row.fingerprint not in (call.fingerprint, call.fingerprint_before):
        raise different_request()
    if operation.idempotency is Idempotency.CANONICAL:
        assert operation.resource is not None  # the Registry saw to it
        return operation.resource(ctx, call.body, row.resource_id, call)
    records = ctx.registry.records
    if not all(records[each[:3]](ctx, each) for each in row.about):
        raise NotFound("What this request was answered with has been deleted since.")
    stored = _decode_reply(_open(owner[1], digest, row.reply))
    headers = {**stored.headers, "X-Idempotent-Replay": "true"}
    return Reply(stored.status, stored.body, headers, stored.content_type)


def remember(ctx: WriteContext, operation: Operation, call: Call, reply: Reply) -> None:
    """Bind the key to this successful reply (its body already encoded), in the write's own
    transaction.
    """
    if call.idempotency_key is None or operation.idempotency is Idempotency.NONE:
        return
    digest = key_hmac(ctx, call.idempotency_key)
    _sweep(ctx)
    if operation.idempotency is Idempotency.CANONICAL:
        row = IdempotencyRow(
            call.fingerprint, operation.name, 0, resource_id=reply.resource_id or ""
        )
    else:
        expires_at = ctx.now + REPLAY_WINDOW_SECONDS * 1000
        stored = StoredReply(reply.status, reply.body, reply.headers, reply.content_type)
        sealed = _seal(ctx, digest, msgspec.msgpack.encode(stored))
        tenant = 0 if ctx.answers is None else ctx.answers.tenant
        row = IdempotencyRow(
            call.fingerprint,
            operation.name,
            expires_at,
            reply=sealed,
            tenant=tenant,
            about=_readable_in(ctx, reply.body or b""),
        )
        ctx[IDEMPOTENCY_EXPIRY].put((expires_at, digest), b"")
    ctx[IDEMPOTENCY].put((digest,), row)


def _readable_in(ctx: WriteContext, body: bytes) -> list[str]:
    """The ids in a reply's body of records that can be read: of a deletion's, what is left."""
    if ctx.principal is None:  # public: what it answers is of no account's records yet
        return []
    records = ctx.registry.records
    found = {each[0].decode() for each in _ID.finditer(body) if each[1].decode() in records}
    return sorted(each for each in found if records[each[:3]](ctx, each))


def different_request() -> Conflict:
    return Conflict(
        "This Idempotency-Key was used for another request. Send a new key for a new request.",
        param="Idempotency-Key",
    )


def still_running() -> Conflict:
    return Conflict(
        "The first request with this Idempotency-Key is still running. Retry shortly.",
        param="Idempotency-Key",
        retry_after_seconds=1,
    )


def _cipher(scope: Scope) -> AESGCM:
    return AESGCM(hmac.digest(scope.key, b"idempotency-reply", "sha256"))


def _seal(ctx: WriteContext, digest: bytes, plain: bytes) -> bytes:
    nonce = ctx.random(_NONCE_BYTES)
    return nonce + _cipher(ctx.answers or ctx.scope).encrypt(nonce, plain, digest)


def _open(scope: Scope, digest: bytes, sealed: bytes) -> bytes:
    return _cipher(scope).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], digest)


def _sweep(ctx: WriteContext) -> None:
    """Remove a few cached records whose day is over, so that the table stays as small as a day's
    traffic.
    """
    expired: list[tuple[Any, ...]] = []
    for key, _ in ctx[IDEMPOTENCY_EXPIRY].scan(limit=EXPIRED_ROWS_SWEPT_PER_WRITE):
        if key[0] > ctx.now:
            break
        expired.append(key)
    for expires_at, digest in expired:
        ctx[IDEMPOTENCY_EXPIRY].delete(expires_at, digest)
        row = ctx[IDEMPOTENCY].get(digest)
        if row is not None and row.expires_at == expires_at:
            ctx[IDEMPOTENCY].delete(digest)
