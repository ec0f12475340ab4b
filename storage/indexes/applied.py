"""Which commits an index has taken over in memory, for whoever is about to keep that."""

from __future__ import annotations

import time
import weakref

from storage.store import Store

APPLIED_SECONDS_MAX, APPLIED_LOOK_SECONDS = 5.0, 0.001


class Applied:
    """By store, the last commit whose changes one index has applied."""

    def __init__(self, index: str):
        self._index = index
        self._last: weakref.WeakKeyDictionary[Store, int] = weakref.WeakKeyDictionary()

    def note(self, store: Store, sequence: int) -> None:
        """All up to this commit was applied."""
        self._last[store] = max(sequence, self._last.get(store, 0))

    def is_through(self, store: Store) -> bool:
        """Wait, not for long, until all was applied that can be seen now; -> whether it was."""
        noted, until = store.noted.get(self._index, 0), time.monotonic() + APPLIED_SECONDS_MAX
        while self._last.get(store, 0) < noted:
            if time.monotonic() > until:
                return False
            time.sleep(APPLIED_LOOK_SECONDS)
        return True
