"""From bytes to a checked request, or to an error that says what to mend and repeats nothing of
what was sent.

Owns the parsing of JSON bodies, query strings and the few headers a request may steer itself with,
and the sentences of every
422. Knows nothing of routes or shards.

    400  what cannot be read at all: no JSON, a wrong Content-Type, no object, too deep, a header
         out of bounds
    422  what was read and does not fit its model: one finding per place, {"loc", "msg", "type"}

Invariant: a rejected value never comes back. The text of a finding is ours, chosen by pydantic's
error type and filled with the limits of the model alone. Validators of plugins may speak for
themselves, through ValueError, PydanticCustomError or an ApiError (which is answered as it stands);
a text of the first two kinds is replaced when a part of the input shows up in it.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args, get_origin
from urllib.parse import parse_qsl

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from runtime.api.findings import failed
from runtime.api.loop_steps import in_steps
from runtime.api.operation import Operation, Patch
from runtime.errors import ApiError, BadRequest, ValidationFailed
from runtime.limits import (
    IDEMPOTENCY_KEY_CHARS_MAX,
    JSON_DEPTH_MAX,
    JSON_ITEMS_MAX,
    JSON_LINES_ITEMS_MAX,
    NAME_CHARS_MAX,
    QUERY_FIELDS_MAX,
    VALIDATION_FINDINGS_MAX,
)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # before the text of files that some programs write
BLANK_BYTES = 1_024  # passed over at once
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
INTEGER_DIGITS_MAX = 20
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
_LONG_INTEGER = re.compile(rb"\d{19}")


def parse_json(
    content_type: bytes | None,
    raw: bytes,
    values_max: int = JSON_ITEMS_MAX,
) -> dict[str, Any]:
    """A JSON object from a body that has bytes. values_max: in it, at any depth, since each takes
    memory and time that its byte or two does not show. Raises BadRequest.
    """
    if content_type != b"application/json" and not _is_json(content_type):
        raise BadRequest(
            "The Content-Type must be application/json, in UTF-8.", param="Content-Type"
        )
    check_values(raw, values_max)
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as malformed:
        if not _is_utf8(raw):
            raise BadRequest("The body is not valid UTF-8, which JSON is written in.") from None
        raise BadRequest(
            f"The body is not valid JSON: the error is at line {malformed.lineno}, column "
            f"{malformed.colno}."
        ) from None
    if not isinstance(value, dict):
        raise BadRequest("The body must be a JSON object.")
    if _LONG_INTEGER.search(raw):
        # orjson reads an integer beyond 64 bits as a float and says nothing; what is stored must be
        # what was sent.
        json.loads(raw, parse_int=_integer)
    if raw.count(b"{") + raw.count(b"[") > JSON_DEPTH_MAX and _is_deeper(value, JSON_DEPTH_MAX):
        raise BadRequest(f"The body is nested more than {JSON_DEPTH_MAX} levels deep.")
    return value


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_values(raw: bytes, most: int = JSON_ITEMS_MAX) -> None:
    """Raise BadRequest for JSON of more values than that, before anybody parses it. Each value but
    the first follows a comma, a brace or a bracket, which may stand in a string as well.
    """
    if _separators(raw) <= most:
        return
    plain = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    is_all_strings = plain.count(b'"') > 4 * most  # each value a name and a string, in quotes
    if is_all_strings or _separators(b"".join(plain.split(b'"')[::2])) > most:
        raise BadRequest(f"The body holds more than {most:,} values.")


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"{") + raw.count(b"[")


def _integer(digits: str) -> int:
    number = int(digits) if len(digits) <= INTEGER_DIGITS_MAX else INTEGER_MAX + 1
    if not INTEGER_MIN <= number <= INTEGER_MAX:
        raise BadRequest("The body holds an integer of more than 64 bits; send it as a string.")
    return number


class BodyParser:
    """Parses and validates the bodies of one operation. A body may be left out exactly where `{}`
    would do, and never in a PUT or PATCH.
    """

    def __init__(self, operation: Operation):
        assert operation.body is not None
        self._model = operation.body
        self._lines_field = getattr(operation.body, "lines_field", "")
        if self._lines_field:
            field = operation.body.model_fields[self._lines_field]
            (line,) = get_args(field.annotation)
            self._line = TypeAdapter(line)
            told = (getattr(each, "max_length", None) for each in field.metadata)
            most = next(filter(None, told), None)
            # One more than fits is found to be too many; further ones would only take room.
            self._lines_read_max = None if most is None else most + 1
        self.required = operation.method in ("PUT", "PATCH") or not _accepts_nothing(self._model)

    def parse(self, content_type: bytes | None, raw: bytes) -> BaseModel:
        """-> the operation's model. Raises BadRequest, ValidationFailed, or the ApiError of a
        validator.
        """
        if raw:
            value = parse_json(content_type, raw)
        elif self.required:
            raise BadRequest("This request needs a JSON body.")
        else:
            value = {}
        return self._validated(value)

    async def parse_in_steps(self, content_type: bytes | None, raw: bytes) -> BaseModel:
        """As `parse`. A body with many lines, whether it comes as such or as their array, is parsed
        and checked in steps, so that it does not hold the event loop.
        """
        if not raw or not self._lines_field:
            return self.parse(content_type, raw)
        raw = raw.removeprefix(BYTE_ORDER_MARK)
        if (content_type or b"").partition(b";")[0].strip().lower() == b"application/x-ndjson":
            lines: Any = []
            async for line in in_steps(_lines_of(raw)):
                if line.strip():
                    lines.append(_parsed_line(line, len(lines) + 1))
                if len(lines) == self._lines_read_max:
                    break
            value = {self._lines_field: lines}
        elif content_type != b"application/json" and not _is_json(content_type):
            raise BadRequest(
                "The Content-Type must be application/x-ndjson, an object a line, or "
                "application/json, in UTF-8.",
                param="Content-Type",
            )
        else:
            value = await asyncio.to_thread(parse_json, content_type, raw, JSON_LINES_ITEMS_MAX)
            lines = value.get(self._lines_field)
        if isinstance(lines, list):
            value[self._lines_field] = await self._lines(lines)
        return self._validated(value)

    async def meaning(self, body: BaseModel) -> Mapping[str, Any]:
        """What of a body `fingerprint` is of, read in steps where it has many lines."""
        if not self._lines_field:
            return _dumped(body)
        lines = getattr(body, self._lines_field)
        return {
            **_dumped(body, self._lines_field),
            self._lines_field: [
                self._line.dump_python(line, mode="json") async for line in in_steps(lines)
            ],
        }

    async def _lines(self, lines: list[Any]) -> list[BaseModel]:
        """The lines, each of its model. Raises ValidationFailed."""
        read: list[BaseModel] = []
        findings: list[dict[str, Any]] = []
        async for place, line in in_steps(enumerate(lines)):
            try:
                read.append(self._line.validate_python(line))
            except ValidationError as invalid:
                findings += failed(invalid, line, "body", self._lines_field, place).details or []
                if len(findings) >= VALIDATION_FINDINGS_MAX:
                    break
        if findings:
            raise ValidationFailed(findings[:VALIDATION_FINDINGS_MAX])
        return read

    def _validated(self, value: dict[str, Any]) -> BaseModel:
        try:
            return self._model.model_validate(value)
        except ValidationError as invalid:
            raise failed(invalid, value, "body") from None


def _parsed_line(line: bytes, number: int) -> dict[str, Any]:
    """The object of one line of many; number: from 1, empty lines not counted."""
    try:
        return parse_json(b"application/json", line)
    except BadRequest as wrong:
        why = wrong.message.replace("The body", "it").replace("at line 1, column", "at column")
        raise BadRequest(f"Line {number}: {why}") from None


def _lines_of(raw: bytes) -> Iterator[bytes]:
    """Line by line, without holding all of them; of many empty ones, pieces that are empty."""
    at = 0
    while at < len(raw):
        if raw[at : at + 1].isspace():
            piece = raw[at : at + BLANK_BYTES]
            at += len(piece) - len(piece.lstrip())
            yield b""
        else:
            end = raw.find(b"\n", at)
            end = len(raw) if end < 0 else end
            yield raw[at:end]
            at = end + 1


class QueryParser:
    """Parses and validates the query strings of one operation: list fields collect, no other has
    two values. Of a lenient one empty values are absent, and what is unknown is left out.
    """

    def __init__(self, operation: Operation):
        assert operation.query is not None
        self._model = operation.query
        self._lenient: bool = operation.is_query_lenient
        fields = self._model.model_fields.items()
        self._names = frozenset(field.alias or name for name, field in fields)
        self._lists = frozenset(
            field.alias or name for name, field in fields if _is_list(field.annotation)
        )

    def parse(self, query_string: bytes) -> BaseModel:
        """-> the operation's model. Raises BadRequest, ValidationFailed, or the ApiError of a
        validator.
        """
        values: dict[str, Any] = {}
        if query_string:
            try:
                pairs = parse_qsl(
                    query_string.decode("ascii"),
                    errors="strict",
                    max_num_fields=QUERY_FIELDS_MAX,
                    keep_blank_values=not self._lenient,
                )
            except ValueError:
                raise BadRequest(
                    "The query string is not valid: it must be percent-encoded UTF-8."
                ) from None
            for number, (name, value) in enumerate(pairs, 1):
                if name in self._lists:
                    values.setdefault(name, []).append(value)
                elif name in self._names and values.setdefault(name, value) != value:
                    raise ValidationFailed.at(
                        ("query", name), "may have only one value", "repeated"
                    )
                elif name not in self._names and not self._lenient:
                    raise ValidationFailed.at(("query",), self._refused(number, name), "extra")
        for name in values.keys() & self._whole_numbers:
            sent = values[name] if name in self._lists else [values[name]]
            if any(text and _WHOLE_NUMBER.fullmatch(text) is None for text in sent):
                raise ValidationFailed.at(
                    ("query", name), "must be a whole number, in digits", "int_parsing"
                )
        try:
            return self._model.model_validate(values)
        except ValidationError as invalid:
            raise failed(invalid, values, "query") from None

    @cached_property
    def _whole_numbers(self) -> frozenset[str]:
        """The parameters that are integers, of which pydantic would take "1.0" and " 1", too."""
        schemas = self._model.model_json_schema(by_alias=True)["properties"].items()
        return frozenset(name for name, schema in schemas if _is_whole(schema))

    def _refused(self, number: int, name: str) -> str:
        """What is said of the parameter at this place, from 1, that is none of the operation's: by
        its place, since its name may be anything that was sent.
        """
        near = get_close_matches(name[:NAME_CHARS_MAX], self._names, 1)
        meant = f" {near[0]} may be meant;" if near else ""
        taken = ", ".join(sorted(self._names))
        return f"holds, as parameter {number}, what is not taken;{meant} it takes {taken}"


def idempotency_key(header: bytes) -> str:
    """The key as it was sent. Raises BadRequest outside 1 to 255 characters."""
    if not 0 < len(header) <= IDEMPOTENCY_KEY_CHARS_MAX:
        raise BadRequest(
            f"The Idempotency-Key must have 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters.",
            param="Idempotency-Key",
        )
    return header.decode("latin-1")


def preferences(header: bytes) -> dict[str, str]:
    """Prefer (RFC 7240): b"respond-async, wait=5" -> {"respond-async": "", "wait": "5"}; the first
    of a repeated name counts.
    """
    found: dict[str, str] = {}
    for item in header.decode("latin-1").split(","):
        name, _, value = item.partition(";")[0].partition("=")
        if name.strip():
            found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def fingerprint(
    pepper: bytes,
    operation: Operation,
    path: dict[str, str],
    query: BaseModel | None,
    body: BaseModel | Mapping[str, Any] | None,
) -> bytes:
    """32 bytes of what the request means: method, route, path and query parameters, and the
    validated body with its defaults.

    It is HMAC-SHA256 under the installation's pepper, since it is stored and a body may hold a
    password. Order of keys and white space don't count. A PATCH leaves out what was not sent, since
    null and absent differ there. A body's own top-level `idempotency_key` is no part of it: it
    names the request, as the header does. A body may be given as its `BodyParser.meaning`.
    """
    meaning = [operation.method, operation.path, path, _dumped(query), _dumped(body)]
    return hmac.digest(
        pepper, b"fingerprint:" + orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS), "sha256"
    )


def _is_deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            item
            for box in layer
            for item in (box.values() if type(box) is dict else box)
            if type(item) in (dict, list)
        ]
        if not layer:
            return False
    return True


@lru_cache(maxsize=64)
def _is_json(content_type: bytes | None) -> bool:
    media, _, parameters = (content_type or b"").decode("latin-1").lower().partition(";")
    if re.fullmatch(r"application/(json|[\w.!#$&^-]+\+json)", media.strip()) is None:
        return False
    charset = re.search(r'(?:^|;)\s*charset\s*=\s*"?([^";\s]*)', parameters)
    return charset is None or charset[1] in ("utf-8", "utf8")


def _accepts_nothing(model: type[BaseModel]) -> bool:
    try:
        model.model_validate({})
    except (ValidationError, ApiError):
        return False
    return True


def _is_list(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin is Literal:
        return False
    if (origin or annotation) in (list, tuple, set, frozenset):
        return True
    return origin is not dict and any(_is_list(part) for part in get_args(annotation))


def _is_whole(schema: Mapping[str, Any]) -> bool:
    """Whether a parameter of this JSON schema, or each of its values, is an integer."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if choices:
        return all(map(_is_whole, choices))
    items = schema.get("items")
    return schema.get("type") == "integer" if items is None else _is_whole(items)


def _dumped(model: BaseModel | Mapping[str, Any] | None, *without: str) -> Any:
    if not isinstance(model, BaseModel):
        return model
    return model.model_dump(
        mode="json",
        exclude={"idempotency_key", *without},
        exclude_unset=isinstance(model, Patch),
    )
