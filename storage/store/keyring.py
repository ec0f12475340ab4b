"""Envelope encryption: one data key for each tenant, wrapped by the service's key, and the sealing
of rows with it.

It owns `keys.ring`, a small file beside the store. It does not know tables;
storage/store/bound_table.py asks it to seal a row's bytes under a scope and a place. Everything of
a tenant that is sealed becomes noise, wherever a copy of it may lie (a freed page of the store, a
page of a crash, the file system's slack), in the moment its 40 wrapped bytes are overwritten here.

That is why the keys are not in LMDB: LMDB never overwrites, so a deleted key would stay in a freed
page. This file is written in place. It is a list of 64-byte records, which never cross a disk
sector:

    1 byte kind ‖ 7 bytes name ‖ 40 bytes body ‖ 16 bytes BLAKE2b of what precedes

    "H"  the first record. Name: "mneme01"; body: 32 bytes that only the right service key gives
    "K"  a data key. Name: scope, 6 bytes, and the number of the service key, 1 byte; body: the
         key, wrapped (AES key wrap, RFC 3394) by HMAC(service key, scope)
    "V"  a further service key. Name: its number, 1 byte; body: as in "H", whose key is number 0
    "S"  a key that was shredded, for good. Name: scope, 6 bytes; body: zeros
    "E"  one for each process that sealed something. Name: epoch, 4 bytes; body: 32 random bytes,
         its salt

Where the ring is opened with a new service key and with the one before, every data key is wrapped
anew, in place and before anything else; each record says by which key it is wrapped, so a start
that is broken off is made up for by the next. From then on the ring opens with the new one alone.

A sealed row is 4 bytes epoch ‖ 8 bytes count ‖ AES-256-GCM ciphertext and tag: the first twelve
bytes are the nonce, the row's physical key (slot, tenant, table, key) is the associated data, and
the cipher's key is HMAC-SHA256(data key, salt of the epoch).

Invariants
- A nonce never repeats under one cipher key: an epoch is on disk before anything is sealed in it
  and counts upward in memory. A copy of the directory that is opened elsewhere draws a salt of its
  own, so its rows are sealed under other keys.
- A data key is on disk before a row sealed with it is committed.
- A shredded scope never gets another key: what comes late for it is refused.
"""

from __future__ import annotations

import errno
import hmac
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from storage.store.directory import StoreDamaged, StoreError, write_fault

KEYS_FILE = "keys.ring"
KEY_BYTES = 32
RECORD_BYTES = 64
NONCE_BYTES = 12
SEALED_EXTRA_BYTES = NONCE_BYTES + 16
CIPHERS_MAX = 16_384
RECENT_BYTES_MAX = 8 << 20

_NAME_BYTES, _BODY_BYTES, _CHECK_BYTES = 7, 40, 16
_HEAD, _KEY, _SHREDDED, _EPOCH, _VERSION = b"H", b"K", b"S", b"E", b"V"
_VERSIONS_MAX, _REWRAPPED_PER_SYNC = 256, 1_000
_NONE_YET = -1  # the number of a service key that the owner has not met
_MAGIC = b"mneme01"


class WrongServiceKey(StoreError):
    """The store's data keys were wrapped by another service key than the one given."""


class KeyShredded(Exception):
    """The scope was erased: what was sealed for it cannot be opened, and nothing more is sealed for
    it.
    """


class Keyring:
    """The open key file. One process writes it, under the lock of the store's directory, from any
    thread; others may read along.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        service_key: bytes,
        earlier_keys: Sequence[bytes],
        readonly: bool,
    ):
        self.path = path
        self._fd = descriptor
        self._readonly = readonly
        self._given = (service_key, *earlier_keys)
        self._proofs: dict[int, bytes] = {}  # number of a service key -> what proves it
        self._service_keys: dict[int, bytes] = {}
        self._number = 0  # of the service key that wraps
        self._places: dict[bytes, int] = {}  # scope -> its record's number
        self._shredded: set[bytes] = set()
        self._salts: dict[bytes, bytes] = {}  # epoch -> salt
        self._records = 0
        self._ciphers: dict[bytes, AESGCM] = {}  # scope ‖ epoch -> cipher
        self._secrets: dict[bytes, bytes] = {}
        self._recent: dict[bytes, bytes] = {}  # place ‖ sealed -> opened
        self._recent_bytes = 0
        self._epoch = b""
        self._count = itertools.count()
        self._creating = threading.Lock()
        self._overwritten: set[int] = set()  # places that copies elsewhere have not heard of
        # Called, by whichever thread, with the record of a key that was shredded or replaced.
        self.on_changed: Callable[[int], None] = lambda _place: None

    @classmethod
    def open(
        cls,
        path: Path,
        service_key: bytes,
        *,
        create: bool,
        readonly: bool = False,
        earlier_keys: Sequence[bytes] = (),
    ) -> Keyring:
        """Open the ring of a directory. readonly: for a process beside the owner, which gives no
        scope a key and seals nothing.

        earlier_keys  what data keys may still be wrapped by; with `service_key` they are wrapped
                      anew

        Raises StoreDamaged (also where there is none, or an empty one, and none is to be made) or
        WrongServiceKey; nothing is changed then.
        """
        if not create and not path.exists():
            raise _lost(path, "missing")
        ring = cls(
            path,
            os.open(path, os.O_RDONLY if readonly else os.O_RDWR | os.O_CREAT, 0o600),
            service_key,
            earlier_keys,
            readonly,
        )
        try:
            ring._load(create)
            _sync(path.parent)  # a power failure must not take the file's name
        except BaseException:
            ring.close()
            raise
        return ring

    def close(self) -> None:
        os.close(self._fd)

    # --- sealing ----------------------------------------------------------------------------------

    def seal(self, scope: bytes, place: bytes, plain: bytes) -> bytes:
        """Seal bytes for a scope (6 bytes); they open at the same place only. A scope without a key
        gets one. Raises KeyShredded.
        """
        if not self._epoch:
            self._begin_epoch()
        epoch = self._epoch
        nonce = epoch + next(self._count).to_bytes(8, "big")
        cipher = self._ciphers.get(scope + epoch)
        if cipher is None:
            self._create_key(scope)
            cipher = self._cipher(scope, epoch)
        return nonce + cipher.encrypt(nonce, plain, place)

    def unseal(self, scope: bytes, place: bytes, sealed: bytes) -> bytes:
        """The bytes given to `seal`. Raises KeyShredded, or StoreDamaged when they are not what was
        sealed at this place.
        """
        cipher = self._ciphers.get(scope + sealed[:4]) or self._cipher(scope, sealed[:4])
        try:
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)
        except InvalidTag:
            raise StoreDamaged(
                f"{self.path.parent}: a row is not what was stored at its place. Restore from a "
                "backup."
            ) from None

    def unseal_again(self, scope: bytes, place: bytes, sealed: bytes) -> bytes:
        """As unseal, for rows that are likely read again, such as the account of every request:
        they are opened once for a while.
        """
        row = place + sealed
        plain = self._recent.get(row)
        if plain is None:
            plain = self.unseal(scope, place, sealed)
            self._recent_bytes += 2 * len(row)
            if self._recent_bytes > RECENT_BYTES_MAX:
                self._recent, self._recent_bytes = {}, 0
            self._hold(scope, self._places.get(scope), self._recent, row, plain)
        return plain

    def secret(self, scope: bytes) -> bytes:
        """32 bytes of the scope's own, for digests of what must not stand in keys as it is. Raises
        KeyShredded.
        """
        secret = self._secrets.get(scope)
        if secret is None:
            if self._readonly and scope not in self._places:
                self._catch_up()
            self._create_key(scope)
            if len(self._secrets) >= CIPHERS_MAX:
                self._secrets.clear()
            number, data_key = self._data_key(scope)
            secret = hmac.digest(data_key, b"digests", "sha256")
            self._hold(scope, number, self._secrets, scope, secret)
        return secret

    def is_shredded(self, scope: bytes) -> bool:
        return scope in self._shredded

    def shred(self, scope: bytes) -> bool:
        """Overwrite the scope's key, on disk when this returns; -> whether there was one. It never
        gets another, unless by `adopt`.
        """
        with self._creating:
            number = self._places.get(scope)
            if number is None and scope in self._shredded:
                return False
            place = self._records if number is None else number
            self._write(place, _SHREDDED, scope, b"")
            self._overwritten |= set() if number is None else {number}
            self._forget(scope)
            self._shredded.add(scope)
        self.on_changed(place)
        return number is not None

    def changes(self, since: int, all_shredded: bool) -> list[tuple[int, bytes]]:
        """(place, record) of every record from place `since` on, and of those before it that were
        overwritten and not yet `copied`.

        all_shredded  of those before it every one that may ever have been overwritten
        """
        with self._creating:
            known, places = self._records, {place for place in self._overwritten if place < since}
        if all_shredded:
            raw = os.pread(self._fd, since * RECORD_BYTES, 0)
            places |= {
                place
                for place in range(since)
                if _was_overwritten(raw[place * RECORD_BYTES : (place + 1) * RECORD_BYTES])
            }
        return [(place, self._record(place)) for place in (*sorted(places), *range(since, known))]

    def copied(self, changes: list[tuple[int, bytes]]) -> None:
        """A copy elsewhere has these. What was overwritten since they were read is not among
        them.
        """
        with self._creating:
            self._overwritten -= {
                place
                for place, record in changes
                if place in self._overwritten and record == self._record(place)
            }

    def _forget(self, scope: bytes) -> None:
        self._shredded.discard(scope)
        self._places.pop(scope, None)
        self._secrets.pop(scope, None)
        self._recent = {}
        for name in [name for name in list(self._ciphers) if name.startswith(scope)]:
            self._ciphers.pop(name, None)

    def scopes(self, slot: int) -> set[bytes]:
        """Every scope of the slot that has a key, or had one."""
        start = slot.to_bytes(2, "big")
        with self._creating:
            return {scope for scope in (*self._places, *self._shredded) if scope.startswith(start)}

    def wrapped(self, scopes: Iterable[bytes]) -> dict[bytes, bytes]:
        """What another store under the same service key needs of these scopes: scope -> its key, as
        it is kept; b"" for a shredded one.
        """
        keys = {}
        for scope in scopes:
            number = self._places.get(scope)
            keys[scope] = b"" if number is None else _parsed(self._record(number), self.path)[2]
        return keys

    def lacking(self, keys: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        """Those of these keys, as `wrapped` gave them elsewhere, that `adopt` would change
        something for.
        """
        known = self.wrapped(keys)
        return {
            scope: key
            for scope, key in keys.items()
            if known[scope] != key or not (key or self.is_shredded(scope))
        }

    def adopt(self, keys: Mapping[bytes, bytes]) -> None:
        """Take over scopes that come from another store, as `wrapped` gave them; what was known of
        them here is forgotten.
        """
        for scope, wrapped in keys.items():
            if not wrapped:
                self.shred(scope)
            elif self.wrapped([scope])[scope] != wrapped:
                if scope in self._places:
                    self.shred(scope)
                with self._creating:
                    number = self._records
                    self._write(number, _KEY, self._named(scope), wrapped)
                    self._forget(scope)
                    self._places[scope] = number
                self.on_changed(number)

    def follow(self, place: int) -> bytes:
        """Learn of a record that the owner has written or overwritten since, as `on_changed` told
        it; -> its scope, of which nothing else that was known counts any more.
        """
        with self._creating:
            kind, name, _ = _parsed(self._record(place), self.path)
            scope = name[:6]
            self._forget(scope)
            if kind == _SHREDDED:
                self._shredded.add(scope)
            else:
                self._places[scope] = place
            return scope

    def copy(self, path: Path) -> None:
        """A copy of the ring in a new file, synced."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self.extend(path)
        _sync(path.parent)

    def extend(self, path: Path) -> None:
        """Add to an earlier copy what came since; what was overwritten since stays as it was."""
        with path.open("ab") as file:
            with self._creating:
                raw = os.pread(self._fd, self._records * RECORD_BYTES, 0)
            file.write(raw[file.tell() :])
            file.flush()
            os.fsync(file.fileno())

    # --- keys -------------------------------------------------------------------------------------

    def _create_key(self, scope: bytes) -> None:
        with self._creating:
            if scope in self._places:
                return
            if scope in self._shredded:
                raise KeyShredded(f"{self.path}: the key of scope {scope.hex()} was shredded.")
            number = self._records
            self._write(number, _KEY, self._named(scope), self._wrap(scope, os.urandom(KEY_BYTES)))
            self._places[scope] = number

    def _data_key(self, scope: bytes) -> tuple[int, bytes]:
        """The number of its record, and the key."""
        if scope not in self._places:
            self._catch_up()
        number = self._places.get(scope)
        if number is None:
            if scope in self._shredded:
                raise KeyShredded(f"{self.path}: the key of scope {scope.hex()} was shredded.")
            raise StoreDamaged(
                f"{self.path} holds no key for scope {scope.hex()}, which has rows. Restore it "
                "from a backup."
            )
        kind, name, body = _parsed(self._record(number), self.path)
        if kind == _SHREDDED:  # by the owner, while this process reads along
            raise KeyShredded(f"{self.path}: the key of scope {scope.hex()} was shredded.")
        return number, self._unwrap(scope, name[6], body)

    def _unwrap(self, scope: bytes, number: int, body: bytes) -> bytes:
        if number not in self._service_keys:  # wrapped anew, while this process reads along
            raise self._wrong_key()
        try:
            return aes_key_unwrap(_wrapping_key(self._service_keys[number], scope), body)
        except InvalidUnwrap:
            raise StoreDamaged(
                f"{self.path}: the key of scope {scope.hex()} cannot be unwrapped. Restore it from "
                "a backup."
            ) from None

    def _wrap(self, scope: bytes, data_key: bytes) -> bytes:
        return aes_key_wrap(_wrapping_key(self._service_keys[self._number], scope), data_key)

    def _named(self, scope: bytes) -> bytes:
        return scope + bytes((self._number,))

    def _cipher(self, scope: bytes, epoch: bytes) -> AESGCM:
        number, data_key = self._data_key(scope)
        if epoch not in self._salts:
            self._catch_up()
        salt = self._salts.get(epoch)
        if salt is None:
            raise StoreDamaged(
                f"{self.path} does not know epoch {epoch.hex()}: it is older than the store. "
                "Restore both from one backup."
            )
        if len(self._ciphers) >= CIPHERS_MAX:
            self._ciphers.clear()
        cipher = AESGCM(hmac.digest(data_key, b"rows:" + salt, "sha256"))
        self._hold(scope, number, self._ciphers, scope + epoch, cipher)
        return cipher

    def _hold(
        self, scope: bytes, number: int | None, held: dict[bytes, Any], name: bytes, made: Any
    ) -> None:
        """Keep what derives from a key, or from rows of its scope, unless the scope has another one
        by now. Raises KeyShredded.

        number  of the key's record
        """
        with self._creating:
            if scope in self._shredded:
                raise KeyShredded(f"{self.path}: the key of scope {scope.hex()} was shredded.")
            if self._places.get(scope) == number:
                held[name] = made

    # --- the file ---------------------------------------------------------------------------------

    def _record(self, number: int) -> bytes:
        return os.pread(self._fd, RECORD_BYTES, number * RECORD_BYTES)

    def _load(self, create: bool) -> None:
        raw = self.path.read_bytes()
        whole = len(raw) // RECORD_BYTES
        # A crash while a record was appended leaves a part of it, or zeros; nothing was committed
        # that needs it.
        while whole and not any(raw[(whole - 1) * RECORD_BYTES : whole * RECORD_BYTES]):
            whole -= 1
        self._records = whole
        if not whole and not create:
            raise _lost(self.path, "empty")
        if not whole:
            self._write(0, _HEAD, _MAGIC, _proof(self._given[0]))
            raw = self.path.read_bytes()
        elif _parsed(raw[:RECORD_BYTES], self.path)[:2] != (_HEAD, _MAGIC):
            raise StoreDamaged(f"{self.path} is no key file of ours. Restore it from a backup.")
        self._proofs[0] = raw[8 : 8 + KEY_BYTES]
        self._learn(raw, 1)
        self._prove(raw)
        if not self._readonly:
            self._wrap_anew(raw)

    def _prove(self, raw: bytes) -> None:
        """Find out which of the service keys are given. WrongServiceKey unless they open every data
        key.
        """
        for key in self._given:
            for number, proof in self._proofs.items():
                if hmac.compare_digest(proof, _proof(key)):
                    self._service_keys.setdefault(number, key)
        used = {raw[place * RECORD_BYTES + 7] for place in self._places.values()}
        if not self._service_keys or used - self._service_keys.keys():
            raise self._wrong_key()
        own = [number for number, key in self._service_keys.items() if key == self._given[0]]
        if own:
            self._number = own[0]
        elif self._readonly:
            self._number = _NONE_YET
        else:
            self._number = len(self._proofs)
            if self._number >= _VERSIONS_MAX:
                raise StoreError(f"{self.path} knows {_VERSIONS_MAX} service keys, which is most.")
            self._proofs[self._number] = _proof(self._given[0])
            self._service_keys[self._number] = self._given[0]
            self._write(self._records, _VERSION, bytes((self._number,)), _proof(self._given[0]))

    def _wrap_anew(self, raw: bytes) -> None:
        """Wrap by the present service key what another one has wrapped. In place: of what was
        overwritten no copy is left in the file.
        """
        due = [
            (scope, place)
            for scope, place in self._places.items()
            if raw[place * RECORD_BYTES + 7] != self._number
        ]
        for done, (scope, place) in enumerate(due, 1):
            _, name, body = _parsed(self._record(place), self.path)
            wrapped = self._wrap(scope, self._unwrap(scope, name[6], body))
            is_last = done % _REWRAPPED_PER_SYNC == 0 or done == len(due)
            self._write(place, _KEY, self._named(scope), wrapped, sync=is_last)
            self._overwritten.add(place)

    def count(self) -> int:
        """How many data keys there are."""
        return len(self._places)

    def wrapped_otherwise(self) -> int:
        """How many data keys another service key than the present one has wrapped."""
        return sum(self._record(place)[7] != self._number for place in self._places.values())

    def _wrong_key(self) -> WrongServiceKey:
        return WrongServiceKey(
            f"{self.path} was made with another service key; give the one that belongs to this "
            "data directory, or beside the new one the one before, as secrets.service_previous."
        )

    def _learn(self, raw: bytes, first: int) -> None:
        for number in range(first, self._records):
            kind, name, body = _parsed(
                raw[number * RECORD_BYTES : (number + 1) * RECORD_BYTES], self.path
            )
            if kind == _EPOCH:
                self._salts[name[:4]] = body[:KEY_BYTES]
            elif kind == _VERSION:
                self._proofs[name[0]] = body[:KEY_BYTES]
            elif kind == _SHREDDED:
                self._shredded.add(name[:6])
                self._places.pop(name[:6], None)
            # a scope that had moved away may have come back, with a record behind that which says
            # so
            else:
                self._shredded.discard(name[:6])
                self._places[name[:6]] = number

    def _catch_up(self) -> None:
        """Learn what another process has written since: whoever reads a store beside its owner
        meets new tenants and epochs.
        """
        with self._creating:
            raw, known = self.path.read_bytes(), self._records
            self._records = max(known, len(raw) // RECORD_BYTES)
            self._learn(raw, known)

    def _begin_epoch(self) -> None:
        with self._creating:
            epoch, salt = (len(self._salts) + 1).to_bytes(4, "big"), os.urandom(KEY_BYTES)
            self._write(self._records, _EPOCH, epoch, salt)
            self._salts[epoch] = salt
            self._epoch = epoch

    def _write(
        self, number: int, kind: bytes, name: bytes, body: bytes, *, sync: bool = True
    ) -> None:
        if self._readonly:
            raise StoreError(f"{self.path} was opened to read only.")
        record = kind + name.ljust(_NAME_BYTES, b"\0") + body.ljust(_BODY_BYTES, b"\0")
        record += blake2b(record, digest_size=_CHECK_BYTES).digest()
        try:
            if os.pwrite(self._fd, record, number * RECORD_BYTES) != RECORD_BYTES:
                raise OSError(errno.ENOSPC, "a short write")
            if sync:
                os.fsync(self._fd)
        except OSError as error:
            raise write_fault(self.path, error, error.errno) from error
        self._records = max(self._records, number + 1)


def _lost(path: Path, how: str) -> StoreDamaged:
    told = f"{path} is {how}: without it what is stored cannot be read. Restore it from a backup."
    return StoreDamaged(told)


def _proof(service_key: bytes) -> bytes:
    return hmac.digest(service_key, b"keyring", "sha256")


def _wrapping_key(service_key: bytes, scope: bytes) -> bytes:
    return hmac.digest(service_key, b"data-key:" + scope, "sha256")


def _was_overwritten(record: bytes) -> bool:
    """Whether a record may not be what was appended at its place: a shredded key, or one that a
    later service key wraps.
    """
    return record[:1] == _SHREDDED or (record[:1] == _KEY and record[7] != 0)


def shredded_scope(record: bytes) -> bytes | None:
    """The scope whose key this record overwrites; None when it does not."""
    return record[1:7] if record[:1] == _SHREDDED else None


def write_records(path: Path, changes: list[tuple[int, bytes]]) -> None:
    """Bring a copy of a ring, which nobody has open, up to these changes."""
    with path.open("r+b") as file:
        for place, record in changes:
            file.seek(place * RECORD_BYTES)
            file.write(record)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parsed(record: bytes, path: Path) -> tuple[bytes, bytes, bytes]:
    """One record -> (kind, name, body). StoreDamaged when its checksum is wrong."""
    content, check = record[:-_CHECK_BYTES], record[-_CHECK_BYTES:]
    if blake2b(content, digest_size=_CHECK_BYTES).digest() != check:
        raise StoreDamaged(
            f"{path} is damaged: a record's checksum is wrong. Restore it from a backup."
        )
    return content[:1], content[1 : 1 + _NAME_BYTES], content[1 + _NAME_BYTES :]
