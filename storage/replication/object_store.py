"""Object storage: a local directory, S3, GCS or Azure behind five verbs, through `obstore`.

It owns paths below one URL and the meaning of their failures. It does not know what is stored.
Everything but a whole file is written once: `put_new` makes an object only where there is none,
which every backend decides atomically.

    file:///var/lib/mneme-log     a directory; what is written there is synced
    s3://bucket/prefix            also gs:// and az://; credentials come from the environment
                                  (AWS_ACCESS_KEY_ID, AWS_ENDPOINT, …)

An attempt that was reported as failed may have succeeded. So whoever is told that a name is taken
compares what lies there.

In a directory an object is on disk before it has its name: it is written and synced without one, or
where the file system has no such files under another (`name#number`, which is no object), then
linked. Earlier releases gave the name first, so a power failure could leave an object that ends
early although nobody had been told that it was stored; `replace_torn` mends that.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from storage.store import StoreError, make_directory

REQUEST_SECONDS_MAX = 10
CONNECT_SECONDS_MAX = 3
RETRIES_MAX = 2
PIECE_BYTES = 8 << 20
NAMES_PER_DELETE_MAX = 500


class ObjectStoreFailed(StoreError):
    """The object store did not do what was asked, or did not say so. Whether anything was written
    is unknown.
    """


class ObjectStoreUnfit(StoreError):
    """The object store overwrites what it was asked to leave, or does not list what is there."""


def directory_of(url: str) -> Path | None:
    """The directory that a `file:` URL names; None for another kind of store."""
    return Path(unquote(urlsplit(url).path)) if url.startswith("file:") else None


class ObjectStore:
    """Objects below a URL. Its calls block; they are safe from any thread.

    make  whether a directory is made where there is none. It may be that of a disk that is not
          mounted: so whoever only looks, or knows that something is stored there, makes none
    """

    def __init__(self, url: str, place: str = "", *, make: bool = True):
        self.url = url
        self._place = place
        self._directory = directory_of(url)
        self._named: set[str] = set()  # directories below it whose names are on disk
        self._ready: dict[str, int] = {}  # directory below it -> an open file there, without a name
        weakref.finalize(self, _close_all, self._ready)
        self._library = _library()
        from_url, failures = self._library.store.from_url, self._library.exceptions
        try:
            if self._directory is not None and make:
                make_directory(self._directory, 0o777)
            elif self._directory is not None and not self._directory.is_dir():
                raise ObjectStoreFailed(
                    f"{url} cannot be used: there is no such directory. Is its disk mounted? A new "
                    "one has to be made first."
                )
            self._store = from_url(url) if self._directory else from_url(url, **_options(url))
        except (failures.BaseError, OSError, ValueError) as wrong:
            raise ObjectStoreFailed(f"{url} cannot be used: {_sentence(wrong)}") from wrong

    def below(self, place: str) -> ObjectStore:
        """The same store, its paths counted from `place`."""
        found = copy.copy(self)
        found._place, found._ready = f"{self._place}{place}/", {}
        weakref.finalize(found, _close_all, found._ready)
        return found

    def put_new(self, path: str, content: bytes) -> bool:
        """Make the object; False when one of that name is there, perhaps through an attempt of our
        own. Raises ObjectStoreFailed.
        """
        if self._directory is not None:
            at = self._at(path)
            if not self._call(lambda _, name: self._link(at, content), path):
                return False
            self._sync_names(at)
            return True
        try:
            self._put(path, content, mode="create")
        except self._library.exceptions.AlreadyExistsError:
            return False
        return True

    def make_ready(self, folder: str) -> None:
        """Take beforehand what the next object of a folder needs, so that whoever stores it does
        not wait for that: a directory's file system may look long for a place where many files went
        in the last minute. Of one folder at a time; that it fails, the next object says.
        """
        if self._directory is None:
            return
        at = self._at(folder)
        if at not in self._ready:
            _close_all(self._ready)
            with contextlib.suppress(AttributeError, OSError):
                self._ready[at] = _unnamed(at)

    def check_refusal(self, path: str, content: bytes) -> None:
        """Put an object that is there once more, as it is. Raises ObjectStoreUnfit unless that is
        refused: what tells two owners of a shard apart is that.
        """
        if self.put_new(path, content):
            raise ObjectStoreUnfit(
                f"{self.url} overwrites objects although it is asked not to (If-None-Match: *), so "
                "two owners of a shard would both acknowledge writes; use an object store that "
                "supports conditional writes, or update this one."
            )

    @property
    def may_tear(self) -> bool:
        """Whether an object may have been cut short by a power failure."""
        return self._directory is not None

    def replace_torn(self, path: str, torn: bytes, content: bytes) -> bool:
        """Put `content` in the place of an object that a power failure cut short, if that is still
        there; of several who try one succeeds. Where objects may tear only.
        """
        assert self._directory is not None
        at = self._at(path)
        try:
            if not self._call(lambda _, name: _replace(at, torn, content), path):
                return False
        except FileNotFoundError:
            return False
        self._sync_names(at)
        return True

    def put_file(self, path: str, file: BinaryIO) -> None:
        """Store a file's content in pieces, in place of what was there."""
        self._put(path, file, chunk_size=PIECE_BYTES, max_concurrency=2)
        self._sync(path)

    def get(self, path: str) -> bytes | None:
        """The content, or None when there is no such object."""
        try:
            return self._call(
                lambda store, at: bytes(self._library.get(store, at).bytes()), self._place + path
            )
        except FileNotFoundError:
            return None

    def has(self, path: str) -> bool:
        """Whether there is such an object now, whoever made it."""
        if self._directory is not None:
            folder, _, name = path.rpartition("/")
            return self.have(folder, [name])[0]
        try:
            self._call(self._library.head, self._place + path)
        except FileNotFoundError:
            return False
        return True

    def have(self, folder: str, names: Sequence[str]) -> list[bool]:
        """As has, of several objects of a folder. In a directory one look answers for all of them:
        no disk comes or goes between two answers.
        """
        if self._directory is None:
            return [self.has(f"{folder}/{name}") for name in names]
        return self._call(lambda _, at: _are_there(at, names), self._at(folder))

    def fetch(self, path: str, target: BinaryIO) -> bool:
        """Write the content to a file; -> whether there is such an object."""

        def fetched(store: Any, at: str) -> None:
            for piece in self._library.get(store, at).stream(PIECE_BYTES):
                target.write(piece)

        try:
            self._call(fetched, self._place + path)
        except FileNotFoundError:
            return False
        return True

    def names(self, folder: str) -> list[str]:
        """Paths below a folder, counted from it, in order."""
        start = f"{self._place}{folder}/" if folder else self._place
        return sorted(each["path"].removeprefix(start) for each in self._below(start))

    def stored_at(self, folder: str) -> dict[str, int]:
        """Name -> when it was stored, Unix milliseconds by the store's clock, of every object below
        a folder.
        """
        start = f"{self._place}{folder}/"
        return {
            each["path"].removeprefix(start): int(each["last_modified"].timestamp() * 1000)
            for each in self._below(start)
        }

    def folders(self) -> list[str]:
        """Names of the folders right below."""
        found = self._call(
            lambda store, at: self._library.list_with_delimiter(store, at.rstrip("/")), self._place
        )
        return sorted(path.rstrip("/").rpartition("/")[2] for path in found["common_prefixes"])

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; what is not there is fine."""
        waiting = [self._place + path for path in paths]
        if self._directory is not None:
            for path in waiting:  # a directory stops at the first that is missing
                (self._directory / path).unlink(missing_ok=True)
            return
        for start in range(0, len(waiting), NAMES_PER_DELETE_MAX):
            self._call(self._library.delete, waiting[start : start + NAMES_PER_DELETE_MAX])

    def _below(self, start: str) -> Any:
        """Every object whose path begins so: its path, when it was stored, and more."""
        return self._call(
            lambda store, at: self._library.list(store, at.rstrip("/")).collect(), start
        )

    def _put(self, path: str, content: Any, **options: Any) -> None:
        try:
            self._call(self._library.put, self._place + path, content, **options)
        except (
            FileNotFoundError
        ) as missing:  # a directory, such as that of a disk that is not mounted
            raise ObjectStoreFailed(f"{self.url}: {_sentence(missing)}") from missing

    def _at(self, path: str) -> str:
        return f"{self._directory}/{self._place}{path}"

    def _link(self, at: str, content: bytes) -> bool:
        """Make a file with this content, whole from the first; False when the name is taken."""
        for is_last in (False, True):
            folder = os.path.dirname(at)
            try:
                return _linked(at, content, self._ready.pop(folder, None))
            except FileNotFoundError:
                # One that objects were put in does not go by itself: the disk has.
                if is_last or folder in self._named or not Path(self._directory or "").is_dir():
                    break
            os.makedirs(folder, exist_ok=True)
        raise NotADirectoryError(f"{folder} is missing; is its disk mounted?")

    def _call(self, verb: Any, path: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return verb(self._store, path, *arguments, **options)
        except (self._library.exceptions.AlreadyExistsError, FileNotFoundError):
            raise
        except (self._library.exceptions.BaseError, OSError) as failed:
            raise ObjectStoreFailed(f"{self.url}: {_sentence(failed)}") from failed

    def _sync(self, path: str) -> None:
        """Have a file of a local directory, and the names that lead to it, survive a power
        failure.
        """
        if self._directory is None:
            return
        at = self._at(path)
        try:
            _fsync(at)
        except OSError as failed:
            raise ObjectStoreFailed(f"{self.url}: {failed}.") from failed
        self._sync_names(at)

    def _sync_names(self, at: str) -> None:
        """Have the names that lead to a file of a local directory survive a power failure."""
        folder, root = os.path.dirname(at), str(self._directory)
        try:
            _fsync(folder)
            while folder != root and folder not in self._named:
                _fsync(os.path.dirname(folder))
                self._named.add(folder)
                folder = os.path.dirname(folder)
        except OSError as failed:
            raise ObjectStoreFailed(f"{self.url}: {failed}.") from failed


def _library() -> Any:
    """`obstore`, imported by who has an object store. Raises ObjectStoreFailed where it, or what
    packs the log, is not installed.
    """
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
        import zstandard  # noqa: F401
    except ImportError:
        raise ObjectStoreFailed(
            "Object storage needs packages that are not installed. Run pip install "
            "'mneme[cluster]', or leave object_store.url out."
        ) from None
    return obstore


@contextlib.contextmanager
def _written_beside(at: str, content: bytes) -> Iterator[str]:
    """A file with this content, on disk, for the length of the block. No listing shows it."""
    path = f"{at}#{int.from_bytes(os.urandom(6), 'big')}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        try:
            _write_out(descriptor, content)
        finally:
            os.close(descriptor)
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):  # it has another name by now
            os.unlink(path)


def _are_there(folder: str, names: Sequence[str]) -> list[bool]:
    """Whether a directory holds each of the names. A network file system forgets what it remembers
    of them, absent names above all, when a directory is opened (close-to-open).
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return [False] * len(names)
    try:
        return [_is_there(name, descriptor) for name in names]
    finally:
        os.close(descriptor)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


# Paths are strings in what follows: a replicated write waits for it, and a Path takes longer than a
# file to make.
def _linked(at: str, content: bytes, ready: int | None) -> bool:
    """Make a file that is on disk before it has its name; False when that is taken.

    ready  an open file without a name in its directory, which is closed here
    """
    try:
        try:
            _link_unnamed(at, content, ready)
        except (AttributeError, OSError) as failed:  # AttributeError: the platform knows of none
            if isinstance(failed, FileExistsError):
                raise
            # Not every file system has such files, or lets them be linked, and there are many ways
            # to say so; a disk that fails says it again.
            with _written_beside(at, content) as written:
                os.link(written, at)
    except FileExistsError:
        return False
    return True


def _unnamed(folder: str) -> int:
    """An open file there without a name, of which a power failure leaves nothing."""
    return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666)


def _close_all(ready: dict[str, int]) -> None:
    while ready:
        os.close(ready.popitem()[1])


def _link_unnamed(at: str, content: bytes, ready: int | None) -> None:
    descriptor = _unnamed(os.path.dirname(at)) if ready is None else ready
    try:
        _write_out(descriptor, content)
        # With a descriptor, which an absolute path has no use for, the link is followed.
        os.link(f"/proc/self/fd/{descriptor}", at, src_dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _write_out(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.fsync(descriptor)


def _replace(at: str, torn: bytes, content: bytes) -> bool:
    with open(at, "r+b") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        is_there = os.path.samestat(os.fstat(old.fileno()), os.stat(at))
        if not is_there or old.read() != torn:
            return False
        with _written_beside(at, content) as written:
            os.replace(written, at)
    return True


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _options(url: str) -> dict[str, Any]:
    client = {
        "timeout": timedelta(seconds=REQUEST_SECONDS_MAX),
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS_MAX),
        "allow_http": True,  # an endpoint on this machine or network, named by the operator
    }
    retry = {"max_retries": RETRIES_MAX, "retry_timeout": timedelta(seconds=REQUEST_SECONDS_MAX)}
    return {} if url.startswith("memory:") else {"client_options": client, "retry_config": retry}


def _sentence(error: BaseException) -> str:
    """The first line of what the library says; the rest is its own innards."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
