"""What must agree about memories: rows, ids, bitmaps, features, postings, vectors, history, expiry,
counts, and the jobs that some wait for.

`mneme admin verify` and the simulation run these. The memory's row is the truth; everything else
here derives from it and can be made again. Postings and features are made from the content on the
spot; a vector takes a model, so a memory without one goes back to `processing` and the job
`memories.index` makes it. Deleted and hidden memories must leave nothing behind, or a job that
removes it.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from pyroaring import BitMap

from plugins.collections import drop_again, is_dropped, miscounted, numbers_in_use
from plugins.memories.features import COLUMNS, NOTHING, TextFeatures, links
from plugins.memories.indexing import Analysed, analysed
from plugins.memories.limits import TEXTS_VERIFIED_AT_ONCE_MAX
from plugins.memories.neighbours import feature_record, session_hash
from plugins.memories.room import MEASURE_JOB, measured, put_measured, true_bytes
from plugins.memories.rows import (
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_ALARM,
    MEMORY_BYTES,
    MEMORY_EXPIRY,
    MEMORY_FEATURES,
    MEMORY_FIELDS,
    MEMORY_HISTORY,
    MEMORY_IDS,
    MEMORY_SPACE,
    MEMORY_TEXT,
    MEMORY_VECTORS,
    MEMORY_WORDS,
    PROCESSING,
    MemoryRow,
)
from plugins.memories.store import (
    entries_of,
    find_ordinal,
    index_again,
    is_readable,
    set_alarm,
)
from runtime.api.checks import (
    Counter,
    Derived,
    Finding,
    IndexEntries,
    Pursued,
    delete,
    last_ordinal,
    unfinished,
)
from runtime.api.context import ReadContext, WriteContext

PLACED = (
    "created_at",
    "occurred_at",
    "session",
    "speaker",
    "collection",
    "previous",
    "following",
)  # features that are not of the text
LENGTH_TOLERANCE = 0.01


def _rows(ctx: ReadContext) -> Iterator[MemoryRow]:
    return (row for _, row in ctx[MEMORIES].scan())


# --- text, features, vectors
# --------------------------------------------------------------------------


def _analysed(ctx: ReadContext) -> Iterator[tuple[list[MemoryRow], list[Analysed]]]:
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


def _texts_of(rows: list[MemoryRow]) -> list[Analysed]:
    return analysed([(row.speaker, row.content) for row in rows])


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
                yield Finding(
                    MEMORY_TEXT.name,
                    f"memory {row.id} has other postings than its text",
                    _post_again(row.ordinal, each.terms),
                )
    for row in _rows(ctx):
        if not row.searchable and text.has(row.ordinal):
            yield Finding(
                MEMORY_TEXT.name,
                f"memory {row.id} waits for its index and has postings",
                _unpost(row.ordinal),
            )
    documents = text.stats().documents
    if documents != searchable:
        yield Finding(
            MEMORY_TEXT.name,
            f"{documents} documents are counted for {searchable} searchable memories",
            _post_all_again,
        )


def _post_again(ordinal: int, terms: Mapping[str, int]) -> Any:
    def repair(ctx: WriteContext) -> None:
        ctx.index(MEMORY_TEXT).remove(ordinal)
        ctx.index(MEMORY_TEXT).add(ordinal, terms)

    return repair


def _unpost(ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_TEXT).remove(ordinal)


def _post_all_again(ctx: WriteContext) -> None:
    text = ctx.index(MEMORY_TEXT)
    text.clear()
    for rows, indexed in _analysed(ctx):
        text.add_many((row.ordinal, each.terms) for row, each in zip(rows, indexed, strict=True))


def vectors(ctx: ReadContext) -> Iterator[Finding]:
    """A searchable memory has one vector of length 1, in its space; no other has any."""
    index, owed, state = ctx.index(MEMORY_VECTORS), Count(), ctx[MEMORY_SPACE].get()
    for row in _rows(ctx):
        if row.searchable:
            space = row.space if state is None else state.space
            vector = index.get(space, row.ordinal)
            owed[space] += 1
            if vector is None or not abs(float(np.linalg.norm(vector)) - 1) < LENGTH_TOLERANCE:
                what = "has no vector" if vector is None else "has a vector that is not of length 1"
                yield Finding(
                    MEMORY_VECTORS.name, f"memory {row.id} {what}", _index_later(row.ordinal)
                )
    for space in index.spaces():
        if state is not None and space == state.other:
            continue  # is being filled, or freed
        if index.count(space) > owed[space]:
            searchable = {
                row.ordinal
                for row in _rows(ctx)
                if row.searchable and (row.space if state is None else state.space) == space
            }
            for _, ordinal in ctx[MEMORY_VECTORS.tables[0]].keys(space):
                if ordinal not in searchable:
                    what = f"a vector of ordinal {ordinal} belongs to no searchable memory"
                    yield Finding(MEMORY_VECTORS.name, what, _unvector(space, ordinal))


def words(ctx: ReadContext) -> Iterator[Finding]:
    """Vectors of words belong to a searchable memory and lie in its space; which it has, and
    whether, is its model's affair.
    """
    state = ctx[MEMORY_SPACE].get()
    spaces = {
        row.ordinal: row.space if state is None else state.space
        for row in _rows(ctx)
        if row.searchable
    }
    for space, ordinal in ctx[MEMORY_WORDS.words].keys():  # noqa: SIM118  a table, not a dict
        if spaces.get(ordinal) != space and (state is None or space != state.other):
            what = f"vectors of the words of ordinal {ordinal} belong to no searchable memory"
            yield Finding(MEMORY_WORDS.name, what, _unword(space, ordinal))


def _index_later(ordinal: int) -> Any:
    def repair(ctx: WriteContext) -> None:
        index_again(ctx, ctx[MEMORIES].row(ordinal), None)

    return repair


def _unvector(space: str, ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_VECTORS).delete(space, ordinal)


def _unword(space: str, ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_WORDS).delete(space, ordinal)


def features(ctx: ReadContext) -> Iterator[Finding]:
    """Check that each memory has the features of its row and, once searchable, of its text; and the
    neighbours it has in its session.
    """
    records, neighbours = ctx.index(MEMORY_FEATURES), _neighbours(ctx)
    read = {
        row.ordinal: each.features
        for rows, indexed in _analysed(ctx)
        for row, each in zip(rows, indexed, strict=True)
    }
    known = BitMap()
    for row in _rows(ctx):
        known.add(row.ordinal)
        stored = records.get(row.ordinal)
        expected = feature_record(
            ctx,
            row,
            read.get(row.ordinal, TextFeatures()),
            *neighbours.get(row.ordinal, (NOTHING, NOTHING)),
        )
        if stored == expected or (
            stored is not None and not row.searchable and _placed(stored) == _placed(expected)
        ):
            continue
        what = (
            f"memory {row.id} "
            f"{'lacks its features' if stored is None else 'has features of something else'}"
        )
        yield Finding(MEMORY_FEATURES.name, what, _put_record(row.ordinal, expected))
    for (ordinal,), _ in ctx[MEMORY_FEATURES.records].scan():
        if ordinal not in known:
            yield Finding(
                MEMORY_FEATURES.name,
                f"features of ordinal {ordinal} belong to no memory",
                _drop_record(ordinal),
            )


def _placed(raw: bytes) -> list[Any]:
    record = np.frombuffer(raw, COLUMNS)[0]
    return [record[name] for name in PLACED]


def _neighbours(ctx: ReadContext) -> dict[int, tuple[int, int]]:
    """ordinal -> the ordinals before and after it in its session, in order of arrival. One that
    rests on another follows that and has nothing after it, in a session or not.
    """
    records, sessions = ctx.index(MEMORY_FEATURES), dict[int, list[int]]()
    found: dict[int, tuple[int, int]] = {}
    for row in _rows(ctx):
        if row.rests_on is not None:
            turn = None if row.stands_in is None else find_ordinal(ctx, row.stands_in)
            # A link to what was removed since leads nowhere; one whose text an earlier release
            # edited, or that waits to be indexed, may have its link yet.
            last = links(records.get(row.ordinal))[0] if turn is None else turn
            found[row.ordinal] = (last, NOTHING)
        elif session := session_hash(ctx, row):
            sessions.setdefault(session, []).append(row.ordinal)
    for members in sessions.values():
        before = dict((after, first) for first, after in pairwise(members))
        after = dict(pairwise(members))
        found |= {
            ordinal: (before.get(ordinal, NOTHING), after.get(ordinal, NOTHING))
            for ordinal in members
        }
    return found


def _put_record(ordinal: int, raw: bytes) -> Any:
    return lambda ctx: ctx.index(MEMORY_FEATURES).put(ordinal, raw)


def _drop_record(ordinal: int) -> Any:
    return lambda ctx: ctx.index(MEMORY_FEATURES).delete(ordinal)


# --- rows -----------------------------------------------------------------------------------------


def history(ctx: ReadContext) -> Iterator[Finding]:
    """A memory of version n has the n − 1 versions before it; a deleted one has none."""
    versions = {row.id: row.version for row in _rows(ctx)}
    kept: Count[str] = Count()
    for key in list(ctx[MEMORY_HISTORY].keys(reverse=False)):
        memory_id, version = key
        if version >= versions.get(memory_id, 0):
            yield Finding(
                MEMORY_HISTORY.name,
                f"version {version} of memory {memory_id} belongs to nothing",
                delete(MEMORY_HISTORY, key),
            )
        else:
            kept[memory_id] += 1
    for memory_id, version in versions.items():
        if kept[memory_id] != version - 1:
            yield Finding(
                MEMORY_HISTORY.name,
                f"memory {memory_id} of version {version} has {kept[memory_id]} versions before it",
            )


def homes(ctx: ReadContext) -> Iterator[Finding]:
    """Every memory is in a collection, or out of sight with one that was dropped; and each
    collection counts its own.
    """
    collections = numbers_in_use(ctx)
    hidden = BitMap.union(
        BitMap(), *(BitMap.deserialize(row.ordinals) for _, row in ctx[MEMORIES_HIDDEN].scan())
    )
    counted: Count[int] = Count()
    for row in _rows(ctx):
        if row.ordinal in hidden:
            continue
        counted[row.number] += 1
        if collections.get(row.number) != row.collection_id:
            yield Finding(MEMORIES.name, f"memory {row.id} is in no collection")
    yield from miscounted(ctx, counted)


def sum_of_bytes(ctx: ReadContext) -> Iterator[Finding]:
    """The bytes of texts, where they are kept."""
    known = measured(ctx)
    if known is not None and known.total != (true := true_bytes(ctx, known)):
        yield Finding(
            MEMORY_BYTES.name,
            f"the memories have {true} bytes of texts, not {known.total}",
            lambda ctx: put_measured(ctx, known._replace(total=true)),
        )


# --- jobs -----------------------------------------------------------------------------------------


def hidden_and_forgotten(ctx: ReadContext) -> Iterator[Finding]:
    """What a dropped collection hides is swept with that collection's number."""
    for (cause, number), _ in ctx[MEMORIES_HIDDEN].scan():
        if cause == "collection" and not is_dropped(ctx, number):
            what = f"the members of dropped collection number {number} are never swept"
            yield Finding(MEMORIES_HIDDEN.name, what, partial(_drop_again, number))


def _drop_again(number: int, ctx: WriteContext) -> None:
    drop_again(ctx, number)


def alarm(ctx: ReadContext) -> Iterator[Finding]:
    """Check that while memories have an end a job watches the alarm."""
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


def _unmeasured(ctx: ReadContext) -> Iterator[tuple[int, str]]:
    known = measured(ctx)
    if known is not None and known.start < known.end:
        yield 0, f"memories from {known.start} on"


def _index_all(ctx: WriteContext, waiting: list[tuple[str, int]]) -> None:
    for start in range(0, len(waiting), TEXTS_VERIFIED_AT_ONCE_MAX):
        ctx.enqueue(
            "memories.index",
            {
                "memories": [
                    list(pair) for pair in waiting[start : start + TEXTS_VERIFIED_AT_ONCE_MAX]
                ]
            },
        )


def _expiry(
    ctx: ReadContext, key: tuple[Any, ...], row: MemoryRow
) -> Iterable[tuple[tuple[Any, ...], bytes]]:
    return [] if row.expires_at is None else [((row.expires_at, row.ordinal), b"")]


CHECKS = (
    Derived(
        MEMORY_IDS, MEMORIES, lambda ctx, key, row: [((row.id,), row.ordinal.to_bytes(4, "big"))]
    ),
    Derived(MEMORY_EXPIRY, MEMORIES, _expiry),
    IndexEntries(MEMORY_FIELDS, MEMORIES, entries_of),
    Counter("memories", last_ordinal(MEMORIES)),
    history,
    homes,
    sum_of_bytes,
    Pursued(
        MEASURE_JOB,
        MEMORY_BYTES,
        waiting=_unmeasured,
        covers=lambda payload: (0,),
        enqueue=lambda ctx, waiting: ctx.enqueue(MEASURE_JOB, {}),
    ),
    features,
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
        waiting=lambda ctx: (
            (key[1], f"cause {key[1]}") for key, _ in ctx[MEMORIES_HIDDEN].scan("delete")
        ),
        covers=lambda payload: (payload["number"],),
        enqueue=lambda ctx, numbers: [
            ctx.enqueue("memories.sweep", {"number": number, "deleted": 0}) for number in numbers
        ],
    ),
    hidden_and_forgotten,
    alarm,
)
