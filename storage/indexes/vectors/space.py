"""The resident vectors of one space of a tenant: eight-bit codes, where each ordinal's row is, and
the cells of a large one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from storage.indexes.change_tokens import Tokens, are_in
from storage.indexes.kept import KeptPlace, Kind, unkept
from storage.indexes.ordinals import Ordinals, among, ordinals_of
from storage.indexes.row_map import ABSENT, RowMap, Rows
from storage.indexes.vectors.cells import (
    NO_CELL,
    ROWS_AT_ONCE,
    Cells,
    Centres,
    Learning,
    by_cell,
)
from storage.indexes.vectors.quantised import Codes, Vectors, quantised, undecided
from storage.indexes.vectors.scan import Found, Scan, View, present_in

GATHERED_MAX = 16_384  # a filter that leaves no more than this is always scanned exactly
# Vectors that are in no cell yet are scanned with every search: so many, or as large a part.
PENDING_MAX, PENDING_SHARE = 4_096, 1 / 64
OUTGROWN = 8  # a space that is so many times what its cells were made for gets others
ROWS_SPARE = 64  # of a few vectors, so many deleted ones may keep their rows
GROWTH, GROWTH_LARGE, LARGE = 1.5, 1.125, 100_000  # room for what comes, by vectors there are
KEPT_MIN = 20_000  # a space of fewer vectors is read from its rows in a fifth of a second
COPIED_AT_ONCE = 65_536
NEARLY_ALL = 0.9
DENSE_MAX = 32  # bytes that a filter may take for each of its members


class Space:
    """Vectors of one space: codes whose rows are written once, the stamp, the ordinal and the cell
    of each row, the row of each ordinal, and perhaps cells.

    floor  the stamp of every ordinal without a vector, except those in `_gone`: see `settle`
    """

    def __init__(self, width: int, exact_max: int, lock: threading.RLock, floor: int):
        self.width = width
        self._exact_max = exact_max
        self._lock = lock
        self._building = threading.Lock()  # held by the one who takes a step of building
        self._floor = floor
        self._gone: dict[int, int] = {}  # ordinal -> when it was deleted
        self._changes = 0  # since the file was written or read
        self._cleared = 0  # how often
        self._centres: Centres | None = None
        self._learning: Learning | None = None
        self._made_for = 0  # how many vectors the centres were learned for
        self.cells: Cells | None = None
        self._hold(_Rows.empty(0, width), RowMap(), 0)

    @property
    def nbytes(self) -> int:
        cells = 0 if self.cells is None else self.cells.nbytes
        return self._held.nbytes + self._rows.nbytes + cells

    # --- changes, all under the tenant's lock -----------------------------------------------------

    def put_one(self, ordinal: int, sequence: int, vector: Vectors) -> None:
        """A change from a commit: of several in one commit, the last counts."""
        if self._stamp(ordinal) <= sequence:
            codes = quantised(vector[np.newaxis])
            self._store(np.array([ordinal]), np.array([sequence], np.uint64), codes)

    def put_newer(
        self, ordinals: NDArray[np.int64], sequences: NDArray[np.uint64], vectors: Vectors
    ) -> None:
        """Rows of a snapshot: distinct ordinals, of which only those newer than known count."""
        newer = self._stamps_of(ordinals) < sequences
        self._store(ordinals[newer], sequences[newer], quantised(vectors[newer]))

    def adopt(self, kept: KeptVectors) -> None:
        """As put_newer, of a file, with its cells. Its arrays are the space's own from now on."""
        held, count = kept.held, kept.count
        if self._centres is not None:
            held.cell_of[:count] = NO_CELL
        elif len(kept.centres):
            self._centres, self._made_for = Centres(kept.centres), count
        if self._used or self._gone or self._floor:
            stamps = held.stamps[:count]
            newer = np.flatnonzero(self._stamps_of(held.ordinals[:count]) < stamps)
            codes, cell_of = held.codes.take(newer), held.cell_of[newer]
            self._store(held.ordinals[newer], stamps[newer], codes, cell_of)
        else:
            self._hold(held, RowMap.of(held.ordinals[:count]), count)
        self._changes = 0
        self._put_into_cells()

    def delete(self, ordinal: int, sequence: int) -> None:
        if self._stamp(ordinal) > sequence:
            return
        self._gone[ordinal] = sequence
        row = self._rows.get(ordinal)
        if row != ABSENT:
            self._own_rows().put_one(ordinal, ABSENT)
            self._live -= 1
            self._changes += 1
            if self._used > 2 * self._live + ROWS_SPARE:
                self._make_room(0)

    def clear(self, sequence: int) -> None:
        """Forget everything of before a commit, what is still to be read from older snapshots
        included.
        """
        self._floor = max(self._floor, sequence)
        self._gone = {ordinal: gone for ordinal, gone in self._gone.items() if gone > sequence}
        self._cleared += 1
        self._forget_cells()
        _, rows = self._rows.entries()
        held, rows = self._gathered(self._held, rows[self._held.stamps[rows] > sequence], 0)
        self._hold(held, RowMap.of(held.ordinals[: len(rows)]), len(rows))

    def settle(self, sequence: int) -> None:
        """Take note that whatever comes from now on of an older commit came before."""
        self._floor = max(self._floor, sequence)
        self._gone = {}

    def retain(
        self, ordinals: NDArray[np.int64], sequence: int, ranges: NDArray[np.int64] | None
    ) -> None:
        """Delete what a snapshot of `sequence` no longer has in these ranges (None: at all), unless
        it changed later. ordinals: what it has there.
        """
        known, rows = self._rows.entries()
        if ranges is not None:
            meant = are_in(known, ranges)
            known, rows = known[meant], rows[meant]
        older = known[self._held.stamps[rows] <= sequence]
        for ordinal in np.setdiff1d(older, ordinals, assume_unique=True).tolist():
            self.delete(ordinal, sequence)

    def _store(
        self,
        ordinals: NDArray[np.integer],
        sequences: NDArray[np.uint64],
        codes: Codes,
        cell_of: NDArray[np.int32] | int = NO_CELL,
    ) -> None:
        if not len(ordinals):
            return
        if self._used + len(ordinals) > len(self._held.stamps):
            self._make_room(len(ordinals))
        start, self._used = self._used, self._used + len(ordinals)
        self._held.write(start, ordinals, sequences, codes, cell_of)
        self._live += int(np.count_nonzero(self._rows.find(ordinals) == ABSENT))
        self._changes += len(ordinals)
        self._own_rows().put(ordinals, np.arange(start, self._used, dtype=np.int32))

    def _make_room(self, count: int) -> None:
        """New arrays of the live rows with room for more; searches under way keep the old ones."""
        held, rows = self._gathered(self._held, self._rows.entries()[1], count)
        self._hold(held, RowMap.of(held.ordinals[: len(rows)]), len(rows))
        self._put_into_cells()

    def _gathered(self, old: _Rows, rows: Rows, count: int) -> tuple[_Rows, Rows]:
        """Copies of these rows with room for so many more and for growth, and which each was. The
        rows of a cell come one after another, and behind all cells those that are in none.
        """
        if self._centres is not None:
            rows = rows[by_cell(old.cell_of[rows])]
        new = _Rows.empty(_with_room(len(rows) + count), self.width)
        new.put(0, old, rows)
        return new, rows

    def _move(self) -> None:
        """As _make_room, where no commit waits for the copying of a large space."""
        with self._lock:
            old, used, (_, rows) = self._held, self._used, self._rows.entries()
        new, rows = self._gathered(old, rows, 0)
        with self._lock:
            further = np.arange(used, self._used, dtype=np.int32)
            end = len(rows) + len(further)
            if self._held is not old or end > len(new.stamps):
                return
            new.put(len(rows), old, further)
            place = np.full(self._used, ABSENT, np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            place[further] = np.arange(len(rows), end, dtype=np.int32)
            ordinals, rows = self._rows.entries()
            self._hold(new, RowMap.of(ordinals, place[rows]), end)
            self._live = len(ordinals)
            self._put_into_cells()

    def _hold(self, held: _Rows, rows: RowMap, used: int) -> None:
        self._held, self._rows = held, rows
        self._used = self._live = used
        self._is_shown = False  # whether a search looks at the map
        self._is_scattered = False  # whether a cell's rows are anywhere

    def _own_rows(self) -> RowMap:
        """The map, to be changed: another one than what searches look at."""
        if self._is_shown:
            self._rows, self._is_shown = self._rows.copy(), False
        return self._rows

    def _stamp(self, ordinal: int) -> int:
        row = self._rows.get(ordinal)
        if row == ABSENT:
            return self._gone.get(ordinal, self._floor)
        return int(self._held.stamps[row])

    def _stamps_of(self, ordinals: NDArray[np.integer]) -> NDArray[np.uint64]:
        """(n,) the stamps of these ordinals."""
        rows = self._rows.find(ordinals)
        stamps = np.full(len(rows), self._floor, np.uint64)
        present = rows != ABSENT
        stamps[present] = self._held.stamps[rows[present]]
        if self._gone:
            for place in np.flatnonzero(~present).tolist():
                stamps[place] = self._gone.get(int(ordinals[place]), self._floor)
        return stamps

    # --- answers ----------------------------------------------------------------------------------

    def scan(self, queries: Vectors) -> list[Scan]:
        view, by_cells = self._view()
        scores = [None] * len(queries) if by_cells else view.codes.products(queries, view.used)
        return [Scan(self, query, view, row) for query, row in zip(queries, scores, strict=True)]

    def near(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        """For each query candidates among which the k best are: (ordinals, cosines by the codes),
        in no order.
        """
        found = self._through_cells(queries, k, allowed)
        return self._scanned(queries, k, allowed) if found is None else found

    def _view(self) -> tuple[View, bool]:
        """The space now, and whether a search should go through its cells."""
        with self._lock:
            self._is_shown = True
            return View(self._held.codes, self._used, self._rows), self._goes_by_cells()

    def _goes_by_cells(self) -> bool:
        return self.cells is not None and self._used - self.cells.end <= max(
            self._exact_max, PENDING_MAX
        )

    def _scanned(self, queries: Vectors, k: int, allowed: BitMap | None) -> list[Found]:
        view, _ = self._view()
        ordinals, rows = present_in(view.rows, allowed)
        if (
            len(rows) * 4 > view.used
        ):  # reading a row that is not wanted costs less than jumping to one that is
            scores = view.codes.products(queries, view.used)[:, rows]
        else:
            scores = np.stack([view.codes.products_at(rows, query) for query in queries])
        residuals = view.codes.residuals[rows]
        kept = [undecided(row, residuals, k) for row in scores]
        return [(ordinals[places], row[places]) for row, places in zip(scores, kept, strict=True)]

    def _through_cells(
        self, queries: Vectors, k: int, allowed: BitMap | None
    ) -> list[Found] | None:
        """Search the nearest cells, and what is in none; None when an exact scan is due: no cells,
        few candidates, or a filter that leaves too few of them in a cell.
        """
        with self._lock:
            cells, held, used, rows = self.cells, self._held, self._used, self._rows
            if cells is None or not self._goes_by_cells():
                return None
            if allowed is not None and len(allowed) <= GATHERED_MAX:
                return None
            share = 1.0 if allowed is None else max(1.0, self._live / len(allowed))
            self._is_shown = True
        probed = int(cells.probed * share)
        if probed * 2 > len(cells.centres):
            return None
        # A filter that leaves nearly all is applied to what is found.
        is_wide = allowed is None or len(allowed) >= NEARLY_ALL * self._live
        is_allowed = None if is_wide or allowed is None else _told_apart(allowed)
        pending, found = np.arange(cells.end, used, dtype=np.int32), list[Found]()
        for query in queries:
            near = np.concatenate((cells.near(query, probed), pending))
            if is_allowed is not None:
                near = near[is_allowed(held.ordinals[near])]
            best = _best(held, rows, near, query, k, allowed if is_wide else None)
            if len(best[0]) < k:
                return None
            found.append(best)
        return found

    # --- cells ------------------------------------------------------------------------------------

    @property
    def is_behind(self) -> bool:
        """Whether `advance` has anything to do."""
        with self._lock:
            if self._learning is not None or self._has_outgrown():
                return True
            if self._centres is None:
                return False
            if self.cells is None or self.cells.centres is not self._centres:
                return True
            if not self._centres.is_indexed:
                return True
            if self._live <= self._exact_max // 2:
                return True
            pending = self._used - self.cells.end
            most = max(PENDING_MAX, int(PENDING_SHARE * self._used))
            return pending > most or self._is_to_be_moved()

    def _has_outgrown(self) -> bool:
        """Whether centres are to be learned."""
        return self._live > max(self._exact_max, OUTGROWN * self._made_for)

    def advance(self) -> bool:
        """Learn centres, or drop them, as the number of vectors asks; put some rows into cells. ->
        whether more is to be done. No commit waits for it, but for moments.
        """
        with self._building:
            with self._lock:
                if self._live <= self._exact_max // 2:
                    self._forget_cells()
                    return False
                learning, centres = self._learning, self._centres
                codes, rows, live = self._held.codes, self._rows, self._live
                is_due = learning is None and self._has_outgrown()
                self._is_shown = self._is_shown or is_due
            if is_due:
                learning = self._learning = Learning(codes, rows.entries()[1], live)
            if learning is not None:
                self._take_over(learning, learning.step())
                return True
            if centres is not None:
                centres.index()
                if self._find_cells(centres):
                    return True
                if self._is_to_be_moved():
                    self._move()
        return self.is_behind

    def _take_over(self, learning: Learning, centres: Centres | None) -> None:
        """Have rows put into cells around these centres from now on; searches go by the cells that
        there were until all are.
        """
        if centres is None:
            return
        with self._lock:
            if self._learning is learning:
                self._learning, self._centres = None, centres
                self._made_for = self._live
                self._held.cell_of[:] = NO_CELL
                self._is_scattered = True
                self._changes += self._live

    def _find_cells(self, centres: Centres) -> bool:
        """Find the cells of some rows that are in none; -> whether further ones are. After the last
        of them searches go by all.
        """
        with self._lock:
            held, used = self._held, self._used
            lacking = np.flatnonzero(held.cell_of[:used] == NO_CELL)
        rows = lacking[:ROWS_AT_ONCE]
        found = centres.of(held.codes.decoded(rows))
        with self._lock:
            if self._held is not held or self._centres is not centres:
                return True
            held.cell_of[rows] = found
        if len(lacking) > ROWS_AT_ONCE:
            return True
        cells = Cells(centres, held.cell_of[:used])
        with self._lock:
            if self._held is held and self._centres is centres:
                self.cells = cells
        return False

    def _is_to_be_moved(self) -> bool:
        """Whether rows are to be copied before a commit has to, or for their cells' sake."""
        room = len(self._held.stamps) - self._used
        return self._is_scattered or (self._used > LARGE and room < self._used >> 6)

    def _put_into_cells(self) -> None:
        """Have searches go by cells where most rows are in one, and the others come last."""
        self.cells = None
        if self._centres is not None:
            cell_of = self._held.cell_of[: self._used]
            lacking = np.flatnonzero(cell_of == NO_CELL)
            end = int(lacking[0]) if len(lacking) else self._used
            if 2 * end > self._used:
                self.cells = Cells(self._centres, cell_of[:end])

    def _forget_cells(self) -> None:
        self._is_scattered = False
        self._centres = self._learning = self.cells = None
        self._made_for = 0
        self._held.cell_of[:] = NO_CELL

    # --- the file ---------------------------------------------------------------------------------

    @property
    def unkept(self) -> int:
        """How much has changed since the file was written, once it is to be written; else 0."""
        with self._lock:
            return unkept(self._live, self._changes, KEPT_MIN)

    def keep(
        self, place: KeptPlace, tokens: Tokens, tokens_now: Callable[[], Tokens], changes: int
    ) -> bool:
        """Write the file; -> whether it is still right: false where all was cleared meanwhile.

        tokens   of a snapshot that nothing is missing of here; what came later is in ranges that
                 have others since, which `tokens_now` gives
        changes  `unkept`, before that snapshot was taken
        """
        with self._lock:
            held, (_, rows), cleared = self._held, self._rows.entries(), self._cleared
            centres, cell_of = self._centres, self._held.cell_of.copy()
        vectors = np.zeros((0, self.width), np.float32) if centres is None else centres.vectors
        arrays = _Rows(held.codes, held.stamps, held.ordinals, cell_of).kept
        place.write(tokens, tokens_now, arrays, rows[by_cell(cell_of[rows])], vectors)
        with self._lock:
            self._changes -= changes
            return self._cleared == cleared


def _best(
    held: _Rows, rows: RowMap, near: Rows, query: Vectors, k: int, allowed: BitMap | None
) -> Found:
    """Candidates among which the k best of these rows are, or as many as there are: (ordinals,
    cosines by the codes). Left out are rows whose ordinal has got another one, or is gone, and
    ordinals that are not allowed.
    """
    scores, residuals, wanted = held.codes.products_at(near, query), held.codes.residuals[near], k
    while True:
        places = undecided(scores, residuals, wanted)
        ordinals = held.ordinals[near[places]]
        kept = rows.find(ordinals) == near[places]
        if allowed is not None:
            kept &= among(ordinals_of(BitMap(ordinals) & allowed), ordinals)
        if np.count_nonzero(kept) >= k or wanted >= len(near):
            return ordinals[kept], scores[places[kept]]
        wanted *= 2


def _told_apart(members: BitMap) -> Callable[[Ordinals], NDArray[np.bool_]]:
    """A function that tells which of some ordinals are members, of which there are many."""
    if members.max() > DENSE_MAX * len(members):
        ascending = ordinals_of(members)
        return lambda ordinals: among(ascending, ordinals)
    # A byte for each ordinal; those above all have the last one.
    dense = np.zeros(members.max() + 2, np.bool_)
    dense[ordinals_of(members)] = True
    return lambda ordinals: np.take(dense, ordinals, mode="clip")


class _Rows:
    """What is known of each row: its vector's codes, the commit that put it, whose it is, and its
    cell.
    """

    def __init__(
        self,
        codes: Codes,
        stamps: NDArray[np.uint64],
        ordinals: Ordinals,
        cell_of: NDArray[np.int32],
    ):
        self.codes, self.stamps, self.ordinals, self.cell_of = codes, stamps, ordinals, cell_of

    @classmethod
    def empty(cls, count: int, width: int) -> _Rows:
        return cls(
            Codes.empty(count, width),
            np.empty(count, np.uint64),
            np.empty(count, np.uint32),
            np.full(count, NO_CELL, np.int32),
        )

    @property
    def kept(self) -> list[NDArray]:
        """What a file has of them: stamps are told by whoever reads it."""
        return [self.ordinals, *self.codes[1:], self.cell_of, self.codes.codes]

    @property
    def nbytes(self) -> int:
        arrays = (self.stamps, self.ordinals, self.cell_of)
        return self.codes.nbytes + sum(each.nbytes for each in arrays)

    def put(self, start: int, other: _Rows, rows: Rows) -> None:
        """Write another's rows, from row `start` on."""
        for first in range(0, len(rows), COPIED_AT_ONCE):
            some = rows[first : first + COPIED_AT_ONCE]
            codes = other.codes.take(some)
            stamps, cell_of = other.stamps[some], other.cell_of[some]
            self.write(start + first, other.ordinals[some], stamps, codes, cell_of)

    def write(
        self,
        start: int,
        ordinals: NDArray[np.integer],
        stamps: NDArray[np.uint64],
        codes: Codes,
        cell_of: NDArray[np.int32] | int,
    ) -> None:
        """Write rows from row `start` on."""
        end = start + len(ordinals)
        self.codes.put(start, codes)
        self.stamps[start:end] = stamps
        self.ordinals[start:end] = ordinals
        self.cell_of[start:end] = cell_of


class KeptVectors(NamedTuple):
    """What a file has of a space: `count` rows, in arrays with room for more, whose stamps are not
    set, the centres of their cells, and as of which tokens.
    """

    tokens: Tokens
    count: int
    held: _Rows
    centres: Vectors

    @property
    def width(self) -> int:
        return self.held.codes.codes.shape[1]

    @classmethod
    def read(cls, place: KeptPlace, width: int) -> KeptVectors | None:
        """The file there, if it can be used."""
        kinds = [Kind.of(array) for array in _Rows.empty(0, width).kept]
        kept = place.read(kinds, _with_room)
        if kept is None:
            return None
        ordinals, scales, residuals, cell_of, codes = kept.arrays
        held = _Rows(
            Codes(codes, scales, residuals), np.empty(len(ordinals), np.uint64), ordinals, cell_of
        )
        return cls(kept.tokens, kept.count, held, kept.apart)


def _with_room(needed: int) -> int:
    """How many rows arrays get that have so many, with room for growth."""
    return int(needed * (GROWTH_LARGE if needed > LARGE else GROWTH)) + 8
