"""Forms with a file in them, multipart/form-data (RFC 7578), read while they arrive.

The file goes to the blob store in pieces, so an upload costs the gateway the same memory whatever
its size. What it is gets looked at when its first 64 KiB are there, and its size as it grows: a
file of a kind or size that is not accepted is refused before it is whole. When the form is complete
the file is made durable, and only then does a body exist that names it.

Owns the reading of forms. It knows neither what an operation does with the file nor who may send
one.

Choices: parts that the operation has no field for are read and
dropped; a field that is sent twice is 422, except list fields, whose values are joined; a file name
is what follows its last slash or backslash.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from runtime.api.operation import Operation, UploadedFile
from runtime.errors import (
    BadRequest,
    PayloadTooLarge,
    Unavailable,
    UnsupportedMediaType,
    ValidationFailed,
)
from runtime.http import validation
from runtime.limits import (
    FILENAME_CHARS_MAX,
    FORM_FIELD_BYTES_MAX,
    FORM_OVERHEAD_BYTES_MAX,
    FORM_PARTS_MAX,
    NAME_CHARS_MAX,
    UPLOAD_HEAD_BYTES,
    UPLOAD_WRITE_BYTES,
    UPLOADS_AT_ONCE_MAX,
    UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX,
)
from runtime.settings import Settings
from storage.blobs import BlobStore, BlobWriter
from storage.replication import ObjectStoreFailed

FILE_FIELD = "file"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


class UploadReader:
    """Reads the forms of one operation."""

    def __init__(self, operation: Operation, settings: Settings, blobs: BlobStore):
        assert operation.upload is not None and operation.body is not None
        self._upload, self._model = operation.upload, operation.body
        self._bytes_max = operation.upload.bytes_max(settings)
        self._blobs = blobs
        self._under_way = Counter[str]()  # by owner

    @property
    def body_bytes_max(self) -> int:
        """The longest form there can be."""
        return self._bytes_max + FORM_OVERHEAD_BYTES_MAX

    def too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"The file is larger than {self._bytes_max} bytes.",
            code="document_too_large",
            param=FILE_FIELD,
        )

    async def read(
        self, content_type: bytes | None, chunks: AsyncIterator[bytes], owner: str
    ) -> BaseModel:
        """The body, its file durable in the blob store of `owner`.

        Raises BadRequest, PayloadTooLarge, UnsupportedMediaType, ValidationFailed, Unavailable;
        then nothing is left in the store.
        """
        if self._under_way[owner] >= UPLOADS_OF_ONE_ACCOUNT_AT_ONCE_MAX:
            raise Unavailable("This account uploads too many files at once. Retry in a moment.")
        if self._under_way.total() >= UPLOADS_AT_ONCE_MAX:
            raise Unavailable("Too many files are being uploaded. Retry in a moment.")
        form = _Form(_boundary(content_type))
        self._under_way[owner] += 1
        writer: BlobWriter | None = None
        try:
            media_type = ""
            async for chunk in chunks:
                form.feed(chunk)
                if form.file_bytes > self._bytes_max:
                    raise self.too_large()
                if form.filename is None or not form.has_file_to_write():
                    continue
                if writer is None:
                    media_type = await self._media_type(form, form.filename)
                    writer = await asyncio.to_thread(self._blobs.writer, owner)
                await asyncio.to_thread(writer.write, form.take_file())
            form.check_complete()
            filename = self._check_file(form)
            if writer is None:
                media_type = await self._media_type(form, filename)
                writer = await asyncio.to_thread(self._blobs.writer, owner)
            body = self._read_fields(form)
            await asyncio.to_thread(writer.write, form.take_file())
            try:
                blob = await asyncio.to_thread(writer.finish)
            except ObjectStoreFailed:
                raise Unavailable(
                    "The object store that has to hold every file does not answer; nothing was "
                    "stored. Retry soon."
                ) from None
            body[FILE_FIELD] = UploadedFile(
                filename=filename,
                media_type=media_type,
                size_bytes=blob.size,
                sha256=blob.sha256,
                blob_name=blob.name,
                blob_key=blob.key,
                charset=form.charset,
            )
            return self._model.model_validate(body)
        finally:
            form.close()
            self._under_way[owner] -= 1
            if not self._under_way[owner]:
                del self._under_way[owner]
            if writer is not None:
                await asyncio.shield(asyncio.to_thread(writer.abort))

    async def _media_type(self, form: _Form, filename: str) -> str:
        found = await asyncio.to_thread(
            self._upload.media_type, bytes(form.file[:UPLOAD_HEAD_BYTES]), filename
        )
        if found is None:
            raise UnsupportedMediaType(
                "The format of this file is not supported.", param=FILE_FIELD
            )
        return found

    def _check_file(self, form: _Form) -> str:
        """The file's name. Raises where the form has no file, or an empty one."""
        if form.filename is None:
            raise ValidationFailed.at(("body", FILE_FIELD), "is required", "missing")
        if form.file_bytes == 0:
            raise BadRequest("The file is empty.", param=FILE_FIELD)
        return form.filename

    def _read_fields(self, form: _Form) -> dict[str, Any]:
        """The other fields, checked against the model before the file is made durable."""
        values: dict[str, Any] = {}
        for name, value in form.fields:
            if name not in self._model.model_fields or name == FILE_FIELD:
                continue
            if name in values and name not in getattr(self._model, "joined_fields", ()):
                raise ValidationFailed.at(("body", name), "may be sent only once", "repeated")
            values[name] = f"{values[name]},{value}" if name in values else value
        placeholder = UploadedFile(
            filename="", media_type="", size_bytes=0, sha256="", blob_name="", blob_key=b""
        )
        given = {**values, FILE_FIELD: placeholder}
        try:
            self._model.model_validate(given)
        except ValidationError as invalid:
            raise validation.failed(invalid, given, "body") from None
        return values


class _Form:
    """The parts of one form so far: `fields` as text, and of the file what nobody has taken yet."""

    def __init__(self, boundary: bytes):
        self.fields: list[tuple[str, str]] = []
        self.filename: str | None = None
        self.charset: str | None = None  # that the file's part says it is in
        self.file = bytearray()
        self.file_bytes = 0
        self._parts = 0
        self._complete = False
        self._header_name, self._header_value = bytearray(), bytearray()
        self._disposition = self._content_type = b""
        self._name = ""
        self._value: bytearray | None = None  # of a field; None while the file comes in
        callbacks: Any = {
            "on_part_begin": self._part_begins,
            "on_header_field": lambda data, start, end: self._header_name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header_value.extend(data[start:end]),
            "on_header_end": self._header_ends,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._part_data,
            "on_part_end": self._part_ends,
            "on_end": self._end,
        }
        self._parser = MultipartParser(boundary, callbacks)

    def feed(self, chunk: bytes) -> None:
        """Take a piece of the form in. Raises BadRequest, ValidationFailed."""
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            raise BadRequest("The body is not a valid multipart/form-data form.") from None

    def close(self) -> None:
        """Let go of the parser, whose callbacks hold the form: nothing is fed after this."""
        del self._parser

    def has_file_to_write(self) -> bool:
        return len(self.file) >= UPLOAD_WRITE_BYTES

    def take_file(self) -> bytearray:
        taken, self.file = self.file, bytearray()
        return taken

    def check_complete(self) -> None:
        if not self._complete:
            raise BadRequest("The form ends before its last boundary.")

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > FORM_PARTS_MAX:
            raise BadRequest(f"The form has more than {FORM_PARTS_MAX} parts.")
        self._disposition = self._content_type = b""

    def _header_ends(self) -> None:
        name = self._header_name.strip().lower()
        if name == b"content-disposition":
            self._disposition = bytes(self._header_value)
        elif name == b"content-type":
            self._content_type = bytes(self._header_value)
        self._header_name.clear()
        self._header_value.clear()

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        self._value = bytearray()
        if self._name == FILE_FIELD:
            if self.filename is not None:
                raise ValidationFailed.at(("body", FILE_FIELD), "may be sent only once", "repeated")
            self.filename = _filename(options.get(b"filename", b"").decode("utf-8", "replace"))
            _, about = parse_options_header(self._content_type)
            self.charset = about.get(b"charset", b"").decode("latin-1")[:NAME_CHARS_MAX] or None
            self._value = None

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._value is None:
            self.file += data[start:end]
            self.file_bytes += end - start
        else:
            self._value += data[start:end]
            if len(self._value) > FORM_FIELD_BYTES_MAX:
                raise BadRequest(
                    f"A field of the form is longer than {FORM_FIELD_BYTES_MAX} bytes."
                )

    def _part_ends(self) -> None:
        if self._value is not None:
            try:
                self.fields.append((self._name, self._value.decode()))
            except UnicodeDecodeError:
                raise BadRequest("A field of the form is not UTF-8.") from None

    def _end(self) -> None:
        self._complete = True


def _boundary(content_type: bytes | None) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise BadRequest(
            "The Content-Type must be multipart/form-data, with a boundary.", param="Content-Type"
        )
    return boundary


def _filename(sent: str) -> str:
    """The name without its path and without control characters. A quotation mark ends a name in the
    form, so that browsers and most clients write %22 for it.
    """
    name = _UNSAFE.sub("", re.split(r"[/\\]", sent)[-1]).strip()
    return name.replace("%22", '"')[:FILENAME_CHARS_MAX] or "file"
