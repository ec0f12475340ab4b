"""The API of mem0's clients, answered by ours: a client of theirs works with another address and another key (beta).

A mount claims what comes with `Authorization: Token …` on one of the paths below; a final slash makes no difference, and what is
none of theirs goes on to our own API, which takes `Token` as well. Each request becomes calls of our operations through the Door, as
the same caller, and their answers take the other shape (plugins/dropin_shapes.py, plugins/dropin_filters.py).

    GET     /v1/ping                                who the key belongs to
    POST    /v1/memories                            add at once; without `messages` it is our own create
    POST    /v3/memories/add                        add in the background, polled at
    GET     /v1/event/{id}
    POST    /v1|v2|v3/memories/search
    GET     /v1/memories, POST /v2|v3/memories      list by pages
    GET, PUT, DELETE /v1/memories/{id}, GET …/history
    DELETE  /v1/memories                            by names; none, an empty one or "*" is refused, so that nobody deletes everyone
    GET     /v1/entities, DELETE /v1|v2/entities/{kind}/{name}
    PUT, DELETE /v1/batch

Choices where their documentation is silent:
- An event's id names our job where text is ingested, and the memories themselves where they are stored as they are.
- The v1 list and the v1 search answer a bare list, as their first version did; the list with `page`, and the search with
  `output_format: "v1.1"`, the envelope.
- Deleting by names needs an admin key, as our own does. A batch of updates stops at the first that fails.
- A success has the status of ours, such as 201 or 202. A refusal has `detail`, the text their client shows, beside our own `error`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import orjson

from plugins import dropin_shapes as shapes
from plugins.dropin_filters import NAMES
from plugins.memory_views import DELETE_ALL_CONFIRMATION
from runtime.errors import ApiError, BadRequest, NotFound
from runtime.limits import BATCH_ITEMS_MAX, HISTORY_PAGES_MAX, PAGE_ITEMS_MAX
from runtime.mount import REQUEST, Application, Door, Mount, Receive, Scope, Send
from runtime.plugin import Plugin
from runtime.settings import Settings

KINDS = ("user", "agent", "app", "run")
OF_CALLER = ("org_id", "project_id")  # their own scopes of a key, which has one account here
PASSED_ON = ("retry-after", "www-authenticate", "x-should-retry", "x-ratelimit-limit")
EVENT_MARK = "."  # between the ids of an event's memories

# Words of letters are our own paths: /v1/memories/jobs is none of theirs.
_ID = r"(?P<id>(?=[^/]*[\d_])[^/]+)"


class Refused(Exception):
    """Our own API refused."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]):
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


@dataclass(slots=True)
class Request:
    """One request of theirs, with the parts of its path, its query and its body (an object).

    status  that of our last answer
    writes  how many calls of ours took the request's Idempotency-Key
    """

    door: Door
    scope: Scope
    path: str
    parts: dict[str, str]
    query: dict[str, str]
    body: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    writes: int = 0

    async def ask(self, method: str, path: str, json: Any = None, query: Mapping[str, Any] | None = None, prefer: str = "") -> Any:
        """The body of a success of ours. Raises Refused."""
        sent = dict(self.scope["headers"])
        headers = [(b"prefer", prefer.encode())] if prefer else []
        key = sent.get(b"idempotency-key")
        if key is not None and method != "GET":
            # A request of theirs may be several of ours, and a key belongs to one.
            headers.append((b"idempotency-key", key if not self.writes else sha256(b"%d:" % self.writes + key).hexdigest().encode()))
            self.writes += 1
        authorization = sent[b"authorization"].decode("latin-1")
        answer = await self.door.call(
            method, path, within=self.scope, authorization=authorization, query=urlencode(query or {}), json=json, headers=headers
        )
        if answer.status >= 400:
            raise Refused(answer.status, answer.json(), answer.headers)
        self.status = answer.status
        return answer.json()


Handler = Callable[[Request], Awaitable[Any]]

# --- memories -------------------------------------------------------------------------------------------------------


async def ping(request: Request) -> dict[str, Any]:
    account = await request.ask("GET", "/v1/auth/me")
    return {"status": "ok", "org_id": account["user_id"], "project_id": account["user_id"], "user_email": account["email"]}


async def add(request: Request) -> dict[str, Any]:
    if "messages" not in request.body:
        return await request.ask("POST", "/v1/memories", request.body)
    made = await request.ask("POST", "/v1/memories", shapes.new_memory(request.body))
    return {"results": [{name: result[name] for name in ("id", "event", "memory")} for result in made["results"]]}


async def add_later(request: Request) -> dict[str, Any]:
    if "messages" not in request.body:
        raise BadRequest("An add needs messages.", param="messages")
    asked = shapes.new_memory(request.body)
    made = await request.ask("POST", "/v1/memories", asked, prefer="respond-async")
    event_id = made["job_id"] if asked["infer"] else EVENT_MARK.join(made["memory_ids"])
    return {"event_id": event_id, "status": "PENDING", "message": "The memories are being processed in the background."}


async def event(request: Request) -> dict[str, Any]:
    event_id = request.parts["id"]
    if event_id.startswith("job_"):
        return shapes.event_of_job(await request.ask("GET", f"/v1/memories/jobs/{quote(event_id, safe='')}"))
    ids = event_id.split(EVENT_MARK)
    asked = {"filters": {"id": {"in": ids}}, "include_superseded": True, "limit": PAGE_ITEMS_MAX}
    found = (await request.ask("POST", "/v1/memories/query", asked))["items"]
    if not found:
        raise NotFound("There is no event with this id.")
    states = {one["processing_status"] for one in found}
    status = "PENDING" if "processing" in states else "FAILED" if "failed" in states else "SUCCEEDED"
    results = [{"id": one["id"], "event": "ADD", "memory": one["content"], "data": {"memory": one["content"]}} for one in found[::-1]]
    return shapes.event(event_id, status, results, created_at=found[-1]["created_at"])


async def search(request: Request) -> Any:
    path, asked = shapes.search(request.body)
    hits = (await request.ask("POST", path, asked))["results"]
    results = shapes.picked(map(shapes.memory, hits), request.body.get("fields"))
    bare = request.path.startswith("/v1/") and request.body.get("output_format") != "v1.1"
    return results if bare else {"results": results}


async def listed(request: Request) -> Any:
    asked = {**request.body, **request.query}
    page, size = shapes.page_of(asked)
    wanted = {"filters": shapes.conditions(asked), "limit": size, "offset": (page - 1) * size}
    found = await request.ask("POST", "/v1/memories/query", {**wanted, "include_superseded": asked.get("latest_only") is False})
    results = shapes.picked(map(shapes.memory, found["items"]), asked.get("fields"))
    if request.path.startswith("/v1/") and "page" not in asked:
        return results
    return shapes.paged(results, found["total_count"], request.path + "/", page, size)


async def get(request: Request) -> dict[str, Any]:
    ours = await request.ask("GET", _address(request.parts["id"]))
    return {**ours, **shapes.memory(ours)}


async def update(request: Request) -> dict[str, Any]:
    ours = await request.ask("PATCH", _address(request.parts["id"]), shapes.changes(request.body))
    return {**ours, **shapes.memory(ours)}


async def delete(request: Request) -> dict[str, Any]:
    if request.query.get("delete_linked", "").lower() == "true":
        raise BadRequest("Superseded memories are not deleted along; delete each by its id.", param="delete_linked")
    deleted = await request.ask("DELETE", _address(request.parts["id"]))
    return {**deleted, "message": "Memory deleted successfully!"}


async def history(request: Request) -> list[dict[str, Any]]:
    address = _address(request.parts["id"])
    owner = await request.ask("GET", address)
    versions: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": PAGE_ITEMS_MAX}
    for _ in range(HISTORY_PAGES_MAX):
        page = await request.ask("GET", f"{address}/history", query=query)
        versions += page["items"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    return shapes.history(versions, owner)


# --- many at once -----------------------------------------------------------------------------------------------------


async def delete_named(request: Request) -> dict[str, str]:
    asked = {name: value for name, value in request.query.items() if name not in OF_CALLER}
    if strange := [name for name in asked if name not in NAMES]:
        raise BadRequest(f"Memories are deleted by {', '.join(NAMES)}; {len(strange)} other parameters would be ignored.")
    if not asked or any(not value.strip() or value.strip() == "*" for value in asked.values()):
        raise BadRequest(f"Name whose memories to delete by {', '.join(NAMES)}; neither an empty name nor * stands for everyone.")
    await request.ask("DELETE", "/v1/memories/all", query={**asked, "confirm": DELETE_ALL_CONFIRMATION})
    return {"message": "Memories deleted successfully!"}


async def entities(request: Request) -> dict[str, Any]:
    page, size = shapes.page_of(request.query)
    found = await request.ask("GET", "/v1/memories/scopes", query={"limit": size, "offset": (page - 1) * size})
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


async def delete_entity(request: Request) -> dict[str, str]:
    kind, name = request.parts["kind"], request.parts["name"]
    if kind not in KINDS:
        raise BadRequest(f"An entity is one of {', '.join(KINDS)}.", param="entity_type")
    gone = await request.ask("DELETE", "/v1/memories/all", query={f"{kind}_id": name, "confirm": DELETE_ALL_CONFIRMATION})
    if not gone["deleted"]:
        raise NotFound(f"There is no such {kind}.")
    return {"message": "Entity deleted successfully!"}


async def update_many(request: Request) -> dict[str, str]:
    wanted = _batch(request)
    asked = [(_address(one["memory_id"]), shapes.changes(one)) for one in wanted]
    for address, body in asked:
        await request.ask("PATCH", address, body)
    return {"message": f"Successfully updated {len(asked)} memories"}


async def delete_many(request: Request) -> dict[str, Any]:
    gone = await request.ask("POST", "/v1/memories/bulk-delete", {"ids": [one["memory_id"] for one in _batch(request)]})
    return {"message": f"Successfully deleted {gone['deleted']} memories", "results": gone["results"]}


def _batch(request: Request) -> list[dict[str, Any]]:
    wanted = request.body.get("memories")
    if not isinstance(wanted, list) or not 1 <= len(wanted) <= BATCH_ITEMS_MAX:
        raise BadRequest(f"A batch has 1 to {BATCH_ITEMS_MAX} memories.", param="memories")
    if any(not isinstance(one, dict) or not isinstance(one.get("memory_id"), str) for one in wanted):
        raise BadRequest("Each memory of a batch needs its memory_id.", param="memories")
    return wanted


def _address(memory_id: str) -> str:
    return f"/v1/memories/{quote(memory_id, safe='')}"


# --- the mount --------------------------------------------------------------------------------------------------------

ROUTES: tuple[tuple[str, re.Pattern[str], Handler], ...] = tuple(
    (method, re.compile(pattern + "/?"), handler)
    for method, pattern, handler in (
        ("GET", "/v1/ping", ping),
        ("POST", "/v1/memories", add),
        ("POST", "/v3/memories/add", add_later),
        ("GET", "/v1/event/(?P<id>[^/]+)", event),
        ("POST", "/v[123]/memories/search", search),
        ("GET", "/v1/memories", listed),
        ("POST", "/v[23]/memories", listed),
        ("DELETE", "/v1/memories", delete_named),
        ("GET", f"/v1/memories/{_ID}", get),
        ("PUT", f"/v1/memories/{_ID}", update),
        ("DELETE", f"/v1/memories/{_ID}", delete),
        ("GET", f"/v1/memories/{_ID}/history", history),
        ("GET", "/v1/entities", entities),
        ("DELETE", "/v[12]/entities/(?P<kind>[^/]+)/(?P<name>.+?)", delete_entity),
        ("PUT", "/v1/batch", update_many),
        ("DELETE", "/v1/batch", delete_many),
    )
)
_CLAIMED = re.compile("|".join({re.sub(r"\(\?P<\w+>", "(?:", route.pattern) for _, route, _ in ROUTES}))


def claims(path: str, headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"authorization", b"")[:6].lower() == b"token " and _CLAIMED.fullmatch(path) is not None


def build(door: Door, settings: Settings) -> Application | None:
    return Dropin(door) if settings.dropin.enabled else None


class Dropin:
    """See the module docstring; instances are ASGI applications."""

    def __init__(self, door: Door):
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
        found = next(((m, handler) for method, route, handler in ROUTES if method == scope["method"] and (m := route.fullmatch(raw))), None)
        if found is None:
            await self._door.forward(scope, receive, send, path=raw, headers=scope["headers"])
            return
        match, handler = found
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        parts = {name: unquote(part) for name, part in match.groupdict().items()}
        try:
            request = Request(self._door, scope, raw.rstrip("/"), parts, query)
            try:
                if scope["method"] in ("POST", "PUT") or handler is delete_many:
                    request.body = _object(await self._door.body(scope, receive))
                body = await handler(request)
            except ApiError:
                await request.ask("GET", "/v1/auth/me")  # a stranger is told so before anybody learns how to mend a request
                raise
            await _send(send, request.status, body, {})
        except Refused as refused:
            await _send(send, refused.status, _with_detail(refused.body), refused.headers)
        except ApiError as error:
            told = {"code": error.code, "message": error.message, "type": error.type, "param": error.param, "details": error.details}
            told |= {"status_code": error.status, "request_id": scope[REQUEST]}
            later = {} if error.retry_after_seconds is None else {"retry-after": str(error.retry_after_seconds)}
            await _send(send, error.status, _with_detail({"error": told}), later)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise BadRequest("The body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    return body


def _with_detail(body: Any) -> dict[str, Any]:
    told = body["error"] if isinstance(body.get("error"), dict) else body
    return {"detail": told["message"], **body}


async def _send(send: Send, status: int, body: Any, headers: Mapping[str, str]) -> None:
    content = orjson.dumps(body)
    passed = [(name.encode(), headers[name].encode("latin-1")) for name in PASSED_ON if name in headers]
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content)), *passed]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": content})


plugin = Plugin(
    name="dropin",
    requires=("memories", "memory_lists", "search", "search_advanced", "ingestion", "accounts"),
    stability="beta",
    mounts=(Mount("dropin", claims, build),),
)
