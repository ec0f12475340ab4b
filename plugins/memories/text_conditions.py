"""Conditions on the texts of memories, answered together in one pass over the rows.

Bitmaps know no text, so a condition such as `icontains` reads memories. However many such
conditions a filter has, only memories of which the bitmaps cannot tell are read, each once, and
compared until the answer is known. What a filter may cost is bounded three ways, and one beyond a
bound is refused with what would narrow it:

    TEXTS_READ_MAX           memories that are read
    TEXTS_COMPARED_MAX       memories times conditions
    TEXT_CHARS_COMPARED_MAX  characters times conditions
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unicodedata import normalize

from pyroaring import BitMap

from plugins.memories.fields import metadata_values
from plugins.memories.limits import (
    TEXT_CHARS_COMPARED_MAX,
    TEXT_ROWS_AT_ONCE,
    TEXTS_COMPARED_MAX,
    TEXTS_READ_MAX,
)
from plugins.memories.rows import MEMORIES, MemoryRow
from runtime.api.context import ReadContext
from runtime.errors import ValidationFailed
from storage.indexes import AllOf, AnyOf, BoundBitmaps, Filter, Not

METADATA = "metadata."
Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class TextPasses:
    """One of the memory's texts under this name passes the test; `folded` ones are compared
    without_case. It is part of a Reading, which evaluates it.
    """

    name: str
    test: Callable[[str], bool]
    folded: bool
    loc: Loc

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        raise TypeError("a condition on texts is evaluated by the Reading that it is part of")


@dataclass(frozen=True, slots=True)
class Reading:
    """A filter with conditions on texts in it."""

    ctx: ReadContext
    condition: Filter

    def evaluate(self, bound: BoundBitmaps, universe: BitMap) -> BitMap:
        known = _judged(self.condition, bound, universe)
        found = known.sure.copy()
        if known.open:
            loc = next(leaf.loc for leaf in text_conditions(self.condition))
            cost = _Cost(loc)
            cost.rows(len(known.open))
            for row in _rows(self.ctx, known.open):
                if known.test(_Texts(row, cost)):
                    found.add(row.ordinal)
        return found


def without_case(text: str) -> str:
    """The text as `icontains` compares it: an accent is the same in one code point and in two."""
    return normalize("NFC", text.casefold())


def text_conditions(condition: Filter) -> Iterator[TextPasses]:
    """The conditions on texts in a filter."""
    if isinstance(condition, TextPasses):
        yield condition
    elif isinstance(condition, Not):
        yield from text_conditions(condition.condition)
    elif isinstance(condition, AllOf | AnyOf):
        for part in condition.filters:
            yield from text_conditions(part)


# --- what bitmaps know of it ----------------------------------------------------------------------


@dataclass(slots=True)
class _Known:
    """What is known of a condition before a memory is read.

    sure  memories that meet it
    open  memories that may: `test` tells, of the texts of one
    """

    sure: BitMap
    open: BitMap
    test: Callable[[_Texts], bool]

    def holds(self, texts: _Texts) -> bool:
        ordinal = texts.row.ordinal
        return ordinal in self.sure or (ordinal in self.open and self.test(texts))


def _judged(condition: Filter, bound: BoundBitmaps, universe: BitMap) -> _Known:
    """What is known of the condition for the memories of a universe."""
    if isinstance(condition, TextPasses):
        return _Known(BitMap(), universe, lambda texts: texts.passes(condition))
    if next(text_conditions(condition), None) is None:
        return _Known(condition.evaluate(bound, universe), BitMap(), _settled)
    if isinstance(condition, Not):
        inner = _judged(condition.condition, bound, universe)
        sure = universe - inner.sure - inner.open
        return _Known(sure, inner.open, lambda texts: not inner.test(texts))
    assert isinstance(condition, AllOf | AnyOf)
    if isinstance(condition, AnyOf):
        parts = [_judged(part, bound, universe) for part in condition.filters]
        sure = BitMap().union(*[part.sure for part in parts])
        left = BitMap().union(*[part.open for part in parts]) - sure
        return _Known(sure, left, lambda texts: any(part.holds(texts) for part in parts))
    reading = []
    for part in condition.filters:  # what reads memories comes after what narrows
        if next(text_conditions(part), None) is None:
            universe = part.evaluate(bound, universe)
        else:
            reading.append(part)
    parts = [_judged(part, bound, universe) for part in reading]
    sure, possible = universe, universe
    for part in parts:
        sure, possible = sure & part.sure, possible & (part.sure | part.open)
    return _Known(sure, possible - sure, lambda texts: all(part.holds(texts) for part in parts))


def _settled(texts: _Texts) -> bool:
    raise LookupError("bitmaps have told all of it")


# --- the texts of one memory ----------------------------------------------------------------------


class _Cost:
    """What a filter has compared so far. Raises ValidationFailed beyond a bound."""

    def __init__(self, loc: Loc):
        self._loc = loc
        self._compared = self._chars = 0

    def rows(self, count: int) -> None:
        if count > TEXTS_READ_MAX:
            raise self._refusal(f"would read more than {TEXTS_READ_MAX} memories")

    def compared(self, chars: int) -> None:
        self._compared += 1
        self._chars += chars
        if self._compared > TEXTS_COMPARED_MAX:
            raise self._refusal(
                f"would compare texts more than {TEXTS_COMPARED_MAX} times (memories times "
                "conditions)"
            )
        if self._chars > TEXT_CHARS_COMPARED_MAX:
            raise self._refusal(f"would compare more than {TEXT_CHARS_COMPARED_MAX} characters")

    def _refusal(self, problem: str) -> ValidationFailed:
        advice = "narrow it by other fields, or ask with fewer conditions on texts at a time"
        return ValidationFailed.at(self._loc, f"{problem}; {advice}", "too_long")


@dataclass(slots=True)
class _Texts:
    """The texts of one memory by name, made when they are asked for."""

    row: MemoryRow
    cost: _Cost
    _made: dict[tuple[str, bool], list[str]] = field(default_factory=dict)
    _metadata: dict[str, list[str]] | None = None

    def passes(self, condition: TextPasses) -> bool:
        for text in self._of(condition.name, condition.folded):
            self.cost.compared(len(text))
            if condition.test(text):
                return True
        return False

    def _of(self, name: str, folded: bool) -> list[str]:
        texts = self._made.get((name, folded))
        if texts is None:
            texts = [without_case(text) for text in self._of(name, False)] if folded else []
            if not folded and name.startswith(METADATA):
                texts = self._of_metadata().get(name[len(METADATA) :], [])
            elif not folded and (text := getattr(self.row, name)) is not None:
                texts = [text]
            self._made[name, folded] = texts
        return texts

    def _of_metadata(self) -> dict[str, list[str]]:
        if self._metadata is None:
            self._metadata = {}
            for path, value in metadata_values(self.row.metadata):
                if isinstance(value, str):
                    self._metadata.setdefault(path, []).append(value)
        return self._metadata


def _rows(ctx: ReadContext, ordinals: BitMap) -> Iterator[MemoryRow]:
    """The memories, never many of them in memory at once."""
    wanted = ordinals.to_array()
    for start in range(0, len(wanted), TEXT_ROWS_AT_ONCE):
        keys = [(ordinal,) for ordinal in wanted[start : start + TEXT_ROWS_AT_ONCE]]
        yield from (row for row in ctx[MEMORIES].get_many(keys) if row is not None)
