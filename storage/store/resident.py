"""Derived per-tenant state kept in memory: vector matrices, graphs, columns; bounded by bytes,
evicted by least use, an account at a time.

It owns which states are resident and how many bytes they take together. It does not know what a
state is, only its `nbytes`, and it is never the truth: whatever is dropped here is built again from
the store on next use.

A search needs all states of its account. So an account leaves as a whole, and never a part of the
one in use: where states of one account drove out each other, every search would load all of them.

Invariant: after each call the states' bytes sum to at most `bytes_max`, unless the account used
last is larger by itself; it stays whole until another is used, and `stats` tells how much it is
over.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar


class Resident(Protocol):
    """Anything that can say how many bytes it holds."""

    @property
    def nbytes(self) -> int: ...


State = TypeVar("State", bound=Resident)
Key = tuple[str, Hashable]  # (index name, scope); an account is a scope


class ResidentCache:
    """Thread-safe map from (index name, scope) to state; the scope used longest ago leaves first.

    bytes_max  how many bytes may stay; may be assigned later and counts from the next call on
    """

    def __init__(self, bytes_max: int):
        self.bytes_max = bytes_max
        self._lock = threading.Lock()
        # scope -> index name -> (state, its bytes), the scope used last at the end
        self._accounts: OrderedDict[Hashable, dict[str, tuple[Any, int]]] = OrderedDict()
        self._loading: dict[Key, threading.Lock] = {}
        self._bytes = 0
        self._hits = self._misses = self._evictions = 0

    def get(self, key: Key, load: Callable[[], State]) -> State:
        """The resident state, or what `load` makes. One loader runs per key at a time; others wait
        for it and share its result.

        An exception from `load` reaches its caller, and the next one waiting tries again.
        """
        with self._lock:
            state = self._touch(key)
            if state is not None:
                self._hits += 1
                return state
            turn = self._loading.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                state = self._touch(key)
                if state is not None:
                    self._hits += 1
                    return state
                self._misses += 1
            try:
                state = load()
                self.put(key, state)
            finally:
                with self._lock:
                    if self._loading.get(key) is turn:
                        del self._loading[key]
            return state

    def peek(self, key: Key) -> Any | None:
        """The state if it is resident, without counting as a use."""
        with self._lock:
            entry = self._entry(key)
            return None if entry is None else entry[0]

    def put(self, key: Key, state: Resident) -> None:
        """Keep `state` under `key` as the most recently used; others may have to go."""
        with self._lock:
            self._store(key, state)

    def resize(self, key: Key) -> None:
        """Count a state's bytes again after it changed; nothing happens when it is no longer
        resident.
        """
        with self._lock:
            entry = self._entry(key)
            if entry is not None:
                self._store(key, entry[0])

    def drop(self, key: Key) -> None:
        """Forget one state, if it is there."""
        name, scope = key
        with self._lock:
            entry = self._entry(key)
            if entry is not None:
                self._bytes -= entry[1]
                del self._accounts[scope][name]
                if not self._accounts[scope]:
                    del self._accounts[scope]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._accounts.clear()
            self._bytes = 0

    def bytes_of(self, scope: Hashable) -> int:
        """How many bytes the states of one account take."""
        with self._lock:
            return sum(size for _, size in self._accounts.get(scope, {}).values())

    def scopes(self) -> list[Hashable]:
        """The accounts of which something is resident."""
        with self._lock:
            return list(self._accounts)

    def stats(self) -> dict[str, int]:
        """accounts, states, bytes, bytes_max, bytes_over (of one account that alone is larger),
        hits, misses, evictions (of accounts).
        """
        with self._lock:
            return {
                "accounts": len(self._accounts),
                "states": sum(map(len, self._accounts.values())),
                "bytes": self._bytes,
                "bytes_max": self.bytes_max,
                "bytes_over": max(0, self._bytes - self.bytes_max),
                "hits": self._hits,
                "misses": self._misses,
                "evictions": self._evictions,
            }

    def _entry(self, key: Key) -> tuple[Any, int] | None:
        name, scope = key
        return self._accounts.get(scope, {}).get(name)

    def _touch(self, key: Key) -> Any | None:
        entry = self._entry(key)
        if entry is None:
            return None
        self._accounts.move_to_end(key[1])
        return entry[0]

    def _store(self, key: Key, state: Resident) -> None:
        name, scope = key
        account = self._accounts.setdefault(scope, {})
        self._accounts.move_to_end(scope)
        size = state.nbytes
        _, before = account.get(name, (None, 0))
        account[name] = (state, size)
        self._bytes += size - before
        while self._bytes > self.bytes_max and len(self._accounts) > 1:
            _, gone = self._accounts.popitem(last=False)
            self._bytes -= sum(freed for _, freed in gone.values())
            self._evictions += 1
