"""Bodies, queries and headers as they are read, and findings that keep what they found to
themselves.
"""

import asyncio
import tracemalloc
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import orjson
import pytest
from pydantic import AfterValidator, Field, HttpUrl, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from runtime.api.operation import Body, Operation, Patch, Query, Read, Write
from runtime.errors import ApiError, BadRequest, ValidationFailed
from runtime.http import validation
from runtime.limits import (
    ITEMS_PER_LOOP_STEP,
    JSON_DEPTH_MAX,
    JSON_ITEMS_MAX,
    VALIDATION_FINDINGS_MAX,
)
from tests.support.loops import turns_of_others

SECRET = "hunter2-correct-horse"
JSON = b"application/json"
PEPPER = b"p" * 32


def repeating(value: str) -> str:
    raise ValueError(f"cannot use {value!r}")


def speaking(value: str) -> str:
    raise ValueError("must name a port of call")


class Target(Body):
    key: str
    size: int = 0


class Note(Body):
    content: str | None = Field(None, min_length=2, max_length=20)
    size: int = Field(1, ge=1, le=9)
    weight: float = Field(0.5, gt=0, lt=1)
    kind: Literal["text", "image"] = "text"
    flag: bool = False
    tags: list[str] = Field(default_factory=list, max_length=3)
    metadata: dict[str, Any] = Field(default_factory=dict)
    counts: dict[str, int] = Field(default_factory=dict)
    at: datetime | None = None
    url: HttpUrl | None = None
    code: str = Field("aa", pattern="^[a-z]+$")
    careless: Annotated[str, AfterValidator(repeating)] | None = None
    careful: Annotated[str, AfterValidator(speaking)] | None = None
    target: Literal["all", "none"] | Target | None = None
    value: Annotated[float, Field(strict=True)] | StrictBool | list[Target] = 0.0

    @model_validator(mode="after")
    def _is_whole(self):
        if self.metadata.get("forbidden"):
            raise PydanticCustomError("forbidden_metadata", "must leave metadata.forbidden out")
        if self.metadata.get("short"):
            raise PydanticCustomError("string_too_short", "is too short")
        if self.metadata.get("missing"):
            raise ValidationFailed.at(("body", "content"), "is required", "missing")
        return self


class Change(Patch):
    title: str | None = None
    size: int | None = None


class Filters(Query):
    limit: int = Field(50, ge=1, le=100)
    cursor: str | None = None
    tag: list[str] = Field(default_factory=list)
    start: datetime | None = Field(None, alias="from")
    scope: Literal["all"] | None = None


def operation(method: str = "POST", **fields: Any) -> Operation:
    return Write("notes.x", method, "/v1/notes/{id}", None, "x", None, **fields)


NOTES = validation.BodyParser(operation(body=Note))


def read(value: Any) -> Any:
    return NOTES.parse(JSON, orjson.dumps(value))


@pytest.mark.parametrize(
    ("value", "loc", "kind"),
    [
        ({"content": SECRET * 2}, ["content"], "string_too_long"),
        ({"content": 3}, ["content"], "string_type"),
        ({"size": SECRET}, ["size"], "int_parsing"),
        ({"size": 77777}, ["size"], "less_than_equal"),
        ({"size": 1.5}, ["size"], "int_from_float"),
        ({"weight": 31337.5}, ["weight"], "less_than"),
        ({"weight": SECRET}, ["weight"], "float_parsing"),
        ({"kind": SECRET}, ["kind"], "literal_error"),
        ({"flag": SECRET}, ["flag"], "bool_parsing"),
        ({"tags": SECRET}, ["tags"], "list_type"),
        ({"tags": [SECRET, 1]}, ["tags", 1], "string_type"),
        ({"tags": [SECRET] * 4}, ["tags"], "too_long"),
        ({"metadata": SECRET}, ["metadata"], "dict_type"),
        ({"counts": {"a": SECRET}}, ["counts", "a"], "int_parsing"),
        ({"counts": {SECRET * 5: "x"}}, ["counts", "*"], "int_parsing"),
        ({"counts": {"a\nb": "x"}}, ["counts", "*"], "int_parsing"),
        ({"at": SECRET}, ["at"], "datetime_from_date_parsing"),
        ({"url": SECRET}, ["url"], "url_parsing"),
        ({"url": "ftp://" + SECRET}, ["url"], "url_scheme"),
        ({"code": SECRET}, ["code"], "string_pattern_mismatch"),
        ({"careless": SECRET}, ["careless"], "value_error"),
        ({"careful": SECRET}, ["careful"], "value_error"),
        ({"metadata": {"forbidden": SECRET}}, [], "forbidden_metadata"),
        ({"target": SECRET}, ["target"], "literal_error"),
        ({"target": {"size": 1}}, ["target", "key"], "missing"),
        ({"target": {"key": 3}}, ["target", "key"], "string_type"),
        ({"value": SECRET}, ["value"], "float_type"),
        ({"value": [{"key": "a"}, {"key": 3}]}, ["value", 1, "key"], "string_type"),
    ],
)
def test_a_finding_names_the_place_and_repeats_nothing(value, loc, kind):
    with pytest.raises(ValidationFailed) as failed:
        read(value)
    (finding,) = failed.value.details
    assert finding["loc"] == ["body", *loc]
    assert finding["type"] == kind
    shown = orjson.dumps([failed.value.message, failed.value.param, failed.value.details]).decode()
    assert not any(part in shown for part in (SECRET, "77777", "31337", "hunter"))
    assert finding["msg"] and "{" not in finding["msg"]


def test_alternatives_are_told_in_one_sentence() -> None:
    with pytest.raises(ValidationFailed) as failed:
        read({"value": SECRET})
    assert failed.value.param == "body.value"
    (finding,) = failed.value.details
    assert finding["msg"] == "must be a number, or must be true or false, or must be an array"


def test_a_validator_speaks_for_itself_unless_it_repeats_its_input():
    def text(value: dict) -> str:
        with pytest.raises(ValidationFailed) as failed:
            read(value)
        return failed.value.details[0]["msg"]

    assert text({"careful": "x" * 10}) == "must name a port of call"
    assert text({"careless": "abc"}) == "is not valid"
    assert text({"metadata": {"forbidden": 1}}) == "must leave metadata.forbidden out"
    assert text({"metadata": {"short": 1}}) == "is too short"
    assert text({"size": 0}) == "must be at least 1"
    assert text({"kind": "x"}) == "must be one of 'text' or 'image'"


def test_a_validator_may_raise_the_error_of_the_answer():
    with pytest.raises(ValidationFailed) as failed:
        read({"metadata": {"missing": True}})
    assert failed.value.details == [
        {"loc": ["body", "content"], "msg": "is required", "type": "missing"}
    ]


def test_findings_are_bounded():
    with pytest.raises(ValidationFailed) as failed:
        read({"counts": {str(i): "x" for i in range(1000)}})
    assert len(failed.value.details) == VALIDATION_FINDINGS_MAX


def nested(depth: int) -> bytes:
    """A body whose arrays and objects nest `depth` levels, itself included."""
    return b'{"metadata":{"a":' + b"[" * (depth - 2) + b"]" * (depth - 2) + b"}}"


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"nonsense",
        b'{"weight": NaN}',
        b'{"weight": Infinity}',
        b'{"weight": -Infinity}',
        b'{"weight": 1e999}',
        b'{"content": "a", "metadata": {"n": 18446744073709551616}}',
        b'{"content": "a", "metadata": {"n": -9223372036854775809}}',
        b'{"content": "a", "metadata": {"n": ' + b"9" * 5_000 + b"}}",
        b'{"content": "\\ud800"}',
        b'{"content": "\\udc00\\ud800"}',
        b'{"content": "\xed\xa0\x80"}',
        b'{"content": "\xff"}',
        b'{"content": "a\x00b"}',
        b"\xef\xbb\xbf{}",
        b'{"content": "a",}',
        b"{'content': 'a'}",
        b"{} {}",
        b"[]",
        b"null",
        b"3",
        b'"text"',
        nested(JSON_DEPTH_MAX + 1),
        b'{"a":' * 100_000,
        b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_cannot_be_read_is_400(raw):
    with pytest.raises(BadRequest) as refused:
        NOTES.parse(JSON, raw)
    assert refused.value.code == "invalid_request"


def test_depth_counts_levels_not_brackets():
    assert NOTES.parse(JSON, nested(JSON_DEPTH_MAX)).metadata["a"]
    assert len(read({"metadata": {"wide": [{} for _ in range(500)]}}).metadata["wide"]) == 500


@pytest.mark.parametrize(
    ("content_type", "accepted"),
    [
        (b"application/json", True),
        (b"application/json; charset=utf-8", True),
        (b'Application/JSON ; Charset="UTF-8"', True),
        (b"application/merge-patch+json", True),
        (b"application/json; charset=latin-1", False),
        (b"application/jsonx", False),
        (b"text/json", False),
        (b"text/plain", False),
        (b"multipart/form-data; boundary=x", False),
        (b"", False),
        (b"\xff\xfe", False),
        (None, False),
    ],
)
def test_content_types(content_type, accepted):
    if accepted:
        assert NOTES.parse(content_type, b"{}").size == 1
    else:
        with pytest.raises(BadRequest) as refused:
            NOTES.parse(content_type, b"{}")
        assert refused.value.param == "Content-Type"


def test_a_body_is_needed_unless_nothing_would_do():
    class Strict(Body):
        content: str

    assert NOTES.parse(None, b"").size == 1
    for reader in (
        validation.BodyParser(operation(body=Strict)),
        validation.BodyParser(operation("PATCH", body=Change)),
    ):
        with pytest.raises(BadRequest):
            reader.parse(JSON, b"")
    with pytest.raises(ValidationFailed) as failed:
        validation.BodyParser(operation(body=Strict)).parse(JSON, b'{"content": null}')
    assert failed.value.details == [
        {"loc": ["body", "content"], "msg": "is required", "type": "missing"}
    ]


QUERIES = validation.QueryParser(
    Read("notes.list", "GET", "/v1/notes", None, "x", None, query=Filters)
)


class DangerousFilters(Filters):
    owner: str | None = Field(None, min_length=1)


def test_an_empty_filter_of_a_write_is_refused_since_absence_would_mean_everything():
    queries = validation.QueryParser(operation("DELETE", query=DangerousFilters))
    assert queries.parse(b"").owner is None
    with pytest.raises(ValidationFailed) as failed:
        queries.parse(b"owner=")
    assert failed.value.details[0]["loc"] == ["query", "owner"]


def test_an_unknown_filter_of_a_write_is_refused_since_without_it_all_would_be_meant():
    queries = validation.QueryParser(operation("DELETE", query=DangerousFilters))
    for unknown, number, meant in (
        (b"ownr=%s" % SECRET.encode(), 1, "owner may be meant"),
        (b"owner=ada&%s=1" % SECRET.encode(), 2, "it takes"),
        (b"owner=ada&x", 2, "it takes"),
    ):
        with pytest.raises(ValidationFailed) as failed:
            queries.parse(unknown)
        (detail,) = failed.value.details
        assert detail["loc"] == ["query"] and "owner" in detail["msg"]
        assert f"as parameter {number}, what is not taken; {meant}" in detail["msg"]
        assert SECRET not in str(failed.value.details)


def test_long_digits_in_texts_and_integers_of_64_bits_are_welcome():
    content = "1" * 40
    body = (
        b'{"content": "%s", "metadata": {"n": 18446744073709551615, "m": -9223372036854775808}}'
        % content.encode()
    )
    assert validation.parse_json(b"application/json", body)["metadata"] == {
        "n": 2**64 - 1,
        "m": -(2**63),
    }


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (b"", {}),
        (b"limit=&cursor=&tag=&from=&scope=", {}),
        (b"limit=7&unknown=1&x", {"limit": 7}),
        (b"tag=a&tag=&tag=b", {"tag": ["a", "b"]}),
        (b"tag=a", {"tag": ["a"]}),
        (b"cursor=a&cursor=a&unknown=1&unknown=2", {"cursor": "a"}),
        (b"cursor=J%C3%BCrgen+M%2Bx", {"cursor": "Jürgen M+x"}),
        (
            b"from=2026-01-31T12:00:00Z",
            {"start": datetime.fromisoformat("2026-01-31T12:00:00+00:00")},
        ),
    ],
)
def test_queries(query, expected):
    assert QUERIES.parse(query).model_dump(exclude_unset=True) == expected


@pytest.mark.parametrize(
    ("query", "loc"),
    [
        (b"limit=0", ["query", "limit"]),
        (b"limit=101", ["query", "limit"]),
        (b"limit=ten", ["query", "limit"]),
        (b"limit=1.0", ["query", "limit"]),
        (b"limit=+1", ["query", "limit"]),
        (b"limit=1_0", ["query", "limit"]),
        (b"limit=%D9%A1", ["query", "limit"]),
        (b"from=yesterday", ["query", "from"]),
        (b"scope=none", ["query", "scope"]),
        (b"cursor=a&cursor=b", ["query", "cursor"]),
    ],
)
def test_queries_out_of_bounds(query, loc):
    with pytest.raises(ValidationFailed) as failed:
        QUERIES.parse(query)
    assert failed.value.details[0]["loc"] == loc


@pytest.mark.parametrize(
    "query", [b"cursor=%ff", b"cursor=%ed%a0%80", b"a=1&" * 2000 + b"a=1", b"cursor=\xff"]
)
def test_queries_that_cannot_be_read(query):
    with pytest.raises(BadRequest):
        QUERIES.parse(query)


class Notes(Body):
    lines_field: ClassVar[str] = "notes"
    notes: list[Note] = Field(min_length=1, max_length=400)
    title: str = ""


LINES = validation.BodyParser(operation(body=Notes))
NDJSON = b"application/x-ndjson"


def in_both_forms(notes: list[Any]) -> list[tuple[bytes, bytes]]:
    return [
        (NDJSON, b"\n\r\n".join(map(orjson.dumps, notes))),
        (JSON, orjson.dumps({"notes": notes})),
    ]


def test_a_file_of_many_lines_may_begin_with_a_byte_order_mark():
    for form, raw in in_both_forms([{"content": "né"}]):
        body = asyncio.run(LINES.parse_in_steps(form, b"\xef\xbb\xbf" + raw))
        assert body == asyncio.run(LINES.parse_in_steps(form, raw))
    for form in (NDJSON, JSON):
        with pytest.raises((BadRequest, ValidationFailed)):
            asyncio.run(LINES.parse_in_steps(form, b"\xef\xbb\xbf"))


def test_a_body_of_many_lines_is_read_in_steps_and_is_the_same():
    notes = [{"content": f"note {n}", "tags": None} for n in range(400)]
    for form, raw in in_both_forms(notes):
        body, turns = asyncio.run(turns_of_others(LINES.parse_in_steps(form, raw)))
        assert body == LINES.parse(JSON, orjson.dumps({"notes": notes}))
        assert turns > 400 // ITEMS_PER_LOOP_STEP
        meant, turns = asyncio.run(turns_of_others(LINES.meaning(body)))
        assert turns > 400 // ITEMS_PER_LOOP_STEP
        op = operation(body=Notes)
        assert validation.fingerprint(PEPPER, op, {}, None, meant) == validation.fingerprint(
            PEPPER, op, {}, None, body
        )


@pytest.mark.parametrize("value", [b"[]", b"{}", b"1", b'""', b'{"a":"b"}', b'"\\""', b'"\\\\"'])
def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(value: bytes):
    def body(count: int) -> bytes:
        return b'{"content":"abc","unknown":[' + b",".join([value] * count) + b"]}"

    assert NOTES.parse(JSON, body(JSON_ITEMS_MAX // 3)).content == "abc"
    with pytest.raises(BadRequest) as refused:
        NOTES.parse(JSON, body(JSON_ITEMS_MAX + 1))
    assert "values" in refused.value.message


@pytest.mark.parametrize("text", ['[{,"', '\\"', "\\", ',"\\', '\\\\",'])
def test_what_stands_in_strings_is_no_value(text: str):
    many = orjson.dumps({"content": "abc", "unknown": [text * JSON_ITEMS_MAX] * 2})
    assert NOTES.parse(JSON, many).content == "abc"


def test_lines_beyond_the_most_are_not_read_and_empty_ones_hold_nobody_up():
    many = b"\r\n \n" * 100_000 + b'{"content":"abc"}\n' * 100_000
    tracemalloc.start()
    try:
        with pytest.raises(ValidationFailed):
            asyncio.run(LINES.parse_in_steps(NDJSON, many))
        assert tracemalloc.get_traced_memory()[1] < 10 * len(many) // 4
    finally:
        tracemalloc.stop()
    few = b"\n" * 10**6 + b'{"content":"abc"}' + b"\n" * 10**6
    body, turns = asyncio.run(turns_of_others(LINES.parse_in_steps(NDJSON, few)))
    assert len(body.notes) == 1
    assert turns > 2 * 10**6 // 1_024 // ITEMS_PER_LOOP_STEP


def test_lines_that_do_not_fit_are_found_as_in_any_other_body():
    good, bad = {"content": "fits"}, {"content": SECRET * 2, "counts": {"a": "b"}}
    for notes in ([], [good, bad], [bad] * 300, [good] * 401):
        with pytest.raises(ValidationFailed) as expected:
            LINES.parse(JSON, orjson.dumps({"notes": notes}))
        for form, raw in in_both_forms(notes):
            if raw:
                with pytest.raises(ValidationFailed) as found:
                    asyncio.run(LINES.parse_in_steps(form, raw))
                assert found.value.details == expected.value.details
    for form, raw in ((NDJSON, b'{"content":'), (NDJSON, b"7"), (JSON, b"[]"), (None, b"{}")):
        with pytest.raises(BadRequest):
            asyncio.run(LINES.parse_in_steps(form, raw))


def test_fingerprint_is_of_the_meaning():
    op, patch = operation(body=Note), operation("PATCH", body=Change)

    def of(raw: bytes, path: str = "1") -> bytes:
        return validation.fingerprint(PEPPER, op, {"id": path}, None, NOTES.parse(JSON, raw))

    one = of(b'{"content": "abc", "size": 1}')
    assert (
        one
        == of(b'{ "size":1, "content":"abc" }')
        == of(b'{"content": "abc"}')
        == of(b'{"content": "abc", "unknown": 5, "at": null}')
    )
    assert (
        len(
            {
                one,
                of(b'{"content": "abd"}'),
                of(b'{"content": "abc", "size": 2}'),
                of(b'{"content": "abc"}', path="2"),
            }
        )
        == 4
    )
    cleared, left = Change.model_validate({"title": None}), Change.model_validate({})
    assert validation.fingerprint(PEPPER, patch, {}, None, cleared) != validation.fingerprint(
        PEPPER, patch, {}, None, left
    )
    assert validation.fingerprint(PEPPER, patch, {}, None, left) != validation.fingerprint(
        PEPPER, op, {}, None, left
    )
    seven, eight = Filters(limit=7), Filters(limit=8)
    assert validation.fingerprint(PEPPER, op, {}, None, left) != validation.fingerprint(
        b"q" * 32, op, {}, None, left
    )
    assert validation.fingerprint(PEPPER, op, {}, seven, None) != validation.fingerprint(
        PEPPER, op, {}, eight, None
    )


def test_a_body_key_names_the_request_and_is_no_part_of_it():
    class Keyed(Body):
        text: str
        idempotency_key: str | None = None

    op = operation(body=Keyed)
    one, two = (
        validation.fingerprint(PEPPER, op, {}, None, Keyed(text="a", idempotency_key=key))
        for key in ("x", "y")
    )
    assert one == two


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"respond-async", {"respond-async": ""}),
        (b"respond-async, wait=5", {"respond-async": "", "wait": "5"}),
        (b'Wait="10"; x=1 ,, handling=lenient', {"wait": "10", "handling": "lenient"}),
        (b"wait=1, wait=2", {"wait": "1"}),
        (b"", {}),
        (b" ,;=", {}),
    ],
)
def test_preferences(header, expected):
    assert validation.preferences(header) == expected


def test_idempotency_keys_are_opaque_and_bounded():
    assert validation.idempotency_key(b"k" * 255) == "k" * 255
    assert validation.idempotency_key("é ,;".encode()) == "Ã© ,;"
    for bad in (b"", b"k" * 256):
        with pytest.raises(ApiError) as refused:
            validation.idempotency_key(bad)
        assert (refused.value.status, refused.value.param) == (400, "Idempotency-Key")
