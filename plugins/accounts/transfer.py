"""Taking everything along: an account's export as lines of JSON, and the import of such lines.

Owns the format of an export. It does not know what an account holds: the plugins' `export` hooks
give records, their `restore` takes records in, and this module carries them, part by part, so that
neither side holds more than a part of an account in memory.

An export is application/x-ndjson, one object a line: {"kind", "record"}, in the order of the
plugins, what is referred to before what refers. The last line is the manifest: {"kind": "manifest",
"record": {format, exported_at, records, kinds: {kind: {count, sha256}}, block_records, blocks,
signature}}. The SHA-256 of a kind is that of its lines, each with its line feed; `blocks` has a
signature of each `block_records` lines one after the other, and of what is left of them. An export
that was cut short has no manifest; one that failed on the way ends with a line of the kind "error".

Each part is read from a snapshot of its own, since a snapshot held for as long as a client reads
would keep the store from reusing pages. So each record is whole, but an account that is written to
meanwhile is exported as of no single moment: what was there before and is there after is in it,
once.

The manifest's `signature` is the installation's own, over the rest of it, and so over every line;
those of the blocks are so, too. Their key is one of the account's: what was signed for one account
says nothing to another. It is read when the export begins, for the gateway, which signs.

An import checks the manifest, where there is one, before anything is written, and then stores a
part at a time, each in one transaction. It can be repeated: what is here already is left alone. A
larger export than a body may be is imported in pieces, split between lines, without the manifest;
or in parts that are its blocks, each with its own signature. Only what this installation has signed
for this account and nobody has changed is `verified`, and is taken at its word on who did what, and
when; anything else is taken in and marked (`Origin`). What the shard is told of that comes from the
flow alone, as a model that no request is read as.

Records of kinds nobody takes in are counted as skipped: the account itself, API keys and webhooks,
whose secrets nobody has, deliveries, usage, bills, documents, whose files are no part of an export,
and what memories say in profiles and in the graph, which is read again from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, ClassVar

import orjson
from pydantic import Field, ValidationError

from plugins.accounts import limits
from runtime import ids
from runtime.api.attestation import attested, attesting_key, is_attested
from runtime.api.context import ReadContext, WriteContext
from runtime.api.loop_steps import in_steps
from runtime.api.operation import Body, Call, Flow, Idempotency, Query, Read, Reply, View, Write
from runtime.api.pagination import envelope, position
from runtime.api.restoring import Origin
from runtime.errors import ApiError, BadRequest, ValidationFailed
from runtime.inference import Models
from runtime.limits import ID_CHARS_MAX, NAME_CHARS_MAX
from runtime.timestamps import iso

FORMAT = 1
MANIFEST, ERROR = "manifest", "error"
NDJSON = "application/x-ndjson"
PRICED = ("memory", "entity", "relationship")  # cost what they cost where they are written


class Record(View):
    """One line of an export."""

    kind: str = Field(description="What the record is, such as `memory`.")
    record: dict[str, Any] = Field(description="The record itself.")


class PartQuery(Query):
    cursor: str | None = Field(
        default=None,
        max_length=limits.EXPORT_CURSOR_CHARS_MAX,
        description="`next_cursor` of the part before.",
    )


class Part(View):
    records: list[Record] = Field(description="Records of this part, in the order of the export.")
    next_cursor: str | None = Field(
        description="Pass it as `cursor` to get the next part; null on the last one."
    )
    has_more: bool = Field(description="Whether more parts follow.")


class SentRecord(Body):
    kind: str = Field(min_length=1, max_length=NAME_CHARS_MAX, description="What the record is.")
    record: dict[str, Any] = Field(description="The record, as it was exported.")


class Import(Body):
    lines_field: ClassVar[str] = "records"
    records: list[SentRecord] = Field(
        min_length=1,
        max_length=limits.IMPORT_RECORDS_MAX,
        description="Lines of an export, in order.",
    )


class ImportPart(Body):
    records: list[SentRecord] = Field(
        min_length=1,
        max_length=limits.IMPORT_RECORDS_PER_PART,
        description="Records, in the export's order.",
    )
    first: int = Field(
        default=0,
        ge=0,
        description="The place of the first one in the whole import, which errors name.",
    )
    signature: str | None = Field(
        default=None,
        max_length=limits.SIGNATURE_CHARS_MAX,
        description=(
            "Where the records are a block of an export of this account: its signature, of the "
            "manifest's `blocks`. They are taken at their word."
        ),
    )


class OwnPart(ImportPart):
    """A part of an export that this installation has signed for this account."""


class Imported(View):
    created: dict[str, int] = Field(description="Records taken in, by kind.")
    known: dict[str, int] = Field(description="Records that were here already, by kind.")
    skipped: dict[str, int] = Field(description="Records of kinds that are not taken in, by kind.")
    verified: bool = Field(
        description=(
            "Whether this installation has signed it as an export of this account, and nobody has "
            "changed it since."
        )
    )


# --- export ---------------------------------------------------------------------------------------


def export_part(ctx: ReadContext, body: None) -> dict[str, Any]:
    """Records from where the cursor points, until a part is full. A position is (name of a plugin,
    records to skip, place to go on behind).
    """
    hooks = {
        plugin.name: plugin.export for plugin in ctx.registry.plugins if plugin.export is not None
    }
    names = list(hooks)
    first, skip, place = position(ctx) or (names[0], 0, None)
    if first not in hooks:  # of a release with other plugins
        raise BadRequest("This cursor is of another release; export anew.", param="cursor")
    records: list[dict[str, Any]] = []
    size = 0
    for name in names[names.index(first) :]:
        ctx.after = place
        for kind, record, *where in islice(hooks[name](ctx), skip, None):
            skip, place = (0, where[0]) if where else (skip + 1, place)
            records.append({"kind": kind, "record": record})
            size += len(orjson.dumps(record))
            if (
                len(records) >= limits.EXPORT_RECORDS_PER_PART
                or size >= limits.EXPORT_BYTES_PER_PART
            ):
                return _part(ctx, records, (name, skip, place))
        skip, place = 0, None
    return _part(ctx, records, None)


def _part(
    ctx: ReadContext, records: list[dict[str, Any]], following: tuple | None
) -> dict[str, Any]:
    page = envelope(ctx, records, following, 0)
    return {"records": records, "next_cursor": page["next_cursor"], "has_more": page["has_more"]}


def signing_key(ctx: ReadContext, body: None) -> str:
    """What an export is signed with, as hex digits: for the gateway, and in no answer."""
    return attesting_key(ctx, _purpose(ctx)).hex()


def _purpose(ctx: ReadContext) -> str:
    return f"export of {ctx.principal.tenant_id}"


async def export_account(call: Call, steps: Any, models: Models | None) -> Reply:
    """The first part is read before the answer begins, so that a refusal is a refusal."""
    first = await steps.run("account.export_part")
    name = f"mneme-export-{iso(call.now_ms)[:10]}.jsonl"
    return Reply(
        200,
        _lines(call, steps, first),
        {"Content-Disposition": f'attachment; filename="{name}"'},
        NDJSON,
    )


async def _lines(call: Call, steps: Any, part: dict[str, Any]) -> AsyncIterator[bytes]:
    key = bytes.fromhex(call.loaded)
    kinds, blocks = Kinds(), Blocks(key)
    while True:
        lines = [_line(entry["kind"], entry["record"]) for entry in part["records"]]
        for entry, line in zip(part["records"], lines, strict=True):
            kinds.add(entry["kind"], line)
            blocks.add(line)
        yield b"".join(lines)
        if not part["has_more"]:
            break
        try:
            part = await steps.run("account.export_part", query={"cursor": part["next_cursor"]})
        except ApiError as broken:
            yield _line(ERROR, {"message": broken.message, "status_code": broken.status})
            return
    found = kinds.summary()
    said = {
        "format": FORMAT,
        "exported_at": iso(call.now_ms),
        "records": sum(entry["count"] for entry in found.values()),
        "kinds": found,
        "block_records": limits.IMPORT_RECORDS_PER_PART,
        "blocks": blocks.signatures(),
    }
    yield _line(MANIFEST, {**said, "signature": attested(key, _signed(said))})


def _signed(manifest: Mapping[str, Any]) -> bytes:
    """What is signed of a manifest: all but the signature."""
    said = {name: value for name, value in manifest.items() if name != "signature"}
    return orjson.dumps(said, option=orjson.OPT_SORT_KEYS)


def _signed_block(sha256: bytes) -> bytes:
    """What is signed of a block with this digest; no manifest begins so."""
    return b"block\n" + sha256


def _line(kind: str, record: dict[str, Any]) -> bytes:
    return orjson.dumps({"kind": kind, "record": record}) + b"\n"


class Kinds:
    """Counts and digests of lines, by kind."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, Any]] = {}

    def add(self, kind: str, line: bytes) -> None:
        count, digest = self._kinds.get(kind) or (0, hashlib.sha256())
        digest.update(line)
        self._kinds[kind] = (count + 1, digest)

    def summary(self) -> dict[str, dict[str, Any]]:
        return {
            kind: {"count": count, "sha256": digest.hexdigest()}
            for kind, (count, digest) in self._kinds.items()
        }


class Blocks:
    """Signatures of lines, block by block."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._signatures: list[str] = []
        self._block, self._lines = hashlib.sha256(), 0

    def add(self, line: bytes) -> None:
        self._block.update(line)
        self._lines += 1
        if self._lines == limits.IMPORT_RECORDS_PER_PART:
            self._sign()

    def signatures(self) -> list[str]:
        """Of all blocks; what there is of the last one is a block as well."""
        if self._lines:
            self._sign()
        return self._signatures

    def _sign(self) -> None:
        self._signatures.append(attested(self._key, _signed_block(self._block.digest())))
        self._block, self._lines = hashlib.sha256(), 0


# --- import ---------------------------------------------------------------------------------------


def is_own(ctx: ReadContext, body: Import) -> bool:
    """Whether this installation has signed the manifest, for this account. It is compared with the
    records later.
    """
    manifest = body.records[-1]
    signature = manifest.record.get("signature")
    return (
        manifest.kind == MANIFEST
        and isinstance(signature, str)
        and is_attested(ctx, _purpose(ctx), _signed(manifest.record), signature)
    )


def _is_own_block(ctx: ReadContext, body: ImportPart) -> bool:
    """Whether this installation has signed these records as a block, for this account."""
    if body.signature is None:
        return False
    block = hashlib.sha256(b"".join(_line(entry.kind, entry.record) for entry in body.records))
    return is_attested(ctx, _purpose(ctx), _signed_block(block.digest()), body.signature)


async def import_account(call: Call, steps: Any, models: Models | None) -> dict[str, Any]:
    records, verified = await _checked(call.body.records), call.loaded
    part_of = OwnPart if verified else ImportPart
    summary: dict[str, Any] = {"created": {}, "known": {}, "skipped": {}, "verified": verified}
    for first in range(0, len(records), limits.IMPORT_RECORDS_TOGETHER):
        part = part_of(
            records=list(records[first : first + limits.IMPORT_RECORDS_TOGETHER]), first=first
        )
        done = await steps.run("account.import_part", part)
        for outcome in ("created", "known", "skipped"):
            for kind, count in done[outcome].items():
                summary[outcome][kind] = summary[outcome].get(kind, 0) + count
    return summary


def price(body: Import | ImportPart) -> int:
    """What taking in these records may cost: a credit for each memory, and for each entity and
    relationship that somebody entered.
    """
    return sum(
        entry.kind == "memory" or (entry.kind in PRICED and entry.record.get("asked_for") is True)
        for entry in body.records
    )


def settle_import(ctx: WriteContext, body: Import) -> None:
    """Charge nothing more: each part has cost what it brought, also where a later one failed."""
    ctx.credits = 0


async def _checked(records: Sequence[SentRecord]) -> Sequence[SentRecord]:
    """The records without their manifest. ValidationFailed when it says otherwise than they do."""
    async for place, entry in in_steps(enumerate(records)):
        if entry.kind == ERROR or (entry.kind == MANIFEST and place + 1 < len(records)):
            raise ValidationFailed.at(
                ("body", "records", place), "stands where an export ends; this one is not whole"
            )
    if records[-1].kind != MANIFEST:
        return records
    manifest, place = records[-1].record, ("body", "records", len(records) - 1)
    if manifest.get("format") != FORMAT:
        raise ValidationFailed.at(
            (*place, "record", "format"), f"must be {FORMAT}, the format this release knows"
        )
    found = Kinds()
    async for entry in in_steps(records[:-1]):
        found.add(entry.kind, _line(entry.kind, entry.record))
    if found.summary() != manifest.get("kinds"):
        raise ValidationFailed.at(
            (*place, "record", "kinds"),
            "does not agree with the records: some are missing or were changed",
        )
    return records[:-1]


def import_part(ctx: WriteContext, body: ImportPart) -> dict[str, Any]:
    """One transaction: all of these records, or none."""
    summary: dict[str, dict[str, int]] = {"created": {}, "known": {}, "skipped": {}}
    restore = ctx.registry.restore
    is_known = isinstance(body, OwnPart) or _is_own_block(ctx, body)
    origin = Origin(_renaming(ctx), is_known)
    for kind, group in groupby(
        enumerate(body.records, body.first), key=lambda entry: entry[1].kind
    ):
        entries = list(group)
        if kind not in restore:
            summary["skipped"][kind] = summary["skipped"].get(kind, 0) + len(entries)
            continue
        how = restore[kind]
        records = [_read(how.model, place, entry.record) for place, entry in entries]
        taken = [each for each in records if how.takes is None or how.takes(ctx, each)]
        created = how.function(ctx, taken, origin)
        counts = {"created": created, "known": len(taken) - created}
        if left := len(records) - len(taken):
            counts["skipped"] = left
        for outcome, count in counts.items():
            summary[outcome][kind] = summary[outcome].get(kind, 0) + count
    ctx.credits = sum(summary["created"].get(kind, 0) for kind in PRICED)
    return {**summary, "verified": is_known}


def _read(model: Any, place: int, record: dict[str, Any]) -> Any:
    try:
        return model.model_validate(record)
    except ValidationError as invalid:
        wrong = next(iter(invalid.errors(include_url=False, include_input=False)))
        path = [
            part if isinstance(part, int) else str(part)[:ID_CHARS_MAX] for part in wrong["loc"]
        ]
        raise ValidationFailed.at(
            ("body", "records", place, "record", *path),
            "is not what an export has there",
            wrong["type"],
        ) from None


def _renaming(ctx: WriteContext) -> Any:
    """What an id of the export is called here. The account's own id is this account's; what is no
    id stays as it is.
    """
    own = ctx.principal

    def renamed(text: str) -> str:
        return own.tenant_id if text.startswith("usr_") else ids.retagged(text, own.tag) or text

    return renamed


# --- the plugin -----------------------------------------------------------------------------------

_LINE = {
    "kind": "collection",
    "record": {
        "id": "col_06a1kz0a1g3q5b7m9d1s3u5w7y9z2b4d", "name": "travel",
        "created_at": "2026-05-08T13:56:00.000Z", "updated_at": "2026-05-08T13:56:00.000Z",
    },
}  # fmt: skip

OPERATIONS = (
    Flow(
        name="account.export",
        method="GET",
        path="/v1/account/export",
        load=signing_key,
        handler=export_account,
        response=Record,
        produces=NDJSON,
        scope="admin",
        rate="batch",
        summary="Export everything the account holds",
        description=(
            "One JSON object a line, streamed. The last line is the manifest, with the count and "
            "SHA-256 of each kind's lines and this installation's signatures, of all and of each "
            "block of lines; without it the export is not whole. Secrets (password, keys) are not "
            "in it."
        ),
        example_reply=_LINE,
    ),
    Read(
        name="account.export_part",
        method="GET",
        path="/v1/account/export/parts",
        handler=export_part,
        heavy=True,
        query=PartQuery,
        response=Part,
        scope="admin",
        rate="batch",
        summary="Export in parts",
        description="The same records, for a client that wants to go on where it was interrupted.",
        example_reply={"records": [_LINE], "next_cursor": None, "has_more": False},
    ),
    Flow(
        name="account.import",
        method="POST",
        path="/v1/account/import",
        load=is_own,
        handler=import_account,
        finish=settle_import,
        credits=price,
        body=Import,
        response=Imported,
        scope="admin",
        rate="batch",
        idempotency=Idempotency.CACHED,
        summary="Import an export",
        description=(
            "The lines themselves as application/x-ndjson, or as `records`. Contents, versions, "
            "times and order stay; ids get this account's tag. A manifest is checked first. Unless "
            "this installation has signed it for this account, the actors of all versions are "
            "marked with `imported:`, since nobody knows whether the history is so. It can be "
            "repeated: what is here already is left alone. A memory that was not here costs a "
            "credit."
        ),
        example={"records": [_LINE]},
        example_reply={"created": {"collection": 1}, "known": {}, "skipped": {}, "verified": False},
    ),
    Write(
        name="account.import_part",
        method="POST",
        path="/v1/account/import/parts",
        handler=import_part,
        lengthy=True,
        credits=price,
        body=ImportPart,
        response=Imported,
        scope="admin",
        rate="batch",
        idempotency=Idempotency.CACHED,
        summary="Import a part, in one transaction",
        description=(
            "A memory that was not here costs a credit. Cut into blocks of `block_records` lines, "
            "each sent with its signature of the manifest's `blocks`, an export is verified as in "
            "one piece."
        ),
        example={"records": [_LINE]},
        example_reply={"created": {"collection": 1}, "known": {}, "skipped": {}, "verified": False},
    ),
)
