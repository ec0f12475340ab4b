"""Who has owned a shard: one object for each owner, numbered; and how far its log goes.

epochs/<n>      the claim of the n-th; made with put-if-absent before it does anything else
released/<n>    neither the n-th owner nor one before it answers any more
ends/<n>-<s>    the log was stored up to segment n and commit s (storage/replication/log_end.py)
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from storage.replication.object_store import ObjectStore, ObjectStoreFailed, ObjectStoreUnfit
from storage.replication.segment import (
    NO_HASH,
    SegmentDamaged,
    segment_name,
    segment_places,
    unpacked,
)
from storage.store import OpenStore, ShippingState, StoreError

EPOCHS = "epochs"
ENDS = "ends"


class Superseded(StoreError):
    """Another owner has taken the shard: this directory's history is not the shard's any more."""


class Epoch(msgspec.Struct):
    """An owner's claim.

    token          what only that owner's directory knows
    at             Unix milliseconds
    lease_seconds  for how long it, or the owner before it, may answer after a next epoch was taken;
                   0 from a release that had no leases
    home           its directory (lease.home_of), which it holds locked while it answers
    whole          whether its release stores each object whole or not at all, also in a directory
    """

    token: str
    owner: str
    at: int
    lease_seconds: float = 0.0
    home: str = ""
    whole: bool = False


_decode_epoch = msgspec.json.Decoder(Epoch).decode


def epoch_name(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:012d}"


def _claim_of(objects: ObjectStore, epoch: int) -> Epoch | None:
    """Who took an epoch; None where nobody has. Raises ObjectStoreFailed where that is damaged."""
    raw = objects.get(epoch_name(epoch))
    try:
        return None if raw is None else _decode_epoch(raw)
    except msgspec.MsgspecError as damaged:
        raise ObjectStoreFailed(
            f"{epoch_name(epoch)} in {objects.url} is damaged: {damaged}. Put it back from a copy; "
            "without it nobody knows whose the shard is."
        ) from damaged


def are_taken(objects: ObjectStore, epochs: Sequence[int]) -> list[bool]:
    """Whether each of the epochs was taken, as one look tells."""
    return objects.have(EPOCHS, [f"{epoch:012d}" for epoch in epochs])


def newest_number(objects: ObjectStore) -> int:
    """The number of the log's last segment; 0 when there is none."""
    return max((number for _, number in segment_places(objects)), default=0)


class LogEnd(NamedTuple):
    """The number of the log's last segment, and the last commit in it."""

    number: int
    sequence: int


def end_name(number: int, sequence: int) -> str:
    return f"{ENDS}/{number:012d}-{sequence:012d}"


def stored_end(objects: ObjectStore) -> LogEnd:
    """How far the log was stored, whether it is there or not; (0, 0) where that is not said. A file
    of another name, such as a network file system leaves, is none.
    """
    ends = (name.partition("-") for name in objects.names(ENDS))
    said = (
        LogEnd(int(number), int(last))
        for number, _, last in ends
        if number.isdecimal() and last.isdecimal()
    )
    return max(said, default=LogEnd(0, 0))


def newest_epoch(objects: ObjectStore) -> tuple[int, Epoch | None]:
    """The newest epoch's number and claim; (0, None) before the first."""
    numbers = [int(name) for name in objects.names(EPOCHS) if name.isdigit()]
    if not numbers:
        return 0, None
    claim = _claim_of(objects, max(numbers))
    if claim is None:
        raise ObjectStoreFailed(f"{epoch_name(max(numbers))} in {objects.url} went meanwhile.")
    return max(numbers), claim


def refuse_unlisted(objects: ObjectStore, newest: int) -> None:
    """Raise ObjectStoreUnfit where the epoch after the newest one is there and is not listed:
    before the directory that has taken it gives up what proves so.
    """
    name = epoch_name(newest + 1)
    if objects.has(name) and newest_epoch(objects)[0] <= newest:
        raise ObjectStoreUnfit(
            f"{objects.url}: {name} is there, and a list of {EPOCHS}/ does not have it. Give the "
            "credentials the right to list, and see that no gateway or proxy on the way answers "
            "lists for itself; then start again."
        )


def taken_by(objects: ObjectStore, state: ShippingState) -> tuple[int, Epoch] | None:
    """The newest epoch, where another than the directory with this state has taken it since."""
    number, claim = newest_epoch(objects)
    return None if claim is None or claim.token in (state.token, state.former) else (number, claim)


def stores_whole(objects: ObjectStore, epoch: int) -> bool:
    """Whether this owner, and so whoever came after it, stores each object whole."""
    claim = _claim_of(objects, epoch)
    return claim is not None and claim.whole


def released_name(epoch: int) -> str:
    return f"released/{epoch:012d}"


def release(objects: ObjectStore, epoch: int) -> None:
    """Say that neither an epoch's owner nor one before it answers any more."""
    objects.put_new(released_name(epoch), b"")


def lease_left_by(objects: ObjectStore, epoch: int, claim: Epoch | None) -> float:
    """The seconds for which the owner of an epoch may answer after its end."""
    if claim is None or objects.has(released_name(epoch)):
        return 0.0
    return claim.lease_seconds


def refuse_behind(objects: ObjectStore, store: OpenStore) -> None:
    """Raise Superseded where the log goes on with commits that the store lacks: before it takes an
    epoch, which would end the owner that has them.
    """
    state = store.log.state()
    newest = newest_number(objects)
    number, tail, previous = state.number, state.tail, state.hash or NO_HASH
    end = stored_end(objects)
    if end.number > max(number, newest) and end.sequence > store.sequence:
        raise Superseded(
            f"{store.directory}: it has commits up to {store.sequence}, and the log in object "
            f"storage was stored up to {end.sequence} (segment {end.number}), which is missing "
            "there. Put that back from a copy, and restore the shard from object storage."
        )
    while number < newest:
        content = objects.get(segment_name(tail, number + 1))
        if content is None:  # it was packed, or let go of: its name is not free
            raise Superseded(
                f"{store.directory}: the log in object storage goes on to segment {newest}, and "
                f"this directory knows {number}. Restore the shard from object storage."
            )
        try:
            segment, previous = unpacked(content, number + 1, previous)
        except SegmentDamaged:
            return  # what becomes of that, whoever takes the shard finds out
        if segment.epoch > state.epoch or segment.last > store.sequence:
            raise Superseded(
                f"{store.directory}: the log in object storage has commits up to {segment.last} "
                "that this directory has not. Restore the shard from object storage."
            )
        number, tail = segment.number, segment.epoch


def take_epoch(
    objects: ObjectStore,
    epoch: int,
    token: str,
    owner: str,
    *,
    lease_seconds: float = 0.0,
    home: str = "",
) -> bool:
    """Claim an epoch; False when somebody else has. A claim of ours that had been reported as
    failed counts. Raises ObjectStoreUnfit where a claim keeps nobody out.
    """
    at = time.time_ns() // 1_000_000
    claim = msgspec.json.encode(Epoch(token, owner, at, lease_seconds, home, whole=True))
    if objects.put_new(epoch_name(epoch), claim):
        objects.check_refusal(epoch_name(epoch), claim)
        return True
    found = _claim_of(objects, epoch)
    return found is not None and found.token == token
