#!/usr/bin/env python3
"""What a prompt gains from a block of context, beside as many of a search's results as fit into the
same budget of tokens.

    python loadtests/context.py --base-url http://127.0.0.1:8000 --data conversations.json

The data is as for answers.py, with an `answer` beside each question, or a file of LongMemEval (see
chats.py), whose histories share one collection. Of the questions of one or more gold turns, each is
asked for

    context  POST /v1/context with the budget
    search   POST /v1/search, results as lines "- day speaker: text", best first, until the budget
             is full; of relevance `all` and `balanced`

evidence: the share of the gold turns that are there; contained: the questions all of whose answer's
words are there, in any form of theirs; the last column is contained per 1,000 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.answers import Conversation, Service
from loadtests.chats import STORED_AT_ONCE, read_time
from runtime.inference import count_tokens
from storage.text import analyze

SEARCHED = ("all", "balanced")


@dataclass(frozen=True)
class Asked:
    """A question, the contents of its gold turns, and further fields of its requests."""

    collection: str
    question: str
    answer: str
    gold: frozenset[str]
    further: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        return {"query": self.question, "collection_id": self.collection, **self.further}


async def block(service: Service, asked: Asked, budget: int) -> tuple[str, int]:
    """(text, tokens) of the context."""
    reply = await service.post("/v1/context", {**asked.body, "token_budget": budget})
    return reply["context"], reply["tokens"]


async def results(service: Service, asked: Asked, budget: int, relevance: str) -> tuple[str, int]:
    """(text, tokens) of a search's results."""
    body = {**asked.body, "limit": 100, "relevance": relevance}
    reply = await service.post("/v1/search", body)
    lines, tokens = [], 0
    for hit in reply["results"]:
        line = f"- {hit['occurred_at'][:10]} {hit['speaker']}: {hit['content']}"
        if tokens + count_tokens(line) <= budget:
            lines.append(line)
            tokens += count_tokens(line)
    return "\n".join(lines), tokens


def row(name: str, asked: list[Asked], found: list[tuple[str, int]]) -> str:
    evidence = contained = 0.0
    for each, (text, _) in zip(asked, found, strict=True):
        shown = " ".join(text.split())
        # The first words of a turn show that it is there, though days were added to later ones.
        evidence += sum(" ".join(gold.split())[:30] in shown for gold in each.gold) / len(each.gold)
        contained += set(analyze(each.answer)) <= set(analyze(text))
    tokens = sum(count for _, count in found)
    shares = (100 * evidence / len(asked), 100 * contained / len(asked), tokens / len(asked))
    figures = f"evidence {shares[0]:5.1f}  contained {shares[1]:5.1f}  tokens {shares[2]:5.0f}"
    return f"{name:24} {figures}  {100_000 * contained / tokens:6.1f}"


async def talks(service: Service, records: list[dict[str, Any]]) -> list[Asked]:
    """Store each conversation in a collection of its own; -> its questions."""
    asked = []
    for record in records:
        here = Conversation(record)
        collection = await service.store(here)
        contents = {turn["metadata"]["dia_id"]: turn["content"] for turn in here.turns}
        for question in here.questions:
            gold = frozenset(contents[e] for e in question["evidence"] if e in contents)
            if gold and question["category"] != 5:
                answer = str(question["answer"])
                asked.append(Asked(collection, question["question"], answer, gold))
    return asked


async def histories(service: Service, records: list[dict[str, Any]]) -> list[Asked]:
    """Store all chats in one collection, oldest first; -> their questions, each asked on its
    day.
    """
    sessions, asked = {}, []
    for record in records:
        begun = map(read_time, record["haystack_dates"])
        told = zip(begun, record["haystack_sessions"], strict=True)
        sessions |= dict(zip(record["haystack_session_ids"], told, strict=True))
    turns = [
        {
            "content": turn["content"],
            "speaker": turn["role"],
            "session_id": session,
            "occurred_at": (begun + timedelta(seconds=number)).isoformat(),
        }
        for session, (begun, said) in sorted(sessions.items(), key=lambda each: each[1][0])
        for number, turn in enumerate(said)
        if turn["content"].strip()
    ]
    collection = (await service.post("/v1/collections", {"name": "chats"}))["id"]
    for start in range(0, len(turns), STORED_AT_ONCE):
        batch = {"memories": turns[start : start + STORED_AT_ONCE], "collection_id": collection}
        await service.post("/v1/memories/batch", {**batch, "wait_for_index": True})
    for record in records:
        said = [turn for turns in record["haystack_sessions"] for turn in turns]
        gold = frozenset(turn["content"] for turn in said if turn.get("has_answer"))
        if gold and not record["question_id"].endswith("_abs"):
            day = {"reference_date": read_time(record["question_date"]).isoformat()}
            answer = str(record["answer"])
            asked.append(Asked(collection, record["question"], answer, gold, day))
    return asked


async def measure(options: argparse.Namespace) -> None:
    service = Service(options.base_url, options.at_once)
    await service.register()
    content = options.data.read_bytes()
    records = json.loads(gzip.decompress(content) if options.data.suffix == ".gz" else content)
    store = histories if "haystack_sessions" in records[0] else talks
    asked = await store(service, records[: options.conversations])
    asked = random.Random(options.seed).sample(asked, min(options.questions, len(asked)))
    print(f"{len(asked)} questions", flush=True)
    for budget in options.budgets:
        found = await asyncio.gather(*(block(service, each, budget) for each in asked))
        print(row(f"{budget} context", asked, found), flush=True)
        for relevance in SEARCHED:
            calls = (results(service, each, budget, relevance) for each in asked)
            print(row(f"{budget} search {relevance}", asked, await asyncio.gather(*calls)))
    await service.http.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--conversations", type=int, default=1_000)
    parser.add_argument("--questions", type=int, default=10_000, help="at most so many, drawn")
    parser.add_argument("--budgets", type=int, nargs="+", default=[300, 750, 1_500])
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
