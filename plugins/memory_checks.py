"""What must agree about memories: rows, ids, bitmaps, cues, postings, vectors, history, expiry, counts, and the jobs that some wait for.

`mneme admin verify` and the simulation run these. The memory's row is the truth; everything else here derives from it and can be
made again. Postings and cues are made from the content on the spot; a vector takes a model, so a memory without one goes back to
`processing` and the job `memories.index` makes it. Deleted and hidden memories must leave nothing behind, or a job that removes it.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from pyroaring import BitMap

from plugins.collections import COLLECTION_COUNTS, COLLECTIONS, DROPPED_COLLECTIONS, CountsRow, default_collection
from plugins.memory_cues import COLUMNS, NOTHING, TextCues
from plugins.memory_indexing import analysed
from plugins.memory_store import (
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_ALARM,
    MEMORY_CUES,
    MEMORY_EXPIRY,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MEMORY_IDS,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    PROCESSING,
    Indexed,
    MemoryRow,
    cue_record,
    index_again,
    is_readable,
    marks_of,
    session_mark,
    set_alarm,
)
from runtime.checks import Counter, Derived, Finding, Marks, Pursued, delete, last_ordinal, unfinished
from runtime.inference import Reading
from runtime.limits import TEXTS_VERIFIED_AT_ONCE_MAX
from runtime.operation import ReadContext, WriteContext

PLACED = ("created_at", "occurred_at", "session", "speaker", "collection", "previous", "following")  # cues that are not of the text
LENGTH_TOLERANCE = 0.01
NOT_READ = Reading(np.zeros(0, np.float32), None)  # what a text gives without a model


def _rows(ctx: ReadContext) -> Iterator[MemoryRow]:
    return (row for _, row in ctx[MEMORIES].scan())


# --- text, cues, vectors ----------------------------------------------------------------------------------------------


def _analysed(ctx: ReadContext) -> Iterator[tuple[list[MemoryRow], list[Indexed]]]:
    """The searchable memories, some at a time, with what their texts give."""
    portion: list[MemoryRow] = []
    for row in _rows(ctx):
        if row.searchable:
            portion.append(row)
        if len(portion) == TEXTS_VERIFIED_AT_ONCE_MAX:
            yield portion, _texts_of(portion)
            portion = []
    if portion:
        yield portion, _texts_of(portion)


def _texts_of(rows: list[MemoryRow]) -> list[Indexed]:
    return analysed([(row.speaker, row.content) for row in rows], [[NOT_READ]] * len(rows), "")


def postings(ctx: ReadContext) -> Iterator[Finding]:
    """A searchable memory has the postings of its text; no other has any."""
    text, searchable = ctx.index(MEMORY_TEXT), 0
    for rows, indexed in _analysed(ctx):
        searchable += len(rows)
        terms = list(dict.fromkeys(term for each in indexed for term in each.terms))
        found = text.frequencies(terms, np.array([row.ordinal for row in rows], np.uint32)) > 0
        place = {term: number for number, term in enumerate(terms)}
        for column, (row, each) in enumerate(zip(rows, indexed, strict=True)):
            owed = np.zeros(len(terms), bool)
            owed[[place[term] for term in each.terms]] = True
            if not (text.has(row.ordinal) and np.array_equal(found[:, column], owed)):
                yield Finding(MEMORY_TEXT.name, f"memory {row.id} has other postings than its text", _post_again(row.ordinal, each.terms))
    for row in _rows(ctx):
        if not row.searchable and text.has(row.ordinal):
            yield Finding(MEMORY_TEXT.name, f"memory {row.id} waits for its index and has postings", _unpost(row.ordinal))
    documents = text.stats().documents
    if documents != searchable:
        yield Finding(MEMORY_TEXT.name, f"{documents} documents are counted for {searchable} searchable memories", _post_all_again)


def _post_again(ordinal: int, terms: Mapping[str, int]) -> Any:
    def repair(ctx: WriteContext) -> None:
        ctx.index(MEMORY_TEXT).remove(ordinal)
        ctx.index(MEMORY_TEXT).add(ordinal, terms)

    return repair


def _unpost(ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_TEXT).remove(ordinal) and None


def _post_all_again(ctx: WriteContext) -> None:
    text = ctx.index(MEMORY_TEXT)
    text.clear()
    for rows, indexed in _analysed(ctx):
        text.add_many((row.ordinal, each.terms) for row, each in zip(rows, indexed, strict=True))


def vectors(ctx: ReadContext) -> Iterator[Finding]:
    """A searchable memory has one vector of length 1, in its space; no other has any."""
    index, owed = ctx.index(MEMORY_VECTORS), Count()
    for row in _rows(ctx):
        if row.searchable:
            vector = index.get(row.space, row.ordinal)
            owed[row.space] += 1
            if vector is None or not abs(float(np.linalg.norm(vector)) - 1) < LENGTH_TOLERANCE:
                what = "has no vector" if vector is None else "has a vector that is not of length 1"
                yield Finding(MEMORY_VECTORS.name, f"memory {row.id} {what}", _index_later(row.ordinal))
    for space in index.spaces():
        if index.count(space) > owed[space]:
            searchable = {row.ordinal for row in _rows(ctx) if row.searchable and row.space == space}
            for _, ordinal in ctx[MEMORY_VECTORS.tables[0]].keys(space):
                if ordinal not in searchable:
                    what = f"a vector of ordinal {ordinal} belongs to no searchable memory"
                    yield Finding(MEMORY_VECTORS.name, what, _unvector(space, ordinal))


def words(ctx: ReadContext) -> Iterator[Finding]:
    """Vectors of words belong to a searchable memory and lie in its space; which it has, and whether, is its model's affair."""
    spaces = {row.ordinal: row.space for row in _rows(ctx) if row.searchable}
    for space, ordinal in ctx[MEMORY_WORDS.words].keys():  # noqa: SIM118  a table, not a dict
        if spaces.get(ordinal) != space:
            what = f"vectors of the words of ordinal {ordinal} belong to no searchable memory"
            yield Finding(MEMORY_WORDS.name, what, _unword(space, ordinal))


def _index_later(ordinal: int) -> Any:
    def repair(ctx: WriteContext) -> None:
        index_again(ctx, ctx[MEMORIES].get(ordinal), None)

    return repair


def _unvector(space: str, ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_VECTORS).delete(space, ordinal) and None


def _unword(space: str, ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_WORDS).delete(space, ordinal) and None


def cues(ctx: ReadContext) -> Iterator[Finding]:
    """Each memory has the cues of its row and, once searchable, of its text; and the neighbours it has in its session."""
    records, neighbours = ctx.index(MEMORY_CUES), _neighbours(ctx)
    read = {row.ordinal: each.cues for rows, indexed in _analysed(ctx) for row, each in zip(rows, indexed, strict=True)}
    known = BitMap()
    for row in _rows(ctx):
        known.add(row.ordinal)
        stored = records.get(row.ordinal)
        expected = cue_record(ctx, row, read.get(row.ordinal, TextCues()), *neighbours.get(row.ordinal, (NOTHING, NOTHING)))
        if stored == expected or (stored is not None and not row.searchable and _placed(stored) == _placed(expected)):
            continue
        what = f"memory {row.id} {'lacks its cues' if stored is None else 'has cues of something else'}"
        yield Finding(MEMORY_CUES.name, what, _put_record(row.ordinal, expected))
    for (ordinal,), _ in ctx[MEMORY_CUES.records].scan():
        if ordinal not in known:
            yield Finding(MEMORY_CUES.name, f"cues of ordinal {ordinal} belong to no memory", _drop_record(ordinal))


def _placed(raw: bytes) -> list[Any]:
    record = np.frombuffer(raw, COLUMNS)[0]
    return [record[name] for name in PLACED]


def _neighbours(ctx: ReadContext) -> dict[int, tuple[int, int]]:
    """ordinal -> the ordinals before and after it in its session, in order of arrival."""
    sessions: dict[int, list[int]] = {}
    for row in _rows(ctx):
        if mark := session_mark(ctx, row):
            sessions.setdefault(mark, []).append(row.ordinal)
    found: dict[int, tuple[int, int]] = {}
    for members in sessions.values():
        before = dict((after, first) for first, after in pairwise(members))
        after = dict(pairwise(members))
        found |= {ordinal: (before.get(ordinal, NOTHING), after.get(ordinal, NOTHING)) for ordinal in members}
    return found


def _put_record(ordinal: int, raw: bytes) -> Any:
    return lambda ctx: ctx.index(MEMORY_CUES).put(ordinal, raw)


def _drop_record(ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_CUES).delete(ordinal) and None


# --- rows -------------------------------------------------------------------------------------------------------------


def history(ctx: ReadContext) -> Iterator[Finding]:
    """A memory of version n has the n − 1 versions before it; a deleted one has none."""
    versions = {row.id: row.version for row in _rows(ctx)}
    kept: Count[str] = Count()
    for key in list(ctx[MEMORY_HISTORY].keys(reverse=False)):
        memory_id, version = key
        if version >= versions.get(memory_id, 0):
            yield Finding(MEMORY_HISTORY.name, f"version {version} of memory {memory_id} belongs to nothing", delete(MEMORY_HISTORY, key))
        else:
            kept[memory_id] += 1
    for memory_id, version in versions.items():
        if kept[memory_id] != version - 1:
            yield Finding(MEMORY_HISTORY.name, f"memory {memory_id} of version {version} has {kept[memory_id]} versions before it")


def homes(ctx: ReadContext) -> Iterator[Finding]:
    """Every memory is in a collection, or out of sight with one that was dropped; and each collection counts its own."""
    collections: dict[int, str] = {}
    for _, row in ctx[COLLECTIONS].scan():
        if row.number in collections or ctx[DROPPED_COLLECTIONS].has(row.number):
            yield Finding(COLLECTIONS.name, f"the number of collection {row.id} is dropped, or another's")
        collections[row.number] = row.id
    default = default_collection(ctx)
    collections.setdefault(default.number, default.id)
    hidden = BitMap.union(BitMap(), *(BitMap.deserialize(row.ordinals) for _, row in ctx[MEMORIES_HIDDEN].scan()))
    counted: Count[int] = Count()
    for row in _rows(ctx):
        if row.ordinal in hidden:
            continue
        counted[row.number] += 1
        if collections.get(row.number) != row.collection_id:
            yield Finding(MEMORIES.name, f"memory {row.id} is in no collection")
    for number in collections:
        counts = ctx[COLLECTION_COUNTS].get(number) or CountsRow()
        if counts.memories != counted[number]:
            what = f"{counts.memories} memories are counted in collection number {number}, which has {counted[number]}"
            yield Finding(COLLECTION_COUNTS.name, what, _recount(number, counted[number]))


def _recount(number: int, memories: int) -> Any:
    def repair(ctx: WriteContext) -> None:
        counts = ctx[COLLECTION_COUNTS].get(number) or CountsRow()
        ctx[COLLECTION_COUNTS].put((number,), msgspec.structs.replace(counts, memories=memories))

    return repair


# --- jobs -------------------------------------------------------------------------------------------------------------


def hidden_and_forgotten(ctx: ReadContext) -> Iterator[Finding]:
    """What a dropped collection hides is swept with that collection's number."""
    for (cause, number), _ in ctx[MEMORIES_HIDDEN].scan():
        if cause == "collection" and not ctx[DROPPED_COLLECTIONS].has(number):
            what = f"the members of dropped collection number {number} are never swept"
            yield Finding(MEMORIES_HIDDEN.name, what, _drop_again(number))


def _drop_again(number: int) -> Any:
    return lambda ctx: ctx[DROPPED_COLLECTIONS].put((number,), b"")


def alarm(ctx: ReadContext) -> Iterator[Finding]:
    """While memories have an end, a job watches the alarm."""
    first = ctx[MEMORY_EXPIRY].first()
    raw = ctx[MEMORY_ALARM].get()
    at = None if raw is None else int.from_bytes(raw, "big")
    watched = any(row.payload["at"] == at for row in unfinished(ctx, "memories.expire"))
    if first is not None and not watched:
        yield Finding(MEMORY_ALARM.name, "memories have an end, and no job watches it", _set_again)


def _set_again(ctx: WriteContext) -> None:
    ctx[MEMORY_ALARM].delete()
    first = ctx[MEMORY_EXPIRY].first()
    if first is not None:
        set_alarm(ctx, first[0][0])


def _waiting(ctx: ReadContext) -> Iterator[tuple[tuple[str, int], str]]:
    """What is out of sight is removed by its own job, searchable or not."""
    for row in _rows(ctx):
        if row.status == PROCESSING and is_readable(ctx, row):
            yield (row.id, row.content_version), f"memory {row.id}"


def _index_all(ctx: WriteContext, waiting: list[tuple[str, int]]) -> None:
    for start in range(0, len(waiting), TEXTS_VERIFIED_AT_ONCE_MAX):
        ctx.enqueue("memories.index", {"memories": [list(pair) for pair in waiting[start : start + TEXTS_VERIFIED_AT_ONCE_MAX]]})


def _expiry(ctx: ReadContext, key: tuple[Any, ...], row: MemoryRow) -> Iterable[tuple[tuple[Any, ...], bytes]]:
    return [] if row.expires_at is None else [((row.expires_at, row.ordinal), b"")]


CHECKS = (
    Derived(MEMORY_IDS, MEMORIES, lambda ctx, key, row: [((row.id,), row.ordinal.to_bytes(4, "big"))]),
    Derived(MEMORY_EXPIRY, MEMORIES, _expiry),
    Marks(MEMORY_FIELDS, MEMORIES, marks_of),
    Counter("memories", last_ordinal(MEMORIES)),
    history,
    homes,
    cues,
    postings,
    vectors,
    words,
    Pursued(
        "memories.index",
        MEMORIES,
        waiting=_waiting,
        covers=lambda payload: (tuple(pair) for pair in payload["memories"]),
        enqueue=_index_all,
    ),
    Pursued(
        "memories.sweep",
        MEMORIES_HIDDEN,
        waiting=lambda ctx: ((key[1], f"cause {key[1]}") for key, _ in ctx[MEMORIES_HIDDEN].scan("delete")),
        covers=lambda payload: (payload["number"],),
        enqueue=lambda ctx, numbers: [ctx.enqueue("memories.sweep", {"number": number, "deleted": 0}) for number in numbers],
    ),
    hidden_and_forgotten,
    alarm,
)
