"""One call as data: what the operations of this package make, and the transports send."""

from __future__ import annotations

import io
import json
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

Readable = str | os.PathLike[str] | bytes | IO[bytes]
FileContent = Readable | bytearray | memoryview
# What a header's value may hold: visible ASCII, and spaces inside.
HEADER_CHARS = frozenset(map(chr, range(0x20, 0x7F)))


class Unset:
    """The value of an argument that was not given, where None means something else: in a PATCH it
    clears the field.
    """

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class Upload:
    """A form with a file in it.

    content  a path, the bytes themselves, or a binary stream, which is read from where it stands
    """

    content: Readable
    filename: str
    form: Mapping[str, str]
    start: int | None = None

    @classmethod
    def of(cls, content: FileContent, filename: str | None, form: Mapping[str, Any]) -> Upload:
        """`filename` is taken from the path or the stream where it is None. Sequences are joined by
        commas, mappings become JSON. Raises ValueError where a text of a sequence has a comma.
        """
        if isinstance(content, (bytearray, memoryview)):
            content = bytes(content)
        name = (
            content if isinstance(content, (str, os.PathLike)) else getattr(content, "name", None)
        )
        filename = filename or (Path(name).name if isinstance(name, (str, os.PathLike)) else "")
        if not filename:
            raise ValueError("The file needs a filename; give one.")
        start = (
            content.tell()
            if not isinstance(content, (str, os.PathLike, bytes)) and content.seekable()
            else None
        )
        return cls(
            content, filename, {key: _form_text(key, value) for key, value in form.items()}, start
        )

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent twice: a stream that does not rewind is gone after the first
        time.
        """
        return isinstance(self.content, (str, os.PathLike, bytes)) or self.start is not None

    def open(self) -> Any:
        """The content from its beginning, anew for each attempt: something httpx can read."""
        if isinstance(self.content, (str, os.PathLike)):
            return open(self.content, "rb")
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)
        return _Once(self.content) if self.start is None else _Rest(self.content, self.start)

    def close(self, opened: Any) -> None:
        """End an attempt; a stream of the caller's stays open."""
        if not isinstance(opened, _Once):
            opened.close()


class _Once:
    """A stream that can only be read. httpx finds no length, which of a pipe would be 0, and sends
    it in chunks.
    """

    def __init__(self, stream: IO[bytes]):
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size)


class _Rest(_Once):
    """What a stream holds from `start` on, as if it began there: httpx would go back to the
    beginning of the file.
    """

    def __init__(self, stream: IO[bytes], start: int):
        super().__init__(stream)
        self._start = start

    def tell(self) -> int:
        return self._stream.tell() - self._start

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return (
            self._stream.seek(offset + self._start if whence == os.SEEK_SET else offset, whence)
            - self._start
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One call, apart from where to and with which credential.

    body        what becomes JSON; None sends none
    key         Idempotency-Key, kept over all attempts
    repeatable  whether a second attempt is harmless
    timeout     seconds for connecting, and between two pieces of the answer; None leaves it to the
                client
    until       time.monotonic() after which no further attempt begins
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    upload: Upload | None = None
    key: str | None = None
    prefer: str | None = None
    if_match: str | None = None
    accept: str = "application/json"
    repeatable: bool = True
    timeout: float | None = None
    until: float | None = None

    def headers(self) -> dict[str, str]:
        """Raises ValueError for a text that no header can hold."""
        made = {"Accept": self.accept}
        if self.body is not None:
            made["Content-Type"] = "application/json"
        for name, value in (
            ("Idempotency-Key", self.key),
            ("Prefer", self.prefer),
            ("If-Match", self.if_match),
        ):
            if value is not None:
                made[name] = header_text(name, value)
        return made

    def content(self) -> bytes | None:
        """The body as JSON. Raises TypeError and ValueError, which name the field."""
        if self.body is None:
            return None
        try:
            return _json(self.body)
        except (TypeError, ValueError) as error:
            raise _misfit(self.body, error) from error

    def parameters(self) -> list[tuple[str, str]]:
        """The query; a sequence is a repeated parameter."""
        found: list[tuple[str, str]] = []
        for name, value in self.query.items():
            if value == "":  # which would be as good as not given
                raise ValueError(f"{name} is an empty text; leave it out, or say which.")
            values = (
                value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
            )
            try:
                found += [(name, _query_text(item)) for item in values]
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
        return found


def given(**fields: Any) -> dict[str, Any]:
    """The arguments that were given: neither None nor UNSET. A trailing underscore keeps a name
    from being a keyword. Raises ValueError for an empty id.
    """
    return {name: value for name, value in changed(**fields).items() if value is not None}


def changed(**fields: Any) -> dict[str, Any]:
    """The same where None clears a field: all but UNSET."""
    return {
        name.rstrip("_"): named(name, value) for name, value in fields.items() if value is not UNSET
    }


def named(name: str, value: Any) -> Any:
    """The value of an argument; a UUID as its text, for an id. Raises ValueError for an id that is
    an empty text: whoever takes it for "nobody" would be given everybody's.
    """
    if not name.endswith("_id"):
        return value
    if isinstance(value, str) and not value.strip():
        raise ValueError(f"{name} is an empty text; leave it out, or say which.")
    return str(value) if isinstance(value, uuid.UUID) else value


def keyed(idempotency_key: str | uuid.UUID | None) -> str:
    """The caller's Idempotency-Key, or a new one. Raises ValueError for one that no header can
    hold.
    """
    if idempotency_key is None:
        return uuid.uuid4().hex
    return header_text("idempotency_key", str(idempotency_key))


def header_text(name: str, value: str) -> str:
    """A text as a header can hold it: without the white space around it. Raises ValueError, which
    does not repeat the text, for an empty one and for one with other characters.
    """
    text = value.strip()
    if not text:
        raise ValueError(f"{name} is an empty text.")
    if not HEADER_CHARS.issuperset(text):
        raise ValueError(f"{name} holds a character that a header cannot have: no visible ASCII.")
    return text


def etag(version: int | str | None) -> str | None:
    """The value of If-Match for a version's number; a text goes as it is, such as `*`."""
    return f'"{version}"' if isinstance(version, int) else version


def segment(value: str | uuid.UUID) -> str:
    """A path parameter as it stands in the path. Raises ValueError for what would be another path,
    TypeError for what is no text.
    """
    if not isinstance(value, (str, uuid.UUID)):
        raise TypeError(f"An id is a text, and not {type(value).__name__}.")
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} names nothing.")
    return quote(str(value), safe="")


def iso(moment: datetime) -> str:
    """An instant as the service reads it. Raises ValueError without a time zone: whose noon is
    meant, nobody could tell.
    """
    if moment.tzinfo is None:
        raise ValueError("A datetime needs a time zone, such as datetime.now(timezone.utc).")
    return moment.isoformat()


def _json(value: Any) -> bytes:
    return json.dumps(
        value, default=_encoded, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()


def _misfit(value: Any, error: Exception, path: str = "") -> TypeError | ValueError:
    """The error of a value that does not become JSON, with the path to what in it does not."""
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        inside = enumerate(value)
    for name, inner in inside:
        try:
            _json(inner)
        except (TypeError, ValueError) as own:
            return _misfit(inner, own, f"{path}.{name}" if path else str(name))
    kind = TypeError if isinstance(error, TypeError) else ValueError
    said = "a text with half of a character" if isinstance(error, UnicodeError) else str(error)
    return kind(f"{path}: {said}" if path else said)


def _encoded(value: Any) -> Any:
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} does not become JSON.")


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return iso(value) if isinstance(value, datetime) else str(value)


def _form_text(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    if isinstance(value, str):
        return value
    texts = list(value)
    if any("," in text for text in texts):
        raise ValueError(f"{name}: no comma may be in one of them; a form has commas between them.")
    return ",".join(texts)
