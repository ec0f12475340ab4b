"""The OpenAPI document as a page for people, which needs nothing from elsewhere."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

import orjson

from runtime.http.openapi_schemas import Json

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;
  color:#222;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ccc}
summary{cursor:pointer;padding:.3rem 0}
details{margin:.2rem 0}
details>*:not(summary){margin-left:1.5rem}
code,pre{font:14px/1.4 ui-monospace,monospace}
pre{background:#f4f4f4;padding:.7rem;overflow:auto}
b{display:inline-block;min-width:4.5rem;font-family:ui-monospace,monospace}
table{border-collapse:collapse}
td{padding:.1rem .8rem .1rem 0;vertical-align:top}
@media (prefers-color-scheme:dark){
  body{color:#ddd;background:#181818}pre{background:#262626}a{color:#8bf}
}
"""


def page(described: Json) -> str:
    """The document as one HTML page that needs nothing from elsewhere."""
    by_tag: dict[str, list[str]] = {tag["name"]: [] for tag in described["tags"]}
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            by_tag[operation["tags"][0]].append(_entry(method, path, operation, described))
    info = described["info"]
    by_tag["events"] = [
        _event(kind, item["post"], described) for kind, item in described["webhooks"].items()
    ]
    links = " · ".join(f'<a href="#{html.escape(tag)}">{html.escape(tag)}</a>' for tag in by_tag)
    sections = "".join(
        f'<h2 id="{html.escape(tag)}">{html.escape(tag)}</h2>{"".join(entries)}'
        for tag, entries in by_tag.items()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f"<title>{html.escape(info['title'])} API</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(info['title'])} "
        f"{html.escape(info['version'])}</h1><p>{html.escape(info['description'])} "
        f'<a href="/openapi.json">OpenAPI 3.1</a></p><p>{links}</p>{sections}</body></html>'
    )


def _entry(method: str, path: str, operation: Json, described: Json) -> str:
    marks = "".join(f" <small>{mark}</small>" for mark in _marks(operation))
    parts = [
        f"<summary><b>{method.upper()}</b> <code>{html.escape(path)}</code> "
        f"{html.escape(operation['summary'])}{marks}</summary>"
    ]
    parts.append(f"<p>{html.escape(operation['description'])}</p>")
    rows = [
        (p["name"], p["in"], p.get("description", ""))
        for p in operation["parameters"]
        if "name" in p
    ]
    parts.append(_table(rows))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    parts.append(_fields(body.get("schema"), described))
    parts.append(_example("Request", body.get("example")))
    for status, response in operation["responses"].items():
        content = response.get("content", {}).get("application/json", {})
        parts.append(_example(f"Response {status}", content.get("example")))
    return f"<details>{''.join(parts)}</details>"


def _event(kind: str, operation: Json, described: Json) -> str:
    envelope = operation["requestBody"]["content"]["application/json"]["schema"]
    rows = _fields(envelope["properties"]["data"], described)
    return (
        f"<details><summary><b>event</b> <code>{html.escape(kind)}</code></summary><p>Its "
        f"data:</p>{rows}</details>"
    )


def _marks(operation: Json) -> Iterable[str]:
    if operation["x-stability"] != "ga":
        yield html.escape(operation["x-stability"])
    if operation["deprecated"]:
        yield "deprecated"


def _fields(schema: Json | None, described: Json) -> str:
    """One row per field of a request body."""
    if schema is None or "$ref" not in schema:
        return ""
    model = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = model.get("required", ())
    fields = model.get("properties", {}).items()
    return _table(
        [
            (name, "required" if name in required else "body", field.get("description", ""))
            for name, field in fields
        ]
    )


def _table(rows: list[tuple[str, str, str]]) -> str:
    cells = "".join(
        f"<tr><td><code>{html.escape(n)}</code><td>{html.escape(where)}<td>{html.escape(text)}</tr>"
        for n, where, text in rows
    )
    return f"<table>{cells}</table>" if rows else ""


def _example(title: str, example: Any) -> str:
    if example is None:
        return ""
    text = orjson.dumps(example, option=orjson.OPT_INDENT_2, default=str).decode()
    return f"<p>{title}</p><pre>{html.escape(text)}</pre>"
