"""Idempotency-Keys against a model: any order of first requests, repeats, failures, deletions, long
waits and reopenings.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import serve_app
from runtime.inference import Models
from runtime.limits import REPLAY_WINDOW_SECONDS
from runtime.shard import verification
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import Answer, ShardHarness

KEYS = st.sampled_from(
    ["k1", "k2", "K1", " k1 "]
)  # keys are opaque: neither case nor space is touched
WORDS = st.sampled_from(["violin", "harbour", "lantern"])
HOUR_MS = 3_600_000
CANONICAL = ("memories.create", "memories.create_raw", "memory_tools.insert")
# Under the memory directory an fsync costs nothing; this is about meaning, and crashes have tests
# of their own.
DISK = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@dataclass
class Bound:
    """What the model knows of a key: what it was used for, what it made, and until when (None: for
    good).
    """

    meaning: str
    answer: Answer
    until: int | None
    made: str = ""


class Keys(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.mkdtemp(prefix="mneme-keys-", dir=DISK)
        self.embedder = WordEmbedder()
        self.harness = ShardHarness(Path(self._directory), serve_app.PLUGINS, Models(self.embedder))
        self.people = {
            name: self.harness.register(f"{name}@example.com") for name in ("ada", "eve")
        }
        self.bound: dict[tuple[str, str], Bound] = {}
        self.memories: dict[str, set[str]] = {name: set() for name in self.people}
        self.collections: dict[str, int] = dict.fromkeys(self.people, 0)

    def teardown(self) -> None:
        self.harness.close()
        shutil.rmtree(self._directory)

    def _ask(
        self, who: str, operation: str, body: Any, key: str
    ) -> tuple[Answer, Bound | None, str]:
        meaning = json.dumps([operation, body], sort_keys=True)
        bound = self.bound.get((who, key))
        answer = self.harness(operation, body, who=self.people[who], key=key)
        if bound is not None and bound.until is not None and bound.until <= self.harness.now_ms:
            bound = None
        return answer, bound, meaning

    @rule(
        who=st.sampled_from(["ada", "eve"]),
        operation=st.sampled_from(CANONICAL),
        word=WORDS,
        key=KEYS,
    )
    def make_a_memory(self, who: str, operation: str, word: str, key: str) -> None:
        answer, bound, meaning = self._ask(who, operation, {"content": word}, key)
        if bound is None:
            assert answer.status == 201
            self.bound[who, key] = Bound(meaning, answer, None, answer.body["id"])
            self.memories[who].add(answer.body["id"])
        elif bound.meaning != meaning:
            assert answer.status == 409
        elif bound.made in self.memories[who]:
            assert (
                answer.status == 201
                and answer.body["id"] == bound.made
                and "X-Idempotent-Replay" not in answer.headers
            )
        else:
            assert answer.status == 404, "a key outlives what it made, and never makes it again"

    @rule(who=st.sampled_from(["ada", "eve"]), word=WORDS, key=KEYS)
    def make_a_collection(self, who: str, word: str, key: str) -> None:
        answer, bound, meaning = self._ask(who, "collections.create", {"name": word}, key)
        if bound is None:
            assert answer.status == 201 and "X-Idempotent-Replay" not in answer.headers
            self.bound[who, key] = Bound(
                meaning, answer, self.harness.now_ms + REPLAY_WINDOW_SECONDS * 1000
            )
            self.collections[who] += 1
        elif bound.meaning != meaning:
            assert answer.status == 409
        else:
            assert (answer.status, answer.body) == (201, bound.answer.body) and answer.headers[
                "X-Idempotent-Replay"
            ] == "true"

    @rule(who=st.sampled_from(["ada", "eve"]), key=KEYS)
    def fail(self, who: str, key: str) -> None:
        """A failure binds nothing: the key stays free for whatever comes next."""
        answer, bound, _ = self._ask(
            who, "memories.create", {"content": "x", "collection_id": "col_nowhere"}, key
        )
        assert answer.status == (404 if bound is None else 409)

    @rule(who=st.sampled_from(["ada", "eve"]), data=st.data())
    def delete_a_memory(self, who: str, data: Any) -> None:
        if self.memories[who]:
            gone = data.draw(st.sampled_from(sorted(self.memories[who])))
            assert self.harness("memories.delete", who=self.people[who], id=gone).status == 200
            self.memories[who].discard(gone)

    @rule(hours=st.sampled_from([1, 23, 25]))
    def wait(self, hours: int) -> None:
        self.harness.now_ms += hours * HOUR_MS

    @rule()
    def reopen(self) -> None:
        self.harness.reopen()

    @rule(who=st.sampled_from(["ada", "eve"]), word=WORDS, key=KEYS)
    def twins(self, who: str, word: str, key: str) -> None:
        """Five at once: together they do what one does."""
        before = self.bound.get((who, key))
        calls = [
            self.harness.form("memories.create", {"content": word}, who=self.people[who], key=key)
            for _ in range(5)
        ]
        answers = self.harness.together(calls)
        meaning = json.dumps(["memories.create", {"content": word}], sort_keys=True)
        if before is None or (before.until is not None and before.until <= self.harness.now_ms):
            assert {answer.status for answer in answers} == {201} and len(
                {answer.body["id"] for answer in answers}
            ) == 1
            self.bound[who, key] = Bound(meaning, answers[0], None, answers[0].body["id"])
            self.memories[who].add(answers[0].body["id"])
        else:
            expected = (
                409
                if before.meaning != meaning
                else 201
                if before.made in self.memories[who]
                else 404
            )
            assert {answer.status for answer in answers} == {expected}

    @invariant()
    def the_store_holds_what_the_model_holds(self) -> None:
        for who, token in self.people.items():
            listed = self.harness("memories.list", who=token, query={"limit": 100}).body
            assert {item["id"] for item in listed["items"]} == self.memories[who]
            assert (
                self.harness("collections.list", who=token).body["total_count"]
                == self.collections[who] + 1
            )

    @rule()
    def verify(self) -> None:
        with self.harness.shard.store.snapshot() as snapshot:
            for account in verification.accounts(snapshot):
                assert (
                    verification.examine(
                        snapshot, self.harness.shard.environment, account, self.harness.now_ms
                    )
                    == []
                )


Keys.TestCase.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestKeys = Keys.TestCase
