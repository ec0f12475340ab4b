#!/usr/bin/env python3
"""Writes the operations and models of mneme_client from the service's OpenAPI document.

    python clients/python/generate.py < openapi.json        (make client does both)

One method per operation, in mneme_client/operations.py and, for `async` code, async_operations.py;
one TypedDict per schema that a request or an answer holds, in models.py. Everything else of the
package is written by hand and knows no operation.

What becomes of an operation:
    memories.jobs.get      client.memories.jobs.get(…); search.search, named like its group, is
                           client.search(…)
    path and query         arguments, as are the fields of a body; a field that the header or the
                           query says too is left out
    GET that answers pages a Listing; lines and events are a Stream, the latter as a second method,
    stream_<name>
    Idempotency-Key        an argument, and where it is not given a new one for each call
    PATCH                  None clears a field, UNSET (the default) leaves it
A second path of an operation (`.alias1`) is the same operation and gets no method.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from schemas import Json, Schemas, class_name, is_page
from signatures import Argument, docstring, overloads, signature, starred_last

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "mneme_client"
HEADER = "Written by generate.py from the service's OpenAPI document; change that, not this."
OWN_CALLS = {"billing.stripe_events": "Stripe calls it, signed with its own secret"}
# What the document tells in words: one text makes one memory, whose fields are the answer's own.
OVERLOADS: dict[str, Json] = {
    "memories.create": {
        "arguments": {"content": ("str", None), "infer": ("Literal[False] | None", "None")},
        "without": ("messages", "async_dispatch"),
        "returns": "models.CreatedMemory",
    }
}
# A form holds text; these fields are taken as what they stand for and joined or encoded in
# Upload.of.
FORM_TYPES = {"tags": "Sequence[str]", "metadata": "Mapping[str, Any]"}
# Arguments that every such call has; client.py explains those that are not explained here.
OPTIONS = {
    "IdempotencyKey": ("idempotency_key", "str | None", ""),
    "Prefer": (
        "prefer",
        "str | None",
        "`respond-async`, or `wait=N` to wait up to N seconds for a job.",
    ),
    "IfMatch": (
        "if_match",
        "int | str | None",
        "The version the change is meant for; PreconditionFailed where it is another.",
    ),
}
TIMEOUT = ("timeout", "float | None", "")


# --- operations -----------------------------------------------------------------------------------


@dataclass
class Method:
    """One operation as a method: its arguments, and how its answer is read."""

    name: str
    verb: str
    path: str
    summary: str
    description: str
    returns: str
    reads: str
    accept: str
    arguments: list[Argument] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)
    overload: Json | None = None


@dataclass
class Group:
    """Operations whose names begin alike."""

    name: str
    methods: list[Method] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        return "".join(word.capitalize() for word in re.split(r"[._]", self.name))


def operations(document: Json) -> Iterator[tuple[str, str, str, Json]]:
    """(name, verb, path, operation) of every operation that becomes a method."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            name = operation["operationId"]
            if ".alias" not in name and name not in OWN_CALLS:
                yield name, verb.upper(), path, operation


def tree(document: Json) -> Group:
    """All operations, in groups by their names."""
    schemas = Schemas(document["components"]["schemas"])
    root = Group("")
    for name, verb, path, operation in sorted(operations(document)):
        *way, last = name.split(".")
        group = root
        for depth, step in enumerate(way):
            group = group.groups.setdefault(step, Group(".".join(way[: depth + 1])))
        group.methods += methods(last, way[-1], verb, path, operation, schemas)
    return root


def methods(
    last: str, group: str, verb: str, path: str, operation: Json, schemas: Schemas
) -> Iterator[Method]:
    """The method of an operation, and a second one where its answer may also be a stream of
    events.
    """
    name = "__call__" if last == group else last + "_" * keyword.iskeyword(last)
    contents = next(
        (
            answer.get("content", {})
            for status, answer in operation["responses"].items()
            if status[0] == "2"
        ),
        {},
    )
    kinds = list(contents)
    returns, reads, accept = (
        answer_of(kinds[0], contents[kinds[0]].get("schema", {}), schemas)
        if kinds
        else ("None", "nothing", "*/*")
    )
    streams = "text/event-stream" in kinds
    about = (
        summary_of(operation),
        operation["description"].removeprefix(summary_of(operation)).strip(),
    )
    made = Method(name, verb, path, *about, returns, reads, accept)
    made.overload = OVERLOADS.get(operation["operationId"])
    add_arguments(made, operation, schemas, streams)
    yield made
    if streams:
        parts = made.parts | {"body": made.parts["body"].removesuffix(")") + ", stream=True)"}
        summary = about[0].rstrip(".") + ", piece by piece as it is made."
        yield Method(
            f"stream_{name}",
            verb,
            path,
            summary,
            about[1],
            "Stream[dict[str, Any]]",
            "EventReader",
            kinds[1],
            made.arguments,
            parts,
        )


def summary_of(operation: Json) -> str:
    text = operation["summary"]
    return text if text.endswith((".", "?")) else text + "."


def answer_of(kind: str, schema: Json, schemas: Schemas) -> tuple[str, str, str]:
    """(return type, how it is read, what is accepted) of a success with this media type and
    schema.
    """
    if kind == "application/json":
        model = schemas.of(schema["$ref"])
        if is_page(model):
            items = model["properties"]["items"]["items"]
            return (
                f"Listing[{schemas.annotation(items, sent=False, prefix='models.')}]",
                "Listing",
                kind,
            )
        return schemas.annotation(schema, sent=False, prefix="models."), "json", kind
    if kind == "application/x-ndjson":
        return (
            f"Stream[{schemas.annotation(schema, sent=False, prefix='models.')}]",
            "LineReader",
            kind,
        )
    is_binary = schemas.of(schema["$ref"]).get("format") == "binary" if "$ref" in schema else False
    return ("bytes", "content", "*/*") if is_binary else ("str", "text", "*/*")


def add_arguments(made: Method, operation: Json, schemas: Schemas, streams: bool) -> None:
    """The arguments of a method, and what of the request each part of them becomes."""
    is_patch = made.verb == "PATCH"
    parameters = [parameter for parameter in operation["parameters"] if "name" in parameter]
    in_path = [
        argument(p["name"], p["schema"], p, schemas, required=True)
        for p in parameters
        if p["in"] == "path"
    ]
    in_query = [
        argument(p["name"], p["schema"], p, schemas, required=p["required"])
        for p in parameters
        if p["in"] == "query"
    ]
    headers = [p["$ref"].rpartition("/")[2] for p in operation["parameters"] if "$ref" in p]
    options = [Argument(*OPTIONS[name], "None") for name in headers if name in OPTIONS] + [
        Argument(*TIMEOUT, "None")
    ]
    said = {known.name for known in (*in_path, *in_query, *options)} | (
        {"stream"} if streams else set()
    )
    contents = operation.get("requestBody", {}).get("content", {})
    is_form = "multipart/form-data" in contents
    schema = schemas.of(next(iter(contents.values()))["schema"]["$ref"]) if contents else {}
    required = schema.get("required", ())
    fields = [
        form_argument(name, field_, name in required)
        if is_form
        else argument(name, field_, field_, schemas, name in required, is_patch)
        for name, field_ in schema.get("properties", {}).items()
        if name not in said
    ]
    more = (
        [Argument("**more", "Any", "Further fields, which go along as they are.")]
        if schema.get("additionalProperties") is True
        else []
    )
    if is_form:
        about = "What it is called; by default the file's own name."
        fields.append(Argument("filename", "str | None", about, "None"))
    needed = [a for a in (*in_query, *fields) if a.default is None]
    positional = [*in_path, *(needed if len(needed) == 1 else ())]
    named = [
        a
        for a in (*needed, *(a for a in (*in_query, *fields) if a.default is not None))
        if a not in positional
    ]
    made.arguments = (
        [Argument(a.name, a.annotation, a.about, a.default, True) for a in positional]
        + named
        + options
        + more
    )
    if in_query:
        made.parts["query"] = f"given({_passed(in_query)})"
    if is_form:
        form = [a for a in fields if a.name not in ("file", "filename")]
        made.parts["upload"] = f"Upload.of(file, filename, given({_passed(form)}))"
    elif fields or more:
        made.parts["body"] = (
            f"{'changed' if is_patch else 'given'}({_passed(fields)}{', **more' if more else ''})"
        )
    _add_headers(made, operation, headers)


def _add_headers(made: Method, operation: Json, headers: list[str]) -> None:
    """What goes into the headers of the request, and how long it may take."""
    for name, value in (
        ("IdempotencyKey", "key=keyed(idempotency_key)"),
        ("Prefer", "prefer=prefer"),
        ("IfMatch", "if_match=etag(if_match)"),
    ):
        if name in headers:
            key, _, text = value.partition("=")
            made.parts[key] = text
    if (
        made.verb != "GET"
        and "IdempotencyKey" not in headers
        and operation["x-required-scope"] != "read"
    ):
        made.parts["repeatable"] = "False"
    if made.accept != "application/json":
        made.parts["accept"] = json.dumps(made.accept)
    made.parts["timeout"] = "timeout"


def argument(
    name: str, schema: Json, about: Json, schemas: Schemas, required: bool, is_patch: bool = False
) -> Argument:
    kind = schemas.annotation(schema, sent=True, prefix="models.")
    text = about.get("description", "")
    if required:
        return Argument(name, kind, text)
    if is_patch:
        branches = kind.split(" | ")
        return Argument(
            name,
            " | ".join(
                [
                    *(branch for branch in branches if branch != "None"),
                    "Unset",
                    *(["None"] if "None" in branches else []),
                ]
            ),
            text,
            "UNSET",
        )
    return Argument(
        name, kind if kind.endswith("None") or kind == "Any" else f"{kind} | None", text, "None"
    )


def form_argument(name: str, schema: Json, required: bool) -> Argument:
    if schema.get("format") == "binary":
        return Argument(name, "FileContent", "A path, the content itself, or a binary stream.")
    return Argument(
        name,
        f"{FORM_TYPES.get(name, 'str')} | None",
        schema.get("description", ""),
        None if required else "None",
    )


def _passed(arguments: list[Argument]) -> str:
    return ", ".join(f"{a.python}={a.python}" for a in arguments)


# --- text -----------------------------------------------------------------------------------------


def method_text(method: Method, is_async: bool) -> str:
    """A method of a group's class."""
    listed = method.reads in ("Listing", "LineReader", "EventReader")
    prefix = "Async" if is_async and listed else ""
    path = re.sub(r"{(\w+)}", r"{segment(\1)}", method.path)
    parts = "".join(f", {name}={value}" for name, value in method.parts.items())
    request = f'Request("{method.verb}", {"f" if "{" in path else ""}"{path}"{parts})'
    if method.reads == "Listing":
        call = f"{prefix}Listing(self._transport, request)"
    elif listed:
        call = f"{prefix}Stream(self._transport, request, {method.reads})"
    else:
        call = f"{'await ' if is_async else ''}self._transport.{method.reads}(request)"
    define = f"    {'async ' if is_async and not listed else ''}def {method.name}"
    lines = [
        *(
            overloads(method.arguments, method.returns, method.overload, define)
            if method.overload
            else ()
        ),
        f"{define}({signature(method.arguments)}) -> "
        f"{'Any' if method.overload else prefix + method.returns}:",
        docstring([method.summary, method.description], starred_last(method.arguments), 8),
        f"        request = {request}",
        f"        {'' if method.returns == 'None' else 'return '}{call}",
    ]
    return "\n".join(lines)


def class_text(group: Group, is_async: bool) -> Iterator[str]:
    """The classes of the groups inside, then the group's own."""
    for inner in group.groups.values():
        yield from class_text(inner, is_async)
    prefix = "Async" if is_async else ""
    made = [
        f"        self.{name} = {prefix}{inner.class_name}(transport)"
        for name, inner in group.groups.items()
    ]
    if group.name:
        head = [
            f"class {prefix}{group.class_name}:",
            f'    """Operations named `{group.name}.…`."""',
            "",
        ]
        body = [
            f"    def __init__(self, transport: {prefix}Transport):",
            "        self._transport = transport",
            *made,
        ]
    else:
        head = [f"class {prefix}Operations:", '    """Every operation of the service."""', ""]
        body = [f"    def __init__(self, transport: {prefix}Transport):", *made]
    yield (
        "\n".join([*head, *body])
        + "\n\n"
        + "\n\n".join(method_text(method, is_async) for method in group.methods)
    )


def operations_text(document: Json, is_async: bool) -> str:
    prefix = "Async" if is_async else ""
    kind = "for `async` code" if is_async else "for code that waits"
    classes = "\n\n\n".join(class_text(tree(document), is_async))
    names = "UNSET, FileContent, Request, Unset, Upload, changed, etag, given, keyed, segment"
    streams = ", ".join(sorted(["EventReader", "LineReader", f"{prefix}Stream"]))
    imports = f"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, overload

from . import models
from .listing import {prefix}Listing
from .request import {names}
from .streams import {streams}
from .transport import {prefix}Transport
"""
    return (
        '"""Every operation of the service as a method, '
        f'{kind}.\n\n{HEADER}\n"""\n{imports}\n\n{classes}\n'
    )


# --- models ---------------------------------------------------------------------------------------


def models_text(document: Json) -> str:
    schemas = Schemas(document["components"]["schemas"])
    sent, received = used(document, schemas)
    texts = [
        model_text(name, schemas, sent=name not in received)
        for name in sorted(sent | received, key=class_name)
    ]
    events = [
        event_text(kind, item["post"], schemas) for kind, item in document["webhooks"].items()
    ]
    union = " | ".join(_event_name(kind) for kind in document["webhooks"])
    head = f"""\"\"\"What requests and answers hold: plain dictionaries, and these are their types.

{HEADER}
\"\"\"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NotRequired, TypedDict
"""
    return (
        "\n\n\n".join([head, *(text for text in texts if text), *events])
        + f"\n\n\nWebhookEvent = {union}\n"
    )


def used(document: Json, schemas: Schemas) -> tuple[set[str], set[str]]:
    """(schemas that callers make, schemas that the service makes); pages and bodies themselves are
    no models.
    """
    sent: set[str] = set()
    received: set[str] = set()
    for _, _, _, operation in operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            body = schemas.of(content["schema"]["$ref"]) if "$ref" in content["schema"] else {}
            sent |= set(schemas.reached(body.get("properties", {})))
        for status, answer in operation["responses"].items():
            if status[0] == "2":
                received |= set(schemas.reached(answer.get("content", {})))
    received |= set(
        schemas.reached([item["post"]["requestBody"] for item in document["webhooks"].values()])
    )
    return sent, {name for name in received if not is_page(schemas.components[name])}


def model_text(name: str, schemas: Schemas, *, sent: bool) -> str:
    """A TypedDict. Of alternatives it has the fields of all, and requires those that each has."""
    schema = schemas.components[name]
    branches = [schemas.of(branch["$ref"]) for branch in schema.get("anyOf", ())] or [schema]
    fields: Json = {
        key: value for branch in branches for key, value in branch.get("properties", {}).items()
    }
    required = set.intersection(*(set(branch.get("required", ())) for branch in branches))
    if schema.get("type") != "object" and "anyOf" not in schema:
        return ""
    return typed_dict(
        class_name(name), schema.get("description", ""), fields, required, schemas, sent
    )


def typed_dict(
    name: str, about: str, fields: Json, required: set[str], schemas: Schemas, sent: bool
) -> str:
    types = {key: schemas.annotation(value, sent=sent) for key, value in fields.items()}
    types = {
        key: kind if key in required else f"NotRequired[{kind}]" for key, kind in types.items()
    }
    if any(keyword.iskeyword(key) for key in fields):
        return f"{name} = TypedDict({name!r}, {types!r})"
    lines = [f"class {name}(TypedDict):"]
    lines += [docstring([about], [], 4), ""] if about else []
    for key, kind in types.items():
        lines.append(f"    {key}: {kind}")
        if fields[key].get("description"):
            lines.append(docstring([fields[key]["description"]], [], 4))
    return "\n".join(lines if fields else [*lines, "    pass"])


def event_text(kind: str, operation: Json, schemas: Schemas) -> str:
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    return typed_dict(
        _event_name(kind),
        f"What a webhook is told as `{kind}`.",
        body["properties"],
        set(body["required"]),
        schemas,
        False,
    )


def _event_name(kind: str) -> str:
    return class_name(kind.replace("_", ".")) + "Event"


# --- files ----------------------------------------------------------------------------------------


def generated(document: Json) -> dict[str, str]:
    """File name -> text, formatted."""
    texts = {
        "models.py": models_text(document),
        "operations.py": operations_text(document, is_async=False),
        "async_operations.py": operations_text(document, is_async=True),
    }
    return {name: formatted(text) for name, text in texts.items()}


def formatted(text: str) -> str:
    """As the rest of the repository is."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--line-length",
        "100",
        "--stdin-filename",
        str(PACKAGE / "generated.py"),
        "-",
    ]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    for name, text in generated(json.load(sys.stdin)).items():
        (PACKAGE / name).write_text(text, encoding="utf-8")
