"""A shard harness with outcome memory, and the history of a policy in few words."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from plugins import accounts, collections, learning, memories, memory_tools, search
from runtime.api.operation import Call
from runtime.inference import Models
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import Answer, ShardHarness

POLICY = "support.complaint"
TWO = [{"action_key": "refund"}, {"action_key": "voucher"}]


PLUGINS = tuple(
    each.plugin for each in (accounts, collections, memories, memory_tools, search, learning)
)


class LearningHarness(ShardHarness):
    """A shard harness with outcome memory, and one account whose token is `me`."""

    def __init__(self, directory: Path):
        self.embedder = WordEmbedder()
        super().__init__(directory, PLUGINS, Models(self.embedder))
        self.me = self.register()

    def decide(self, key: str | None = None, **fields: Any) -> dict[str, Any]:
        answer = self(
            "learning.decide",
            {"policy_key": POLICY, "candidates": TWO, **fields},
            who=self.me,
            key=key,
        )
        assert answer.status == 201, answer
        return answer.body

    def observe(self, chosen: str, probability: float, **fields: Any) -> str:
        return self.decide(
            mode="observe", chosen_action_key=chosen, action_probability=probability, **fields
        )["decision_id"]

    def report(self, decision: str, key: str | None = None, **body: Any) -> dict[str, Any]:
        answer = self("learning.report", body, who=self.me, key=key, id=decision)
        assert answer.status == 201, answer
        return answer.body

    def insights(self, **query: Any) -> dict[str, Any]:
        answer = self.ask_insights(**query)
        assert answer.status == 200, answer
        return answer.body

    def ask_insights(self, **query: Any) -> Answer:
        return self.together(
            [self.under(self.form("learning.insights", who=self.me, query=query))]
        )[0]

    def evaluate(self, **body: Any) -> dict[str, Any]:
        answer = self.together([self.under(self.form("learning.evaluate", body, who=self.me))])[0]
        assert answer.status == 200, answer
        assert answer.body["authorizes_action"] is False
        return answer.body

    def under(self, call: Call, policy: str = POLICY) -> Call:
        """The call with the policy in its path, whose parameter has the name of the harness's own
        `key`.
        """
        call.path = {"key": policy}
        return call

    def history(self, count: int, rates: dict[str, float], seed: int = 1, **fields: Any) -> None:
        """Decisions drawn evenly by the caller, each with a success or not."""
        chance = random.Random(seed)
        even = {action: 1 / len(rates) for action in rates}
        chosen = [chance.choice(list(rates)) for _ in range(count)]
        body = {
            "policy_key": POLICY,
            "candidates": TWO,
            "mode": "observe",
            "behavior_probabilities": even,
            **fields,
        }
        decided = self.together(
            [
                self.form("learning.decide", {**body, "chosen_action_key": key}, who=self.me)
                for key in chosen
            ]
        )
        ids = [answer.body["decision_id"] for answer in decided]
        self.report_all(
            {
                each: {"success": chance.random() < rates[key]}
                for each, key in zip(ids, chosen, strict=True)
            }
        )

    def report_all(self, outcomes: dict[str, dict[str, Any]]) -> None:
        """Many reports at once: decision -> body."""
        told = self.together(
            [
                self.form("learning.report", body, who=self.me, id=each)
                for each, body in outcomes.items()
            ]
        )
        assert all(answer.status == 201 for answer in told)
