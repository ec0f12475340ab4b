"""JSON schemas of the models that operations and events use, as the OpenAPI document has them.

They are pydantic's, generated together so that the names of models stay apart, and changed in what
`Body` and the wire add to a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import (
    CoreModeRef,
    CoreRef,
    DefsRef,
    GenerateJsonSchema,
    models_json_schema,
)
from pydantic_core.core_schema import ModelSchema

from runtime.api.operation import Body, Operation

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{model}"
_ABOUT = ("title", "description", "default", "examples")
_LINE_END = re.compile(r"(?<!\n)\n(?!\n)")
_FILE_OF_PLUGIN = re.compile(r"(\bplugins\.\w+)(?:\.[a-z]\w*)+\.(?=[A-Z])")


def _published(reference: str) -> str:
    """ "plugins.profile.models.Deleted:94…" -> "plugins.profile.Deleted:94…"."""
    plain = _FILE_OF_PLUGIN.sub(r"\1.", reference)
    return plain.replace("plugins.memories.", "plugins.memory_views.")


class _SchemaOfModel(GenerateJsonSchema):
    """pydantic's schemas, and in those of bodies what `Body` adds to each: null stands for an
    optional field that is absent.
    """

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """Name a schema. Where two models share a name the plugin's tells them apart, and not the
        file that a model stands in: clients know them by it.
        """
        reference, mode = core_mode_ref
        return super().get_defs_ref((CoreRef(_published(reference)), mode))

    def model_schema(self, schema: ModelSchema) -> Json:
        described = super().model_schema(schema)
        if "description" in described:  # lines end where a docstring's had to
            described["description"] = _LINE_END.sub(" ", described["description"])
        if self.mode == "validation" and issubclass(schema["cls"], Body):
            required = described.get("required", ())
            fields = described.get("properties", {})
            described |= {
                "properties": {
                    name: field if name in required else _with_null(field)
                    for name, field in fields.items()
                }
            }
        return described


def _with_null(schema: Json) -> Json:
    branches = schema.get("anyOf") or [
        {key: value for key, value in schema.items() if key not in _ABOUT}
    ]
    if not schema or {"type": "null"} in branches:
        return schema
    return {key: value for key, value in schema.items() if key in _ABOUT} | {
        "anyOf": [*branches, {"type": "null"}]
    }


class Schemas:
    """The schemas of all models that operations and events use, generated together so that their
    names stay apart.

    told     models of events
    further  what a field says that it may have -> the values that it has beside those of its `enum`
    """

    def __init__(
        self,
        operations: list[Operation],
        told: list[type[BaseModel]],
        further: Mapping[str, Sequence[str]],
    ):
        wanted: list[tuple[type[BaseModel], Any]] = [(model, "serialization") for model in told]
        for operation in operations:
            wanted += [
                (model, "validation")
                for model in (operation.body, operation.query)
                if model is not None
            ]
            wanted += (
                [(operation.response, "serialization")] if operation.response is not None else []
            )
        references, generated = models_json_schema(
            list(dict.fromkeys(wanted)), ref_template=REFERENCE, schema_generator=_SchemaOfModel
        )
        self._references = references
        self._definitions: dict[str, Json] = _with_further(
            _without_stand_ins(generated.get("$defs", {})), further
        )
        self._queries = {
            self.reference(o.query, "validation")["$ref"].rpartition("/")[2]
            for o in operations
            if o.query is not None
        }

    def reference(self, model: type[BaseModel], mode: Any) -> Json:
        return self._references[model, mode]

    def query_fields(self, model: type[BaseModel]) -> tuple[dict[str, Json], set[str]]:
        """(parameter name -> schema, names that are required)"""
        schema = self._definitions[self.reference(model, "validation")["$ref"].rpartition("/")[2]]
        return schema.get("properties", {}), set(schema.get("required", ()))

    def components(self) -> dict[str, Json]:
        """Model name -> schema."""
        return {
            name: schema for name, schema in self._definitions.items() if name not in self._queries
        }


def _without_stand_ins(value: Any) -> Any:
    """The schema without defaults of "" that the schema itself refuses: such a default only stands
    for absence.
    """
    if isinstance(value, list):
        return [_without_stand_ins(item) for item in value]
    if not isinstance(value, dict):
        return value
    stands_in = value.get("default") == "" and any(
        branch.get("minLength") for branch in (value, *value.get("anyOf", ()))
    )
    return {
        key: _without_stand_ins(item)
        for key, item in value.items()
        if not (stands_in and key == "default")
    }


def _with_further(value: Any, further: Mapping[str, Sequence[str]]) -> Any:
    """The schema, with the values that plugins add where a field may have them."""
    if isinstance(value, list):
        return [_with_further(item, further) for item in value]
    if not isinstance(value, dict):
        return value
    described = {
        key: _with_further(item, further) for key, item in value.items() if key not in further
    }
    for mark, names in further.items():
        if value.get(mark) is True:
            described["enum"] = list(dict.fromkeys([*described["enum"], *names]))
    return described
