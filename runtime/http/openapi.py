"""The OpenAPI 3.1 description, derived from the Registry, and a page that shows it to people.

Owns nothing: every line comes from an Operation or its models, so the description cannot drift from
what the gateway does. It is complete: parameters, headers, bodies, every
success status, the errors an operation can answer, examples, the scope it needs, its credits and
its stability. Aliases are described like the paths they stand for; internal operations are left
out.

Schemas live under components by the name of their model. Query models do not: each of their fields
becomes a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from runtime.api.operation import Idempotency, Kind, Operation
from runtime.api.plugin import EVENTS_TOO, RETRIEVERS_TOO, Registry
from runtime.http import openapi_events
from runtime.http.openapi_schemas import REFERENCE, Json, Schemas
from runtime.http.validation import BodyParser
from runtime.limits import BODY_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX, REQUEST_ID_CHARS_MAX

_MEANINGS = {
    200: "Done.",
    201: "Created, and ready.",
    202: (
        "Accepted: the work goes on. `Location` and `Retry-After` say where and when to look again."
    ),
    204: "Done; there is no body.",
    503: "Not ready.",
}
_ERRORS = {
    400: (
        "BadRequest",
        "The request cannot be read: malformed JSON, a bad header, cursor or confirmation.",
    ),
    401: ("Unauthenticated", "The credential is missing, invalid, expired or revoked."),
    403: (
        "PermissionDenied",
        "The credential lacks a scope, or the resource is another account's.",
    ),
    404: ("NotFound", "There is no such resource."),
    405: ("MethodNotAllowed", "The path does not answer this method; `Allow` lists those it does."),
    409: (
        "Conflict",
        "The Idempotency-Key belongs to another request or one that is still running, or the "
        "resource changed.",
    ),
    412: ("PreconditionFailed", "`If-Match` names another version than the stored one."),
    413: (
        "PayloadTooLarge",
        f"The body is larger than {BODY_BYTES_MAX} bytes, or the file larger than allowed.",
    ),
    415: ("UnsupportedMediaType", "The format of the file is not supported."),
    422: (
        "ValidationFailed",
        "A field or parameter is missing or out of bounds; `details` says which. Rejected values "
        "are not echoed.",
    ),
    429: ("RateLimited", "A rate limit or the monthly credits are exhausted."),
    500: ("InternalError", "Something failed on the service's side."),
    501: (
        "NotInstalled",
        "The service is installed without packages that the operation needs; the message has the "
        "line that installs them.",
    ),
    502: ("UpstreamFailed", "A model that the operation depends on failed."),
    503: (
        "Unavailable",
        "The service cannot answer now. A retry with the same Idempotency-Key is safe.",
    ),
    504: ("UpstreamTimeout", "A model that the operation depends on was too slow."),
}
_HEADERS: dict[str, tuple[str, Json]] = {
    "X-Request-ID": (
        "Names this request in logs and support reports: the client's own, or a new one.",
        {"type": "string"},
    ),
    "X-Process-Time": (
        "Seconds the request took, decimal.",
        {"type": "string", "pattern": r"^\d+\.\d+$"},
    ),
    "X-Service-Version": ("Semantic version of the service.", {"type": "string"}),
    "X-Service-Build": ("Short commit hash of the service, or `dev`.", {"type": "string"}),
    "Retry-After": ("Seconds to wait before the next attempt.", {"type": "integer", "minimum": 1}),
    "Location": ("Path of the resource.", {"type": "string"}),
    "X-RateLimit-Limit": ("The ceiling that fired.", {"type": "integer"}),
    "WWW-Authenticate": ("The scheme to authenticate with.", {"type": "string"}),
    "Allow": ("The methods this path answers.", {"type": "string"}),
    "X-Idempotent-Replay": (
        "`true` when the answer is a stored one, repeated.",
        {"type": "string", "enum": ["true"]},
    ),
}
_ALWAYS = ("X-Request-ID", "X-Process-Time", "X-Service-Version", "X-Service-Build")
_ERROR_HEADERS = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After",),
    429: ("Retry-After", "X-RateLimit-Limit"),
} | dict.fromkeys((502, 503, 504), ("Retry-After",))


def document(registry: Registry, version: str, further: Iterable[Operation] = ()) -> Json:
    """The description of all operations that are not internal.

    version  of the service
    further  operations that are no plugin's
    """
    operations = [
        operation
        for operation in (*registry.operations.values(), *further)
        if not operation.internal
    ]
    events = registry.events.values()
    public = openapi_events.public(events)
    values = {
        RETRIEVERS_TOO: [each.name for each in registry.retrievers],
        EVENTS_TOO: [each.kind for each in public],
    }
    schemas = Schemas(operations, [event.model for event in public], values)
    paths: dict[str, Json] = {}
    for operation in operations:
        for number, path in enumerate((operation.path, *operation.aliases)):
            paths.setdefault(path, {})[operation.method.lower()] = _described(
                operation, path, number, schemas
            )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Mneme",
            "version": version,
            "summary": "A memory backend for AI applications.",
            "description": (
                "Stores what an application should remember, and finds it again. All bodies are "
                "JSON unless stated otherwise."
            ),
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in sorted({operation.tag for operation in operations})],
        "paths": dict(sorted(paths.items())),
        "webhooks": openapi_events.described(
            events, lambda model: schemas.reference(model, "serialization")
        ),
        "components": {
            "schemas": dict(
                sorted(
                    (
                        schemas.components()
                        | {"Error": _ERROR, "FeatureNotAvailable": _FEATURE_NOT_AVAILABLE}
                    ).items()
                )
            ),
            "responses": {
                name: _error_response(status, text) for status, (name, text) in _ERRORS.items()
            }
            | {"Error": _any_error()},
            "headers": {
                name: {"description": text, "schema": schema}
                for name, (text, schema) in _HEADERS.items()
            },
            "parameters": _header_parameters(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key (`mem_sk_…`) or the access token of a registration "
                    "or login.",
                }
            },
        },
    }


def _described(operation: Operation, path: str, number: int, schemas: Schemas) -> Json:
    described: Json = {
        "operationId": operation.name + (f".alias{number}" if number else ""),
        "summary": operation.summary,
        "description": _description(operation, number),
        "tags": [operation.tag],
        "deprecated": operation.deprecated,
        "security": [] if operation.scope == "public" else [{"bearer": []}],
        "parameters": _parameters(operation, path, schemas),
        "responses": _responses(operation, schemas),
        "x-stability": operation.stability,
        "x-required-scope": operation.scope,
        "x-credits": operation.credits
        if isinstance(operation.credits, int)
        else "depends on the request",
    }
    if operation.body is not None:
        content: Json = {"schema": schemas.reference(operation.body, "validation")}
        if operation.example is not None:
            content["example"] = operation.example
        kind = "application/json" if operation.upload is None else "multipart/form-data"
        described["requestBody"] = {
            "required": BodyParser(operation).required,
            "content": {kind: content},
        }
        if getattr(operation.body, "lines_field", ""):
            described["requestBody"]["content"]["application/x-ndjson"] = {
                "schema": {"type": "string"}
            }
    return described


def _description(operation: Operation, number: int) -> str:
    sentences = [operation.description or operation.summary.rstrip(".") + "."]
    if number:
        sentences.append(f"The same as `{operation.method} {operation.path}`.")
    if operation.scope != "public":
        sentences.append(f"Needs the scope `{operation.scope}`.")
    if isinstance(operation.feature, str):
        sentences.append(f"Part of the feature `{operation.feature}`, which not every tier has.")
    if operation.idempotency is Idempotency.CANONICAL:
        sentences.append(
            "A repeated Idempotency-Key answers with the same resource for as long as it exists."
        )
    elif operation.idempotency is Idempotency.CACHED:
        sentences.append("A repeated Idempotency-Key repeats the answer for 24 hours.")
    return " ".join(sentences)


def _parameters(operation: Operation, path: str, schemas: Schemas) -> list[Json]:
    parameters: list[Json] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _path_meaning(name),
            "schema": {"type": "string"},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]
    if operation.query is not None:
        fields, required = schemas.query_fields(operation.query)
        for name, field in fields.items():
            schema = _without_null(
                {key: value for key, value in field.items() if key not in ("title", "description")}
            )
            parameter = {
                "name": name,
                "in": "query",
                "required": name in required,
                "schema": schema,
            }
            parameter["allowEmptyValue"] = operation.is_query_lenient and name not in required
            parameters.append(
                parameter
                | ({"description": field["description"]} if "description" in field else {})
            )
    headers = ["XRequestId"]
    if operation.idempotency is not Idempotency.NONE:
        headers.append("IdempotencyKey")
    if 202 in operation.statuses:
        headers.append("Prefer")
    if operation.conditional:
        headers.append("IfMatch")
    return parameters + [{"$ref": f"#/components/parameters/{name}"} for name in headers]


def _path_meaning(name: str) -> str:
    return f"The {name.replace('_', ' ')}." if name != "id" else "The id of the resource."


def _without_null(schema: Json) -> Json:
    """A query parameter is never null: it is absent."""
    branches = [branch for branch in schema.get("anyOf", ()) if branch != {"type": "null"}]
    kept = {
        key: value
        for key, value in schema.items()
        if key != "anyOf" and not (key == "default" and value is None)
    }
    return (
        kept | branches[0]
        if len(branches) == 1
        else kept | ({"anyOf": branches} if branches else {})
    )


def _responses(operation: Operation, schemas: Schemas) -> Json:
    responses: Json = {}
    for status in operation.statuses:
        headers = [*_ALWAYS]
        headers += (
            ("Retry-After", "Location") if status == 202 else ("Location",) if status == 201 else ()
        )
        headers += ("X-Idempotent-Replay",) if operation.idempotency is Idempotency.CACHED else ()
        response: Json = {
            "description": _MEANINGS.get(status, "Done."),
            "headers": _header_references(headers),
        }
        if status != 204:
            response["content"] = _success_content(operation, status, schemas)
        responses[str(status)] = response
    for status in _error_statuses(operation):
        responses.setdefault(str(status), {"$ref": f"#/components/responses/{_ERRORS[status][0]}"})
    responses["default"] = {"$ref": "#/components/responses/Error"}
    return responses


def _success_content(operation: Operation, status: int, schemas: Schemas) -> Json:
    if operation.response is None:
        return {"*/*": {}}
    if operation.produces is not None:
        return {
            operation.produces: {
                "schema": schemas.reference(operation.response, "serialization"),
                "example": operation.example_reply,
            }
        }
    content: Json = {"schema": schemas.reference(operation.response, "serialization")}
    if operation.example_reply is not None and status == operation.statuses[0]:
        content["example"] = operation.example_reply
    stream: Json = (
        {"text/event-stream": {"schema": {"type": "string"}}} if operation.streams else {}
    )
    return {"application/json": content} | stream


def _error_statuses(operation: Operation) -> list[int]:
    """The errors this operation can answer, apart from the ones that any path can."""
    found = {400, 500, 503, *operation.errors}
    if operation.scope != "public":
        found |= {401, 403, 429}
    elif operation.kind is Kind.WRITE:
        found |= {401, 409, 429}
    named = {
        *(operation.body.model_fields if operation.body else ()),
        *(operation.query.model_fields if operation.query else ()),
    }
    if "{" in operation.path or any(name.endswith("_id") for name in named):
        found.add(404)
    if operation.idempotency is not Idempotency.NONE:
        found.add(409)
    if operation.body is not None:
        found.add(413)
    if operation.body is not None or operation.query is not None:
        found.add(422)
    if operation.conditional:
        found.add(412)
    if operation.upload is not None:
        found |= {413, 415}
    if operation.extra is not None:
        found.add(501)
    if operation.kind is Kind.FLOW and operation.scope != "public":
        found |= {502, 504}
    return sorted(found)


# --- components -----------------------------------------------------------------------------------


def _text(description: str, **further: Any) -> Json:
    return {"type": "string", "description": description} | further


_ERROR: Json = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "status_code", "request_id"],
            "properties": {
                "code": _text(
                    "Absent where none fits.",
                    enum=[
                        "invalid_api_key",
                        "missing_api_key",
                        "invalid_request",
                        "validation_error",
                        "resource_not_found",
                        "collection_not_found",
                        "rate_limit_exceeded",
                        "quota_exceeded",
                        "document_too_large",
                        "unsupported_format",
                        "permission_denied",
                        "feature_not_available",
                        "internal_error",
                    ],
                ),
                "message": _text("What happened and what to do about it."),
                "type": _text("Category of the error."),
                "param": {"type": ["string", "null"], "description": "The offending parameter."},
                "status_code": {"type": "integer", "description": "The HTTP status."},
                "status": {"type": "integer", "description": "The HTTP status; in 429 only."},
                "request_id": _text("The value of X-Request-ID."),
                "details": {
                    "type": "array",
                    "description": "In 422 only: one entry per finding.",
                    "items": {
                        "type": "object",
                        "required": ["loc", "msg", "type"],
                        "properties": {
                            "loc": {
                                "type": "array",
                                "items": {"type": ["string", "integer"]},
                                "description": "`body` or `query`, then the way.",
                            },
                            "msg": _text("What is wrong there."),
                            "type": _text("Kind of finding."),
                        },
                    },
                },
            },
        }
    },
}
_TIER: Json = {
    "type": "object",
    "required": ["name", "display_name"],
    "properties": {"name": _text("Key."), "display_name": _text("Name.")},
}
_FEATURE_NOT_AVAILABLE: Json = {
    "type": "object",
    "required": [
        "error",
        "feature",
        "feature_name",
        "message",
        "current_tier",
        "required_tier",
        "upgrade_url",
        "pricing_url",
    ],
    "properties": {
        "error": {"type": "string", "const": "feature_not_available"},
        "feature": _text("Key of the feature."),
        "feature_name": _text("Name of the feature."),
        "message": _text("What the tier lacks."),
        "current_tier": _TIER,
        "required_tier": _TIER
        | {
            "properties": _TIER["properties"]
            | {"price": _text("Price."), "credits": _text("Credits per month.")}
        },
        "upgrade_url": _text("Where to upgrade.", format="uri"),
        "pricing_url": _text("Where the tiers are described.", format="uri"),
    },
}


def _error_response(status: int, text: str) -> Json:
    schema: Json = {"$ref": REFERENCE.format(model="Error")}
    if status == 403:
        schema = {"oneOf": [schema, {"$ref": REFERENCE.format(model="FeatureNotAvailable")}]}
    headers = _header_references([*_ALWAYS, *_ERROR_HEADERS.get(status, ())])
    return {
        "description": text,
        "headers": headers,
        "content": {"application/json": {"schema": schema}},
    }


def _any_error() -> Json:
    return _error_response(
        0,
        "Any other error: 405 for a method the path lacks, 414 and 431 for an address or headers "
        "out of bounds.",
    )


def _header_references(names: Iterable[str]) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _header_parameters() -> Json:
    def header(name: str, description: str, **schema: Any) -> Json:
        return {
            "name": name,
            "in": "header",
            "required": False,
            "description": description,
            "schema": {"type": "string"} | schema,
        }

    key = (
        "Makes a retry safe: the same key with the same request takes effect once. With another "
        "request it is 409."
    )
    return {
        "XRequestId": header(
            "X-Request-ID",
            f"1 to {REQUEST_ID_CHARS_MAX} visible ASCII characters; they come back, or a new one "
            "does.",
        ),
        "IdempotencyKey": header(
            "Idempotency-Key", key, minLength=1, maxLength=IDEMPOTENCY_KEY_CHARS_MAX
        ),
        "Prefer": header(
            "Prefer",
            "`respond-async` answers 202 at once; `wait=N` waits up to N seconds for a job.",
            examples=["respond-async"],
        ),
        "IfMatch": header(
            "If-Match", 'The version the change is meant for, such as `"3"`, or `*`.'
        ),
    }
