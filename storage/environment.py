"""One LMDB environment on disk: made, opened, and its faults told in our words.

It knows that an environment holds two databases, `main` for rows and `meta` for the store's identity and sequence, and nothing of
what lies in them. storage/table.py builds tables and transactions on what is opened here; no other module touches LMDB.
"""

from __future__ import annotations

import errno
import shutil
import uuid
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import lmdb
import msgspec

from storage.directory import DATA_FILE, StoreDamaged, StoreError, StoreFull, publish
from storage.schema import Identity, check_identity

READERS_MAX = 1_024
DATABASES_MAX = 4
IDENTITY, SEQUENCE = b"identity", b"sequence"

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # LMDB reports a short write as EIO


class MapFull(StoreFull):
    """The map ended inside a transaction; Store.write grows it and repeats the work."""


def fault(error: lmdb.Error, path: Path) -> StoreError:
    """LMDB's error as one of ours."""
    if isinstance(error, lmdb.MapFullError):
        return MapFull(f"{path}: the memory map is full.")
    if error.code in _NO_SPACE:
        return StoreFull(f"{path} cannot be written ({error}); the last write was not stored. Free space on its device.")
    if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError | lmdb.InvalidError | lmdb.VersionMismatchError | lmdb.PanicError):
        return StoreDamaged(f"{path} is damaged ({error}). Reopen it; if that fails, restore it from a backup.")
    return StoreError(f"{path}: {error}")


def create(directory: Path, identity: Identity) -> None:
    """Build an empty store beside the final name and rename it into place, so that a data file is either absent or whole."""
    building = directory / ".creating"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir()
    identity = replace(identity, cluster_id=identity.cluster_id or uuid.uuid4().hex)
    try:
        with lmdb.open(str(building), mode=0o700, max_dbs=DATABASES_MAX, lib_version=0) as environment:
            environment.open_db(b"main")
            meta = environment.open_db(b"meta")
            with environment.begin(db=meta, write=True) as transaction:
                transaction.put(IDENTITY, msgspec.json.encode(identity))
                transaction.put(SEQUENCE, (0).to_bytes(8, "big"))
    except lmdb.Error as error:
        raise fault(error, building / DATA_FILE) from error
    publish(building / DATA_FILE, directory / DATA_FILE)
    shutil.rmtree(building)


def open_environment(directory: Path, map_bytes: int, *, readonly: bool = False) -> lmdb.Environment:
    try:
        options = {"mode": 0o700, "max_dbs": DATABASES_MAX, "max_readers": READERS_MAX, "readonly": readonly}
        return lmdb.open(str(directory), map_size=map_bytes, **options)
    except lmdb.Error as error:
        raise fault(error, directory / DATA_FILE) from error


def open_as(directory: Path, identity: Identity, map_bytes: int, *, readonly: bool = False) -> tuple[lmdb.Environment, Identity, int]:
    """Open LMDB and compare the stored identity with the expected one; -> (environment, stored identity, sequence)."""
    environment = open_environment(directory, map_bytes, readonly=readonly)
    try:
        meta = environment.open_db(b"meta", create=False)
        with environment.begin(db=meta) as transaction:
            raw = transaction.get(IDENTITY)
            sequence = int.from_bytes(transaction.get(SEQUENCE, b""), "big")
        if raw is None:
            raise StoreDamaged(f"{directory / DATA_FILE} carries no identity: it is no store of ours, or it was damaged.")
        stored = msgspec.json.decode(raw, type=Identity)
        check_identity(directory, stored, identity)
        return environment, stored, sequence
    except BaseException as error:
        environment.close()
        if isinstance(error, lmdb.NotFoundError):
            raise StoreDamaged(f"{directory / DATA_FILE} is an LMDB file, but not a store of ours.") from error
        if isinstance(error, lmdb.Error):
            raise fault(error, directory / DATA_FILE) from error
        raise


class Figures(NamedTuple):
    """What a data file says of itself: which store it is, the sequence of its last commit, and how many rows it has."""

    identity: Identity
    sequence: int
    rows: int


def figures(directory: Path) -> Figures:
    """Read them from a data file that nobody writes, such as a copy. StoreDamaged when it is none of ours."""
    try:
        with lmdb.open(str(directory), max_dbs=DATABASES_MAX, readonly=True, lock=False) as environment:
            main, meta = environment.open_db(b"main", create=False), environment.open_db(b"meta", create=False)
            with environment.begin(db=meta) as transaction:
                identity = msgspec.json.decode(transaction.get(IDENTITY, b""), type=Identity)
                return Figures(identity, int.from_bytes(transaction.get(SEQUENCE, b""), "big"), transaction.stat(main)["entries"])
    except (lmdb.Error, msgspec.MsgspecError) as error:
        raise StoreDamaged(f"{directory / DATA_FILE} cannot be read as a store: {error}.") from error
