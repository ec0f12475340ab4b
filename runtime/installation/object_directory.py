"""Whether the object store can be used, asked once before anything starts.

It owns `object-store` in the data directory: the URL of a directory that this installation has
stored objects in. One that is missing or empty later is that of a disk that is not mounted, and
making it anew would begin a second history of every shard there.
"""

from __future__ import annotations

import contextlib

from runtime.installation.layout import LAYOUT_FILE
from runtime.settings import Settings
from storage.replication import ObjectStore, ObjectStoreFailed, directory_of

KNOWN_FILE = "object-store"


def check_object_store(settings: Settings) -> None:
    """Raise ObjectStoreFailed where the object store cannot be used, or has lost what this
    installation stored there; make its directory where nothing was.
    """
    url = settings.object_store.url
    if url is None:
        return
    is_known = _known(settings) == url
    ObjectStore(url, make=not is_known)
    if is_known and not _holds_something(url):
        raise ObjectStoreFailed(
            f"{url} is empty, and this installation has stored objects there. Is its disk mounted? "
            f"If it is to begin anew there, remove {settings.data_dir / KNOWN_FILE}."
        )
    remember_object_store(settings)


def remember_object_store(settings: Settings) -> None:
    """Note that objects are stored in the directory, if there are any. Where that cannot be
    written it is tried again at the next start.
    """
    url, is_there = settings.object_store.url, (settings.data_dir / LAYOUT_FILE).exists()
    if url is not None and is_there and _known(settings) != url and _holds_something(url):
        with contextlib.suppress(OSError):
            (settings.data_dir / KNOWN_FILE).write_text(url)


def _known(settings: Settings) -> str:
    try:
        return (settings.data_dir / KNOWN_FILE).read_text()
    except FileNotFoundError:
        return ""


def _holds_something(url: str) -> bool:
    directory = directory_of(url)
    return directory is not None and directory.is_dir() and any(directory.iterdir())
