"""The description says what the operations say, is valid OpenAPI 3.1, and leaves nothing out that a
caller meets.
"""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from pydantic import Field

from runtime.api.operation import (
    Body,
    Event,
    Flow,
    Idempotency,
    Operation,
    Patch,
    Read,
    Upload,
    UploadedFile,
    View,
    Write,
)
from runtime.api.pagination import Page, PageQuery
from runtime.api.plugin import Plugin, Registry
from runtime.api.tiers import Feature
from runtime.errors import ApiError
from runtime.http import openapi, openapi_page


class NoteBody(Body):
    content: str = Field(min_length=1, description="What to <remember>.")
    collection_id: str | None = None
    nested: list["Part"] = Field(default_factory=list)


class Part(Body):
    text: str = Field("", min_length=1)


class FileBody(NoteBody):
    file: UploadedFile


class NotePatch(Patch):
    title: str | None = None


class NoteView(View):
    id: str
    content: str = Field(description="What was said.")
    parts: list[Part] = Field(default_factory=list)


class NoteAdded(View):
    id: str = Field(description="Which note it is.")


class NoteQuery(PageQuery):
    tag: list[str] = Field(default_factory=list, description="Any of these.")
    start: str | None = Field(None, alias="from")
    confirm: str


def operation(
    name: str, method: str, path: str, kind: type[Operation] = Read, **fields: Any
) -> Operation:
    return kind(
        name,
        method,
        path,
        None,
        f"Summary of {name}",
        fields.pop("response", NoteView),
        **fields,
    )


UPLOAD = Upload(lambda settings: 1_000, lambda head, filename: "text/plain")
OPERATIONS = (
    operation(
        "notes.create",
        "POST",
        "/v1/notes",
        Write,
        body=NoteBody,
        statuses=(201, 202),
        scope="write",
        credits=1,
        idempotency=Idempotency.CANONICAL,
        resource=lambda *_: None,
        example={"content": "Ana likes figs."},
        example_reply={"id": "mem_1", "content": "Ana likes figs.", "parts": []},
        aliases=("/v1/notes/add",),
    ),
    operation("notes.list", "GET", "/v1/notes", query=NoteQuery, response=Page[NoteView]),
    operation(
        "notes.change",
        "PATCH",
        "/v1/notes/{id}",
        Write,
        body=NotePatch,
        scope="write",
        idempotency=Idempotency.CACHED,
        conditional=True,
    ),
    operation(
        "notes.remove",
        "DELETE",
        "/v1/notes/{id}",
        Write,
        response=None,
        statuses=(204,),
        scope="admin",
        deprecated=True,
    ),
    operation(
        "graph.add",
        "POST",
        "/v1/graph/{entity_name}",
        Write,
        body=NoteBody,
        feature="graph_write",
        stability="beta",
        credits=len,
    ),
    operation("files.upload", "POST", "/v1/files", Write, body=FileBody, upload=UPLOAD),
    operation("answers.ask", "POST", "/v1/ask", Flow, body=NoteBody),
    operation(
        "accounts.register",
        "POST",
        "/v1/auth/register",
        Write,
        body=Part,
        scope="public",
        slot_of=lambda body: 1,
    ),
    operation("admin.close", "POST", "/v1/internal/close", Write, internal=True),
)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    events = (Event("note.added", NoteAdded), Event("internal.noted", NoteView))
    features = {"graph_write": Feature("Writing", tier="pro")}
    registry = Registry.build(
        [Plugin("notes", operations=OPERATIONS, events=events, features=features)]
    )
    return openapi.document(
        registry,
        "1.2.3",
        [operation("service.page", "GET", "/page", Flow, response=None, scope="public")],
    )


def test_is_valid(document):
    OpenAPIV31SpecValidator(document).validate()
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", "1.2.3")


def test_every_operation_is_there_under_every_path_but_internal_ones_are_not(document):
    found = {
        (method.upper(), path): described
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    }
    expected = {
        (o.method, path) for o in OPERATIONS if not o.internal for path in (o.path, *o.aliases)
    }
    assert set(found) == expected | {("GET", "/page")}
    names = [described["operationId"] for described in found.values()]
    assert len(set(names)) == len(names)
    for described in found.values():
        assert described["summary"] and described["description"] and described["tags"]
    alias = found["POST", "/v1/notes/add"]
    assert alias["deprecated"] is False and "`POST /v1/notes`" in alias["description"]


def test_every_reference_leads_somewhere(document):
    def references(value: Any):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            value = list(value.values())
        if isinstance(value, list):
            for item in value:
                yield from references(item)

    for reference in references(document):
        target: Any = document
        for step in reference.removeprefix("#/").split("/"):
            target = target[step]
        assert target


def test_requests(document):
    create = document["paths"]["/v1/notes"]["post"]
    content = create["requestBody"]["content"]["application/json"]
    assert content["schema"] == {"$ref": "#/components/schemas/NoteBody"}
    assert content["example"] == {"content": "Ana likes figs."}
    references = [
        parameter.get("$ref", "").rpartition("/")[2] for parameter in create["parameters"]
    ]
    assert references == ["XRequestId", "IdempotencyKey", "Prefer"]
    change = document["paths"]["/v1/notes/{id}"]["patch"]
    assert change["parameters"][0] == {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The id of the resource.",
        "schema": {"type": "string"},
    }
    assert {"$ref": "#/components/parameters/IfMatch"} in change["parameters"]


def test_query_models_become_parameters(document):
    parameters = {
        p["name"]: p for p in document["paths"]["/v1/notes"]["get"]["parameters"] if "name" in p
    }
    assert parameters["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 50,
    }
    assert parameters["cursor"]["schema"] == {"type": "string"}
    assert (
        parameters["tag"]["schema"]["type"] == "array"
        and parameters["tag"]["description"] == "Any of these."
    )
    assert parameters["from"]["schema"] == {"type": "string"} and not parameters["from"]["required"]
    assert parameters["confirm"]["required"]
    assert "NoteQuery" not in document["components"]["schemas"]


def test_answers(document):
    create = document["paths"]["/v1/notes"]["post"]["responses"]
    assert {
        "201",
        "202",
        "400",
        "401",
        "403",
        "404",
        "409",
        "413",
        "422",
        "429",
        "500",
        "503",
        "default",
    } == set(create)
    assert create["201"]["content"]["application/json"]["example"]["id"] == "mem_1"
    assert create["202"]["content"]["application/json"]["schema"]["$ref"].startswith(
        "#/components/schemas/NoteView"
    )
    assert {
        "Retry-After",
        "Location",
        "X-Request-ID",
        "X-Process-Time",
        "X-Service-Version",
        "X-Service-Build",
    } == set(create["202"]["headers"])
    assert "content" not in document["paths"]["/v1/notes/{id}"]["delete"]["responses"]["204"]
    changed, removed = (document["paths"]["/v1/notes/{id}"][verb] for verb in ("patch", "delete"))
    if_match = {"$ref": "#/components/parameters/IfMatch"}
    assert {"409", "412"} <= set(changed["responses"]) and if_match in changed["parameters"]
    assert "412" not in removed["responses"] and if_match not in removed["parameters"]
    assert {"413", "415"} <= set(document["paths"]["/v1/files"]["post"]["responses"])
    assert {"502", "503", "504"} <= set(document["paths"]["/v1/ask"]["post"]["responses"])
    public = document["paths"]["/v1/auth/register"]["post"]
    assert public["security"] == [] and {"401", "409", "422", "429"} <= set(public["responses"])


def test_errors_carry_the_headers_and_the_two_shapes_of_403(document):
    responses = document["components"]["responses"]
    for response in responses.values():
        assert {"X-Request-ID", "X-Process-Time", "X-Service-Version", "X-Service-Build"} <= set(
            response["headers"]
        )
    assert {"Retry-After", "X-RateLimit-Limit"} <= set(responses["RateLimited"]["headers"])
    shapes = responses["PermissionDenied"]["content"]["application/json"]["schema"]["oneOf"]
    assert shapes == [
        {"$ref": "#/components/schemas/Error"},
        {"$ref": "#/components/schemas/FeatureNotAvailable"},
    ]


def test_every_error_code_is_described(document):
    def codes(kind: type[ApiError]):
        yield kind.code
        for inner in kind.__subclasses__():
            yield from codes(inner)

    described = document["components"]["schemas"]["Error"]["properties"]["error"]["properties"][
        "code"
    ]["enum"]
    assert {code for code in codes(ApiError) if code} <= set(described)
    assert len(described) == 13


def test_extensions(document):
    add = document["paths"]["/v1/graph/{entity_name}"]["post"]
    assert (add["x-stability"], add["x-required-scope"], add["x-credits"]) == (
        "beta",
        "read",
        "depends on the request",
    )
    assert "`graph_write`" in add["description"]
    assert document["paths"]["/v1/notes/{id}"]["delete"]["deprecated"] is True
    assert document["paths"]["/v1/notes"]["post"]["x-credits"] == 1
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


class Balanced(HTMLParser):
    """Notes tags that are opened and never closed, and every address."""

    VOID = frozenset(("meta",))
    OPTIONAL = frozenset(("tr", "td"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attributes):
        self.addresses += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID | self.OPTIONAL:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.OPTIONAL:
            assert self.open.pop() == tag


def test_events_are_described_as_webhooks(document):
    (kind, item), *others = document["webhooks"].items()
    assert kind == "note.added" and not others, "internal signals are nobody's business"
    envelope = item["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert envelope["required"] == ["id", "event_type", "timestamp", "data", "idempotency_key"]
    assert envelope["properties"]["event_type"] == {"const": "note.added"}
    assert envelope["properties"]["data"] == {"$ref": "#/components/schemas/NoteAdded"}
    assert "X-Webhook-Signature-256" in [
        parameter["name"] for parameter in item["post"]["parameters"]
    ]
    assert "Which note it is." in openapi_page.page(document)


def test_the_page_shows_every_operation_and_needs_nothing_else(document):
    page = openapi_page.page(document)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert all(address.startswith(("#", "/openapi.json")) for address in parser.addresses)
    for path in document["paths"]:
        assert f"<code>{path}</code>" in page
    assert "What to &lt;remember&gt;." in page and "Ana likes figs." in page
    assert re.search(r"<small>beta</small>", page) and re.search(r"<small>deprecated</small>", page)
    assert "<script" not in page and "@import" not in page and "url(" not in page
