"""The vocabulary every feature is written in: Operation, Event, Call and Reply. What travels is
defined in runtime/api/call.py, what handlers are given in runtime/api/context.py.

An Operation is data. Its route, validation, authorisation, rate bucket, credits, idempotency, shard
dispatch, metrics and OpenAPI entry all derive from one declaration; nobody writes a route by hand.
What it may declare depends on its kind: a Read, a Write or a Flow.

    Read    load(ctx: ReadContext, body) -> loaded       optional; reads a snapshot before slow work
            prepare(call, loaded, models) -> prepared    optional; async; embeddings and other
                                                         remote work, on no snapshot
            prefetch(ctx: ReadContext, body) -> found    optional, with prepare; what of the
                                                         handler's work needs nothing that is
                                                         prepared
            batch(ctx: ReadContext, [prepared, …])       optional; once for calls of one tenant that
                                                         are ready together
            handler(ctx: ReadContext, body) -> Reply | body    on one snapshot
            complete(call, made, models) -> body         optional, with prepare; async; remote work
                                                         on what the handler made, its snapshot
                                                         closed
            heavy                                        optional; whether the handler may read many
                                                         rows: it then runs beside the event loop
                                                         and the other reads, and within bounds
    Write   load, prepare                                as above
            handler(ctx: WriteContext, body) -> Reply | body   synchronous, deterministic, inside
                                                         one transaction
    Flow    load(ctx: ReadContext, body) -> loaded       optional; when the caller was admitted
            handler(call, steps, models) -> Reply | body async; runs in the gateway and composes
                                                         operations by name
            finish(ctx: WriteContext, body)              optional; what the flow leads to, in one
                                                         transaction (runtime/http/flow.py)

What `load` and `prepare` produced is `ctx.prepared` (for `prefetch`, what `load` did); what
`prefetch` found is `ctx.prefetched`, None where it did not run: it does for a read that is alone,
on the snapshot of its handler, while a model of this machine is at work. Path parameters are
`ctx.path`, the query model is `ctx.query`. A handler returns a Reply, or just the body (a pydantic
model, a dict or a list), which then goes out with the operation's first status. Time and ids come
from the Call, never from the clock or the random module, so that running a write twice gives the
same rows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runtime.api.call import (
    ABORT,
    BEGIN,
    BEGUN,
    END,
    KEEP,
    NOBODY,
    Call,
    Credential,
    Event,
    Principal,
    Reply,
    Signed,
    StoredFile,
    encode_body,
)
from runtime.api.slot_context import OperatorReadContext, OperatorWriteContext
from runtime.errors import ValidationFailed
from runtime.extras import Extra

if TYPE_CHECKING:
    from runtime.settings import Settings

__all__ = [
    "ABORT",
    "BEGIN",
    "BEGUN",
    "END",
    "KEEP",
    "NOBODY",
    "Before",
    "Body",
    "Call",
    "Credential",
    "Event",
    "Flow",
    "Idempotency",
    "Kind",
    "Operation",
    "Patch",
    "Principal",
    "Query",
    "Read",
    "Reply",
    "Signed",
    "StoredFile",
    "Together",
    "Upload",
    "UploadedFile",
    "View",
    "Write",
    "encode_body",
    "not_blank",
    "not_earlier",
]

# Functions of a declaration. What each is given is the widest context that there is of its kind, so
# that it may ask for that, for a narrower one, or for a plain one, and never for a write where it
# reads. The shard gives what the declaration says (runtime/api/slot_context.py).
ReadHandler = Callable[[OperatorReadContext, Any], Any]
WriteHandler = Callable[[OperatorWriteContext, Any], Any]
FlowHandler = Callable[[Call, Any, Any], Awaitable[Any]]
Load = Callable[[OperatorReadContext, Any], Any]
Prepare = Callable[[Call, Any, Any], Awaitable[Any]]
Batch = Callable[[OperatorReadContext, list[Any]], None]
Complete = Callable[[Call, Any, Any], Awaitable[Any]]
Finish = Callable[[OperatorWriteContext, Any], None]
Resource = Callable[[OperatorReadContext, Any, str, Call], Reply]


ACCESS_RATE = "access"  # the rate of what keeps or ends access to an account


class Kind(Enum):
    READ = "read"
    WRITE = "write"
    FLOW = "flow"


class Idempotency(Enum):
    """How a repeated Idempotency-Key is answered.

    NONE       the operation changes nothing
    CACHED     the stored reply, byte for byte, for 24 hours, with X-Idempotent-Replay: true
    CANONICAL  the same logical resource, read again, for as long as the record lives
    """

    NONE = "none"
    CACHED = "cached"
    CANONICAL = "canonical"


class Body(BaseModel):
    """A request body. Unknown fields are ignored and null means absent (PATCH bodies derive from
    Patch instead).

    lines_field  the field that the lines of an application/x-ndjson body become; without it such a
                 body is refused
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)
    lines_field: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if isinstance(value, dict) and None in value.values():
            return {name: item for name, item in value.items() if item is not None}
        return value


class Patch(BaseModel):
    """A PATCH body: null clears an optional field, absence leaves it; `model_fields_set` tells them
    apart.
    """

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, defer_build=True)


class Query(Body):
    """Query parameters; a list field collects a repeated one."""


class View(BaseModel):
    """A response model: it documents and tests the wire shape. Handlers on hot paths may return
    plain dicts of this shape.
    """

    model_config = ConfigDict(defer_build=True)


class UploadedFile(BaseModel):
    """The file of a form: what the gateway found out while it arrived, and where it is."""

    filename: str = Field(description="The name it was sent under, without a path.")
    media_type: str = Field(description="What its content is.")
    size_bytes: int = Field(description="Its length.")
    sha256: str = Field(description="Hex digest of its content.")
    # Where it was put is no part of what the request means, nor is how its letters are written.
    charset: str | None = Field(default=None, exclude=True)
    blob_name: str = Field(exclude=True)
    blob_key: bytes = Field(exclude=True, repr=False)


@dataclass(frozen=True, slots=True)
class Upload:
    """A body that is a form, multipart/form-data, with one file in it.

    The file is stored while it arrives; the operation's body has it as the field `file` (an
    UploadedFile), beside the other parts.

    bytes_max  (settings) -> the size above which it is 413
    media_type (first bytes, filename) -> what it is, or None, which is 415
    """

    bytes_max: Callable[[Settings], int]
    media_type: Callable[[bytes, str], str | None]


@dataclass(frozen=True, slots=True)
class Before:
    """What a public write needs done in another slot before it: the gateway has the internal
    operation of this name answer first, and passes its body on as `call.loaded`.

    body_of  (body, settings) -> the body of that operation; None where it is not needed
    """

    operation: str
    body_of: Callable[[Any, Settings], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint: what all kinds declare. Written as a Read, a Write or a Flow.

    name         "memories.create"; unique, and how flows call it
    method,path  "POST", "/v1/memories/{id}"; `aliases` are further paths of the same operation
    handler      see the module docstring
    body,query   pydantic models of the request, or None
    response     View of the success body, or None for 204
    produces     media type of a success body that is no JSON, such as "text/plain"; its response
                 model is a root model of each line, where it produces application/x-ndjson
    statuses     success statuses this operation can give; the first is used when a handler returns
                 a bare body
    errors       error statuses it can give that its shape does not tell, such as 404 where a body
                 names a record by another field than an id
    load         optional step before the handler
    scope        "public", "read", "write" or "admin"
    scope_of     (body) -> the scope that this request needs, where the body decides whether `scope`
                 is enough
    slot_of      for public operations: (body) -> slot, since there is no credential to tell it
    rate         name of the rate bucket, "default", "search", "batch", "media"; of what keeps or
                 ends access to the account ACCESS_RATE, which a session has a ceiling of its own
                 for, beside that of everything else
    rate_of      (body) -> rate bucket, where the body decides it
    credits      base weight in credits, or (body) -> int: what is asked for before the work; a
                 write may set `ctx.credits` to less
    feature      key of the tier feature that gates it, (body) -> key or None where only some
                 requests need it, or None
    extra        packages that it needs and that may not be installed (runtime/extras.py), or (body)
                 -> them or None where only some requests need them; without them it is 501
    internal     left out of the public OpenAPI document; takes the operator token only, and its
                 functions are given the operator's contexts (runtime/api/slot_context.py)
    accounts     for public operations: looks for accounts of its slot, or makes one; its functions
                 are given a slot's contexts
    example      a request body for the OpenAPI document
    example_reply  a response body for the OpenAPI document

    What only other kinds declare reads as None, False or NONE, so that whoever takes operations of
    all kinds need not ask which it is.
    """

    name: str
    method: str
    path: str
    handler: ReadHandler | WriteHandler | FlowHandler
    summary: str
    response: type[BaseModel] | None
    body: type[BaseModel] | None = None
    query: type[Query] | None = None
    statuses: tuple[int, ...] = (200,)
    errors: tuple[int, ...] = ()
    load: Load | None = None
    scope: str = "read"
    scope_of: Callable[[Any], str] | None = None
    slot_of: Callable[[Any], int] | None = None
    rate: str = "default"
    rate_of: Callable[[Any], str] | None = None
    produces: str | None = None
    credits: int | Callable[[Any], int] = 0
    feature: str | Callable[[Any], str | None] | None = None
    extra: Extra | Callable[[Any], Extra | None] | None = None
    stability: str = "ga"
    deprecated: bool = False
    internal: bool = False
    accounts: bool = False
    aliases: tuple[str, ...] = ()
    description: str = ""
    example: Any = None
    example_reply: Any = None

    kind: ClassVar[Kind]
    prepare: ClassVar[Prepare | None] = None
    batch: ClassVar[Batch | None] = None
    complete: ClassVar[Complete | None] = None
    heavy: ClassVar[bool | Callable[[Call], bool]] = False
    lengthy: ClassVar[bool] = False
    finish: ClassVar[Finish | None] = None
    reserves: ClassVar[Callable[[Any, Settings], int] | None] = None
    idempotency: ClassVar[Idempotency] = Idempotency.NONE
    resource: ClassVar[Resource | None] = None
    guarded: ClassVar[bool] = False
    before: ClassVar[Before | None] = None
    upload: ClassVar[Upload | None] = None
    remote: ClassVar[Callable[[Call], bool] | None] = None
    signed_by: ClassVar[str | None] = None
    conditional: ClassVar[bool] = False
    fresh_usage: ClassVar[bool] = False
    streams: ClassVar[bool] = False

    @property
    def is_query_lenient(self) -> bool:
        """Whether an empty query parameter means that it is absent, and an unknown one nothing. A
        client that fills one from an unset variable, or misspells it, must not change or delete
        something else instead.
        """
        return self.kind is Kind.READ

    @property
    def is_immediate(self) -> bool:
        """Whether a call is answered without waiting for anything, unless it is heavy."""
        return self.kind is Kind.READ and self.prepare is None and not self.fresh_usage

    def is_heavy(self, call: Call) -> bool:
        """Whether this call may read many rows."""
        if call.preflight or call.rejected is not None:
            return False  # it is refused, or has no body yet
        return self.heavy(call) if callable(self.heavy) else self.heavy

    def credits_for(self, body: Any) -> int:
        """What a call with this body asks for before its work."""
        return self.credits(body) if callable(self.credits) else self.credits

    def reserved_for(self, body: Any, settings: Settings) -> int:
        """What is held for a call with this body until it is known what it costs."""
        return self.credits_for(body) if self.reserves is None else self.reserves(body, settings)

    def require_extra(self, body: Any) -> None:
        """Raise NotInstalled where a call with this body needs packages that are not there."""
        extra = self.extra(body) if callable(self.extra) else self.extra
        if extra is not None:
            extra.require()

    @property
    def tag(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def content_type(self) -> str:
        return self.produces or "application/json"


@dataclass(frozen=True, slots=True)
class Read(Operation):
    """Changes nothing, and is answered from one snapshot.

    prepare,prefetch,batch,complete  optional steps around the handler
    heavy        whether it may read many rows, or (call) -> whether this call may: it then travels
                 alone, and its handler runs on a thread of the heavy reads, one of an account's at
                 a time, and is refused where it reads more than HEAVY_READ_ROWS_MAX or
                 HEAVY_READ_BYTES_MAX, or takes longer than HEAVY_READ_CPU_SECONDS_MAX
    fresh_usage  what was counted in memory is written down first, so that the operation sees all
                 usage before it
    """

    kind: ClassVar[Kind] = Kind.READ

    handler: ReadHandler
    prepare: Prepare | None = None
    prefetch: Load | None = None
    batch: Batch | None = None
    complete: Complete | None = None
    heavy: bool | Callable[[Call], bool] = False
    fresh_usage: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """How several calls of a write are handled at once, in one transaction, which costs less than
    one after the other. They are of one account, and none has a key that another has.

    may      (call, prepared) -> whether this call may be one of them
    handler  (contexts) -> what the operation's handler would return for each, in order; its
             effects are those of one after the other. Whatever it raises, each call is then
             handled by itself
    """

    may: Callable[[Call, Any], bool]
    handler: Callable[[Sequence[OperatorWriteContext]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Write(Operation):
    """One transaction.

    prepare      optional step before it
    together     optional: how several calls are handled at once
    idempotency  NONE, CACHED or CANONICAL
    resource     for CANONICAL: (ctx: ReadContext, body, resource_id, call) -> Reply, the replay of
                 a finished write
    before       of a public write: what has to be done in another slot first; it can be repeated
    guarded      whether it takes a secret of the caller's account, or of the one whose e-mail
                 address is in its body: errors that are a `guess` then hold up whoever makes them
    upload       set where the body is a form with a file
    remote       (call) -> whether it waits for somebody else's server before its transaction; it
                 then travels apart from the others
    lengthy      whether its transaction may take tens of milliseconds: LENGTHY_WRITES_AT_ONCE of
                 them then wait for the writer, accounts in turns, and others' writes come in
                 between
    signed_by    name of the header that signs the body: the body is then a Signed, raw bytes and
                 that header's value
    conditional  whether its handler heeds an If-Match header (`ctx.call.check_match`), and answers
                 412 where that names another version
    """

    kind: ClassVar[Kind] = Kind.WRITE

    handler: WriteHandler
    prepare: Prepare | None = None
    together: Together | None = None
    idempotency: Idempotency = Idempotency.NONE
    resource: Resource | None = None
    before: Before | None = None
    guarded: bool = False
    upload: Upload | None = None
    remote: Callable[[Call], bool] | None = None
    lengthy: bool = False
    signed_by: str | None = None
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Flow(Operation):
    """Takes seconds and holds no transaction meanwhile; composes other operations.

    finish       optional: what it leads to, in one transaction
    reserves     optional: (body, settings) -> credits that are held from its begin to its end,
                 where `finish` may set `ctx.credits` to more than `credits`
    idempotency  NONE or CACHED
    streams      whether the answer may also be a stream of server-sent events
    """

    kind: ClassVar[Kind] = Kind.FLOW

    handler: FlowHandler
    finish: Finish | None = None
    reserves: Callable[[Any, Settings], int] | None = None
    idempotency: Idempotency = Idempotency.NONE
    streams: bool = False


def not_blank(text: str) -> str:
    """Validate that a text holds more than white space, for pydantic. Raises ValueError."""
    if not text.strip():
        raise ValueError("must contain more than white space")
    return text


def not_earlier(
    loc: tuple[str, ...],
    end: int | None,
    start_name: str,
    start: int | None,
    *,
    exclusive: bool = False,
) -> None:
    """Validate that what is asked for does not end before it starts; None is no bound. An exclusive
    end is no part of it, so it must be later. loc: where the end stands. Raises ValidationFailed.
    """
    if start is None or end is None or end > start or (end == start and not exclusive):
        return
    problem = "must be later than" if exclusive else "must not be earlier than"
    raise ValidationFailed.at(loc, f"{problem} {start_name}", "value_error")
