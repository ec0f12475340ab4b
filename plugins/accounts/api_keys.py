"""API keys of an account: minted, listed, deleted, and what must agree about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from plugins.accounts import limits
from plugins.accounts.models import (
    KeyUsage,
    ListedApiKey,
    MintedApiKey,
    NewApiKey,
)
from plugins.accounts.sessions import check_fresh
from runtime import ids
from runtime.api import tenants
from runtime.api.checks import Counter, Derived, Finding, delete, last_ordinal, named
from runtime.api.context import ReadContext, WriteContext
from runtime.api.operation import Reply
from runtime.api.pagination import envelope, position
from runtime.errors import (
    BadRequest,
    NotFound,
    ValidationFailed,
)
from runtime.timestamps import iso
from storage.store import Table

API_KEY_SHOWN_CHARS = (
    len(ids.KEY_PREFIX) + 12
)  # four of slot, eight that tell the account's keys apart


class ApiKeyRow(msgspec.Struct):
    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    digest: bytes
    created_at: int
    expires_at: int | None = None


API_KEYS: Table[ApiKeyRow] = Table(
    "api_keys", key=("ordinal",), row=ApiKeyRow, doc="API keys of an account, without their text"
)
API_KEY_IDS: Table[bytes] = Table(
    "api_key_ids", key=("key_id",), row=bytes, doc="key id to ordinal, 4 bytes big endian"
)


def create_api_key(ctx: WriteContext, body: NewApiKey) -> Reply:
    check_fresh(ctx)
    if body.expires_at is not None and body.expires_at <= ctx.now:
        raise ValidationFailed.at(("body", "expires_at"), "Must lie in the future.")
    return mint(ctx, body.name, body.scopes, body.expires_at)


def mint(ctx: WriteContext, name: str, scopes: Sequence[str], expires_at: int | None) -> Reply:
    if ctx[API_KEYS].count() >= limits.API_KEYS_PER_TENANT_MAX:
        raise BadRequest(
            f"An account has at most {limits.API_KEYS_PER_TENANT_MAX} API keys; delete one first."
        )
    key, digest = tenants.make_key(ctx)
    row = ApiKeyRow(
        id=ctx.new_id("key"),
        name=name,
        prefix=key[:API_KEY_SHOWN_CHARS],
        scopes=tuple(scope for scope in tenants.SCOPES if scope in scopes),
        digest=digest,
        created_at=ctx.now,
        expires_at=expires_at,
    )
    ordinal = ctx.next_ordinal("api_keys")
    ctx[API_KEYS].put((ordinal,), row)
    ctx[API_KEY_IDS].put((row.id,), ordinal.to_bytes(4, "big"))
    tenants.open_with(ctx, digest, row.id, row.scopes, expires_at)
    ctx[tenants.KEY_USAGE].put((row.id,), tenants.KeyUsageRow())
    return Reply(201, MintedApiKey(**_key_view(row), key=key), resource_id=row.id)


def list_api_keys(ctx: ReadContext, body: None) -> dict[str, Any]:
    limit = ctx.query.limit
    found = list(ctx[API_KEYS].scan(before=position(ctx), reverse=True, limit=limit + 1))
    page = found[:limit]
    items = [listed_key(ctx, row) for _, row in page]
    return envelope(ctx, items, page[-1][0] if len(found) > limit else None, ctx[API_KEYS].count())


def delete_api_key(ctx: WriteContext, body: None) -> Reply:
    missing = NotFound("There is no API key with this id; list yours with GET /v1/auth/api-keys.")
    key_id = ctx.check_id("key", ctx.path["id"], missing)
    ordinal = ctx[API_KEY_IDS].get(key_id)
    if ordinal is None:
        raise missing
    number = int.from_bytes(ordinal, "big")
    _delete(ctx, number, ctx[API_KEYS].row(number))
    return Reply(204)


def delete_all_keys(ctx: WriteContext) -> None:
    """Refuse every key of the account from now on."""
    for (ordinal,), row in list(ctx[API_KEYS].scan()):
        _delete(ctx, ordinal, row)


def _delete(ctx: WriteContext, ordinal: int, row: ApiKeyRow) -> None:
    tenants.revoke(ctx, row.digest)
    ctx[tenants.KEY_USAGE].delete(row.id)
    ctx[API_KEYS].delete(ordinal)
    ctx[API_KEY_IDS].delete(row.id)


def _key_view(row: ApiKeyRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "prefix": row.prefix,
        "scopes": list(row.scopes),
        "created_at": iso(row.created_at),
        "expires_at": None if row.expires_at is None else iso(row.expires_at),
    }


def listed_key(ctx: ReadContext, row: ApiKeyRow) -> ListedApiKey:
    used = ctx[tenants.KEY_USAGE].get(row.id) or tenants.KeyUsageRow()
    return ListedApiKey(
        **_key_view(row),
        last_used_at=None if used.last_used_at is None else iso(used.last_used_at),
        usage=KeyUsage(requests=used.requests, credits=used.credits),
    )


def _keys_open(ctx: ReadContext) -> Iterator[Finding]:
    """The invariant of this module: a listed key opens the account, and no other key does."""
    name = tenants.CREDENTIALS.name
    owed = {row.digest: row for _, row in ctx[API_KEYS].scan()}
    for digest, found in tenants.own_credentials(ctx):
        row = owed.pop(digest, None)
        if row is None or found != tenants.own_credential(ctx, row.id, row.scopes, row.expires_at):
            yield Finding(
                name,
                f"{named((digest,))} is listed otherwise or not at all",
                partial(tenants.revoke, digest=digest),
            )
    for digest, row in owed.items():
        yield Finding(
            name,
            f"key {row.id} is listed and does not open",
            partial(
                tenants.open_with,
                digest=digest,
                key_id=row.id,
                scopes=row.scopes,
                expires_at=row.expires_at,
            ),
        )


def _usage_of_nothing(ctx: ReadContext) -> Iterator[Finding]:
    for key, _ in ctx[tenants.KEY_USAGE].scan():
        if not ctx[API_KEY_IDS].has(*key):
            yield Finding(
                tenants.KEY_USAGE.name, f"{key[0]} is no key", delete(tenants.KEY_USAGE, key)
            )


CHECKS = (
    Derived(API_KEY_IDS, API_KEYS, lambda ctx, key, row: [((row.id,), key[0].to_bytes(4, "big"))]),
    Counter("api_keys", last_ordinal(API_KEYS)),
    _keys_open,
    _usage_of_nothing,
)
