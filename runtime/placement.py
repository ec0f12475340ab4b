"""tenant -> slot -> shard. Pure functions and one frozen table; no I/O.

4,096 slots. A tenant's slot is the first 12 bits of SHA-256(normalised e-mail), so registration and login find the shard
without any directory. Slots map to shards by contiguous ranges of equal length; the map is fixed when a data directory is
created.
"""

from __future__ import annotations

import hashlib
import unicodedata

from runtime.limits import SLOTS


def normalise_email(email: str) -> str:
    """Trimmed, NFKC, lower case: the one spelling under which an account is known."""
    return unicodedata.normalize("NFKC", email.strip()).lower()


def slot_of_email(email: str) -> int:
    """0 … 4095, from any spelling of the address."""
    return int.from_bytes(hashlib.sha256(normalise_email(email).encode()).digest()[:2], "big") >> 4


def shard_of_slot(slot: int, shards: int) -> int:
    """The shard that owns a slot when the slots are divided evenly over `shards` shards."""
    return slot * shards // SLOTS


def slots_of_shard(shard: int, shards: int) -> range:
    """The contiguous slots of one shard; the inverse of shard_of_slot."""
    return range(-(-shard * SLOTS // shards), -(-(shard + 1) * SLOTS // shards))
