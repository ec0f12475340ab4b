"""The vocabulary every feature is written in: Operation, Event, Call, Reply, and the two contexts.

An Operation is data. Its route, validation, authorisation, rate bucket, credits, idempotency, shard dispatch, metrics and
OpenAPI entry all derive from one declaration; nobody writes a route by hand. A handler has one of four shapes:

    load(ctx: ReadContext, body) -> loaded            optional; reads a snapshot before slow work (sync)
    prepare(call, loaded, models) -> prepared         optional; async; embeddings and other remote work, outside any transaction
    ahead(ctx: ReadContext, body) -> found            optional, kind READ with prepare; what of the handler's work needs nothing that
                                                      `prepare` makes, done beside it when no other read is under way
    together(ctx: ReadContext, [prepared, …])         optional, kind READ; once for calls of one tenant that are ready together
    handler(ctx: ReadContext, body) -> Reply | body   kind READ; on one snapshot
    complete(call, made, models) -> body              optional, kind READ with prepare; async; remote work on what the handler made,
                                                      its snapshot closed
    handler(ctx: WriteContext, body) -> Reply | body  kind WRITE; synchronous, deterministic, inside one transaction
    handler(call, steps, models) -> Reply | body      kind FLOW; async; runs in the gateway and composes operations by name
    finish(ctx: WriteContext, body)                   optional, kind FLOW; what the flow leads to, in one transaction (flow.py)

What `load` and `prepare` produced is `ctx.prepared` (for `ahead`, what `load` did), and what `ahead` found `ctx.ahead`, None where
it did not run; path parameters are `ctx.path`, the query model is `ctx.query`. A handler returns a Reply, or just the body (a
pydantic model, a dict or a list), which then goes out with the operation's first status. Time and ids come from the Call, never
from the clock or the random module, so that running a write twice gives the same rows: a group commit that must be repeated
repeats exactly.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, model_validator

from runtime import ids
from runtime.errors import ApiError, NotFound, PermissionDenied
from storage.blob_store import Blob
from storage.table import Table

if TYPE_CHECKING:
    from runtime.job_lanes import Due
    from runtime.outbound import Outbound
    from runtime.plugin import Registry
    from runtime.secrets import Secrets
    from runtime.settings import Settings
    from storage.table import BoundTable, Reader, Scope

COUNTERS: Table[bytes] = Table("counters", key=("name",), row=bytes, doc="last number given out, 8 bytes big endian, by counter")


class Kind(Enum):
    READ = "read"
    WRITE = "write"
    FLOW = "flow"


class Idempotency(Enum):
    """How a repeated Idempotency-Key is answered (specification part 8).

    NONE       the operation changes nothing
    CACHED     the stored reply, byte for byte, for 24 hours, with X-Idempotent-Replay: true
    CANONICAL  the same logical resource, read again, for as long as the record lives
    """

    NONE = "none"
    CACHED = "cached"
    CANONICAL = "canonical"


class Body(BaseModel):
    """A request body. Unknown fields are ignored and null means absent (PATCH bodies derive from Patch instead).

    lines_field  the field that the lines of an application/x-ndjson body become; without it such a body is refused
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    lines_field: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, dict) and None in value.values():
            return {name: item for name, item in value.items() if item is not None}
        return value


class Patch(BaseModel):
    """A PATCH body: null clears an optional field, absence leaves it; `model_fields_set` tells them apart."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class Query(Body):
    """Query parameters. An empty value means absent, unless `empty_is_absent` is off; a list field collects a repeated parameter."""

    empty_is_absent: ClassVar[bool] = True


class View(BaseModel):
    """A response model: it documents and tests the wire shape. Handlers on hot paths may return plain dicts of this shape."""


class UploadedFile(BaseModel):
    """The file of a form: what the gateway found out while it arrived, and where it is (storage/blob_store.py)."""

    filename: str = Field(description="The name it was sent under, without a path.")
    media_type: str = Field(description="What its content is.")
    size_bytes: int = Field(description="Its length.")
    sha256: str = Field(description="Hex digest of its content.")
    # Where it was put is no part of what the request means.
    blob_name: str = Field(exclude=True)
    blob_key: bytes = Field(exclude=True, repr=False)


@dataclass(frozen=True, slots=True)
class Upload:
    """A body that is a form, multipart/form-data, with one file in it.

    The file is stored while it arrives; the operation's body has it as the field `file` (an UploadedFile), beside the other parts.

    bytes_max  (settings) -> the size above which it is 413
    media_type (first bytes, filename) -> what it is, or None, which is 415
    """

    bytes_max: Callable[[Settings], int]
    media_type: Callable[[bytes, str], str | None]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A blob as the body of a reply; the gateway streams it."""

    owner: str
    blob: Blob


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint.

    name         "memories.create"; unique, and how flows call it
    method,path  "POST", "/v1/memories/{id}"; `aliases` are further paths of the same operation
    kind         READ, WRITE or FLOW
    handler      see the module docstring
    body,query   pydantic models of the request, or None
    upload       set where the body is a form with a file
    response     View of the success body, or None for 204
    produces     media type of a success body that is no JSON, such as "text/plain"; its response model is a root model
                 of each line, where it produces application/x-ndjson
    statuses     success statuses this operation can give; the first is used when a handler returns a bare body
    load,prepare,ahead,together,complete,finish  optional steps around the handler
    idempotency  NONE, CACHED or CANONICAL
    resource     for CANONICAL: (ctx: ReadContext, body, resource_id, call) -> Reply, the replay of a finished write
    scope        "public", "read", "write" or "admin"
    scope_of     (body) -> the scope that this request needs, where the body decides whether `scope` is enough
    slot_of      for public operations: (body) -> slot, since there is no credential to tell it
    rate         name of the rate bucket, "default", "search", "batch", "media"
    rate_of      (body) -> rate bucket, where the body decides it
    credits      base weight in credits, or (body) -> int: what is asked for before the work; a write may set `ctx.credits` to less
    feature      key of the tier feature that gates it, (body) -> key or None where only some requests need it, or None
    remote       (call) -> whether it waits for somebody else's server before its transaction; it then travels apart from the others
    fresh_usage  what was counted in memory is written down first, so that the operation sees all usage before it
    signed_by    name of the header that signs the body: the body is then a Signed, raw bytes and that header's value
    streams      whether the answer may also be a stream of server-sent events
    internal     left out of the public OpenAPI document; takes the operator token only
    spec         where the specification asks for it, "part 4, Memories"
    example      a request body for the OpenAPI document
    example_reply  a response body for the OpenAPI document
    """

    name: str
    method: str
    path: str
    kind: Kind
    handler: Callable[..., Any]
    summary: str
    spec: str
    response: type[BaseModel] | None
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    statuses: tuple[int, ...] = (200,)
    load: Callable[..., Any] | None = None
    prepare: Callable[..., Awaitable[Any]] | None = None
    ahead: Callable[..., Any] | None = None
    together: Callable[..., None] | None = None
    complete: Callable[..., Awaitable[Any]] | None = None
    finish: Callable[..., None] | None = None
    idempotency: Idempotency = Idempotency.NONE
    resource: Callable[..., Any] | None = None
    scope: str = "read"
    scope_of: Callable[[Any], str] | None = None
    slot_of: Callable[[Any], int] | None = None
    rate: str = "default"
    rate_of: Callable[[Any], str] | None = None
    upload: Upload | None = None
    produces: str | None = None
    credits: int | Callable[[Any], int] = 0
    feature: str | Callable[[Any], str | None] | None = None
    remote: Callable[[Call], bool] | None = None
    fresh_usage: bool = False
    signed_by: str | None = None
    stability: str = "ga"
    deprecated: bool = False
    streams: bool = False
    internal: bool = False
    aliases: tuple[str, ...] = ()
    description: str = ""
    example: Any = None
    example_reply: Any = None

    @property
    def is_immediate(self) -> bool:
        """Whether a call is answered without waiting for anything."""
        return self.kind is Kind.READ and self.prepare is None and not self.fresh_usage

    @property
    def tag(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def content_type(self) -> str:
        return self.produces or "application/json"


@dataclass(frozen=True, slots=True)
class Event:
    """A kind of webhook event and the model of its `data` (specification part 6)."""

    kind: str
    model: type[BaseModel]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the tenant the credential belongs to, and what it may do.

    tenant_number is the tenant's number inside its slot (keys), tenant_id its public id ("usr_…"), tag its 4-byte id tag.
    scopes holds "read", "write", "admin" in expanded form. credential_id is the API key's id or the JWT's jti.
    created_at is when the tenant registered, Unix milliseconds.
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


@dataclass(frozen=True, slots=True)
class Credential:
    """What the gateway could read from the Authorization header: kind "key" (digest), "jwt" (claims) or "operator"."""

    kind: str
    digest: bytes = b""
    claims: dict[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return Credential, (self.kind, self.digest, self.claims)


@dataclass(frozen=True, slots=True)
class Signed:
    """The body of a request that carries a signature over its bytes: what was sent, and the signing header as it came."""

    content: bytes
    signature: str


@dataclass(slots=True)
class Call:
    """One request on its way to a shard. Plain data: it pickles, and running it twice gives the same result.

    now_ms   Unix milliseconds at the gateway, clock offset included
    seed     32 random bytes; every id the handler makes derives from them
    rejected an error found before the shard (validation): authentication and admission still come first
    knocks   only asks whether the call would be let in; its body has not been read. It counts against the ceilings
    admitted it knocked before: the ceilings have counted it, all but the one that its body decides
    fingerprint  SHA-256 of method, route, path, query and canonical body; b"" without an Idempotency-Key
    prefer   the parsed Prefer header, such as {"respond-async": ""} or {"wait": "5"}
    stage    of a flow in its shard: "begin", "end" or "abort"; `loaded` is what begin read, `reply` what the flow ends with
    flow     name of the flow that made this call; the flow was admitted and is paid for as a whole, so this call is neither
             counted nor charged
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
    rejected: ApiError | None = None
    stage: str = ""
    loaded: Any = None
    reply: Reply | None = None
    flow: str = ""
    knocks: bool = False
    admitted: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, _fields_of_call(self)  # a third of what pickling a dataclass with slots costs, on every request's path


@dataclass(slots=True)
class Reply:
    """An answer: a success with a body, or an error. `body` is encoded once, in the shard, and passed through as bytes.

    body     bytes, or a model, dict or list that `encoded()` turns into bytes; None for 204; of a flow also an async iterator
             of bytes with `aclose`
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


def says_something(text: str) -> str:
    """A pydantic validator for texts in which white space alone is nothing. Raises ValueError."""
    if not text.strip():
        raise ValueError("must contain more than white space")
    return text


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


@dataclass(frozen=True, slots=True)
class Environment:
    """What every context of one shard shares. owns: whether a slot belongs to the shard, rather than being on its way."""

    registry: Registry
    settings: Settings
    secrets: Secrets
    outbound: Outbound
    owns: Callable[[int], bool] = lambda _slot: True


class ReadContext:
    """What a handler sees: one tenant's tables and indexes on one snapshot.

    ctx[TABLE]         the table, bound to this tenant (or to its slot, for tables declared at level "slot")
    ctx.index(INDEX)   a declared index, bound the same way
    ctx.now            Unix milliseconds of the call
    ctx.principal      who asks; None in public and internal operations, which act on a slot
    ctx.prepared       what `prepare` (or else `load`) made
    ctx.ahead          what `ahead` found on this snapshot; None where it did not run
    ctx.after          for an `export` that goes on: the place its last record named; None at the start
    """

    after: Any = None
    ahead: Any = None

    def __init__(
        self, reader: Reader, scope: Scope, call: Call, environment: Environment, principal: Principal | None, prepared: Any = None
    ):
        self.reader = reader
        self.scope = scope
        self.call = call
        self.environment = environment
        self.principal = principal
        self.prepared = prepared
        self.announced: list[tuple[Event, Callable[[], Mapping[str, Any]], str]] = []
        self.tallied: list[tuple[str, Any]] = []
        self._bound: dict[str, Any] = {}

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
        return self.environment.settings

    @property
    def secrets(self) -> Secrets:
        return self.environment.secrets

    @property
    def registry(self) -> Registry:
        return self.environment.registry

    @property
    def outbound(self) -> Outbound:
        """The way to addresses that users give; for `load`, to hand on to `prepare`."""
        return self.environment.outbound

    def __getitem__(self, table: Table) -> BoundTable:
        bound = self._bound.get(table.name)
        if bound is None:
            bound = self._bound[table.name] = self.reader.bind(table, self.scope)
        return bound

    def index(self, index: Any) -> Any:
        bound = self._bound.get(index.name)
        if bound is None:
            bound = self._bound[index.name] = index.bind(self.reader, self.scope)
        return bound

    def digest(self, label: str, text: str) -> bytes:
        """16 bytes that stand for a text of this tenant in a table's key, which cannot be sealed; `label` keeps uses apart."""
        said = label.encode() + b"\0" + text.encode()
        return hashlib.blake2b(said, digest_size=16, key=self.reader.secret(self.scope), person=b"key").digest()

    def share(self, other: ReadContext) -> None:
        """Use the tables and indexes another context of the same tenant and snapshot has bound, and what they remember."""
        self._bound = other._bound

    def announce(self, event: Event, data: Callable[[], Mapping[str, Any]], resource_id: str) -> None:
        """Emit an event after the reply, in a write of its own, if anyone waits for it; only then is `data` asked for, without a snapshot.

        The reply does not wait for that write, so a crash in between loses the event. What must not be lost belongs into a write.
        """
        if any(audience(self, event.kind) for audience in self.registry.audiences):
            self.announced.append((event, data, resource_id))

    def tally(self, name: str, keys: Iterable[Any]) -> None:
        """Note that a read has touched these. They are handed, counted, to the plugin that declares the tally, about a second later.

        Notes are no promise: a crash loses that second's, and where too many wait, further ones are dropped.
        """
        if name in self.registry.tallies:
            self.tallied += [(name, key) for key in keys]

    def check_id(self, prefix: str, text: str, missing: ApiError | None = None) -> str:
        """The id itself when it could be this tenant's: 404 when malformed, 403 when its tag is another tenant's."""
        tag = ids.id_tag(prefix, text)
        if tag is None:
            raise missing or NotFound("There is nothing with this id.")
        if tag != self.principal.tag:
            raise PermissionDenied("This id belongs to another account.")
        return text

    def as_tenant(self, principal: Principal, scope: Scope) -> Any:
        """The same transaction or snapshot, seen as this tenant; for operations that act on a slot and find a tenant there."""
        ctx = object.__new__(type(self))
        ctx.__dict__.update(self.__dict__, scope=scope, principal=principal, _bound={})
        return ctx


class WriteContext(ReadContext):
    """A ReadContext inside the one write transaction, with effects.

    Everything done through it commits together or not at all: rows, postings, events, jobs, usage, the idempotency record.

    credits   what this call will be charged; set to the operation's weight before the handler runs, 0 in jobs. A handler that did
              less, or a job that did something, sets it
    metered   by how much this transaction raised what its tenant has used or reserved
    """

    def __init__(self, *args: Any, **fields: Any):
        super().__init__(*args, **fields)
        self._made = [0]
        self.owner: Scope | None = None  # whose the reply is, when an operation of the slot makes it for a tenant
        self.due: list[Due] = []
        self.credits = 0
        self.metered = 0

    def random(self, count: int) -> bytes:
        """`count` (≤ 64) bytes derived from the call's seed; for ids and secrets."""
        self._made[0] += 1
        return ids.derived_random(self.call.seed, self._made[0], count)

    def new_id(self, prefix: str) -> str:
        return ids.make_id(prefix, self.now, self.principal.tag, self.random(10))

    def next_ordinal(self, counter: str) -> int:
        """0, 1, 2, … without gaps inside a committed history; each tenant (or slot) has its own counters."""
        row = self[COUNTERS].get(counter)
        number = 0 if row is None else int.from_bytes(row, "big") + 1
        self[COUNTERS].put((counter,), number.to_bytes(8, "big"))
        return number

    def emit(self, event: Event, data: Mapping[str, Any], resource_id: str) -> str:
        """Record an event in this transaction and run its subscribers; -> the event's id."""
        return outbox.emit(self, event, data, resource_id)

    def enqueue(self, job: str, payload: Mapping[str, Any], *, delay_ms: int = 0, lane: str = "") -> str:
        """Add a job row in this transaction; it runs after the commit, in its lane if it has one. -> the job's id."""
        return jobs.enqueue(self, job, payload, delay_ms=delay_ms, lane=lane)


from runtime import jobs, outbox  # noqa: E402  (both build on the contexts above and are reached through them)
