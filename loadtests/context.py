#!/usr/bin/env python3
"""What a prompt gains from a block of context, beside as many of a search's results as fit into the
same budget of tokens.

    python loadtests/context.py --base-url http://127.0.0.1:8000 --data conversations.json

The data is as for answers.py, with an `answer` beside each question. Of the questions of one or
more gold turns, each is asked for

    context  POST /v1/context with the budget
    search   POST /v1/search, results as lines "- day speaker: text", best first, until the budget
             is full; of relevance `all` and `balanced`

evidence: the share of the gold turns that are there; contained: the questions all of whose answer's
words are there, in any form of theirs; the last column is contained per 1,000 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.answers import Conversation, Service
from runtime.inference import count_tokens
from storage.text import analyze

SEARCHED = ("all", "balanced")


@dataclass(frozen=True)
class Asked:
    """A question, and the contents of its gold turns."""

    collection: str
    question: str
    answer: str
    gold: frozenset[str]


async def block(service: Service, asked: Asked, budget: int) -> tuple[str, int]:
    """(text, tokens) of the context."""
    body = {"query": asked.question, "collection_id": asked.collection, "token_budget": budget}
    reply = await service.post("/v1/context", body)
    return reply["context"], reply["tokens"]


async def results(service: Service, asked: Asked, budget: int, relevance: str) -> tuple[str, int]:
    """(text, tokens) of a search's results."""
    body = {"query": asked.question, "collection_id": asked.collection, "limit": 100}
    reply = await service.post("/v1/search", {**body, "relevance": relevance})
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


async def measure(options: argparse.Namespace) -> None:
    service = Service(options.base_url, options.at_once)
    await service.register()
    asked = []
    for record in json.loads(options.data.read_text())[: options.conversations]:
        here = Conversation(record)
        collection = await service.store(here)
        contents = {turn["metadata"]["dia_id"]: turn["content"] for turn in here.turns}
        for question in here.questions:
            gold = frozenset(contents[e] for e in question["evidence"] if e in contents)
            if gold and question["category"] != 5:
                answer = str(question["answer"])
                asked.append(Asked(collection, question["question"], answer, gold))
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
