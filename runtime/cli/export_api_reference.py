"""The API reference as Markdown, from the OpenAPI document: `python -m
runtime.cli.export_api_reference` prints it; `make docs` makes a page of it.
"""

from __future__ import annotations

import importlib
import json
import re
from typing import Any

from runtime.cli.export_openapi import exported

BEGIN = """# API reference

Every endpoint, from the OpenAPI document of the service. A running service shows the same under
`/docs`, and for machines under `/openapi.json`. Requests carry `Authorization: Bearer`, with an
API key or an access token. An error is always
`{"error": {"code", "message", "type", "param", "status_code", "request_id"}}`.
"""


def anchor(operation: str) -> str:
    """The anchor of an operation's heading: `GET /v1/memories/{id}` -> `get-v1memoriesid`."""
    return re.sub(r"[^\w\- ]", "", operation.lower()).replace(" ", "-")


def reference(description: dict[str, Any]) -> str:
    """The reference of all operations of an OpenAPI document, by their tags."""
    tags: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            shown = _operation(description, f"{method.upper()} {path}", operation)
            tags.setdefault(operation["tags"][0], []).append(shown)
    return BEGIN + "".join(
        f"\n## {tag.replace('_', ' ').capitalize()}\n" + "".join(tags[tag]) for tag in sorted(tags)
    )


def _operation(description: dict[str, Any], name: str, operation: dict[str, Any]) -> str:
    lines = [f"\n### {name}\n", f"**{operation['summary']}.** {operation.get('description', '')}\n"]
    if operation.get("x-stability", "ga") != "ga":
        lines.append("Beta: it may change with a notice in the changelog.\n")
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    rows = [
        _row(one["name"], "yes" if one.get("required") else "", one.get("description"))
        for one in operation.get("parameters", ())
        if "name" in one
    ]
    rows += _fields(description, body.get("schema", {}))
    if rows:
        lines += ["| field | required | meaning |", "|---|---|---|", *rows, ""]
    if "example" in body:
        lines += ["Request:\n", _fenced(body["example"])]
    for status, answer in operation["responses"].items():
        example = answer.get("content", {}).get("application/json", {}).get("example")
        if example is not None and status.startswith("2"):
            lines += [f"Answer, {status}:\n", _fenced(example)]
    return "\n".join(lines)


def _fields(description: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    named = schema.get("$ref", "").rpartition("/")[2]
    schema = description["components"]["schemas"].get(named, schema)
    required = schema.get("required", ())
    return [
        _row(name, "yes" if name in required else "", field.get("description"))
        for name, field in schema.get("properties", {}).items()
    ]


def _row(name: str, required: str, meaning: str | None) -> str:
    said = re.sub(r"\s+", " ", meaning or "").replace("|", "\\|")
    return f"| `{name}` | {required} | {said} |"


def _fenced(example: Any) -> str:
    return f"```json\n{json.dumps(example, ensure_ascii=False, indent=2)}\n```\n"


if __name__ == "__main__":
    service = importlib.import_module("serve_app")
    print(reference(json.loads(exported(service.registry(), service.Settings()))))
