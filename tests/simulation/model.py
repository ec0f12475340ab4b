"""What the answers must be, in plain Python objects.

For each operation that changes or shows something there is one method: it says which answer the
documentation promises for a request in the present state, and what the request changes. It never
looks at the service; ids, which it cannot know, it takes from answers, or after a crash, when there
was none, from what the lists show then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from runtime.timestamps import iso, parse
from tests.simulation.state import (
    CLEARED,
    DAY_MS,
    SHOWN,
    Access,
    Account,
    Collection,
    Decision,
    Expected,
    Memory,
    Record,
    Refused,
    Request,
)

CANONICAL = {
    "memories.create",
    "memories.create_raw",
    "memories.create_batch",
    "memory_tools.insert",
    "learning.decide",
    "learning.report",
}
COST_ONE = {"memories.update", "memory_tools.replace", "memory_tools.rethink", "learning.decide"}


class Model:
    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    # --- the stations of a request ----------------------------------------------------------------

    def expect(self, request: Request, scope: str, idempotent: bool, now: int) -> Expected:
        """The promised answer. `scope` and `idempotent` are the operation's."""
        try:
            if scope == "public":
                return self._of(request, None, now)
            account = self._admitted(request.who, scope, now)
            record = account.records.get(request.key) if idempotent and request.key else None
            if record is not None and (record.expires_at is None or record.expires_at > now):
                return self._repeated(record, request, now)
            expected = self._of(request, account, now)
        except Refused as refused:
            return Expected((refused.status,))
        if request.operation in COST_ONE:
            expected.credits = 1
        if expected.credits:
            self._charge(account, expected)
        if idempotent and request.key:
            self._remember(account, request, expected, now)
        return expected

    def _of(self, request: Request, account: Account | None, now: int) -> Expected:
        return getattr(self, request.operation.replace(".", "_"))(account, request, now)

    def _admitted(self, who: Access, scope: str, now: int) -> Account:
        if who.is_gone or (who.expires_at is not None and who.expires_at <= now):
            raise Refused(401)
        if scope not in who.rights:
            raise Refused(403)
        return who.account

    def _repeated(self, record: Record, request: Request, now: int) -> Expected:
        if record.request.meaning != request.meaning:
            raise Refused(409)
        if record.expires_at is not None:
            return Expected(record.statuses, body=record.body, is_replay=True)
        if request.operation.startswith("learning."):
            return Expected((201,), {"replayed": True})
        left = [memory for memory in record.memories if memory.readable(now)]
        if not left and record.memories:
            raise Refused(404)
        known = all(memory.is_searchable is not None for memory in left)
        statuses = (
            (201, 202)
            if not known
            else (201,)
            if all(memory.is_searchable for memory in left)
            else (202,)
        )
        is_batch = request.operation == "memories.create_batch"
        if len(record.memories) == 1 and not is_batch:
            return Expected(statuses, left[0].view())
        named = record.memories if is_batch else left

        def apply(body: Any, status: int | None) -> None:
            """A crash may have hidden the ids until now."""
            for memory, memory_id in zip(
                named, [] if body is None else body["memory_ids"], strict=body is not None
            ):
                memory.id = memory.id or memory_id

        ids = [memory.id for memory in named]
        return Expected(statuses, {} if None in ids else {"memory_ids": ids}, apply)

    def _charge(self, account: Account, expected: Expected) -> None:
        change = expected.apply

        def apply(body: Any, status: int | None) -> list[Memory] | None:
            account.spent += expected.credits
            return change(body, status) if change else None

        expected.apply = apply

    def _remember(self, account: Account, request: Request, expected: Expected, now: int) -> None:
        """Bind the key when the request takes effect."""
        change = expected.apply
        canonical = request.operation in CANONICAL

        def apply(body: Any, status: int | None) -> list[Memory] | None:
            made = change(body, status) if change else None
            expires_at = None if canonical else now + DAY_MS
            account.records[request.key] = Record(
                request, expires_at, (status,) if status else expected.statuses, body, made or []
            )
            return made

        expected.apply = apply

    # --- who is meant -----------------------------------------------------------------------------

    def collection(self, account: Account, collection_id: str | None) -> Collection:
        if collection_id is None:
            return account.collections[0]
        for owner in self.accounts.values():
            for collection in owner.collections:
                if collection.id == collection_id:
                    if owner is not account:
                        raise Refused(403)
                    if not collection.is_gone:
                        return collection
        raise Refused(404)

    def memory(self, account: Account, memory_id: str, now: int) -> Memory:
        for owner in self.accounts.values():
            for memory in owner.memories:
                if memory.id == memory_id:
                    if owner is not account:
                        raise Refused(403)
                    if memory.readable(now):
                        return memory
        raise Refused(404)

    # --- accounts ---------------------------------------------------------------------------------

    def auth_register(self, _: None, request: Request, now: int) -> Expected:
        email = request.body["email"]
        if email in self.accounts:
            raise Refused(409)

        def apply(body: Any, status: int | None) -> None:
            account = self.accounts[email] = Account(email, request.body["password"])
            account.collections.append(Collection("default", now, updated_at=now, is_default=True))
            if body is not None:
                account.id = body["user_id"]

        return Expected((201,), {"email": email}, apply)

    def auth_login(self, _: None, request: Request, now: int) -> Expected:
        account = self.accounts.get(request.body["email"])
        if account is None or account.password != request.body["password"]:
            raise Refused(401)
        return Expected(
            (200,), {"email": account.email} | ({"user_id": account.id} if account.id else {})
        )

    def auth_logout(self, account: Account, request: Request, now: int) -> Expected:
        if request.who.name:
            raise Refused(400)
        return Expected((204,), apply=lambda body, status: setattr(request.who, "is_gone", True))

    def auth_me(self, account: Account, request: Request, now: int) -> Expected:
        return Expected((200,), {"email": account.email, "user_id": account.id})

    def auth_api_keys_create(self, account: Account, request: Request, now: int) -> Expected:
        sent = request.body
        expires_at = parse(sent["expires_at"]) if sent.get("expires_at") else None
        if expires_at is not None and expires_at <= now:
            raise Refused(422)

        def apply(body: Any, status: int | None) -> None:
            key = Access(account, None, tuple(sent["scopes"]), expires_at, sent["name"])
            if body is not None:
                key.text, key.id = body["key"], body["id"]
            account.keys.append(key)

        return Expected((201,), {"name": sent["name"], "created_at": iso(now)}, apply)

    def auth_api_keys_list(self, account: Account, request: Request, now: int) -> Expected:
        keys = [key for key in account.keys if not key.is_gone][::-1]
        return Expected(
            (200,),
            {
                "total_count": len(keys),
                "items": [{"name": key.name} for key in keys[: request.query["limit"]]],
            },
        )

    def auth_api_keys_delete(self, account: Account, request: Request, now: int) -> Expected:
        key = next(
            (key for key in account.keys if key.id == request.path["id"] and not key.is_gone), None
        )
        if key is None:
            raise Refused(404)
        return Expected((204,), apply=lambda body, status: setattr(key, "is_gone", True))

    # --- collections ------------------------------------------------------------------------------

    def collection_view(self, account: Account, collection: Collection) -> dict[str, Any]:
        shown = {
            "name": collection.name,
            "description": collection.description,
            "metadata": collection.metadata,
            "version": collection.version,
            "is_default": collection.is_default,
            "created_at": iso(collection.created_at),
            "updated_at": iso(collection.updated_at),
        }
        return shown if collection.id is None else {**shown, "id": collection.id}

    def memory_counts(self, account: Account, collection: Collection, now: int) -> range:
        """What memory_count may be: what has expired counts until it is swept."""
        members = [
            memory
            for memory in account.memories
            if memory.collection is collection and not memory.is_gone
        ]
        return range(sum(memory.readable(now) for memory in members), len(members) + 1)

    def collections_create(self, account: Account, request: Request, now: int) -> Expected:
        made = Collection(
            request.body["name"], now, None, request.body.get("description"), updated_at=now
        )

        def apply(body: Any, status: int | None) -> None:
            made.id = None if body is None else body["id"]
            account.collections.append(made)

        return Expected((201,), self.collection_view(account, made), apply)

    def collections_get(self, account: Account, request: Request, now: int) -> Expected:
        return Expected(
            (200,), self.collection_view(account, self.collection(account, request.path["id"]))
        )

    def collections_get_default(self, account: Account, request: Request, now: int) -> Expected:
        return Expected((200,), self.collection_view(account, account.collections[0]))

    def collections_list(self, account: Account, request: Request, now: int) -> Expected:
        found = [
            c
            for c in account.collections
            if not c.is_gone and request.query.get("name") in (None, c.name)
        ][::-1]
        page = [
            self.collection_view(account, collection)
            for collection in found[: request.query["limit"]]
        ]
        return Expected(
            (200,), {"total_count": len(found), "items": page, "has_more": len(found) > len(page)}
        )

    def collections_update(self, account: Account, request: Request, now: int) -> Expected:
        collection = self.collection(account, request.path["id"])
        sent = {
            **request.body,
            **({"metadata": request.body["metadata"] or {}} if "metadata" in request.body else {}),
        }
        changes = {
            name: value for name, value in sent.items() if getattr(collection, name) != value
        }
        after = {
            "version": collection.version + bool(changes),
            "updated_at": now if changes else collection.updated_at,
            **changes,
        }

        def apply(body: Any, status: int | None) -> None:
            for name, value in after.items():
                setattr(collection, name, value)

        return Expected(
            (200,),
            self.collection_view(account, collection)
            | {**after, "updated_at": iso(after["updated_at"])},
            apply,
        )

    def collections_delete(self, account: Account, request: Request, now: int) -> Expected:
        collection = self.collection(account, request.path["id"])
        if collection.is_default:
            raise Refused(400)
        return Expected(
            (200,),
            {"id": collection.id, "deleted": True},
            lambda body, status: self._drop(account, [collection]),
        )

    def collections_bulk_delete(self, account: Account, request: Request, now: int) -> Expected:
        doomed, results = [], []
        for collection_id in request.body["ids"]:
            try:
                collection = self.collection(account, collection_id)
                status = (
                    "forbidden"
                    if collection.is_default
                    else "not_found"
                    if collection in doomed
                    else "deleted"
                )
            except Refused as refused:
                status = "forbidden" if refused.status == 403 else "not_found"
            if status == "deleted":
                doomed.append(collection)
            results.append({"id": collection_id, "status": status})
        return Expected(
            (200,),
            {"deleted": len(doomed), "results": results},
            lambda body, status: self._drop(account, doomed),
        )

    def collections_delete_all(self, account: Account, request: Request, now: int) -> Expected:
        if "confirm" not in request.query:
            raise Refused(400)
        doomed = [
            collection
            for collection in account.collections
            if not collection.is_gone and not collection.is_default
        ]
        return Expected(
            (200,),
            {"deleted": len(doomed)},
            lambda body, status: self._drop(account, [*doomed, account.collections[0]]),
        )

    def _drop(self, account: Account, doomed: Iterable[Collection]) -> None:
        for collection in doomed:
            collection.is_gone = not collection.is_default
            for memory in account.memories:
                memory.is_gone |= memory.collection is collection

    # --- decisions --------------------------------------------------------------------------------

    def decision(self, account: Account, decision_id: str) -> Decision:
        for owner in self.accounts.values():
            for decision in owner.decisions:
                if decision.id == decision_id:
                    if owner is not account:
                        raise Refused(403)
                    return decision
        raise Refused(404)

    def learning_decide(self, account: Account, request: Request, now: int) -> Expected:
        made = Decision(request.body["chosen_action_key"])

        def apply(body: Any, status: int | None) -> None:
            made.id = None if body is None else body["decision_id"]
            account.decisions.append(made)

        return Expected(
            (201,),
            {"chosen_action_key": made.chosen, "action_probability": 0.5, "replayed": False},
            apply,
        )

    def learning_report(self, account: Account, request: Request, now: int) -> Expected:
        decision = self.decision(account, request.path["id"])
        success = request.body["success"]
        told = {
            "status": "final",
            "composite_reward": float(success),
            "outcome_count": len(decision.outcomes) + 1,
            "replayed": False,
        }
        return Expected((201,), told, lambda body, status: decision.outcomes.append(success))

    def learning_get(self, account: Account, request: Request, now: int) -> Expected:
        return Expected((200,), self.decision(account, request.path["id"]).view())

    # --- memories: made ---------------------------------------------------------------------------

    def _made(
        self,
        sent: dict[str, Any],
        collection: Collection,
        request: Request,
        now: int,
        shared: dict[str, Any] | None = None,
    ) -> Memory:
        fields = {name: sent[name] for name in SHOWN if sent.get(name) is not None}
        if shared and shared.get("user_id"):
            fields.setdefault("user_id", shared["user_id"])
        fields.setdefault("importance", 0.5)
        expires_at = parse(sent["expires_at"]) if sent.get("expires_at") else None
        ready = request.in_time
        return Memory(
            sent["content"],
            collection,
            now,
            ready,
            fields,
            expires_at,
            updated_at=now,
            versions=[("ADD", sent["content"])],
        )

    def _store(
        self, account: Account, made: list[Memory], fields: dict[str, Any], request: Request
    ) -> Expected:
        def apply(body: Any, status: int | None) -> list[Memory]:
            ids = [None] * len(made) if body is None else body.get("memory_ids", [body.get("id")])
            assert len(ids) == len(made), (ids, made)
            for memory, memory_id in zip(made, ids, strict=True):
                memory.id = memory_id
                if body is not None:
                    memory.is_searchable = status != 202
            account.memories += made
            return made

        return Expected(
            _statuses(201, request.in_time if made else True), fields, apply, credits=len(made)
        )

    def memories_create_raw(self, account: Account, request: Request, now: int) -> Expected:
        made = self._made(
            request.body, self.collection(account, request.body.get("collection_id")), request, now
        )
        return self._store(account, [made], made.view(), request)

    memory_tools_insert = memories_create_raw

    def memories_create(self, account: Account, request: Request, now: int) -> Expected:
        if "messages" not in request.body:
            return self.memories_create_raw(account, request, now)
        collection = self.collection(account, request.body.get("collection_id"))
        texts = [
            {**request.body, "content": said["content"], "speaker": said["role"]}
            for said in request.body["messages"]
        ]
        made = [self._made(text, collection, request, now) for text in texts]
        return self._store(account, made, {"created_count": len(made)}, request)

    def memories_create_batch(self, account: Account, request: Request, now: int) -> Expected:
        sent = request.body
        self.collection(account, sent.get("collection_id"))
        made = []
        for item in sent["memories"]:
            try:
                collection = self.collection(
                    account, item.get("collection_id") or sent.get("collection_id")
                )
            except Refused as refused:
                if refused.status == 403:
                    raise
                continue
            made.append(self._made(item, collection, request, now, shared=sent))
        return self._store(
            account,
            made,
            {"created": len(made), "failed": len(sent["memories"]) - len(made)},
            request,
        )

    # --- memories: changed ------------------------------------------------------------------------

    def memories_update(self, account: Account, request: Request, now: int) -> Expected:
        memory = self.memory(account, request.path["id"], now)
        if (
            request.if_match is not None
            and request.if_match != "*"
            and request.if_match != f'"{len(memory.versions)}"'
        ):
            raise Refused(412)
        wanted = {
            name: CLEARED.get(name) if value is None else value
            for name, value in request.body.items()
        }
        before = memory.view()
        changes = {name: value for name, value in wanted.items() if before[name] != value}
        if not changes:
            return Expected((200,), before)
        return self._changed(memory, changes, request, now)

    def _changed(
        self, memory: Memory, changes: dict[str, Any], request: Request, now: int
    ) -> Expected:
        """A new version with these fields, unless there are none."""
        rewritten = "content" in changes
        ready = request.in_time if rewritten else memory.is_searchable
        after = {**memory.view(), **changes}
        if changes:
            after |= {"version": len(memory.versions) + 1, "updated_at": iso(now)}
        for name in ("searchable", "processing_status"):
            after.pop(name, None)

        def apply(body: Any, status: int | None) -> None:
            for name, value in changes.items():
                if name == "expires_at":
                    memory.expires_at = None if value is None else parse(value)
                elif name == "content":
                    memory.content = value
                else:
                    memory.fields[name] = value
            if changes:
                memory.versions.append(("UPDATE", memory.content))
                memory.updated_at = now
            if rewritten:
                memory.is_searchable = ready if body is None else status != 202

        return Expected(_statuses(200, ready), after, apply)

    def memory_tools_replace(self, account: Account, request: Request, now: int) -> Expected:
        memory = self.memory(account, request.body["memory_id"], now)
        if memory.content != request.body["old_content"]:
            raise Refused(409)
        same = request.body["new_content"] == memory.content
        return self._changed(
            memory, {} if same else {"content": request.body["new_content"]}, request, now
        )

    def memory_tools_rethink(self, account: Account, request: Request, now: int) -> Expected:
        memory = self.memory(account, request.body["memory_id"], now)

        def apply(body: Any, status: int | None) -> None:
            memory.is_searchable = request.in_time if body is None else status != 202

        return Expected(
            _statuses(200, request.in_time),
            {"id": memory.id, "version": len(memory.versions)},
            apply,
        )

    # --- memories: gone ---------------------------------------------------------------------------

    def memories_delete(self, account: Account, request: Request, now: int) -> Expected:
        memory = self.memory(account, request.path["id"], now)
        if (
            request.if_match is not None
            and request.if_match != "*"
            and request.if_match != f'"{len(memory.versions)}"'
        ):
            raise Refused(412)
        return Expected(
            (200,), {"id": memory.id, "deleted": True}, lambda body, status: _forget([memory])
        )

    def memories_bulk_delete(self, account: Account, request: Request, now: int) -> Expected:
        doomed, results = [], []
        for memory_id in request.body["ids"]:
            try:
                memory = self.memory(account, memory_id, now)
                status = "not_found" if memory in doomed else "deleted"
            except Refused as refused:
                status = "forbidden" if refused.status == 403 else "not_found"
            if status == "deleted":
                doomed.append(memory)
            results.append({"id": memory_id, "status": status})
        return Expected(
            (200,),
            {"deleted": len(doomed), "results": results},
            lambda body, status: _forget(doomed),
        )

    def memories_delete_all(self, account: Account, request: Request, now: int) -> Expected:
        if "confirm" not in request.query:
            raise Refused(400)
        if "collection_id" in request.query:
            self.collection(account, request.query["collection_id"])
        doomed = account.matching(request.query, now)
        return Expected((200,), {"deleted": len(doomed)}, lambda body, status: _forget(doomed))

    # --- memories: read ---------------------------------------------------------------------------

    def memories_get(self, account: Account, request: Request, now: int) -> Expected:
        return Expected((200,), self.memory(account, request.path["id"], now).view())

    def memories_history(self, account: Account, request: Request, now: int) -> Expected:
        memory = self.memory(account, request.path["id"], now)
        versions = [
            {"version": n, "event": event, "content": text}
            for n, (event, text) in enumerate(memory.versions, 1)
        ]
        return Expected(
            (200,), {"total_count": len(versions), "items": versions[: request.query["limit"]]}
        )

    def memories_list(
        self, account: Account, request: Request, now: int, below: Memory | None = None
    ) -> Expected:
        """One page. below: the last memory of the page before."""
        if "collection_id" in request.query:
            self.collection(account, request.query["collection_id"])
        found = account.matching(request.query, now)[::-1]
        place = -1 if below is None else account.memories.index(below)
        rest = (
            found
            if below is None
            else [memory for memory in found if account.memories.index(memory) < place]
        )
        page = [memory.view() for memory in rest[: request.query["limit"]]]
        return Expected(
            (200,), {"total_count": len(found), "items": page, "has_more": len(rest) > len(page)}
        )

    def search_search(self, account: Account, request: Request, now: int) -> Expected:
        """Weak results are asked for, so that vectors find everything there is and words exactly
        what has them.
        """
        asked = request.body
        if "collection_id" in asked:
            self.collection(account, asked["collection_id"])
        everything = {
            memory.id: memory for memory in account.matching(asked, now) if memory.is_searchable
        }
        worded = {
            memory_id
            for memory_id, memory in everything.items()
            if set(asked["query"].split()) & set(memory.content.split())
        }
        by_meaning = asked["search_type"] != "bm25"
        found = (
            set(everything)
            if by_meaning and request.in_time
            else set()
            if asked["search_type"] == "vector"
            else worded
        )
        # A hybrid search adds what was said beside a match.
        also = set(everything) if asked["search_type"] == "hybrid" else set()
        return Expected(
            (200,),
            {"degraded": by_meaning and not request.in_time, "no_match": not found},
            found=found,
            also=also,
        )

    # --- profiles ---------------------------------------------------------------------------------

    def profile_get(self, account: Account, request: Request, now: int) -> Expected:
        """Facts come a little later; they are looked at when everything has settled (`home_of`)."""
        user = request.query["user_id"]
        return Expected(
            (200,),
            {
                "bio": account.profiles[user].bio,
                "memory_count": len(account.matching({"user_id": user}, now)),
            },
        )

    def profile_update(self, account: Account, request: Request, now: int) -> Expected:
        profile = account.profiles[request.query["user_id"]]
        bio = request.body["bio"]

        def apply(body: Any, status: int | None) -> None:
            profile.bio, profile.is_set = bio, True

        return Expected((200,), {"bio": bio}, apply)

    def profile_delete(self, account: Account, request: Request, now: int) -> Expected:
        """Where nothing is left that could make a profile, facts that were once derived may still
        have left one to delete.
        """
        user = request.query["user_id"]
        profile = account.profiles[user]
        counted = [
            memory
            for memory in account.memories[profile.since :]
            if memory.fields.get("user_id") == user
        ]
        exists = profile.is_set or any(memory.readable(now) for memory in counted)

        def apply(body: Any, status: int | None) -> None:
            profile.bio, profile.is_set, profile.since = None, False, len(account.memories)

        return Expected((200,) if exists else (200, 404) if counted else (404,), {}, apply)


def _statuses(ready: int, in_time: bool | None) -> tuple[int, ...]:
    return (ready, 202) if in_time is None else (ready,) if in_time else (202,)


def _forget(doomed: Iterable[Memory]) -> None:
    for memory in doomed:
        memory.is_gone = True
