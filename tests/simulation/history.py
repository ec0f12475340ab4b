"""One seed's history: each request is put to the shard and to the model, and the answers are held
against each other.

After a crash, and every now and then, everything that can be seen is compared: each account's
lists, page by page, its counts, and what searches find. When all jobs have run, the tables
themselves are counted too, so that nothing deleted stays behind. What was acknowledged must be
there. What got no answer must be there as a whole when its commit had reached the disk, and must
not be there at all when it had not.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from plugins.webhooks.store import BODIES, DELIVERY_FIELDS, EVENT_KINDS, UNDER_WAY
from runtime.api.operation import Call, Idempotency
from runtime.errors import ApiError
from tests.simulation import example_client
from tests.simulation.audit import Audit
from tests.simulation.example_client import ExampleClient
from tests.simulation.model import Model
from tests.simulation.mover import Mover
from tests.simulation.scribe import Scribe
from tests.simulation.script import HOUR_MS, MINUTE_MS, Script
from tests.simulation.state import Access, Account, Expected, Memory, Request
from tests.simulation.world import JOBS_MAX, SURVIVES, World
from tests.support.shard_harness import Answer

STEPS = 80
SHOWN_LINES = 14
PAGE = 100
JUMPS_MS = (700, 5_000, 2 * MINUTE_MS, 30 * MINUTE_MS, 5 * HOUR_MS, 25 * HOUR_MS, 8 * 24 * HOUR_MS)
ADMIN = ("admin",)


class Mismatch(AssertionError):
    """The service and the model do not agree."""


class History:
    """A world, a model of it, and the seed that drives both. `digest` sums up everything that was
    asked and answered.
    """

    def __init__(self, directory: Path, seed: int):
        self._chance = random.Random(seed)
        self.world = World(directory, seed, vectors_exact_max=self._chance.choice((8, 10_000)))
        self.model = Model()
        self.script = Script(self._chance, self.model)
        self.lines: deque[str] = deque(maxlen=SHOWN_LINES)
        self.crashes = 0
        self._digest = hashlib.sha256()
        self._access: list[Access] = []
        self._hooked: dict[Account, str] = {}
        self._audit = Audit(self.world, self._hold)
        self._page: tuple[Request, str, Memory] | None = None
        self._example_client = ExampleClient(self._chance, self.world.registry)
        self._example_client_token = ""

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def run(self, steps: int) -> None:
        for email in ("ada@example.com", "grace@example.com"):
            self._one(
                Request(
                    "auth.register",
                    body={"email": email, "password": "correct horse", "full_name": "Somebody"},
                )
            )
            self._hook(self.model.accounts[email])
        self._example_client_token = self.world.register(example_client.EMAIL, "Guest")
        self._scribe = Scribe(self.world, self._chance, self.script.word, self._note, self._hold)
        self._mover = Mover(self.world, self._chance, self._note, self._hold, self._recover_if_dead)
        self._look()
        actions = {
            self._request: 60,
            self._examples: 12,
            self._scribes: 10,
            self._scribe_is_heard: 2,
            self._moves: 0.7,
            self._doomed_request: 7,
            self._group: 6,
            self._jobs: 6,
            self._next_page: 3,
            self._embedder: 4,
            self._held_job: 3,
            self._jump: 4,
            self._reopen: 1,
            self._settle: 2,
        }
        for _ in range(steps):
            self._chance.choices(list(actions), list(actions.values()))[0]()
        self._settle()

    # --- actions ----------------------------------------------------------------------------------

    def _request(self) -> None:
        self._one(self.script.request(self._credentials()))

    def _doomed_request(self) -> None:
        self.world.arm(self._chance.choice(list(SURVIVES)))
        self._one(self.script.request(self._credentials()))

    def _group(self) -> None:
        if self.world.embedder.late:
            return
        credentials = self._credentials()
        requests = []
        for _ in range(self._chance.randint(2, 6)):
            requests.append(self.script.request(credentials, writes_only=True))
        if self._chance.random() < 0.35:
            self.world.arm(self._chance.choice([step for step in SURVIVES if step != "embedding"]))
        self._ask(requests)

    def _examples(self) -> None:
        """Something that the model knows nothing of; sometimes the last thing the process does."""
        if self._chance.random() < 0.1:
            self.world.arm(self._chance.choice(list(SURVIVES)))
        operation, body, path = self._example_client.draw()
        key = f"guest-{self._chance.randrange(1_000)}" if self._chance.random() < 0.5 else None
        answer = self.world.ask(
            [self.world.form(operation.name, body, who=self._example_client_token, key=key, **path)]
        )[0]
        self.world.arm(None)
        self._note(
            f"{operation.name} by example -> {'no answer' if answer is None else answer.status}",
            answer,
        )
        if answer is not None:
            self._hold(example_client.is_sound(answer), "a fault", answer)
            self._example_client.remember(answer)
        if answer is not None and answer.status == 401:
            login = {"email": example_client.EMAIL, "password": "correct horse"}
            self._example_client_token = self.world("auth.login", login).body["access_token"]
        if self._recover_if_dead():
            self._look()

    def _scribes(self) -> None:
        """Something is told, drawn or taken back; sometimes the last thing the process does."""
        self._scribe.act()
        if self._recover_if_dead():
            self._look()

    def _scribe_is_heard(self) -> None:
        """All jobs run, and what the scribe knows is looked at."""
        self._mode("up")
        self._let_jobs_run()
        self._after_jobs()
        self._scribe.look()

    def _moves(self) -> None:
        """An account is copied into a new one, which is erased again."""
        self._mover.move(self._session(self._chance.choice(self._accounts())).text)
        self._look()

    def _next_page(self) -> None:
        """Go on with a list that was begun a while ago."""
        if self._page is None:
            return
        request, cursor, last = self._page
        self._page = None
        following = Request("memories.list", request.who, query={**request.query, "cursor": cursor})
        answer = self._compare_page(following, last)
        if answer.status == 200:
            self._remember_page(following, answer)

    def _jobs(self) -> None:
        if self._chance.random() < 0.3:
            self.world.arm(self._chance.choice(list(SURVIVES)), writes=self._chance.randint(1, 4))
        count = self._chance.randint(1, 6)
        self._note(f"run {count} jobs, armed {self.world.armed}")
        self._mode(
            "down" if self._embedder_mode == "down" else "up"
        )  # a job would wait for a late one as long as it takes
        self.world.run_jobs(count)
        self._after_jobs()

    def _held_job(self) -> None:
        """A job is in the middle of its embedding while requests come and go."""
        self._mode("down")
        self._one(self.script.create(self._credentials()[0]))
        self._note("a job is held in its embedding")
        self._mode("up")
        self.world.hold_job()
        for _ in range(self._chance.randint(1, 4)):
            self._one(self.script.request(self._credentials(), writes_only=True))
        self._note("the held job goes on")
        self.world.release_job()
        self._after_jobs()

    def _after_jobs(self) -> None:
        self.world.arm(None)
        self._mode(self._embedder_mode)
        self._recover_if_dead()
        self._look()

    _embedder_mode = "up"

    def _embedder(self) -> None:
        self._embedder_mode = self._chance.choice(("up", "up", "down", "late"))
        self._mode(self._embedder_mode)
        self._note(f"the embedder is {self._embedder_mode}")

    def _mode(self, mode: str) -> None:
        self.world.embedder.down, self.world.embedder.late = mode == "down", mode == "late"

    def _jump(self) -> None:
        self.world.now_ms += self._chance.choice(JUMPS_MS)
        self._note(f"the clock jumps to {self.world.now_ms}")

    def _reopen(self) -> None:
        self._note("checkpoint and reopen")
        self.world.checkpoint()
        self.world.reopen()
        self._look()

    def _settle(self) -> None:
        """Let everything that waits happen, then look at all of it."""
        self._embedder_mode = "up"
        self._mode("up")
        self._note("settle")
        self.world.receivers.willing = True
        self._let_jobs_run()
        while any(
            0 <= self.world.now_ms - (m.expires_at or 0) <= 2 * MINUTE_MS
            for a in self._accounts()
            for m in a.memories
        ):
            self.world.now_ms += 3 * MINUTE_MS
        self.world.run_jobs(JOBS_MAX)
        for account in self._accounts():
            for memory in account.memories:
                memory.is_gone |= not memory.readable(self.world.now_ms)
        self._look(settled=True)
        for account in self._accounts():
            self._search_all(account)
            self._look_at_profiles(account)
            self._audit.rows(account, self._session(account))
        for account, url in self._hooked.items():
            self._compare_heard(account, url)
        self._scribe.look()
        self._mover.look()
        self.world.receivers.willing = False

    def _let_jobs_run(self) -> None:
        """Every job that waits, and those that these leave."""
        for _ in range(3):
            self.world.now_ms += 2 * MINUTE_MS
            self.world.run_jobs(JOBS_MAX)

    # --- webhooks ---------------------------------------------------------------------------------

    def _hook(self, account: Account) -> None:
        """The account wants to hear of every write, from the beginning. (What a read tells may be
        lost.)
        """
        url = self._hooked[account] = f"http://{len(self._hooked)}.example.test/"
        answer = self.world(
            "webhooks.create",
            {"url": url, "events": [k for k in EVENT_KINDS if k != "search.completed"]},
            who=self._session(account).text,
        )
        self._hold(answer.status == 201, "webhook", answer)
        self.world.receivers.secrets[url] = answer.body["signing_secret"]

    def _compare_heard(self, account: Account, url: str) -> None:
        """Every committed change was told, nothing else was, and nothing that was deleted is still
        on record.
        """
        told: dict[str, set[str]] = {
            "memory.created": set(),
            "memory.updated": set(),
            "memory.deleted": set(),
        }
        for event in self.world.receivers.events(url):
            if event["event_type"] in told:
                told[event["event_type"]].add(event["data"].get("content") or event["data"]["id"])
        created = [(memory, memory.versions[0][1]) for memory in account.memories]
        updated = [(each, content) for each in account.memories for _, content in each.versions[1:]]
        for kind, changes in (("memory.created", created), ("memory.updated", updated)):
            self._compare_told(f"{account.email}: {kind}", told[kind], changes)
        gone = sum(memory.is_gone for memory in account.memories)
        self._hold(
            len(told["memory.deleted"]) == gone,
            f"{account.email}: {len(told['memory.deleted'])} of {gone} deletions were told",
        )
        with self.world.shard.store.snapshot() as snapshot:
            scope = self._audit.resolved(self._session(account), snapshot)[1]
            under_way = DELIVERY_FIELDS.bind(snapshot, scope).any_of("status", UNDER_WAY)
            bodies = [json.loads(row.body) for _, row in snapshot.bind(BODIES, scope).scan()]
        kept = {body["data"]["id"] for body in bodies if "content" in body["data"]}
        alive = {memory.id for memory in account.readable(self.world.now_ms)}
        self._hold(
            not under_way and kept <= alive,
            f"{account.email}: {len(under_way)} under way, {kept - alive} still told of",
        )

    def _compare_told(self, what: str, told: set[str], changes: list[tuple[Memory, str]]) -> None:
        """told: contents; the id instead, where the memory went before its content was sent."""
        gone = [memory for memory, _ in changes if memory.is_gone]
        missing = {
            content
            for memory, content in changes
            if content not in told and not (memory.is_gone and memory.id in (None, *told))
        }
        other = told - {content for _, content in changes} - {memory.id for memory in gone}
        unknown = sum(memory.id is None for memory in gone)
        self._hold(
            not missing and len(other) <= unknown, f"{what} lacks {missing}, and tells {other}"
        )

    def _look_at_profiles(self, account: Account) -> None:
        """Every memory has been read by now: the profiles say what the memories say, and name
        them.
        """
        for user in account.profiles:
            answer = self._one(
                Request("profile.get", self._session(account), query={"user_id": user})
            )
            facts = [fact for fact in answer.body["static"] if fact["key"] == "lives_in"]
            shown = [(fact["value"], *fact["evidence_memory_ids"]) for fact in facts]
            wanted = account.home_of(user, self.world.now_ms)
            self._hold(shown == wanted, f"{account.email}: {user} lives in {shown}, not {wanted}")

    # --- asking and comparing ---------------------------------------------------------------------

    def _accounts(self) -> list[Account]:
        return list(self.model.accounts.values())

    def _credentials(self) -> list[Access]:
        """A working session of each account, and others that may work or not."""
        self.script.now = self.world.now_ms
        sessions = [self._session(account) for account in self._accounts()]
        keys = [
            key for account in self._accounts() for key in account.keys[-4:] if key.text is not None
        ]
        return [*sessions, *sessions, *sessions, *keys, *self._access[-3:]]

    def _session(self, account: Account) -> Access:
        soon = self.world.now_ms + MINUTE_MS
        for access in self._access:
            if access.account is account and not access.is_gone and access.expires_at > soon:
                return access
        self._one(
            Request("auth.login", body={"email": account.email, "password": account.password})
        )
        return self._access[-1]

    def _one(self, request: Request) -> Answer | None:
        return self._ask([request])[0]

    def _ask(self, requests: list[Request]) -> list[Answer | None]:
        """Put them to both sides, in one commit if there are several; recover and look at
        everything if the shard died of it.
        """
        step = self.world.armed
        if step is not None:
            self._note(f"armed: {step}")
        calls = [self._call(request, len(requests) > 1) for request in requests]
        answers = self.world.ask(calls)
        self.world.arm(None)
        for request, call, answer in zip(requests, calls, answers, strict=True):
            self._note(
                f"{_told(request)} -> {'no answer' if answer is None else answer.status}", answer
            )
            now = self.world.now_ms if isinstance(call, ApiError) else call.now_ms
            expected = self._expected(request, now)
            if answer is not None:
                self._compare(request, expected, answer)
            elif SURVIVES[step] and expected.statuses[0] < 300 and expected.apply is not None:
                expected.apply(None, None)
        if self._recover_if_dead():
            self._look()
        return answers

    def _call(self, request: Request, is_one_of_many: bool) -> Call | ApiError:
        request.in_time = self._embedder_is_prompt() and "respond-async" not in request.prefer
        if is_one_of_many and request.operation in (
            "memories.update",
            "memory_tools.replace",
            "memory_tools.rethink",
        ):
            request.in_time = None
        who = None if request.who is None else request.who.text
        call = self.world.form(
            request.operation,
            request.body,
            who=who,
            key=request.key,
            query=request.query,
            **request.path,
        )
        if isinstance(call, Call):
            call.if_match, call.prefer = request.if_match, request.prefer
        return call

    def _embedder_is_prompt(self) -> bool:
        return not (self.world.embedder.down or self.world.embedder.late)

    def _expected(self, request: Request, now: int) -> Expected:
        declared = self.world.registry.operations[request.operation]
        return self.model.expect(
            request, declared.scope, declared.idempotency is not Idempotency.NONE, now
        )

    def _compare(self, request: Request, expected: Expected, answer: Answer) -> None:
        """Hold one answer against the promise, then let the model learn from it."""
        if request.in_time is None and min(answer.status, *expected.statuses) >= 400:
            return  # one of several in a commit may be refused for what it saw before the others
        self._hold(
            answer.status in expected.statuses,
            f"status {answer.status}, not {expected.statuses}",
            answer,
        )
        if answer.status >= 300:
            return
        difference = _difference(expected.fields, answer.body) if expected.fields else None
        self._hold(difference is None, f"{difference}", answer)
        if expected.is_replay:
            self._hold(
                answer.headers.get("X-Idempotent-Replay") == "true",
                "a replay that does not say so",
                answer,
            )
            self._hold(
                expected.body is None or expected.body == answer.body,
                f"the first answer was {expected.body}",
                answer,
            )
        if expected.found is not None:
            self._compare_found(expected, answer, request.who.account)
        if expected.apply is not None:
            expected.apply(answer.body, answer.status)
        if request.operation in ("auth.register", "auth.login") and answer.body:
            account = self.model.accounts[request.body["email"]]
            account.id = answer.body["user_id"]
            expires_at = (self.world.now_ms // 1000 + answer.body["expires_in"]) * 1000
            self._access.append(Access(account, answer.body["access_token"], ADMIN, expires_at))
        if request.operation == "memories.list":
            self._remember_page(request, answer)

    def _compare_found(self, expected: Expected, answer: Answer, account: Account) -> None:
        found = set(answer.body["evidence_ids"])
        missing, too_much = expected.found - found, found - expected.found - expected.also
        contents = [
            f"{m.content} ({'searchable' if m.is_searchable else 'pending'})"
            for m in account.memories
            if m.id in missing | too_much
        ]
        self._hold(
            not missing and not too_much,
            f"missing {missing}, too much {too_much}: {contents}",
            answer,
        )
        self._hold(
            answer.body["total"] == len(found),
            f"a total of {answer.body['total']} for {len(found)} results",
            answer,
        )

    def _compare_page(self, request: Request, below: Memory) -> Answer:
        """A page after the first: its place is the model's to know, not the request's."""
        call = self._call(request, False)
        answer = self.world.ask([call])[0]
        assert answer is not None  # nothing is armed for a list
        self._note(f"{_told(request)} -> {answer.status}", answer)
        first = Request(
            "memories.list",
            request.who,
            query={name: value for name, value in request.query.items() if name != "cursor"},
        )
        expected = self._expected(first, self.world.now_ms)
        if expected.statuses == (200,):
            expected = self.model.memories_list(
                request.who.account, first, self.world.now_ms, below
            )
        self._hold(
            answer.status in expected.statuses,
            f"status {answer.status}, not {expected.statuses}",
            answer,
        )
        difference = _difference(expected.fields, answer.body) if answer.status == 200 else None
        self._hold(difference is None, f"{difference}", answer)
        return answer

    def _remember_page(self, request: Request, answer: Answer) -> None:
        if answer.body["has_more"]:
            last = next(
                m for m in request.who.account.memories if m.id == answer.body["items"][-1]["id"]
            )
            self._page = request, answer.body["next_cursor"], last

    # --- looking ----------------------------------------------------------------------------------

    def _recover_if_dead(self) -> bool:
        died = self.world.crashed
        if died:
            self.crashes += 1
            self.world.now_ms += self._chance.choice((3, 4_000))
            self.world.recover()
            self._mode(self._embedder_mode)
            self._note("recovered")
        return died

    def _look(self, settled: bool = False) -> None:
        """Compare every list of every account, and learn what a crash has hidden."""
        for account in self._accounts():
            who = self._session(account)
            memories = self._all("memories.list", who)
            known = account.readable(self.world.now_ms)[::-1]
            told = (
                f"{account.email}: {[m['content'] for m in memories]} are listed, not "
                f"{[m.content for m in known]}"
            )
            self._hold([m["content"] for m in memories] == [m.content for m in known], told)
            for memory, shown in zip(known, memories, strict=True):
                self._learn(memory, shown, settled)
            keys = [key for key in account.keys if not key.is_gone][::-1]
            listed = self._all("auth.api_keys.list", who)
            self._hold(
                [key.name for key in keys] == [key["name"] for key in listed], f"keys {listed}"
            )
            for key, shown in zip(keys, listed, strict=True):
                key.id = shown["id"]
            self._look_at_collections(account, who, settled)
            self._audit.usage(account, self._session(account))
        self._audit.verify()

    def _look_at_collections(self, account: Account, who: Access, settled: bool) -> None:
        collections = [collection for collection in account.collections if not collection.is_gone][
            ::-1
        ]
        listed = self._all("collections.list", who)
        self._hold(
            len(collections) == len(listed),
            f"{account.email}: collections {listed}, not {collections}",
        )
        for collection, shown in zip(collections, listed, strict=True):
            collection.id = collection.id or shown["id"]
            difference = _difference(self.model.collection_view(account, collection), shown)
            self._hold(difference is None, f"collection {shown}: {difference}")
            counts = self.model.memory_counts(account, collection, self.world.now_ms)
            exact = counts[:1] if settled else counts
            self._hold(shown["memory_count"] in exact, f"collection {shown} has {exact} memories")

    def _learn(self, memory: Memory, shown: dict[str, Any], settled: bool) -> None:
        memory.id = memory.id or shown["id"]
        self._hold(
            shown["searchable"] or not memory.is_searchable, f"{shown} was searchable before"
        )
        self._hold(shown["searchable"] or not settled, f"{shown} should be searchable by now")
        memory.is_searchable = shown["searchable"]
        difference = _difference(memory.view(), shown)
        self._hold(difference is None, f"memory {shown}: {difference}")

    def _all(self, operation: str, who: Access) -> list[dict[str, Any]]:
        """Every item of a list, newest first."""
        items: list[dict[str, Any]] = []
        cursor: dict[str, str] = {}
        while True:
            answer = self.world(operation, who=who.text, query={"limit": PAGE, **cursor})
            self._hold(answer.status == 200, operation, answer)
            items += answer.body["items"]
            if not answer.body["has_more"]:
                self._hold(
                    len(items) == answer.body["total_count"],
                    f"{operation} counts {answer.body['total_count']} of {len(items)}",
                )
                return items
            cursor = {"cursor": answer.body["next_cursor"]}

    def _search_all(self, account: Account) -> None:
        """Every memory by its own word, and all of them by meaning; histories too."""
        who = self._session(account)
        for memory in account.readable(self.world.now_ms)[-12:]:
            asked = {
                "query": memory.content.split()[0],
                "limit": 100,
                "include_low_confidence": True,
            }
            for kind in ("bm25", "hybrid"):
                self._one(Request("search.search", who, body={**asked, "search_type": kind}))
            self._one(
                Request("memories.history", who, path={"id": memory.id}, query={"limit": PAGE})
            )
        self._one(
            Request(
                "search.search",
                who,
                body={
                    "query": "harbour",
                    "search_type": "vector",
                    "limit": 100,
                    "include_low_confidence": True,
                },
            )
        )

    # --- the trace --------------------------------------------------------------------------------

    def _note(self, line: str, answer: Answer | None = None) -> None:
        self.lines.append(line)
        body = answer.body if answer is not None else None
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if name != "processing_time_ms"}
        self._digest.update(f"{line} {body}\n".encode())

    def _hold(self, holds: bool, told: str, answer: Answer | None = None) -> None:
        if not holds:
            raise Mismatch(told if answer is None else f"{told}\n  answered: {answer}")


def _told(request: Request) -> str:
    who = (
        ""
        if request.who is None
        else f" by {request.who.account.email}{' ' + request.who.name if request.who.name else ''}"
    )
    parts = {
        "body": request.body,
        "query": request.query,
        "path": request.path,
        "key": request.key,
        "if_match": request.if_match,
    }
    parts["prefer"] = request.prefer
    return f"{request.operation}{who} { ({name: value for name, value in parts.items() if value}) }"


def _difference(expected: Any, found: Any) -> str | None:
    """What `found` lacks of `expected`: dicts may hold more, lists may not."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name, value in expected.items():
            inner = (
                _difference(value, found.get(name, "nothing"))
                if name != "metadata"
                else _difference([value], [found.get(name)])
            )
            if inner is not None:
                return f"{name}: {inner}"
        return None
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return next(
            (
                inner
                for one, other in zip(expected, found, strict=True)
                if (inner := _difference(one, other)) is not None
            ),
            None,
        )
    return None if expected == found else f"{found!r}, not {expected!r}"


def run(seed: int, steps: int = STEPS) -> History:
    """Run one seed in a directory of its own. Raises AssertionError with the way to run it again
    and the end of its trace.
    """
    # A disk of memory saves the fsyncs; what survives is decided by the copy of the files, not by
    # the disk.
    disk = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="mneme-simulation-", dir=disk) as directory:
        history = History(Path(directory), seed)
        try:
            history.run(steps)
        except BaseException as error:
            trace = "\n  ".join(history.lines)
            again = f"python -m tests.simulation --seeds 1 --seed-start {seed} --steps {steps}"
            with suppress(
                Exception
            ):  # a shard that did not open again cannot be closed either, and that is not the news
                history.world.close()
            raise AssertionError(f"{error!r}\n\n  {trace}\n\nAgain: {again}") from error
        history.world.close()
    return history
