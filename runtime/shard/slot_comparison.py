"""The rows of slots that move, as one of the two shards compares them with the other's.

The source digests its rows span by span, the target digests its own and says which spans differ,
and both follow their log of commits: a span with a row that changed since it was compared is in
doubt again, and is compared once more. When nothing is in doubt at either side, both have the same
rows (storage/store/slot_rows.py).

All of it reads the store, and is called in a thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

from runtime.limits import SLOT_DIGESTS_BYTES, SLOT_SPAN_BYTES, SLOT_SPANS_MAX
from storage.store import Comparison, Digest, Hold, KeyShredded, Span, Store, Table, slot_rows


class ComparedRows:
    """The rows of slots on one side of a move, with what changes while they are compared.

    tables, codes  the declared tables by name, and by their code in this store's keys
    hold           keeps the log from where it is followed; at the target only since the first rows
                   were compared
    """

    def __init__(
        self,
        store: Store,
        tables: Mapping[str, Table],
        codes: Mapping[bytes, Table],
        slots: tuple[int, ...],
        hold: Hold | None = None,
    ):
        self._store, self._tables, self._codes = store, tables, codes
        self.slots = slots
        self._hold = hold
        self._comparison = Comparison()

    def release(self) -> None:
        """Let go of the log."""
        if self._hold is not None:
            self._hold.release()

    def follow(self) -> set[bytes]:
        """Read on in the log; -> physical keys of these slots that changed. Their spans are in
        doubt.
        """
        if self._hold is None:
            self._hold = self._store.log.hold()
        starts, changed = {slot.to_bytes(2, "big") for slot in self.slots}, set()
        while records := self._store.log.read(self._hold.after):
            changed.update(
                key for record in records for key, _ in record.changes if key[:2] in starts
            )
            self._hold.advance(records[-1].sequence)
        for key in changed:
            self._comparison.changed(self._codes, key)
        return changed

    # --- the source -------------------------------------------------------------------------------

    def digests(self, slot: int, after: bytes) -> tuple[list[Digest], bytes]:
        """Digests of the slot's rows behind `after`, a bounded number of them; -> and where to go
        on, b"" at the end. Raises KeyShredded where an account is being erased.
        """
        if not after:
            self._comparison.begin(slot)
        with self._store.snapshot() as snapshot:
            found, rest = slot_rows.digests(
                snapshot, self._codes, slot, after, SLOT_DIGESTS_BYTES, SLOT_SPAN_BYTES
            )
        for each in found:
            self._comparison.add_span(each.span)
        return found, rest

    def recount(self, spans: Iterable[Span]) -> tuple[list[Digest], bool]:
        """Digests, as they are now, of these spans and of those in doubt; -> and whether there are
        others.
        """
        doubts = self._comparison.doubts
        doubts.update(spans)
        some = [doubts.pop() for _ in range(min(SLOT_SPANS_MAX, len(doubts)))]
        found = []
        for span in some:
            try:
                with self._store.snapshot() as snapshot:
                    found.append(slot_rows.digest(snapshot, self._tables, span))
            except KeyShredded:  # its account is being erased: it changes once more
                doubts.add(span)
        return found, bool(doubts)

    # --- the target -------------------------------------------------------------------------------

    def compare(self, digests: Iterable[Digest], ended: int | None) -> list[Span]:
        """Compare what the source has; -> what is in doubt, or some of it: what differs, or changed
        here since it was compared.

        ended  the slot of which all digests have come
        """
        comparison = self._comparison
        self.follow()
        for digest in digests:
            comparison.add_span(digest.span)
            (comparison.doubts.discard if self._has(digest) else comparison.doubts.add)(digest.span)
        if ended is not None:
            with self._store.snapshot() as snapshot:
                comparison.end(snapshot, self._codes, ended)
        return sorted(comparison.doubts, key=repr)[
            : SLOT_SPANS_MAX // 2
        ]  # fewer than the source gives, so that it comes to an end

    def _has(self, digest: Digest) -> bool:
        """Whether the span is here as it was there."""
        with contextlib.suppress(KeyShredded), self._store.snapshot() as snapshot:
            return slot_rows.digest(snapshot, self._tables, digest.span) == digest
        return False
