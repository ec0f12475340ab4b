"""Resident state that is filled from rows at its first use and fed after every commit.

It owns when such a state is loaded, what reaches it and what it may miss; it does not know what the
state looks like. An index that derives its answers from rows, but cannot afford to read them for
every query, extends ResidentIndex and says how a state is made (`_empty`), how it takes over stored
rows (`_fill`), and has its writers note changes, which `apply` brings after the commit and before
anybody is told of it.

Invariants
- A resident state holds every row committed before the last `apply` for its tenant returned. It may
  be newer than a snapshot that asks; callers bring the ordinals, which come from their snapshot.
- Applying a change twice does no harm.
"""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from storage.indexes.index import Index
from storage.store import OpenStore, Reader, Scope, Store


class ResidentState(Protocol):
    """What is resident of one tenant. Written by the one writer under the index's lock; read
    without one, so a reader has to see a whole state at any moment.
    """

    @property
    def nbytes(self) -> int: ...
    def apply(self, change: Any) -> None: ...


State = TypeVar("State", bound=ResidentState)


class ResidentIndex(Index, Generic[State]):
    """What is resident of one declared index, in any store of the process."""

    def __init__(self, name: str):
        self.name = name
        self._lock = threading.Lock()
        # What is being loaded, and the changes it may miss.
        self._loading: list[tuple[tuple[int, Scope], list[Any]]] = []
        self._loaded: weakref.WeakValueDictionary[tuple[int, Scope], State] = (
            weakref.WeakValueDictionary()
        )

    @abstractmethod
    def _empty(self) -> State:
        """A state without rows."""

    @abstractmethod
    def _fill(self, state: State, reader: Reader, scope: Scope) -> None:
        """Take over the stored rows in a state without rows."""

    def apply(self, store: Store, changes: Sequence[tuple[Scope, Any]]) -> None:
        """Take over committed changes. Called after each commit, by the one writer."""
        grown: set[Scope] = set()
        with self._lock:
            for scope, change in changes:
                key = (id(store), scope)
                for loaded, missed in self._loading:
                    if loaded == key:
                        missed.append(change)
                held = self._loaded.get(key)
                if held is not None:
                    held.apply(change)
                    grown.add(scope)
        for scope in grown:
            store.residents.resize((self.name, scope))

    def loaded(self, store: OpenStore, scope: Scope) -> State | None:
        """The tenant's state, if it is there and is fed."""
        return self._loaded.get((id(store), scope))

    def scopes_loaded(self, store: OpenStore) -> list[Scope]:
        """The tenants of whom something is there."""
        return [scope for of, scope in list(self._loaded.keys()) if of == id(store)]

    def resident(self, store: OpenStore, scope: Scope) -> State:
        """The tenant's state, loaded unless it is there."""
        while True:
            state = store.residents.get((self.name, scope), lambda: self._load(store, scope))
            if self.loaded(store, scope) is state:
                return state
            # It was loaded twice at once, and the other one is fed.
            store.residents.drop((self.name, scope))

    def _load(self, store: OpenStore, scope: Scope) -> State:
        """Load from the rows of a snapshot, and then from what was applied since before it was
        taken. No commit waits meanwhile.
        """
        key, held = (id(store), scope), self._empty()
        missed: list[Any] = []
        with self._lock:
            self._loading.append((key, missed))
        try:
            with store.snapshot() as snapshot:
                self._fill(held, snapshot, scope)
            with self._lock:
                for change in missed:
                    held.apply(change)
                self._loaded[key] = held
        finally:
            with self._lock:
                self._loading = [each for each in self._loading if each[1] is not missed]
        return held
