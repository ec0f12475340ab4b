"""What travels between the gateway and a shard: a Call and its Reply, who calls, and what a call
leads to.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, cast

import orjson
from pydantic import BaseModel

from runtime.errors import ApiError, PreconditionFailed
from storage.blobs import Blob

# The stages of a flow in its shard, and the status of begin's reply when the flow may go on
# (runtime/http/flow.py).
BEGIN, KEEP, END, ABORT = "begin", "keep", "end", "abort"
BEGUN = 100


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A blob as the body of a reply; the gateway streams it."""

    owner: str
    blob: Blob


@dataclass(frozen=True, slots=True)
class Event:
    """A kind of webhook event and the model of its `data`."""

    kind: str
    model: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the tenant the credential belongs to, and what it may do.

    tenant_number is the tenant's number inside its slot (keys), tenant_id its public id ("usr_…"),
    tag its 4-byte id tag. scopes holds "read", "write", "admin" in expanded form. credential_id is
    the API key's id or the JWT's jti. created_at is when the tenant registered, Unix milliseconds.
    """

    slot: int
    tenant_number: int
    tenant_id: str
    tag: bytes
    tier: str
    scopes: frozenset[str]
    credential_id: str
    is_session: bool
    created_at: int = 0


# Who asks in public and internal operations: nobody. They act on a slot, and look at no principal.
NOBODY = cast(Principal, None)


@dataclass(frozen=True, slots=True)
class Credential:
    """What the gateway could read from the Authorization header: kind "key" (digest), "jwt"
    (claims) or "operator".

    earlier  digests of the key under peppers before the present one
    """

    kind: str
    digest: bytes = b""
    claims: dict[str, Any] = field(default_factory=dict)
    earlier: tuple[bytes, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return Credential, (self.kind, self.digest, self.claims, self.earlier)


@dataclass(frozen=True, slots=True)
class Signed:
    """The body of a request that carries a signature over its bytes: what was sent, and the signing
    header as it came.
    """

    content: bytes
    signature: str


@dataclass(slots=True)
class Call:
    """One request on its way to a shard. Plain data: it pickles, and running it twice gives the
    same result.

    now_ms   Unix milliseconds at the gateway, clock offset included
    seed     32 random bytes; every id the handler makes derives from them
    agent    what the caller's program calls itself (User-Agent); of public operations alone
    rejected an error found before the shard (validation): authentication and admission still come
    first
    preflight  only asks whether the call would be let in; its body has not been read. It counts
             against the ceilings
    admitted its preflight passed: the ceilings have counted it, all but the one that its body
             decides
    fingerprint  HMAC of method, route, path, query and canonical body; b"" without an
                 Idempotency-Key. fingerprint_before: that under the pepper before
    prefer   the parsed Prefer header, such as {"respond-async": ""} or {"wait": "5"}
    stage    of a flow in its shard: "begin", "end" or "abort"; `loaded` is what begin read, `reply`
             what the flow ends with. Of a public write, `loaded` is what its `before` answered
    flow     name of the flow that made this call; the flow was admitted and is paid for as a whole,
             so this call is neither counted nor charged
    trace    the span that it is part of, as a `traceparent` (runtime/tracing); "" where none is
             recorded
    """

    operation: str
    slot: int
    now_ms: int
    seed: bytes
    request_id: str
    credential: Credential | None = None
    body: Any = None
    query: Any = None
    path: dict[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    prefer: dict[str, str] = field(default_factory=dict)
    if_match: str | None = None
    client: str = ""
    agent: str = ""
    rejected: ApiError | None = None
    stage: str = ""
    loaded: Any = None
    reply: Reply | None = None
    flow: str = ""
    preflight: bool = False
    admitted: bool = False
    fingerprint_before: bytes = b""
    trace: str = ""

    def check_match(self, version: int, what: str) -> None:
        """Raise PreconditionFailed when an If-Match header names other versions than this, the
        present one of what is to be changed: `what`, such as "memory".
        """
        if self.if_match is None or self.if_match.strip() == "*":
            return
        if str(version) not in [
            tag.strip().removeprefix('"').removesuffix('"') for tag in self.if_match.split(",")
        ]:
            raise PreconditionFailed(
                f"The {what} is at version {version}. Read it again and repeat the change.",
                param="If-Match",
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, _fields_of_call(
            self
        )  # a third of what pickling a dataclass with slots costs, on every request's path


@dataclass(slots=True)
class Reply:
    """An answer: a success with a body, or an error. `body` is encoded once, in the shard, and
    passed through as bytes.

    body     bytes, or a model, dict or list that `encoded()` turns into bytes; None for 204; of a
             flow also an async iterator of bytes with `aclose`
    resource_id  what a CANONICAL key is bound to (the first id for a batch)
    outcome  of a flow: what its `finish` gets as ctx.prepared; plain data
    file     sent instead of `body`
    sequence of the commit that it tells of; 0: of none
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    error: ApiError | None = None
    resource_id: str | None = None
    outcome: Any = None
    file: StoredFile | None = None
    sequence: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Reply, _fields_of_reply(self)

    def encoded(self) -> Reply:
        """The same reply with its body as bytes; cheap when it already is."""
        if self.body is not None and not isinstance(self.body, bytes):
            self.body = encode_body(self.body)
        return self


class Due(NamedTuple):
    """An unfinished job: when it is to run (Unix milliseconds), whose it is, its concurrency group
    ("": the shard's own), and the span of what queued it (`Call.trace`).
    """

    run_at: int
    slot: int
    tenant: int
    job_id: str
    group: str = ""
    trace: str = ""


_fields_of_call = attrgetter(*(field.name for field in dataclasses.fields(Call)))
_fields_of_reply = attrgetter(*(field.name for field in dataclasses.fields(Reply)))


def encode_body(body: Any) -> bytes:
    """JSON bytes (UTF-8) of a model, dict or list. Models nest anywhere inside."""
    if isinstance(body, BaseModel):
        return body.model_dump_json().encode()
    return orjson.dumps(body, default=_encode_other)


def _encode_other(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not encode to JSON")
