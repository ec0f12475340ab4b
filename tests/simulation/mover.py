"""An account that takes another one's export in, part by part, is the same for a while, and is
erased again.

Every request may be the last one of its process. A part whose answer was lost is sent again, which
changes nothing if it was stored. An erased account lets nobody in from the same transaction on, and
after its job has run no row of it is left.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from storage.store import Scope
from tests.simulation.world import SURVIVES, World
from tests.support.shard_harness import Answer

RECORDS_PER_PART = 7
PASSWORD = "correct horse"
DOOM = 0.2
KEPT = (
    "content",
    "version",
    "tags",
    "metadata",
    "importance",
    "user_id",
    "session_id",
    "speaker",
    "created_at",
    "updated_at",
    "expires_at",
)


class Mover:
    """hold, note: as of the scribe's. recover(): opens what a crash has left."""

    def __init__(
        self, world: World, chance: random.Random, note: Any, hold: Any, recover: Callable[[], Any]
    ):
        self._world, self._chance, self._note, self._hold, self._recover = (
            world,
            chance,
            note,
            hold,
            recover,
        )
        self._number = 0
        self._erased: Scope | None = None

    def move(self, source: str) -> None:
        """Export the account of this credential, import it into a new one, compare, erase the new
        one.
        """
        self._number += 1
        email = f"mover{self._number}@example.com"
        records, cursor = [], {}
        while True:
            part = self._read("account.export_part", source, **cursor)
            records += part["records"]
            if not part["has_more"]:
                break
            cursor = {"cursor": part["next_cursor"]}
        there = self._world.register(email, "Mover")
        for first in range(0, len(records), RECORDS_PER_PART):
            body = {"records": records[first : first + RECORDS_PER_PART], "first": first}
            while (answer := self._ask("account.import_part", there, body)[1]) is None:
                pass
            self._hold(answer.status == 200, "an export is not taken in", answer)
        self._hold(
            self._seen(there) == self._seen(source),
            f"the copy of {source[-8:]} says {self._seen(there)}, not {self._seen(source)}",
        )
        self._erase(there, email)

    def _erase(self, token: str, email: str) -> None:
        scope = self._world.scope_of(token)
        while True:
            erased, answer = self._ask("account.erase", token, query={"confirm": "erase-account"})
            if erased:
                break
            self._hold(answer is None, "an account is not erased", answer)
        for operation in ("memories.list", "auth.me"):
            answer = self._world(operation, who=token)
            self._hold(answer.status == 401, "an erased account lets somebody in", answer)
        self._hold(
            self._world("auth.login", {"email": email, "password": PASSWORD}).status == 401,
            "it can be logged into",
        )
        self._erased = scope

    def look(self) -> None:
        """All jobs have run: nothing is left of what was erased."""
        if self._erased is not None:
            with self._world.shard.store.snapshot() as snapshot:
                left = [
                    scope
                    for scope in snapshot.scopes()
                    if (scope.slot, scope.tenant) == (self._erased.slot, self._erased.tenant)
                ]
            self._hold(not left, f"rows of an erased account are left: {left}")

    def _seen(self, token: str) -> list[Any]:
        items, cursor = [], {}
        while True:
            page = self._read("memories.list", token, limit=100, include_superseded=True, **cursor)
            items += page["items"]
            if not page["has_more"]:
                break
            cursor = {"cursor": page["next_cursor"]}
        histories = [
            self._read("memories.history", token, {"id": item["id"]}, limit=100)["items"]
            for item in items
        ]
        told = [
            [
                (version["version"], version["event"], version["content"], version["at"])
                for version in history
            ]
            for history in histories
        ]
        return [*zip([{name: item[name] for name in KEPT} for item in items], told, strict=True)]

    def _read(
        self, operation: str, token: str, path: dict[str, str] | None = None, **query: Any
    ) -> Any:
        answer = self._world(operation, who=token, query=query, **(path or {}))
        self._hold(answer.status == 200, operation, answer)
        return answer.body

    def _ask(
        self, operation: str, token: str, body: Any = None, query: Any = None
    ) -> tuple[bool, Answer | None]:
        """Whether it took effect, and the answer, if there was one."""
        step = self._chance.choice(list(SURVIVES)) if self._chance.random() < DOOM else None
        self._world.arm(step)
        answer = self._world.ask([self._world.form(operation, body, who=token, query=query)])[0]
        self._world.arm(None)
        self._note(
            f"{operation} by the mover, armed {step} -> "
            f"{'no answer' if answer is None else answer.status}",
            answer,
        )
        self._recover()
        return (SURVIVES[step] if answer is None else answer.status < 300), answer
