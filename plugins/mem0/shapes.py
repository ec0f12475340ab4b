"""Requests and answers of mem0's clients against ours: what a body there means here, and how a
record of ours looks there.

    user_id, agent_id, app_id, run_id    our fields of the same names; run_id is the session as well
    messages, infer                      the same; without `infer` system messages, which are
                                         instructions, are left out
    metadata, custom categories          metadata; `categories` are our tags
    timestamp                            occurred_at
    expiration_date                      expires_at: a day counts to its end, UTC
    text, memory                         content
    score                                normalized_score, 0 to 1, which `threshold` compares with

Options that only steer the other service's own machinery (custom_instructions, includes,
enable_graph, version, …) are accepted and change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from plugins.mem0.filters import NAMES, as_text, instant, translated
from plugins.search import SEARCH_ITEMS_DEFAULT, SEARCH_ITEMS_MAX
from runtime.errors import BadRequest, ValidationFailed
from runtime.limits import PAGE_ITEMS_MAX
from runtime.timestamps import DAY_MS, iso, parse

STATUS_OF = {
    "queued": "PENDING",
    "processing": "RUNNING",
    "completed": "SUCCEEDED",
    "failed": "FAILED",
}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DIGITS = re.compile(r"\d{1,9}")
Fields = Mapping[str, Any]

# --- what they ask --------------------------------------------------------------------------------


def new_memory(body: Fields) -> dict[str, Any]:
    """An add -> a body of POST /v1/memories. Raises ApiError."""
    infer = body.get("infer")
    infer = True if infer is None else infer
    said = body["messages"]
    said = (
        [{"role": "user", "content": said}]
        if isinstance(said, str)
        else [said]
        if isinstance(said, dict)
        else said
    )
    if not isinstance(said, list):
        raise ValidationFailed.at(("body", "messages"), "must be a list of messages", "list_type")
    messages = [
        message for place, each in enumerate(said) if (message := _message(each, place)) is not None
    ]
    if infer is False:
        messages = [message for message in messages if message["role"] != "system"]
    if not messages:
        raise ValidationFailed.at(
            ("body", "messages"), "must hold a message with text", "too_short"
        )
    made = {
        "messages": messages,
        "infer": infer,
        "metadata": body.get("metadata"),
        "tags": body.get("categories"),
        **names(body),
    }
    made["occurred_at"] = instant(body.get("timestamp"))
    made["expires_at"] = expiry(body.get("expiration_date"))
    return {name: value for name, value in made.items() if value is not None}


def names(body: Fields) -> dict[str, str]:
    """Whose memories: the four names, beside the other fields or in `filters`, where equality is
    all that makes sense.
    """
    filters = body.get("filters") or {}
    if not isinstance(filters, dict):
        raise ValidationFailed.at(("body", "filters"), "must be an object", "dict_type")
    if strange := [name for name in filters if name not in NAMES]:
        raise ValidationFailed.at(
            ("body", "filters"),
            f"may name {', '.join(NAMES)} only, not {len(strange)} other fields",
            "unknown_field",
        )
    given = {**{name: body.get(name) for name in NAMES}, **filters}
    return {name: as_text(value) for name, value in given.items() if value is not None}


def changes(body: Fields) -> dict[str, Any]:
    """An update -> a body of PATCH /v1/memories/{id}. Raises ApiError."""
    if body.get("timestamp") is not None:
        raise BadRequest(
            "The time of what a memory tells cannot be changed; store it again.", param="timestamp"
        )
    made = {
        ours: body[theirs]
        for theirs, ours in (("text", "content"), ("metadata", "metadata"))
        if body.get(theirs) is not None
    }
    if "expiration_date" in body:
        made["expires_at"] = expiry(body["expiration_date"])
    if not made:
        raise BadRequest("An update needs text, metadata or expiration_date.")
    return made


def search(body: Fields) -> tuple[str, dict[str, Any]]:
    """A search -> (path, body) of ours. A larger top_k than a page can hold is that page."""
    reranked = body.get("rerank") is True
    limit = body.get("top_k") or body.get("limit") or SEARCH_ITEMS_DEFAULT
    asked = {
        "query": body.get("query"),
        "limit": min(limit, SEARCH_ITEMS_MAX) if isinstance(limit, int) else limit,
        "filters": conditions(body),
        "threshold": body.get("threshold"),
        "include_low_confidence": body.get("threshold")
        is not None,  # who names a threshold wants what passes it
        "include_superseded": body.get("latest_only") is False,
        "reference_date": instant(body.get("reference_date")),
    }
    if reranked:
        asked["rerank"] = True
    return "/v1/search/advanced" if reranked else "/v1/search", asked


def conditions(asked: Fields) -> dict[str, Any]:
    """Everything that narrows a search or a list: filters, names, categories, keywords, metadata
    and dates.
    """
    filters = asked.get("filters")
    parts = [] if filters is None else [filters]
    parts += [{name: asked[name]} for name in NAMES if asked.get(name) is not None]
    categories = asked.get("categories")
    if categories:
        parts.append(
            {
                "categories": {
                    "in": categories.split(",") if isinstance(categories, str) else categories
                }
            }
        )
    if asked.get("keywords"):
        parts.append({"keywords": asked["keywords"]})
    if asked.get("metadata"):
        parts.append({"metadata": asked["metadata"]})
    parts += [
        {"created_at": {test: asked[name]}}
        for name, test in (("start_date", "gte"), ("end_date", "lte"))
        if asked.get(name)
    ]
    return translated({"AND": parts} if parts else {})


def page_of(asked: Fields) -> tuple[int, int]:
    """(page from 1, items on a page); more items than a page can hold are that page. Raises
    BadRequest.
    """
    page, size = (
        _count(asked, name, default)
        for name, default in (("page", 1), ("page_size", PAGE_ITEMS_MAX))
    )
    return page, min(size, PAGE_ITEMS_MAX)


def _count(asked: Fields, name: str, default: int) -> int:
    text = str(asked.get(name) or default)
    if not _DIGITS.fullmatch(text) or int(text) < 1:
        raise BadRequest("Pages and their sizes are counted from 1.", param=name)
    return int(text)


def _message(said: Any, place: int) -> dict[str, Any] | None:
    """One message with its text; None when it has none, as a call of a tool may."""
    if not isinstance(said, dict):
        raise ValidationFailed.at(("body", "messages", place), "must be an object", "dict_type")
    content = said.get("content")
    if isinstance(content, list | dict):
        parts = content if isinstance(content, list) else [content]
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in parts):
            problem = "must be text; upload files with POST /v1/documents/upload"
            raise ValidationFailed.at(
                ("body", "messages", place, "content"), problem, "string_type"
            )
        content = "\n".join(str(part.get("text") or "") for part in parts)
    if content is None or (isinstance(content, str) and not content.strip()):
        return None
    return {"role": said.get("role") or "user", "content": content, "name": said.get("name")}


def expiry(date: Any) -> Any:
    """An expiration date as expires_at: of a day its end. What is no time goes on, to be refused as
    one.
    """
    if isinstance(date, str) and _DAY.fullmatch(date):
        try:
            return iso(parse(date) + DAY_MS)
        except (ValueError, OverflowError):
            return date
    return instant(date)


# --- what they get --------------------------------------------------------------------------------


def memory(ours: Fields) -> dict[str, Any]:
    """A Memory, or a result of a search."""
    memory = {"id": ours["id"], "memory": ours["content"], **{name: ours[name] for name in NAMES}}
    memory |= {"metadata": ours["metadata"], "categories": ours["tags"]}
    memory |= {name: ours[name] for name in ("created_at", "updated_at")}
    if ours.get("expires_at"):
        memory["expiration_date"] = iso(parse(ours["expires_at"]) - 1)[:10]
    if "normalized_score" in ours:
        memory["score"] = ours["normalized_score"]
    return memory


def picked(results: Iterable[dict[str, Any]], fields: Any) -> list[dict[str, Any]]:
    """Only these fields of each result, and its id; all, when none are named."""
    if not isinstance(fields, list) or not fields:
        return list(results)
    return [
        {name: value for name, value in result.items() if name == "id" or name in fields}
        for result in results
    ]


def paged(
    results: list[dict[str, Any]], count: int, path: str, page: int, size: int
) -> dict[str, Any]:
    """One page; `next` and `previous` are paths."""

    def beside(number: int) -> str:
        return f"{path}?page={number}&page_size={size}"

    return {
        "count": count,
        "next": beside(page + 1) if page * size < count else None,
        "previous": beside(page - 1) if page > 1 else None,
        "results": results,
    }


def history(versions: list[Fields], owner: Fields) -> list[dict[str, Any]]:
    """The versions of one memory, oldest first, each with the text before it."""
    before = [None, *(version["content"] for version in versions)]
    return [
        {
            "id": f"{owner['id']}:{version['version']}",
            "memory_id": owner["id"],
            "old_memory": old,
            "new_memory": version["content"],
            "event": "ADD"
            if version["event"] == "ADD"
            else "UPDATE"
            if version["event"] == "UPDATE"
            else "DELETE",
            "metadata": version["metadata"],
            "user_id": owner["user_id"],
            "created_at": owner["created_at"],
            "updated_at": version["at"],
        }
        for old, version in zip(before, versions, strict=False)
    ]


def event_of_job(job: Fields) -> dict[str, Any]:
    """An ingestion that goes on in the background."""
    events = (job["result"] or {}).get("events", [])
    results = [
        {
            "id": each["memory_id"],
            "event": each["event"],
            "memory": each["memory"],
            "data": {"memory": each["memory"]},
        }
        for each in events
    ]
    times = {
        "created_at": job["created_at"],
        "started_at": job["started_at"],
        "completed_at": job["finished_at"],
    }
    return event(job["job_id"], STATUS_OF[job["status"]], results, **times, error=job["error"])


def event(
    event_id: str, status: str, results: list[dict[str, Any]], **further: Any
) -> dict[str, Any]:
    return {
        "id": event_id,
        "event_id": event_id,
        "event_type": "ADD",
        "status": status,
        "results": results,
        **further,
    }
