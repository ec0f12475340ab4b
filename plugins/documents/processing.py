"""From a file to searchable chunks: the job `documents.process`, in bounded steps.

    begin       the document is "processing"
    parse       the file is read in a confined process: its text, or where in it there is speech, or
                pages that are pictures. Of a recording beside which there are subtitles, those are
                read
    transcribe  one piece of a recording at a time is sent to the transcriber; what it says is kept
    recognise   a few pictures at a time are sent to the recogniser; what it reads is kept
    index       some chunks at a time are embedded and become memories

Each step ends in one transaction, so a crash repeats one step and nothing twice. What can never
succeed ends as `failed` with a reason, at once; what a model's endpoint may do better later is
tried PARSE_ATTEMPTS_MAX times; an embedder is waited for as long as memories wait for it. A
document that was deleted meanwhile ends the job as failed.

Choices:
- of a recording with a subtitle track the subtitles are the transcript, and nobody is asked; so are
  an SRT or VTT file of the same name in the same collection, which come before the track; both
  documents are found then. Of several the newest counts;
- a PDF of which some pages are pictures is read as far as it has text when there is no recogniser,
  and fails only when it has none;
- chunks become searchable step by step while the document is still "processing"; they are taken
  back if it fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plugins.collections import is_dropped, require_collection
from plugins.documents.chunk_memories import hide_memories, memory_fields
from plugins.documents.chunking import TextChunk, chunked
from plugins.documents.extras import extra_of
from plugins.documents.limits import (
    CHUNKS_MAX,
    CHUNKS_PER_STEP,
    INDEX_ATTEMPTS_MAX,
    PARSE_ATTEMPTS_MAX,
    PICTURES_PER_STEP,
    RECORDING_PIECE_SECONDS_MAX,
)
from plugins.documents.parser import NoRoom, StoredDocument
from plugins.documents.parsing import formats
from plugins.documents.parsing.extraction import Extraction, ParseFailed, TextBuilder
from plugins.documents.settings import DocumentsSettings
from plugins.documents.store import (
    COMPLETED,
    DOCUMENT_CHUNKS,
    DOCUMENT_CUES,
    DOCUMENT_FAILED,
    DOCUMENT_PROCESSED,
    DOCUMENTS,
    FAILED,
    PROCESSING,
    UNFINISHED,
    UPLOAD_CREDITS,
    ChunkRow,
    CueRow,
    DocumentRow,
    advance,
    beside,
    blob_of,
    changed,
    file_gone_at,
    put,
    put_text,
    slice_of,
)
from plugins.documents.sweeping import remove_file_later
from plugins.memories import TITLE_CHARS_MAX, Draft, Indexed, index_texts, store_memories
from runtime.api import jobs, metering
from runtime.api.context import ReadContext, WriteContext
from runtime.api.jobs import Again, GiveUp
from runtime.api.plugin import Job, RetryStrategy
from runtime.api.steps import JobSteps
from runtime.errors import NotInstalled, PayloadTooLarge, PermissionDenied, RateLimited
from runtime.inference import ExtractionRefused, ExtractionUnavailable, Models
from runtime.installation import blob_store
from runtime.long_work import aside

_NO_ROOM_MS, _NO_ROOM_MS_MAX = 200, 30_000
_JOIN_SECONDS = 30.0  # stretches of speech so near each other are sent as one piece

Payload = Mapping[str, Any]


@dataclass(slots=True)
class Step:
    """What one step works on: the document as it was when the step began, and what of it the step
    needs.
    """

    row: DocumentRow
    attempts: int
    file: StoredDocument | None = None
    subtitles: StoredDocument | None = None
    cues: list[CueRow] = field(default_factory=list)
    texts: list[tuple[int, ChunkRow, str]] = field(default_factory=list)

    @property
    def source(self) -> StoredDocument:
        """The file, in a phase that reads it. LookupError in another."""
        if self.file is None:
            raise LookupError("this phase reads no file")
        return self.file


@dataclass(slots=True)
class Read:
    """What reading made: a text with its chunks, or work for a model."""

    extraction: Extraction
    chunks: list[TextChunk]
    speech: list[list[float]] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)


class Busy:
    """As many parsers run as may."""


# --- steps ----------------------------------------------------------------------------------------


def load(ctx: ReadContext, payload: Payload) -> Step | None:
    """Load the document; None when there is nothing left to work on."""
    row = find_row(ctx, payload)
    if row is None:
        return None
    found = jobs.find(ctx, ctx.call.request_id)
    step = Step(row, attempts=1 if found is None else found[1].attempts)
    phase = payload["phase"]
    if phase in ("parse", "transcribe", "recognise"):
        step.file = _stored(ctx, row)
        subtitles = (
            beside(ctx, row, formats.SUBTITLES)
            if phase == "parse" and row.media_type in formats.SOUND
            else None
        )
        if subtitles is not None and file_gone_at(ctx, subtitles) is None:
            step.subtitles = _stored(ctx, subtitles)
    if phase == "join":
        step.cues = [cue for _, cue in ctx[DOCUMENT_CUES].scan(row.ordinal)]
    if phase == "index":
        after = (row.ordinal, row.indexed - 1) if row.indexed else None
        waiting = ctx[DOCUMENT_CHUNKS].scan(row.ordinal, after=after, limit=CHUNKS_PER_STEP)
        step.texts = [
            (key[1], chunk, slice_of(ctx, row, chunk.start, chunk.end)) for key, chunk in waiting
        ]
    return step


def _stored(ctx: ReadContext, row: DocumentRow) -> StoredDocument:
    documents = DocumentsSettings.of(ctx.settings)
    return StoredDocument(
        blob_store(ctx.settings), ctx.principal.tenant_id, blob_of(ctx, row), row.media_type,
        row.filename, documents.parser_memory_bytes, documents.parser_seconds,
        ctx.settings.environment == "production",
    )  # fmt: skip


async def prepare(steps: JobSteps, step: Step | None, payload: Payload, models: Models) -> Any:
    """The slow part of a step. What the document can never get over is a ParseFailed, which is
    returned, not raised.
    """
    if step is None or payload["phase"] == "begin":
        return None
    reader = extra_of(step.row.media_type)
    try:
        if step.file is not None and reader is not None:
            reader.require()
        if step.attempts > PARSE_ATTEMPTS_MAX and payload["phase"] != "index":
            raise ParseFailed(
                "processing_failed", "Processing this file was broken off again and again."
            )
        return await _PREPARE[payload["phase"]](step, payload, models)
    except ParseFailed as failed:
        return failed
    except NotInstalled as missing:
        return ParseFailed("reader_not_installed", missing.message)
    except NoRoom:
        return Busy()
    except ExtractionRefused as refused:
        return ParseFailed(
            "model_refused", f"The model that reads this file does not accept it: {refused}."
        )
    except ExtractionUnavailable as unavailable:
        if step.attempts < PARSE_ATTEMPTS_MAX:
            raise
        return ParseFailed(
            "model_failed",
            f"The model that reads this file failed {step.attempts} times: {unavailable}.",
        )


def finish(ctx: WriteContext, payload: Payload) -> Again | GiveUp | dict[str, Any]:
    """The end of a step, in its transaction."""
    row, prepared = find_row(ctx, payload), ctx.prepared
    if row is None:
        return GiveUp("The document was deleted meanwhile, or another job reads it.")
    if isinstance(prepared, ParseFailed):
        if prepared.reason == "transcription_unavailable" and _have_subtitles_come(
            ctx, row, payload
        ):
            return Again({"ordinal": row.ordinal, "phase": "parse", "looked": True})
        return fail(ctx, row, prepared.reason, prepared.message)
    if isinstance(prepared, Busy):
        waits = payload.get("waits", 0)
        return Again(
            {**payload, "waits": waits + 1}, delay_ms=min(_NO_ROOM_MS * 2**waits, _NO_ROOM_MS_MAX)
        )
    return _FINISH[payload["phase"]](
        ctx, row, {name: value for name, value in payload.items() if name != "waits"}
    )


def _have_subtitles_come(ctx: ReadContext, row: DocumentRow, payload: Payload) -> bool:
    """Whether there are subtitles beside a recording now, which are looked for as it begins to be
    read; asked once.
    """
    subtitles = None if "looked" in payload else beside(ctx, row, formats.SUBTITLES)
    return subtitles is not None and file_gone_at(ctx, subtitles) is None


def given_up(ctx: WriteContext, payload: Payload, reason: str) -> None:
    """The last attempt of a step failed."""
    row = find_row(ctx, payload)
    if row is not None:
        fail(ctx, row, "processing_failed", "Processing this file failed too often.")


def find_row(ctx: ReadContext, payload: Payload) -> DocumentRow | None:
    """The document, while it is there and this job is the one that processes it."""
    row = ctx[DOCUMENTS].get(payload["ordinal"])
    if row is None or row.status not in UNFINISHED or is_dropped(ctx, row.number):
        return None
    return row if row.job_id == ctx.call.request_id else None


def fail(ctx: WriteContext, row: DocumentRow, reason: str, message: str) -> GiveUp:
    """The document is failed, and nothing of it is found; what was set aside for it is given back.
    Its file stays for a while, so that what is wrong with it can be seen.
    """
    metering.release(ctx, row.charge)
    hide_memories(ctx, row)
    put_text(ctx, row, "", [])
    after = advance(
        ctx, row, status=FAILED, reason=reason, message=message, chunk_count=0, indexed=0
    )
    remove_file_later(ctx, after)
    ctx.emit(DOCUMENT_FAILED, changed(after), row.id)
    return GiveUp(f"{reason}: {message}")


def _begun(ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]) -> Again:
    put(ctx, row, status=PROCESSING)
    return Again({**payload, "phase": "parse"})


# --- reading the file -----------------------------------------------------------------------------


async def _parse(step: Step, payload: Payload, models: Models) -> Read:
    kind = step.row.media_type
    if kind in formats.PICTURES:
        if models.recogniser is None:
            raise ParseFailed(
                "ocr_unavailable", "Reading pictures needs a model; set ocr.base_url and ocr.model."
            )
        return Read(Extraction(page_count=1), [], pages=[1])
    if kind in formats.SOUND:
        return await _hear(step, models)
    extraction = await step.source.read(charset=payload.get("charset"))
    if extraction.pictures and models.recogniser is not None:
        return Read(extraction, [], pages=extraction.pictures)
    if not extraction.text:
        if extraction.pictures:
            raise ParseFailed(
                "ocr_unavailable",
                "The pages are pictures of text; reading them needs a model: set ocr.base_url and "
                "ocr.model.",
            )
        raise ParseFailed("no_text", "There is no text in this file.")
    return await _cut(extraction)


async def _hear(step: Step, models: Models) -> Read:
    if step.subtitles is not None:
        try:
            return await _cut(await step.subtitles.read())
        except ParseFailed:
            pass  # they are a document of their own, which says what is wrong with it
    answer = await step.source.parse("hear")
    if answer.extraction is not None:
        return await _cut(answer.extraction)
    duration, speech = answer.value["duration_seconds"], answer.value["speech"]
    if speech and models.transcriber is None:
        raise ParseFailed(
            "transcription_unavailable",
            "There is speech in this file, and no transcriber; set transcriber.base_url.",
        )
    return Read(Extraction(duration_seconds=duration, transcript=True), [], speech=_pieces(speech))


async def _cut(extraction: Extraction) -> Read:
    chunks = await aside(chunked, extraction)
    if len(chunks) > CHUNKS_MAX:
        raise ParseFailed(
            "too_much_text", f"The text of this file makes more than {CHUNKS_MAX} chunks."
        )
    return Read(extraction, chunks)


def _pieces(speech: Sequence[Sequence[float]]) -> list[list[float]]:
    """Stretches of speech -> what is sent to the transcriber at a time: neighbours together, none
    longer than it may be.
    """
    pieces: list[list[float]] = []
    for begins, ends in speech:
        while ends - begins > RECORDING_PIECE_SECONDS_MAX:
            pieces.append([begins, begins + RECORDING_PIECE_SECONDS_MAX])
            begins += RECORDING_PIECE_SECONDS_MAX
        if (
            pieces
            and begins - pieces[-1][1] <= _JOIN_SECONDS
            and ends - pieces[-1][0] <= RECORDING_PIECE_SECONDS_MAX
        ):
            pieces[-1][1] = ends
        else:
            pieces.append([begins, ends])
    return pieces


def _parsed(
    ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]
) -> Again | GiveUp | dict[str, Any]:
    read: Read = ctx.prepared
    extraction = read.extraction
    row = put(
        ctx, row, page_count=extraction.page_count, duration_seconds=extraction.duration_seconds,
        language=extraction.language, media_type=extraction.media_type or row.media_type,
        kind="transcript" if extraction.transcript else "text",
        title=row.title if row.title_given else (extraction.title or "")[:TITLE_CHARS_MAX] or None,
    )  # fmt: skip
    if read.speech:
        return Again(
            {**payload, "phase": "transcribe", "pieces": read.speech, "next": 0}, progress=0.1
        )
    if read.pages:
        for number, (text, page) in enumerate(_by_page(extraction)):
            ctx[DOCUMENT_CUES].put((row.ordinal, number), CueRow(text, page=page))
        return Again(
            {**payload, "phase": "recognise", "pages": read.pages, "next": 0}, progress=0.1
        )
    if not extraction.text:
        return _done(ctx, put(ctx, row, kind="no_speech_detected"))
    return _to_index(ctx, row, payload, read)


def _by_page(extraction: Extraction) -> list[tuple[str, int | None]]:
    """The text of each page that has some, where others are still to be read."""
    pages: dict[int | None, list[str]] = {}
    for block in extraction.blocks:
        pages.setdefault(block.page, []).append(extraction.text[block.start : block.end])
    return [("\n\n".join(texts), page) for page, texts in pages.items()]


# --- asking models --------------------------------------------------------------------------------


async def _transcribe(
    step: Step, payload: Payload, models: Models
) -> tuple[list[CueRow], str | None]:
    begins, ends = payload["pieces"][payload["next"]]
    if models.transcriber is None:
        raise ParseFailed(
            "transcription_unavailable",
            "There is speech in this file, and no transcriber; set transcriber.base_url.",
        )
    wav = (await step.source.parse("cut", begins=begins, ends=ends)).value
    heard = await models.transcriber.transcribe(wav, ends - begins)
    cues = [
        CueRow(said.text, begins=round(begins + said.begins, 3), ends=round(begins + said.ends, 3))
        for said in heard.said
    ]
    return cues, heard.language


def _transcribed(ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]) -> Again:
    cues, language = ctx.prepared
    _keep(ctx, row, payload, cues)
    if language is not None and row.language is None:
        put(ctx, row, language=language)
    return _next(payload, len(payload["pieces"]), 1)


async def _recognise(step: Step, payload: Payload, models: Models) -> list[CueRow]:
    pages = payload["pages"][payload["next"] : payload["next"] + PICTURES_PER_STEP]
    if models.recogniser is None:
        raise ParseFailed(
            "ocr_unavailable", "Reading pictures needs a model; set ocr.base_url and ocr.model."
        )
    pictures = (await step.source.parse("show", pages=pages)).value
    texts = await asyncio.gather(*(models.recogniser.recognise(picture) for picture in pictures))
    return [CueRow(text, page=page) for text, page in zip(texts, pages, strict=True) if text]


def _recognised(ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]) -> Again:
    _keep(ctx, row, payload, ctx.prepared)
    return _next(payload, len(payload["pages"]), PICTURES_PER_STEP)


def _keep(ctx: WriteContext, row: DocumentRow, payload: Payload, cues: Sequence[CueRow]) -> None:
    kept = ctx[DOCUMENT_CUES].count(row.ordinal)
    for number, cue in enumerate(cues, kept):
        ctx[DOCUMENT_CUES].put((row.ordinal, number), cue)


def _next(payload: dict[str, Any], count: int, step: int) -> Again:
    following = payload["next"] + step
    phase = "join" if following >= count else payload["phase"]
    return Again(
        {**payload, "phase": phase, "next": following},
        progress=0.1 + 0.6 * min(1.0, following / count),
    )


async def _join(step: Step, payload: Payload, models: Models) -> Read:
    """One text of all that the models have read, in the order of pages or moments."""
    builder = TextBuilder()
    for cue in sorted(step.cues, key=lambda cue: (cue.page or 0, cue.begins or 0.0)):
        if cue.page is not None:
            builder.turn_to(cue.page)
        builder.add(
            cue.text, gap="\n" if cue.page is None else "\n\n", begins=cue.begins, ends=cue.ends
        )
    extraction = builder.done()
    if not extraction.text and step.row.kind != "transcript":
        raise ParseFailed("no_text", "There is no text in this file.")
    return await _cut(extraction)


def _joined(
    ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]
) -> Again | GiveUp | dict[str, Any]:
    read: Read = ctx.prepared
    if not read.extraction.text:
        return _done(ctx, put(ctx, row, kind="no_speech_detected"))
    return _to_index(ctx, row, payload, read)


# --- indexing -------------------------------------------------------------------------------------


def _to_index(ctx: WriteContext, row: DocumentRow, payload: Payload, read: Read) -> Again | GiveUp:
    try:
        put_text(ctx, row, read.extraction.text, read.chunks)
        metering.reserve_more(ctx, row.charge, len(read.chunks))
    except (PayloadTooLarge, RateLimited) as refused:
        return fail(ctx, row, "quota_exceeded", refused.message)
    put(ctx, row, chunk_count=len(read.chunks), indexed=0)
    return Again({"ordinal": row.ordinal, "phase": "index"}, progress=0.7)


async def _embed(
    step: Step, payload: Payload, models: Models
) -> list[tuple[int, ChunkRow, str, Indexed]]:
    indexed = await index_texts([(None, text) for _, _, text in step.texts], models)
    return [
        (index, chunk, text, made)
        for (index, chunk, text), made in zip(step.texts, indexed, strict=True)
    ]


def _indexed(
    ctx: WriteContext, row: DocumentRow, payload: dict[str, Any]
) -> Again | GiveUp | dict[str, Any]:
    made = [item for item in ctx.prepared if item[0] >= row.indexed]
    collection = require_collection(ctx, row.collection_id)
    drafts = [
        Draft(text.strip(), collection, memory_fields(row, index, chunk), indexed)
        for index, chunk, text, indexed in made
    ]
    try:
        memories = store_memories(ctx, drafts, reason="document").rows
    except PermissionDenied as refused:
        return fail(ctx, row, "quota_exceeded", refused.message)
    for (index, chunk, _, _), memory in zip(made, memories, strict=True):
        held = ChunkRow(
            chunk.start,
            chunk.end,
            chunk.page,
            chunk.heading,
            chunk.begins,
            chunk.ends,
            memory.id,
            memory.ordinal,
        )
        ctx[DOCUMENT_CHUNKS].put((row.ordinal, index), held)
    row = put(ctx, row, indexed=row.indexed + len(made))
    if row.indexed < row.chunk_count:
        return Again(payload, progress=0.7 + 0.3 * row.indexed / row.chunk_count)
    return _done(ctx, row)


def _done(ctx: WriteContext, row: DocumentRow) -> dict[str, Any]:
    metering.settle(ctx, row.charge, "documents.upload", UPLOAD_CREDITS + row.chunk_count)
    after = advance(ctx, row, status=COMPLETED)
    ctx.emit(DOCUMENT_PROCESSED, changed(after), row.id)
    return {"document_id": row.id, "chunk_count": after.chunk_count, "kind": after.kind}


_PREPARE = {
    "parse": _parse,
    "transcribe": _transcribe,
    "recognise": _recognise,
    "join": _join,
    "index": _embed,
}
_FINISH = {
    "begin": _begun, "parse": _parsed, "transcribe": _transcribed, "recognise": _recognised,
    "join": _joined, "index": _indexed,
}  # fmt: skip

PROCESS_JOB = Job(
    "documents.process",
    finish,
    load=load,
    prepare=prepare,
    failed=given_up,
    retry=RetryStrategy(attempts=INDEX_ATTEMPTS_MAX, base_ms=500, factor=2.0, max_ms=60_000),
    listed=True,
)
