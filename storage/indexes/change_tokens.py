"""Where among the ordinals of some indexes something has changed: a token for each *range*, 1,024
ordinals in a row, that its last change drew at random.

So whoever has kept what derives from the rows of an index, with the tokens of then, reads anew what
is in the ranges of other tokens, and nothing else. No order of changes is needed for that, nor a
history: a store that went back to an earlier state has the tokens of that state.

    x.changes  (range,)  -> 8 bytes; under WHOLE those of the first change, since all was deleted

Indexes whose ordinals are the same rows' share one declaration, and so one row for each change.

A copy that is made row by row while rows change takes the tokens first: it may have rows that are
newer than their range's token, and never older ones.

Invariant: a range has another token after every transaction that changed a row in it, and WHOLE has
one after any. What was kept without a token for WHOLE, or with another, says nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from storage.store import BoundTable, Reader, Scope, Table, decode_count

RANGE_SHIFT = 10
TOKEN_BYTES = 8
WHOLE = 1 << 32 - RANGE_SHIFT  # behind every range

Tokens = dict[int, bytes]


class ChangeTokens:
    """The declaration. `bind` gives it a reader and a tenant."""

    def __init__(self, name: str):
        self.table: Table[bytes] = Table(
            f"{name}.changes",
            ("range",),
            bytes,
            doc="What the last change among 1,024 ordinals drew",
            leads=True,
        )

    def bind(self, reader: Reader, scope: Scope) -> BoundTokens:
        return BoundTokens(reader.bind(self.table, scope))


class BoundTokens:
    """The tokens inside one reader and one tenant."""

    def __init__(self, rows: BoundTable[bytes]):
        self._rows = rows
        self._token = b""
        self._drawn: set[int] = set()

    def changed(self, ordinal: int) -> None:
        """Something about the ordinal changes in this transaction."""
        number = ordinal >> RANGE_SHIFT
        if number in self._drawn:
            return
        self.begin()
        self._rows.put_raw((number,), self._token)
        self._drawn.add(number)

    def has_begun(self) -> bool:
        """Whether changes are told of: always, but of what an earlier release stored."""
        return self._rows.has(WHOLE)

    def begin(self) -> None:
        """Tell of changes from here on."""
        if not self._token:
            self._token = secrets.token_bytes(TOKEN_BYTES)
            if not self.has_begun():
                self._rows.put_raw((WHOLE,), self._token)

    def all(self) -> Tokens:
        """Every token that there is."""
        return {decode_count(rest): raw for rest, raw in self._rows.raw_under()}

    def clear(self) -> None:
        """Delete all of them, with all that they tell of."""
        self._rows.delete_prefix()
        self._token = b""
        self._drawn.clear()


def changed_ranges(known: Tokens | None, tokens: Tokens) -> NDArray[np.int64] | None:
    """The ranges, ascending, in which something may differ from what was known by those tokens;
    None where everything may.
    """
    if known is None or WHOLE not in tokens or known.get(WHOLE) != tokens[WHOLE]:
        return None
    each = known.keys() | tokens.keys()
    return np.array(
        sorted(number for number in each if known.get(number) != tokens.get(number)), np.int64
    )


def are_in(ordinals: NDArray[np.integer], ranges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n,) whether each ordinal is in one of the ranges."""
    return np.isin(ordinals >> RANGE_SHIFT, ranges)


def rows_in(
    rows: BoundTable[bytes], ranges: NDArray[np.int64], *prefix: str
) -> Iterator[tuple[list[int], list[bytes]]]:
    """Of each of the ranges the ordinals that have a row, whose keys are `prefix` and the ordinal,
    and the rows. In a snapshot.
    """
    for number in ranges.tolist():
        found = rows.raw_between_each(
            [(prefix, number << RANGE_SHIFT, (number + 1) << RANGE_SHIFT)]
        )[0]
        yield [decode_count(rest) for rest, _ in found], [raw for _, raw in found]
