"""Response models as strict JSON schemas: a field that is not documented, or missing without being
optional, is an error.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of what this model documents, with every object closed.

    Fields with a default may be missing; objects that declare no fields (metadata) stay open, and
    those that say that they are (what passes through from elsewhere).
    """
    return _closed(model.model_json_schema(mode="serialization"))


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(item) for name, item in schema.items()}
    if (
        closed.get("type") == "object"
        and "properties" in closed
        and closed.get("additionalProperties") is not True
    ):
        closed["additionalProperties"] = False
    return closed


ERROR_ENVELOPE: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "status_code", "request_id"],
            "additionalProperties": False,
            "properties": {
                "code": {
                    "enum": [
                        "invalid_api_key", "missing_api_key", "invalid_request", "validation_error",
                        "resource_not_found", "collection_not_found", "rate_limit_exceeded",
                        "quota_exceeded", "document_too_large", "unsupported_format",
                        "permission_denied", "feature_not_available", "internal_error",
                    ]
                },
                "message": {"type": "string", "minLength": 10},
                "type": {
                    "enum": [
                        "invalid_request_error", "auth_error", "permission_error",
                        "not_found_error", "http_exception", "conflict_error", "validation_error",
                        "rate_limit_error", "server_error",
                    ]
                },
                "param": {"type": ["string", "null"]},
                "status": {"const": 429},
                "status_code": {"type": "integer", "minimum": 400, "maximum": 599},
                "request_id": {"type": "string", "minLength": 1},
                "details": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["loc", "msg", "type"],
                        "additionalProperties": False,
                        "properties": {
                            "loc": {
                                "type": "array",
                                "minItems": 1,
                                "items": {"type": ["string", "integer"]},
                            },
                            "msg": {"type": "string", "minLength": 1},
                            "type": {"type": "string", "minLength": 1},
                        },
                    },
                },
            },
        }
    },
}  # fmt: skip
