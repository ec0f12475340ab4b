"""OTLP's messages, as far as spans of ours go.

The classes that are generated for these messages take four times as long a span, in the path of
every read that is recorded; tests hold what is written here against them.

The numbers are those of the fields in opentelemetry/proto/trace/v1/trace.proto and common.proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from runtime.tracing.spans import Span

_KINDS = {"internal": 1, "server": 2, "consumer": 5}
_FINE, _FAILED = b"\x7a\x00", b"\x7a\x02\x18\x02"  # a status that is unset; one of an error
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200

# trace_id, span_id, parent_span_id, start, end, flags, each behind the field's number.
_ROOT = struct.Struct("<2s16s2s8sBQBQ2sI")
_UNDER = struct.Struct("<2s16s2s8s2s8sBQBQ2sI")
_TRACE_ID, _SPAN_ID, _PARENT_ID, _FLAGS = b"\x0a\x10", b"\x12\x08", b"\x22\x08", b"\x85\x01"
_START, _END = 0x39, 0x41
_ATTRIBUTE, _RESOURCE_ATTRIBUTE = b"\x4a", b"\x0a"
_WHOLE_64 = 2**64 - 1


def _span(span: Span) -> bytes:
    ids = _TRACE_ID, span.trace_id.to_bytes(16, "big"), _SPAN_ID, span.span_id.to_bytes(8, "big")
    times = _START, span.began, _END, span.ended, _FLAGS
    above = span.parent
    if above is None:
        fixed = _ROOT.pack(*ids, *times, _HAS_IS_REMOTE)
    else:
        flags = _HAS_IS_REMOTE | _IS_REMOTE if above.is_remote else _HAS_IS_REMOTE
        fixed = _UNDER.pack(*ids, _PARENT_ID, above.span_id.to_bytes(8, "big"), *times, flags)
    parts = [fixed, _named(span.name, span.kind)]
    for key, value in span.attributes.items():
        name = key if "." in key else f"mneme.{key}"
        parts.append(_short(name, value) if value.__class__ is int else _pair(name, value))
    if span.error:
        parts.append(_short("error.type", span.error))
    parts.append(_FAILED if span.has_failed else _FINE)
    return _field(b"\x12", b"".join(parts))


def message(resource: Mapping[str, object], scope: tuple[str, str], spans: Iterable[Span]) -> bytes:
    """What a collector takes. resource: attributes of the process; scope: name and version of what
    made the spans, which have ended.
    """
    told = [_pair(key, value, _RESOURCE_ATTRIBUTE) for key, value in resource.items()]
    name, version = scope
    made_by = _field(b"\x0a", name.encode()) + _field(b"\x12", version.encode())
    scoped = _field(b"\x0a", made_by) + b"".join([_span(span) for span in spans])
    return _field(b"\x0a", _field(b"\x0a", b"".join(told)) + _field(b"\x12", scoped))


@lru_cache(4096)
def _named(name: str, kind: str) -> bytes:
    return _field(b"\x2a", name.encode()) + b"\x30" + _varint(_KINDS[kind])


def _pair(key: str, value: object, number: bytes = _ATTRIBUTE) -> bytes:
    return _field(number, _key(key) + _field(b"\x12", _value(value)))


# Of values that come again and again.
_short = lru_cache(4096)(_pair)


@lru_cache(1024)
def _key(key: str) -> bytes:
    return _field(b"\x0a", key.encode())


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return _field(b"\x0a", value.encode())
    if isinstance(value, bool):
        return b"\x10" + _varint(value)
    if isinstance(value, int):
        return b"\x18" + _varint(value & _WHOLE_64)
    if isinstance(value, float):
        return b"\x21" + struct.pack("<d", value)
    if isinstance(value, Sequence):
        return _field(b"\x2a", b"".join(_field(b"\x0a", _value(each)) for each in value))
    raise TypeError(type(value).__name__)


def _field(number: bytes, content: bytes) -> bytes:
    return number + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _BYTES[number]
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


_BYTES = [bytes((number,)) for number in range(0x80)]
