"""Identifiers, tenant tags and the layout of API keys.

An id is `<prefix>_` + 32 lower-case Crockford base32 characters of 20 bytes:

    6 bytes  Unix milliseconds, big endian      ids sort by creation time
    4 bytes  tenant tag                     first 4 bytes of HMAC-SHA256(service secret, tenant id)
    10 bytes random

The tag lets a shard say "this belongs to another tenant" (403) without looking anything up, so the
answer is the same whether or not the other tenant's record exists.

An API key is `mem_sk_` + 64 hex digits of 32 bytes: 2 bytes slot, 26 random bytes, 4 bytes MAC over
the first 28. The slot says which shard holds the tenant; the MAC lets the gateway refuse garbage
without a hop.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
KEY_PREFIX = "mem_sk_"

_KEY_CHARS = len(KEY_PREFIX) + 64
_RFC4648 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_FROM_RFC4648 = bytes.maketrans(_RFC4648.encode(), ALPHABET.encode())
_TO_RFC4648 = str.maketrans(ALPHABET, _RFC4648)
_TO_DIGITS = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")  # as int() reads base 32
_SHAPE = re.compile(r"([a-z]{3})_([0-9a-hjkmnp-tv-z]{32})")


def tenant_tag(secret: bytes, tenant_id: str) -> bytes:
    """4 bytes that mark every id of this tenant."""
    return hmac.digest(secret, b"tenant-tag:" + tenant_id.encode(), "sha256")[:4]


def make_id(prefix: str, unix_ms: int, tag: bytes, random: bytes) -> str:
    """prefix, milliseconds, 4-byte tag and 10 random bytes -> the id."""
    raw = unix_ms.to_bytes(6, "big") + tag + random
    return prefix + "_" + base64.b32encode(raw).translate(_FROM_RFC4648).decode()


def id_tag(prefix: str, text: str) -> bytes | None:
    """The 4-byte tenant tag inside a well-formed id of this prefix; None when it is malformed."""
    match = _SHAPE.fullmatch(text)
    if match is None or match[1] != prefix:
        return None
    # Characters 8 to 15 of the text are bytes 5 to 9 of the id: base32 in eights is read by itself.
    return (int(match[2][8:16].translate(_TO_DIGITS), 32) & 0xFFFFFFFF).to_bytes(4, "big")


def id_time(text: str) -> int | None:
    """When a well-formed id was made, Unix milliseconds; None when it is malformed."""
    match = _SHAPE.fullmatch(text)
    # Characters 0 to 9 of the text have the 6 bytes of the time, and 2 bits more.
    return None if match is None else int(match[2][:10].translate(_TO_DIGITS), 32) >> 2


def retagged(text: str, tag: bytes) -> str | None:
    """The id as this tenant's: the same prefix, time and random part under another tag; None when
    it is malformed.
    """
    match = _SHAPE.fullmatch(text)
    if match is None:
        return None
    raw = base64.b32decode(match[2].translate(_TO_RFC4648))
    return make_id(match[1], int.from_bytes(raw[:6], "big"), tag, raw[10:])


def make_api_key(secret: bytes, slot: int, random: bytes) -> str:
    """slot and 26 random bytes -> the key's text."""
    head = slot.to_bytes(2, "big") + random
    return KEY_PREFIX + (head + _key_mac(secret, head)).hex()


def is_key_shaped(text: str) -> bool:
    """Whether a text begins like an API key and is as long as one."""
    return len(text) == _KEY_CHARS and text.startswith(KEY_PREFIX)


def api_key_slot(secret: bytes, key: str) -> int | None:
    """The slot in a key whose MAC is right; None for anything else. Constant-time in the MAC."""
    if not is_key_shaped(key):
        return None
    try:
        raw = bytes.fromhex(key[len(KEY_PREFIX) :])
    except ValueError:
        return None
    if len(raw) != 32 or not hmac.compare_digest(raw[28:], _key_mac(secret, raw[:28])):
        return None
    return int.from_bytes(raw[:2], "big")


def api_key_digest(pepper: bytes, key: str) -> bytes:
    """What is stored of a key: HMAC-SHA256(pepper, key)."""
    return hmac.digest(pepper, key.encode(), "sha256")


def derived_random(seed: bytes, counter: int, count: int) -> bytes:
    """`count` (≤ 64) bytes that depend on the call's seed and a counter alone, so a replayed
    handler makes the same ids.
    """
    return hashlib.blake2b(counter.to_bytes(8, "big"), key=seed, digest_size=count).digest()


def _key_mac(secret: bytes, head: bytes) -> bytes:
    return hmac.digest(secret, b"api-key:" + head, "sha256")[:4]
