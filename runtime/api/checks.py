"""What must agree inside a store, as data: plugins declare checks, `mneme admin verify` and the
simulation run them.

A check is a function from a context to findings; it looks at one tenant (or at one slot) on one
snapshot. Most are one of these:

    Derived    a table holds exactly the entries that the rows of another give
    IndexEntries  the bitmaps of an index are exactly those of the rows
    Counter    a counter is not behind the numbers given out
    Pursued    what waits for a job has one: nothing is left waiting for ever

A finding of derived data carries its own repair, which makes it again from the rows it derives
from, in the transaction that found it. What is not derived cannot be repaired, only told. A finding
names tables, ordinals and ids, never what a user wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from pyroaring import BitMap

from runtime.api import jobs
from runtime.api.context import COUNTERS, ReadContext, WriteContext
from storage.indexes import BitmapIndex, StoredValue, Value
from storage.store import Key, Table

Repair = Callable[[WriteContext], object]


@dataclass(frozen=True, slots=True)
class Account:
    """Whose rows: a slot and a tenant number in it, 0 for the rows of the slot itself."""

    slot: int
    number: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement: in which table or index, what is wrong, and what makes it right (None where
    nothing can).
    """

    table: str
    what: str
    repair: Repair | None = None


Check = Callable[[ReadContext], Iterable[Finding]]
Entries = Callable[[ReadContext, Key, Any], Iterable[tuple[Key, bytes]]]


def named(key: Key) -> str:
    """A key as a finding may show it: numbers and ids as they are, digests shortened."""
    return "/".join(part.hex()[:8] if isinstance(part, bytes) else str(part)[:40] for part in key)


def put(table: Table, key: Key, raw: bytes) -> Repair:
    return lambda ctx: ctx[table].put_raw(key, raw)


def delete(table: Table, key: Key) -> Repair:
    def repair(ctx: WriteContext) -> None:
        ctx[table].delete(*key)

    return repair


@dataclass(frozen=True, slots=True)
class Readable:
    """Every row of the table can be read. What cannot is damaged or of another release, and nothing
    tells what it was.
    """

    table: Table

    def __call__(self, ctx: ReadContext) -> Iterator[Finding]:
        rows = ctx[self.table]
        for key in rows.keys():  # noqa: SIM118  a table, not a dict
            try:
                rows.get(*key)
            except (msgspec.MsgspecError, ValueError) as error:
                yield Finding(
                    self.table.name, f"row {named(key)} cannot be read: {type(error).__name__}"
                )


@dataclass(frozen=True, slots=True)
class Derived:
    """`table` holds exactly what `entries(ctx, key, row)` gives for the rows of `source`: (key,
    stored bytes) each.

    strict  False where the table may hold further entries, such as those that are swept later
    """

    table: Table
    source: Table
    entries: Entries
    strict: bool = True

    def __call__(self, ctx: ReadContext) -> Iterator[Finding]:
        name, stored = self.table.name, ctx[self.table]
        owed: set[Key] = set()
        for key, row in ctx[self.source].scan():
            for entry, raw in self.entries(ctx, key, row):
                owed.add(entry)
                found = stored.get_raw(*entry)
                if found != raw:
                    what = "is missing" if found is None else "says something else"
                    yield Finding(
                        name,
                        f"entry {named(entry)} of {self.source.name} {named(key)} {what}",
                        put(self.table, entry, raw),
                    )
        if self.strict:
            for entry in stored.keys():  # noqa: SIM118
                if entry not in owed:
                    yield Finding(
                        name,
                        f"entry {named(entry)} belongs to no row of {self.source.name}",
                        delete(self.table, entry),
                    )


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """The bitmaps of `index` are exactly those that `entries(ctx, row)` gives for the rows of
    `source`, whose key is the ordinal.
    """

    index: BitmapIndex
    source: Table
    entries: Callable[[ReadContext, Any], Iterable[tuple[str, Value]]]

    def __call__(self, ctx: ReadContext) -> Iterator[Finding]:
        bitmaps, owed = ctx.index(self.index), dict[tuple[str, StoredValue], BitMap]()
        for (ordinal,), row in ctx[self.source].scan():
            for field, value in self.entries(ctx, row):
                for stored in bitmaps.places(field, value):
                    owed.setdefault((field, stored), BitMap()).add(ordinal)
        for (field, stored), found in bitmaps.each():
            expected = owed.pop((field, stored), BitMap())
            if found != expected:
                wrong = len(found - expected), len(expected - found)
                what = (
                    f"field {field} has {wrong[0]} ordinals too many and lacks {wrong[1]} in one "
                    "of its values"
                )
                yield Finding(self.index.name, what, self._assign(field, stored, expected))
        for (field, stored), expected in owed.items():
            what = (
                f"field {field} lacks a value that {len(expected)} rows of {self.source.name} carry"
            )
            yield Finding(self.index.name, what, self._assign(field, stored, expected))

    def _assign(self, field: str, stored: StoredValue, ordinals: BitMap) -> Repair:
        def repair(ctx: WriteContext) -> None:
            ctx.index(self.index).assign(field, stored, ordinals)

        return repair


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter has reached the highest number in use, `highest(ctx)` (None when there is none),
    or it would be given out again.
    """

    name: str
    highest: Callable[[ReadContext], int | None]

    def __call__(self, ctx: ReadContext) -> Iterator[Finding]:
        raw, highest = ctx[COUNTERS].get(self.name), self.highest(ctx)
        reached = -1 if raw is None else int.from_bytes(raw, "big")
        if highest is not None and reached < highest:
            what = f"counter {self.name} stands at {reached}, but {highest} is in use"
            yield Finding(
                COUNTERS.name, what, put(COUNTERS, (self.name,), highest.to_bytes(8, "big"))
            )


def last_ordinal(table: Table) -> Callable[[ReadContext], int | None]:
    """For Counter: the highest ordinal among the table's keys."""

    def highest(ctx: ReadContext) -> int | None:
        key = next(ctx[table].keys(reverse=True, limit=1), None)
        return None if key is None else key[0]

    return highest


@dataclass(frozen=True, slots=True)
class Pursued:
    """Everything that `waiting(ctx)` names is covered by an unfinished job of this name.

    waiting   -> (what waits, hashable; its words for a finding)
    covers    (payload) -> what the job will see to
    enqueue   (ctx, [what waits and has no job]) queues one
    """

    job: str
    table: Table
    waiting: Callable[[ReadContext], Iterable[tuple[Any, str]]]
    covers: Callable[[dict[str, Any]], Iterable[Any]]
    enqueue: Callable[[WriteContext, list[Any]], object]

    def __call__(self, ctx: ReadContext) -> Iterator[Finding]:
        waiting = dict(self.waiting(ctx))
        if not waiting:
            return
        for row in unfinished(ctx, self.job):
            for thing in self.covers(row.payload):
                waiting.pop(thing, None)
        if waiting:
            forgotten, examples = list(waiting), ", ".join(list(waiting.values())[:3])
            what = f"{len(waiting)} wait for a job {self.job} that is not there: {examples}"
            yield Finding(self.table.name, what, lambda ctx: self.enqueue(ctx, forgotten))


def unfinished(ctx: ReadContext, name: str) -> Iterator[jobs.JobRow]:
    """The queued and processing jobs of this name."""
    fields = ctx.index(jobs.JOB_FIELDS)
    for ordinal in fields.of("name", name) & fields.any_of(
        "status", (jobs.QUEUED, jobs.PROCESSING)
    ):
        row = ctx[jobs.JOBS].get(ordinal)
        if row is not None:
            yield row
