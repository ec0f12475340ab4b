"""What `mneme admin verify` and `mneme doctor` say of the log in the object store: whether a
restore would find there what the shards have stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.cli.finding import Finding
from runtime.cluster import held_shards
from runtime.installation import LAYOUT_FILE, Layout, LayoutError, shard_directory, shard_place
from runtime.settings import Settings
from storage.replication import ObjectStore, missing_segments, newest_epoch
from storage.store import ShippingState, Store, StoreError


def log_states(settings: Settings, layout: Layout) -> Iterator[tuple[int, ShippingState]]:
    """The shards whose directories are here, of which a node of several has some, and what each
    says of its log. Raises StoreError.
    """
    for number in held_shards(settings.data_dir):
        store = Store.open_to_read(
            shard_directory(settings.data_dir, number),
            (),
            identity=layout.identity(number),
            map_bytes=settings.storage.map_bytes_max,
        )
        try:
            state = store.log.state()
        finally:
            store.close()
        yield number, state


def missing(
    settings: Settings, layout: Layout, number: int, state: ShippingState
) -> Finding | None:
    """What of a shard's log is not in the object store; None where all is that a restore needs, or
    none is shipped. state: of the shard's directory, read before.
    """
    url = settings.object_store.url
    if url is None:
        return None
    what, place = f"log of shard {number}", shard_place(layout.cluster_id, number)
    try:
        objects = ObjectStore(url, make=False).below(place)
        if state.number and newest_epoch(objects)[1] is None:
            return Finding(
                "wrong",
                f"{what}: {url} lists nothing below {place}, although {state.number} segments were "
                "stored from here",
                "check the prefix in object_store.url, and that its credentials may list; where "
                "it names a new place, the next start stores everything there",
            )
        gone = missing_segments(objects, known=state.number)
    except StoreError as failed:
        remedy = "check object_store.url and the credentials in the environment"
        return Finding("wrong", f"{what}: {failed}", remedy)
    if not gone:
        return None
    return Finding(
        "wrong",
        f"{what}: {len(gone)} segments are missing in {url}, from {gone[0]} to {gone[-1]}; a "
        "restore is refused, or ends before them",
        "put them back from a copy, or have this directory store anew what is missing: at the "
        "log's end a start does so, before that the next snapshot",
    )


def shipped_log(settings: Settings) -> Finding:
    """Check that a restore would find what the shards of the data directory have stored."""
    if settings.object_store.url is None or not (settings.data_dir / LAYOUT_FILE).exists():
        return Finding("ok", "log: no object store, or no store yet, so there is none to look at")
    try:
        layout = Layout.load(settings.data_dir)
        for number, state in log_states(settings, layout):
            if (found := missing(settings, layout, number, state)) is not None:
                return found
    except (StoreError, LayoutError) as unknown:
        remedy = "what can be done is said of the store"
        return Finding("advice", f"log: it cannot be looked at. {unknown}", remedy)
    return Finding("ok", "log: a restore would find what every shard has stored")
