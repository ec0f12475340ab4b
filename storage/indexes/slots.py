"""What derives from a slot's rows, in memory and beside the store, when the slot comes from another
store or goes to one.

Derived state is built from rows on first use, so a slot that arrives needs none; but to learn the
cells of many vectors takes a while, and the first search should not go without. And what a store
knew of a slot that left, or came back, must not answer any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from storage.indexes.index import Index
from storage.indexes.kept import tenants_with_files
from storage.store import OpenStore, Scope, Store


def build_for_slot(store: Store, indexes: Iterable[Index], slot: int) -> int:
    """Write the files that the slot's tenants need before anybody uses them; -> how many."""
    with store.snapshot() as snapshot:
        scopes = [scope for scope in snapshot.scopes(slot) if scope.tenant]
    return sum(index.build(store, scope) for index in indexes for scope in scopes)


def tenants_known(store: Store, slots: Collection[int], *, files: bool) -> set[Scope]:
    """The tenants of slots that have rows, or of whom something is in memory; `files`: or beside
    the store.
    """
    with store.snapshot() as snapshot:
        known = {scope for slot in slots for scope in snapshot.scopes(slot)}
    known |= {
        scope
        for scope in store.residents.scopes()
        if isinstance(scope, Scope) and scope.slot in slots
    }
    if files:
        known.update(*(tenants_with_files(store.directory, slot) for slot in slots))
    return known


def forget_tenants(
    store: OpenStore, indexes: Iterable[Index], scopes: Iterable[Scope], *, files: bool
) -> None:
    """Drop what is in memory of these tenants; `files`: their files too."""
    for scope in scopes:
        for index in indexes:
            index.forget(store, scope, files=files)
