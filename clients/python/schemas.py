"""The schemas of an OpenAPI document as Python types; generate.py writes them down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]
PAGE_FIELDS = {"items", "next_cursor", "has_more", "total_count"}


class Schemas:
    """The document's schemas: what each is called, and which Python type stands for one."""

    def __init__(self, components: Mapping[str, Json]):
        self.components = components
        self._names = {name: class_name(name) for name in components}
        assert len(set(self._names.values())) == len(components), "two schemas want the same name"

    def name(self, reference: str) -> str:
        return self._names[reference.rpartition("/")[2]]

    def of(self, reference: str) -> Json:
        return self.components[reference.rpartition("/")[2]]

    def annotation(self, schema: Json, *, sent: bool, prefix: str = "") -> str:
        """The Python type of a schema. sent: a caller makes such values, and may use more types for
        them.
        """
        if "$ref" in schema:
            return prefix + self.name(schema["$ref"])
        if "anyOf" in schema:
            branches = [
                self.annotation(branch, sent=sent, prefix=prefix) for branch in schema["anyOf"]
            ]
            return " | ".join(sorted(dict.fromkeys(branches), key="None".__eq__))
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(map(repr, values))}]"
        kind = schema.get("type")
        if isinstance(kind, list):
            return self.annotation(
                {"anyOf": [schema | {"type": one} for one in kind]}, sent=sent, prefix=prefix
            )
        if kind == "array":
            items = schema.get("items", {})
            inner = self.annotation(items, sent=sent, prefix=prefix)
            if sent and prefix and "$ref" in items:
                # What is no literal is no TypedDict to a checker, but a plain dictionary.
                return f"Sequence[{inner}] | Sequence[Mapping[str, Any]]"
            return f"Sequence[{inner}]" if sent else f"list[{inner}]"
        if kind == "object":
            further = schema.get("additionalProperties")
            inner = (
                self.annotation(further, sent=sent, prefix=prefix)
                if isinstance(further, dict)
                else "Any"
            )
            return f"{'Mapping' if sent else 'dict'}[str, {inner}]"
        if kind == "string" and schema.get("format") == "date-time" and sent:
            return "datetime | str"
        return {
            "string": "str",
            "integer": "int",
            "number": "float",
            "boolean": "bool",
            "null": "None",
        }.get(kind or "", "Any")

    def reached(self, schema: Any) -> Iterator[str]:
        """The names of all schemas that this one holds, however deep."""
        found: dict[str, None] = {}
        waiting = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, list):
                waiting += part
            elif isinstance(part, dict):
                name = part.get("$ref", "").rpartition("/")[2]
                if name and name not in found:
                    found[name] = None
                    waiting.append(self.components[name])
                waiting += part.values()
        yield from found


def class_name(name: str) -> str:
    """plugins__memory_views__Deleted -> DeletedOfMemoryViews; Page_Memory_ -> PageMemory."""
    *_, module, own = f"____{name}".split("__")
    text = f"{own} of {module}" if module else own
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", text))


def is_page(schema: Json) -> bool:
    return schema.get("properties", {}).keys() >= PAGE_FIELDS
