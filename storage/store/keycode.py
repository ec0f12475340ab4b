"""Keys: tuples of plain values as bytes that sort the way the tuples do.

LMDB compares keys byte by byte, so a table is only as ordered as its key encoding. This one keeps
three promises:

- order: encode(a) < encode(b) exactly when a sorts before b, part by part; kinds sort None < bool <
  int < float < bytes < str, an int never equals a float, and -0.0 is stored as 0.0;
- prefixes: encode(("a",)) is a byte prefix of encode(("a", 5)) and of nothing that does not start
  with the part "a", so "all keys that begin with these parts" is one contiguous byte range,
  [encode(parts), prefix_end(encode(parts)));
- round trip: decode(encode(parts)) == parts.

Layout of one part: a tag byte, then

    None          05
    False, True   08, 09
    int           14 + n and n big-endian bytes when positive, 14 − n and the n bytes of value +
                  256ⁿ − 1 when negative, 14 for 0
    float         21 and 8 bytes: IEEE 754, sign bit flipped when positive, all bits flipped when
                  negative
    bytes         31, the bytes with 00 → 01 01 and 01 → 01 02, then 00
    str           41, the UTF-8 bytes escaped in the same way, then 00

The module knows nothing of tables or tenants; they only prepend bytes to what it makes.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Any

ALL_KEYS_END = b"\xff" * 9  # above every physical key, of which the first eight are not all ff

_NONE, _FALSE, _TRUE, _ZERO, _FLOAT, _BYTES, _STR = 0x05, 0x08, 0x09, 0x14, 0x21, 0x31, 0x41
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_POSITIVE = [bytes((_ZERO + size,)) for size in range(9)]
_NEGATIVE = [bytes((_ZERO - size,)) for size in range(9)]
_SMALL_INTS = 65_536  # as bytes at hand: most ordinals, for 2 MB
# a noncharacter: it marks shortened text and stands in no text that `short` leaves alone
_CUT = "\uffff"
_DIGEST_CHARS = 64


def encode(parts: tuple[Any, ...]) -> bytes:
    """The key's bytes. TypeError for a part of another kind, ValueError for an int beyond signed 64
    bits or a NaN.
    """
    if len(parts) == 1 and type(parts[0]) is int and 0 <= parts[0] < _SMALL_INTS:
        return _SMALL[parts[0]]
    made = b""
    for part in parts:
        kind = type(part)  # the three usual kinds right here: a write encodes a hundred keys
        if kind is int and 0 <= part < _SMALL_INTS:
            made += _SMALL[part]
        elif kind is str:
            made += b"\x41%b\x00" % _escape(part.encode())
        elif kind is bytes:
            made += b"\x31%b\x00" % _escape(part)
        else:
            made += _encode_part(part)
    return made


def encode_bytes(part: bytes) -> bytes:
    """What encode makes of a key with this one part, sooner."""
    return b"\x31%b\x00" % _escape(part)


def decode(raw: bytes) -> tuple[Any, ...]:
    """The tuple encode was given. ValueError when the bytes are not a key."""
    parts: list[Any] = []
    position, end = 0, len(raw)
    while position < end:
        tag = raw[position]
        position += 1
        if tag in (_STR, _BYTES):
            stop = raw.index(b"\x00", position)
            body = raw[position:stop]
            if b"\x01" in body:
                body = body.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
            parts.append(body.decode() if tag == _STR else body)
            position = stop + 1
        elif _ZERO - 8 <= tag <= _ZERO + 8:
            size = abs(tag - _ZERO)
            value = int.from_bytes(raw[position : position + size], "big")
            parts.append(value if tag >= _ZERO else value + 1 - (1 << 8 * size))
            position += size
        elif tag == _FLOAT:
            parts.append(_decode_float(raw[position : position + 8]))
            position += 8
        elif tag == _NONE:
            parts.append(None)
        elif tag in (_FALSE, _TRUE):
            parts.append(tag == _TRUE)
        else:
            raise ValueError(f"no part of a key starts with byte {tag:#04x}")
    if position > end:
        raise ValueError("the key ends inside a number")
    return tuple(parts)


def decode_count(raw: bytes) -> int:
    """The int ≥ 0 that is the only part of a key: what `decode` says of it, sooner."""
    return int.from_bytes(raw[1:], "big")


def prefix_end(prefix: bytes) -> bytes | None:
    """The smallest bytes above everything that starts with `prefix`; None when there are none
    (empty, or only ff bytes).
    """
    kept = prefix.rstrip(b"\xff")
    if not kept:
        return None
    return kept[:-1] + bytes((kept[-1] + 1,))


def range_end(prefix: bytes) -> bytes:
    """What prefix_end gives of a physical key's beginning, or else what is above every key."""
    return prefix_end(prefix) or ALL_KEYS_END


def short(text: str, bytes_max: int = 200) -> str:
    """`text` when its UTF-8 fits into bytes_max bytes, else its beginning and its SHA-256 in hex,
    at most bytes_max bytes long.

    Two texts give the same result only when they are equal (or collide in SHA-256): text that
    contains the cut mark itself is hashed too. bytes_max is at least 67, the length of the mark and
    the digest.
    """
    if len(text) <= bytes_max and text.isascii():
        return text
    raw = text.encode()
    if len(raw) <= bytes_max and _CUT not in text:
        return text
    kept = (
        raw[: bytes_max - _DIGEST_CHARS - len(_CUT.encode())]
        .decode(errors="ignore")
        .replace(_CUT, "")
    )
    return kept + _CUT + hashlib.sha256(raw).hexdigest()


def _encode_int(value: int) -> bytes:
    if value >= 0:
        if value > _INT_MAX:
            raise ValueError(f"{value} does not fit into a signed 64-bit key part")
        size = (value.bit_length() + 7) >> 3
        return _POSITIVE[size] + value.to_bytes(size, "big")
    if value < _INT_MIN:
        raise ValueError(f"{value} does not fit into a signed 64-bit key part")
    size = ((-value).bit_length() + 7) >> 3
    return _NEGATIVE[size] + (value - 1 + (1 << 8 * size)).to_bytes(size, "big")


_SMALL = [_encode_int(value) for value in range(_SMALL_INTS)]


def _escape(raw: bytes) -> bytes:
    if b"\x01" in raw:
        raw = raw.replace(b"\x01", b"\x01\x02")
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"\x01\x01")
    return raw


def _encode_part(part: Any) -> bytes:
    """A part of one of the less usual kinds."""
    if part is None:
        return b"\x05"
    if type(part) is bool:
        return b"\x09" if part else b"\x08"
    if isinstance(part, int):
        return _encode_int(int(part))
    if isinstance(part, float):
        return b"\x21" + _encode_float(part)
    if isinstance(part, str):  # such as a StrEnum member
        return b"\x41%b\x00" % _escape(str.__str__(part).encode())
    raise TypeError(
        f"a key part may be None, bool, int, float, bytes or str, not {type(part).__name__}"
    )


def _encode_float(value: float) -> bytes:
    if value != value:
        raise ValueError("NaN has no place in an order, so it cannot be part of a key")
    bits = int.from_bytes(struct.pack(">d", value + 0.0), "big")  # + 0.0 turns -0.0 into 0.0
    bits ^= (1 << 64) - 1 if bits >> 63 else 1 << 63
    return bits.to_bytes(8, "big")


def _decode_float(raw: bytes) -> float:
    bits = int.from_bytes(raw, "big")
    bits ^= 1 << 63 if bits >> 63 else (1 << 64) - 1
    return struct.unpack(">d", bits.to_bytes(8, "big"))[0]
