"""Which requests a seed makes: mostly sensible ones on what is there, some on what is gone, foreign
or never was.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from runtime.timestamps import iso
from tests.simulation.model import Model
from tests.simulation.state import Access, Account, Request

SHARED_WORDS = ("harbour", "lantern", "violin", "meadow", "copper", "orchard")
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtv" for vowel in "aou"]
USERS, SESSIONS, TAGS = ("ada", "bob"), ("monday", "tuesday"), ("home", "work")
NOWHERE = {"mem": "mem_nowhere", "col": "col_nowhere", "dec": "dec_nowhere"}
MINUTE_MS, HOUR_MS = 60_000, 3_600_000

Body = dict[str, Any]


class Script:
    """Draws requests. It reads the model to know what could be asked for, and never changes it."""

    def __init__(self, chance: random.Random, model: Model):
        self._chance = chance
        self._model = model
        self._numbers = 0
        self._sent: list[Request] = []
        self.writes: dict[str, tuple[float, Callable[[Account], Request]]] = {
            "memories.create": (5, self._create),
            "messages": (1.5, self._messages),
            "memories.create_raw": (2, self._raw),
            "memory_tools.insert": (1, self._insert),
            "memories.create_batch": (2.5, self._batch),
            "memories.update": (4, self._update),
            "memory_tools.replace": (1.5, self._replace),
            "memory_tools.rethink": (1, self._rethink),
            "memories.delete": (2, self._delete),
            "memories.bulk_delete": (0.7, self._bulk_delete),
            "memories.delete_all": (0.6, self._delete_all),
            "collections.create": (2, self._collections_create),
            "collections.update": (1.5, self._collections_update),
            "collections.delete": (0.7, self._collections_delete),
            "collections.bulk_delete": (0.3, self._collections_bulk_delete),
            "collections.delete_all": (0.15, self._collections_delete_all),
            "profile.update": (
                0.5,
                lambda account: Request(
                    "profile.update", body={"bio": self.word()}, query=self._user()
                ),
            ),
            "profile.delete": (0.4, lambda account: Request("profile.delete", query=self._user())),
            "learning.decide": (1, self._decide),
            "learning.report": (1.5, self._report),
        }
        self.others: dict[str, tuple[float, Callable[[Account], Request]]] = {
            "memories.get": (
                2,
                lambda account: Request("memories.get", path={"id": self._memory(account)}),
            ),
            "memories.history": (1, self._history),
            "memories.list": (2, self._list),
            "search.search": (5, self._search),
            "learning.get": (
                0.7,
                lambda account: Request("learning.get", path={"id": self._decision(account)}),
            ),
            "collections.get": (
                1,
                lambda account: Request("collections.get", path={"id": self._collection(account)}),
            ),
            "collections.get_default": (0.3, lambda account: Request("collections.get_default")),
            "collections.list": (1, self._collections_list),
            "profile.get": (1, lambda account: Request("profile.get", query=self._user())),
            "auth.me": (0.3, lambda account: Request("auth.me")),
            "auth.register": (0.5, self._register),
            "auth.login": (1, self._login),
            "auth.logout": (0.5, lambda account: Request("auth.logout")),
            "auth.api_keys.create": (1, self._mint),
            "auth.api_keys.list": (
                0.5,
                lambda account: Request(
                    "auth.api_keys.list", query={"limit": self._chance.randint(1, 5)}
                ),
            ),
            "auth.api_keys.delete": (0.5, self._unmint),
        }

    def request(self, credentials: list[Access], *, writes_only: bool = False) -> Request:
        """The next request, by one of these credentials; idempotent where it may be, and sometimes
        one that was sent before.
        """
        if self._sent and self._chance.random() < 0.12 and not writes_only:
            return self._again()
        menu = self.writes if writes_only else {**self.writes, **self.others}
        who = self._chance.choice(credentials)
        make = self._chance.choices(
            [make for _, make in menu.values()], [weight for weight, _ in menu.values()]
        )[0]
        request = make(who.account)
        request.who = None if request.operation in ("auth.register", "auth.login") else who
        if request.who is not None and self._chance.random() < 0.4:
            request.key = f"key-{self._number()}"
            self._sent.append(request)
        if writes_only:
            request.if_match = None
        elif request.operation in self.writes and self._chance.random() < 0.1:
            request.prefer = {"respond-async": ""}
        return request

    def create(self, who: Access) -> Request:
        """A plain new memory."""
        return Request("memories.create_raw", who, body={"content": self.text()})

    def _again(self) -> Request:
        """An earlier request under its key: the same, or another one."""
        before = self._chance.choice(self._sent[-25:])
        again = Request(
            before.operation,
            before.who,
            before.body,
            before.query,
            before.path,
            before.key,
            before.if_match,
        )
        if self._chance.random() < 0.2 and isinstance(again.body, dict) and "content" in again.body:
            again.body = {**again.body, "content": self.text()}
        return again

    # --- words and things -------------------------------------------------------------------------

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def word(self) -> str:
        """A word that was never used before, and that no stemmer shortens."""
        number, parts = self._number(), []
        for _ in range(3):
            number, place = divmod(number, len(SYLLABLES))
            parts.append(SYLLABLES[place])
        return "".join(parts) + "zork"

    def text(self) -> str:
        home = f" - I live in {self.word().capitalize()}" if self._chance.random() < 0.15 else ""
        more = " yonder" * 150 if self._chance.random() < 0.05 else ""  # longer than one passage
        return (
            f"{self.word()} {self._chance.choice(SHARED_WORDS)} "
            f"{self._chance.choice(SHARED_WORDS)}{more}{home}"
        )

    def _user(self) -> Body:
        return {"user_id": self._chance.choice(USERS)}

    def _now_and_then(self, share: float, value: Any) -> Any:
        return value if self._chance.random() < share else None

    def _foreign(self, account: Account) -> Account:
        return self._chance.choice(
            [other for other in self._model.accounts.values() if other is not account] or [account]
        )

    def _memory(self, account: Account) -> str:
        """Mostly one of the newest, which are mostly alive; often one that is not indexed yet."""
        if self._chance.random() < 0.06:
            account = self._foreign(account)
        known = [memory for memory in account.memories if memory.id is not None]
        alive = [memory for memory in known if not memory.is_gone]
        waiting = [memory for memory in alive if not memory.is_searchable]
        choice = alive if alive and self._chance.random() < 0.9 else known
        choice = waiting if waiting and self._chance.random() < 0.4 else choice
        return (
            self._chance.choice(choice[-20:]).id
            if choice and self._chance.random() > 0.03
            else NOWHERE["mem"]
        )

    def _collection(self, account: Account) -> str:
        if self._chance.random() < 0.04:
            account = self._foreign(account)
        known = [collection for collection in account.collections if collection.id is not None]
        alive = [collection for collection in known if not collection.is_gone]
        choice = alive if alive and self._chance.random() < 0.93 else known
        return (
            self._chance.choice(choice[-6:]).id
            if choice and self._chance.random() > 0.03
            else NOWHERE["col"]
        )

    def _decision(self, account: Account) -> str:
        if self._chance.random() < 0.06:
            account = self._foreign(account)
        known = [decision.id for decision in account.decisions if decision.id is not None]
        return (
            self._chance.choice(known[-6:])
            if known and self._chance.random() > 0.03
            else NOWHERE["dec"]
        )

    def _moment(self) -> str:
        """Soon after, or sometimes before, now."""
        return iso(self.now + self._chance.choice((-MINUTE_MS, 5, 500, 2 * MINUTE_MS, 5 * HOUR_MS)))

    now = 0

    def _fields(self, account: Account) -> Body:
        drawn = {
            "collection_id": self._now_and_then(0.4, self._collection(account)),
            "user_id": self._now_and_then(0.4, self._chance.choice(USERS)),
            "session_id": self._now_and_then(0.4, self._chance.choice(SESSIONS)),
            "tags": self._now_and_then(0.3, [self._chance.choice(TAGS)]),
            "metadata": self._now_and_then(0.2, {"n": self._chance.randint(1, 3)}),
            "importance": self._now_and_then(0.2, 0.75),
            "title": self._now_and_then(0.1, "a title"),
            "expires_at": self._now_and_then(0.12, self._moment()),
        }
        return {name: value for name, value in drawn.items() if value is not None}

    def _filters(self, account: Account) -> Body:
        drawn = {
            "collection_id": self._now_and_then(0.3, self._collection(account)),
            "user_id": self._now_and_then(0.25, self._chance.choice(USERS)),
            "session_id": self._now_and_then(0.15, self._chance.choice(SESSIONS)),
        }
        return {name: value for name, value in drawn.items() if value is not None}

    # --- requests ---------------------------------------------------------------------------------

    def _decide(self, account: Account) -> Request:
        body = {
            "policy_key": "p",
            "candidates": [{"action_key": "a"}, {"action_key": "b"}],
            "mode": "observe",
        }
        return Request(
            "learning.decide",
            body={
                **body,
                "chosen_action_key": self._chance.choice("ab"),
                "action_probability": 0.5,
            },
        )

    def _report(self, account: Account) -> Request:
        return Request(
            "learning.report",
            body={"success": self._chance.random() < 0.5},
            path={"id": self._decision(account)},
        )

    def _create(self, account: Account) -> Request:
        return Request("memories.create", body={"content": self.text(), **self._fields(account)})

    def _raw(self, account: Account) -> Request:
        return Request(
            "memories.create_raw", body={"content": self.text(), **self._fields(account)}
        )

    def _insert(self, account: Account) -> Request:
        return Request(
            "memory_tools.insert", body={"content": self.text(), **self._fields(account)}
        )

    def _messages(self, account: Account) -> Request:
        said = [
            {"role": role, "content": self.text()}
            for role in ("user", "assistant", "user")[: self._chance.randint(1, 3)]
        ]
        return Request(
            "memories.create",
            body={
                **self._fields(account),
                "session_id": self._chance.choice(SESSIONS),
                "messages": said,
            },
        )

    def _batch(self, account: Account) -> Request:
        items = [
            {"content": self.text(), **self._fields(account)}
            for _ in range(self._chance.randint(1, 5))
        ]
        return Request("memories.create_batch", body={"memories": items, **self._filters(account)})

    def _update(self, account: Account) -> Request:
        drawn = {
            "content": self._now_and_then(0.5, self.text()),
            "importance": self._now_and_then(0.3, self._chance.choice((0.5, 0.9))),
            "metadata": self._now_and_then(0.3, {"n": 9}),
            "tags": self._now_and_then(0.3, self._chance.choice(([], ["home"], ["work", "home"]))),
            "expires_at": self._now_and_then(0.1, self._moment()),
        }
        body = {name: value for name, value in drawn.items() if value is not None}
        if self._chance.random() < 0.2:
            body[self._chance.choice(("title", "metadata", "tags", "expires_at"))] = None
        match = self._now_and_then(0.3, self._chance.choice(('"1"', '"2"', "*")))
        return Request(
            "memories.update", body=body, path={"id": self._memory(account)}, if_match=match
        )

    def _text_of(self, account: Account, memory_id: str) -> str:
        return next(
            (memory.content for memory in account.memories if memory.id == memory_id), "nothing"
        )

    def _replace(self, account: Account) -> Request:
        memory_id = self._memory(account)
        old = self._text_of(account, memory_id) if self._chance.random() < 0.85 else "another text"
        new = self.text() if self._chance.random() < 0.9 else old
        return Request(
            "memory_tools.replace",
            body={"memory_id": memory_id, "old_content": old, "new_content": new},
        )

    def _rethink(self, account: Account) -> Request:
        return Request("memory_tools.rethink", body={"memory_id": self._memory(account)})

    def _delete(self, account: Account) -> Request:
        return Request(
            "memories.delete",
            path={"id": self._memory(account)},
            if_match=self._now_and_then(0.1, '"1"'),
        )

    def _bulk_delete(self, account: Account) -> Request:
        return Request(
            "memories.bulk_delete",
            body={"ids": [self._memory(account) for _ in range(self._chance.randint(1, 4))]},
        )

    def _delete_all(self, account: Account) -> Request:
        confirm = {"confirm": "delete-all-memories"} if self._chance.random() < 0.8 else {}
        return Request("memories.delete_all", query={**self._filters(account), **confirm})

    def _history(self, account: Account) -> Request:
        return Request(
            "memories.history",
            path={"id": self._memory(account)},
            query={"limit": self._chance.randint(1, 4)},
        )

    def _list(self, account: Account) -> Request:
        tag = {"tag": self._chance.choice(TAGS)} if self._chance.random() < 0.2 else {}
        return Request(
            "memories.list",
            query={"limit": self._chance.randint(1, 6), **self._filters(account), **tag},
        )

    def _search(self, account: Account) -> Request:
        texts = [memory.content for memory in account.memories] or ["nothing"]
        words = self._chance.choice(texts[-30:]).split()
        query = words[0] if self._chance.random() < 0.7 else words[-1]
        kind = self._chance.choice(("bm25", "vector", "hybrid"))
        asked = {"query": query, "search_type": kind, "limit": 100, "include_low_confidence": True}
        return Request("search.search", body={**asked, **self._filters(account)})

    def _collections_create(self, account: Account) -> Request:
        return Request(
            "collections.create",
            body={
                "name": self._chance.choice(("travel", "work", "default")),
                "description": self.word(),
            },
        )

    def _collections_update(self, account: Account) -> Request:
        drawn = {
            "name": self._now_and_then(0.5, self._chance.choice(("travel", "other"))),
            "metadata": self._now_and_then(0.4, {"k": self._chance.randint(0, 1)}),
        }
        body = {name: value for name, value in drawn.items() if value is not None}
        if self._chance.random() < 0.2:
            body[self._chance.choice(("description", "metadata"))] = None
        return Request("collections.update", body=body, path={"id": self._collection(account)})

    def _collections_delete(self, account: Account) -> Request:
        return Request("collections.delete", path={"id": self._collection(account)})

    def _collections_bulk_delete(self, account: Account) -> Request:
        return Request(
            "collections.bulk_delete",
            body={"ids": [self._collection(account) for _ in range(self._chance.randint(1, 3))]},
        )

    def _collections_delete_all(self, account: Account) -> Request:
        return Request(
            "collections.delete_all",
            query={"confirm": "delete-all-collections"} if self._chance.random() < 0.8 else {},
        )

    def _collections_list(self, account: Account) -> Request:
        name = {"name": "travel"} if self._chance.random() < 0.4 else {}
        return Request("collections.list", query={"limit": self._chance.randint(1, 4), **name})

    def _register(self, account: Account) -> Request:
        is_taken = self._chance.random() < 0.3 or len(self._model.accounts) >= 4
        email = account.email if is_taken else f"new{self._number()}@example.com"
        return Request(
            "auth.register",
            body={"email": email, "password": "correct horse", "full_name": "Somebody"},
        )

    def _login(self, account: Account) -> Request:
        password = account.password if self._chance.random() < 0.9 else "wrong horse"
        return Request("auth.login", body={"email": account.email, "password": password})

    def _mint(self, account: Account) -> Request:
        body: Body = {
            "name": f"key {self._number()}",
            "scopes": [self._chance.choice(("read", "write", "admin"))],
        }
        if self._chance.random() < 0.4:
            body["expires_at"] = self._moment()
        return Request("auth.api_keys.create", body=body)

    def _unmint(self, account: Account) -> Request:
        known = [key.id for key in account.keys if key.id is not None]
        return Request(
            "auth.api_keys.delete",
            path={"id": self._chance.choice(known) if known else "key_nowhere"},
        )
