"""What every index is to whoever declares, feeds and keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from storage.store import OpenStore, Reader, Scope, Store, Table


class Index(Protocol):
    """A declared index: rows in tables of its own, and perhaps what derives from them.

    name    unique in the store; its tables' names begin with it
    tables  what it stores, in the transaction of the row that it describes

    An index that keeps nothing besides its rows needs `bind` alone.
    """

    name: str
    tables: tuple[Table, ...]

    def bind(self, reader: Reader, scope: Scope) -> Any:
        """The index inside one reader and one tenant."""
        ...

    def apply(self, store: Store, changes: Sequence[tuple[Scope, Any]]) -> None:
        """Take over what a commit changed: what was noted in its transaction, in order. Called
        before the commit is acknowledged.
        """

    def checkpoint(self, store: Store) -> int:
        """Write what takes long to build to files beside the store; -> how many were written."""
        return 0

    def build(self, store: Store, scope: Scope) -> int:
        """Write such files for a tenant that nobody uses yet; -> how many."""
        return 0

    def forget(self, store: OpenStore, scope: Scope, *, files: bool) -> None:
        """Drop what is in memory of a tenant; `files`: what `checkpoint` wrote too."""
        store.residents.drop((self.name, scope))
