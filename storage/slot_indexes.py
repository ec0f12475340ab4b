"""What derives from a slot's rows, in memory and beside the store, when the slot comes from another store or goes to one.

Derived state is built from rows on first use, so a slot that arrives needs none; but a graph over many vectors takes a while, and
the first search should not wait for it. And what a store knew of a slot that left, or came back, must not answer any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from storage.schema import Scope
from storage.table import Store
from storage.vector_graph import erase_checkpoints
from storage.vector_index import VectorIndex


def build(store: Store, indexes: Iterable[Any], slot: int) -> int:
    """Write a checkpoint of every graph that the slot's tenants need and that nobody uses yet; -> how many."""
    written = 0
    with store.snapshot() as snapshot:
        scopes = [scope for scope in snapshot.scopes(slot) if scope.tenant]
    for index in (index for index in indexes if isinstance(index, VectorIndex)):
        for scope in scopes:
            with store.snapshot() as snapshot:
                if snapshot.bind(index.vectors, scope).count() <= index.exact_max:
                    continue
                tenant = index._tenant(snapshot, scope)
            written += sum(space.save(index._place(store, scope, name)) for name, space in tenant.each_space())
            store.residents.drop((index.name, scope))  # what is written to the slot from now on does not reach it
    return written


def forget(store: Store, indexes: Iterable[Any], scopes: Iterable[Scope], *, files: bool) -> None:
    """Drop what is in memory of these tenants; `files`: their checkpoints too."""
    for scope in scopes:
        for index in indexes:
            store.residents.drop((index.name, scope))
            if files and isinstance(index, VectorIndex):
                erase_checkpoints(store.directory, index.name, scope.slot, scope.tenant)
