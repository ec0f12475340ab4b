"""What mem0's client can ask for, each a handler over calls of our own operations."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from urllib.parse import quote

from plugins.mem0 import shapes
from plugins.mem0.filters import NAMES
from plugins.mem0.limits import HISTORY_PAGES_MAX
from plugins.mem0.request import CallRefused, Mem0Request
from plugins.memories import BATCH_ITEMS_MAX, DELETE_ALL_CONFIRMATION
from runtime.errors import BadRequest, NotFound
from runtime.limits import PAGE_ITEMS_MAX

OF_CALLER = ("org_id", "project_id")  # their own scopes of a key, which has one account here
KINDS = ("user", "agent", "app", "run")
EVENT_MARK = "."  # between the ids of an event's memories


async def ping(request: Mem0Request) -> dict[str, Any]:
    account = await request.ask("GET", "/v1/auth/me")
    return {
        "status": "ok",
        "org_id": account["user_id"],
        "project_id": account["user_id"],
        "user_email": account["email"],
    }


async def add(request: Mem0Request) -> dict[str, Any]:
    if "messages" not in request.body:
        return await request.ask("POST", "/v1/memories", request.body)
    made = await request.ask("POST", "/v1/memories", shapes.new_memory(request.body))
    return {
        "results": [
            {name: result[name] for name in ("id", "event", "memory")} for result in made["results"]
        ]
    }


async def add_later(request: Mem0Request) -> dict[str, Any]:
    if "messages" not in request.body:
        raise BadRequest("An add needs messages.", param="messages")
    asked = shapes.new_memory(request.body)
    made = await request.ask("POST", "/v1/memories", asked, prefer="respond-async")
    event_id = made["job_id"] if asked["infer"] else EVENT_MARK.join(made["memory_ids"])
    return {
        "event_id": event_id,
        "status": "PENDING",
        "message": "The memories are being processed in the background.",
    }


async def event(request: Mem0Request) -> dict[str, Any]:
    event_id = request.parts["id"]
    if event_id.startswith("job_"):
        return shapes.event_of_job(
            await request.ask("GET", f"/v1/memories/jobs/{quote(event_id, safe='')}")
        )
    ids = event_id.split(EVENT_MARK)
    asked = {"filters": {"id": {"in": ids}}, "include_superseded": True, "limit": PAGE_ITEMS_MAX}
    found = (await request.ask("POST", "/v1/memories/query", asked))["items"]
    if not found:
        raise NotFound("There is no event with this id.")
    states = {one["processing_status"] for one in found}
    status = (
        "PENDING" if "processing" in states else "FAILED" if "failed" in states else "SUCCEEDED"
    )
    results = [
        {
            "id": one["id"],
            "event": "ADD",
            "memory": one["content"],
            "data": {"memory": one["content"]},
        }
        for one in found[::-1]
    ]
    return shapes.event(event_id, status, results, created_at=found[-1]["created_at"])


async def search(request: Mem0Request) -> Any:
    path, asked = shapes.search(request.body)
    hits = (await request.ask("POST", path, asked))["results"]
    results = shapes.picked(map(shapes.memory, hits), request.body.get("fields"))
    bare = request.path.startswith("/v1/") and request.body.get("output_format") != "v1.1"
    return results if bare else {"results": results}


async def listed(request: Mem0Request) -> Any:
    asked = {**request.body, **request.query}
    page, size = shapes.page_of(asked)
    wanted = {"filters": shapes.conditions(asked), "limit": size, "offset": (page - 1) * size}
    found = await request.ask(
        "POST",
        "/v1/memories/query",
        {**wanted, "include_superseded": asked.get("latest_only") is False},
    )
    results = shapes.picked(map(shapes.memory, found["items"]), asked.get("fields"))
    if request.path.startswith("/v1/") and "page" not in asked:
        return results
    return shapes.paged(results, found["total_count"], request.path + "/", page, size)


async def get(request: Mem0Request) -> dict[str, Any]:
    ours = await request.ask("GET", _address(request.parts["id"]))
    return {**ours, **shapes.memory(ours)}


async def update(request: Mem0Request) -> dict[str, Any]:
    ours = await request.ask("PATCH", _address(request.parts["id"]), shapes.changes(request.body))
    return {**ours, **shapes.memory(ours)}


async def delete(request: Mem0Request) -> dict[str, Any]:
    if request.query.get("delete_linked", "").lower() == "true":
        raise BadRequest(
            "Superseded memories are not deleted along; delete each by its id.",
            param="delete_linked",
        )
    deleted = await request.ask("DELETE", _address(request.parts["id"]))
    return {**deleted, "message": "Memory deleted successfully!"}


async def history(request: Mem0Request) -> list[dict[str, Any]]:
    address = _address(request.parts["id"])
    owner = await request.ask("GET", address)
    versions: list[shapes.Fields] = []
    query: dict[str, Any] = {"limit": PAGE_ITEMS_MAX}
    for _ in range(HISTORY_PAGES_MAX):
        page = await request.ask("GET", f"{address}/history", query=query)
        versions += page["items"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    return shapes.history(versions, owner)


# --- many at once ---------------------------------------------------------------------------------


async def delete_named(request: Mem0Request) -> dict[str, str]:
    asked = {name: value for name, value in request.query.items() if name not in OF_CALLER}
    if strange := [name for name in asked if name not in NAMES]:
        raise BadRequest(
            f"Memories are deleted by {', '.join(NAMES)}; {len(strange)} other parameters would be "
            "ignored."
        )
    if not asked or any(not value.strip() or value.strip() == "*" for value in asked.values()):
        raise BadRequest(
            f"Name whose memories to delete by {', '.join(NAMES)}; neither an empty name nor * "
            "stands for everyone."
        )
    await request.ask(
        "DELETE", "/v1/memories/all", query={**asked, "confirm": DELETE_ALL_CONFIRMATION}
    )
    return {"message": "Memories deleted successfully!"}


async def entities(request: Mem0Request) -> dict[str, Any]:
    page, size = shapes.page_of(request.query)
    found = await request.ask(
        "GET", "/v1/memories/scopes", query={"limit": size, "offset": (page - 1) * size}
    )
    results = [
        {
            "id": f"{one['kind']}:{one['name']}",
            "name": one["name"],
            "type": one["kind"],
            "total_memories": one["memory_count"],
            "created_at": one["first_memory_at"],
            "updated_at": one["last_memory_at"],
        }
        for one in found["items"]
    ]
    return shapes.paged(results, found["total_count"], request.path + "/", page, size)


async def delete_entity(request: Mem0Request) -> dict[str, str]:
    kind, name = request.parts["kind"], request.parts["name"]
    if kind not in KINDS:
        raise BadRequest(f"An entity is one of {', '.join(KINDS)}.", param="entity_type")
    gone = await request.ask(
        "DELETE", "/v1/memories/all", query={f"{kind}_id": name, "confirm": DELETE_ALL_CONFIRMATION}
    )
    if not gone["deleted"]:
        raise NotFound(f"There is no such {kind}.")
    return {"message": "Entity deleted successfully!"}


async def update_many(request: Mem0Request) -> dict[str, str]:
    wanted = _batch(request)
    asked = [(_address(one["memory_id"]), shapes.changes(one)) for one in wanted]
    for place, (address, _) in enumerate(asked):
        await _of_batch(request.ask("GET", address), place, 0)
    for place, (address, body) in enumerate(asked):
        await _of_batch(request.ask("PATCH", address, body), place, place)
    return {"message": f"Successfully updated {len(asked)} memories"}


async def _of_batch(asked: Awaitable[Any], place: int, changed: int) -> None:
    """One call for a batch. Raises CallRefused, which says which memory it was and how many were
    changed before.
    """
    try:
        await asked
    except CallRefused as refused:
        error = refused.body.get("error")
        if not isinstance(error, dict):
            raise
        said = f"memories.{place}: {error['message']} {changed} were changed before."
        body = {**refused.body, "error": {**error, "message": said}}
        raise CallRefused(refused.status, body, refused.headers) from None


async def delete_many(request: Mem0Request) -> dict[str, Any]:
    gone = await request.ask(
        "POST", "/v1/memories/bulk-delete", {"ids": [one["memory_id"] for one in _batch(request)]}
    )
    return {
        "message": f"Successfully deleted {gone['deleted']} memories",
        "results": gone["results"],
    }


def _batch(request: Mem0Request) -> list[dict[str, Any]]:
    wanted = request.body.get("memories")
    if not isinstance(wanted, list) or not 1 <= len(wanted) <= BATCH_ITEMS_MAX:
        raise BadRequest(f"A batch has 1 to {BATCH_ITEMS_MAX} memories.", param="memories")
    if any(
        not isinstance(one, dict) or not isinstance(one.get("memory_id"), str) for one in wanted
    ):
        raise BadRequest("Each memory of a batch needs its memory_id.", param="memories")
    return wanted


def _address(memory_id: str) -> str:
    return f"/v1/memories/{quote(memory_id, safe='')}"
