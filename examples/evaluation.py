#!/usr/bin/env python3
"""How well does it find what I stored? An evaluation on your own memories and questions, in one
command.

    .venv/bin/python examples/evaluation.py --api-key mem_sk_…                     # a small
                                                                                   built-in set
    .venv/bin/python examples/evaluation.py --api-key mem_sk_… --file mine.json --require 0.9

A file holds {"memories": {"<name>": "<text>", …}, "questions": [{"query": "…", "expects":
["<name>", …]}, …]}. A question that expects nothing should find nothing. Everything goes into a
collection of its own, which is deleted at the end. The status is 1 where fewer than --require of
the answerable questions have an expected memory among the first five.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from mneme_client import AsyncMneme

AT_ONCE = 8
BATCH = 100
DEPTH = 5
BUILT_IN: dict[str, Any] = {
    "memories": {
        "diet": "Ada is allergic to nuts and eats no meat.",
        "seat": "Ada always asks for a window seat.",
        "flight": "Ada flies to Lisbon on 12 June with TAP.",
        "hotel": "The hotel in Lisbon is the Casa do Príncipe, near the botanical garden.",
        "ben": "Ben brings the espresso machine to the offsite.",
        "offsite": "The offsite is in a farmhouse near Porto, from 21 September.",
        "cello": "Jonas takes cello lessons with Mrs. Okafor on Tuesdays.",
        "dog": "Jonas has a dog called Pepper.",
    },
    "questions": [
        {"query": "What can Ada not eat?", "expects": ["diet"]},
        {"query": "Where does Ada like to sit on a plane?", "expects": ["seat", "flight"]},
        {"query": "Where does Ada stay in Lisbon?", "expects": ["hotel"]},
        {"query": "Who brings the coffee maker?", "expects": ["ben"]},
        {"query": "When does the offsite begin?", "expects": ["offsite"]},
        {"query": "Which instrument is Jonas learning?", "expects": ["cello"]},
        {"query": "What is the name of Jonas's dog?", "expects": ["dog"]},
        {"query": "How tall is the Eiffel Tower?", "expects": []},
        {"query": "Which car does Mei drive?", "expects": []},
    ],
}


async def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url")
    parser.add_argument("--api-key", help="default: $MNEME_API_KEY")
    parser.add_argument("--file", type=Path)
    parser.add_argument(
        "--require",
        type=float,
        default=0.0,
        help="share of answerable questions that must be found, 0 to 1",
    )
    options = parser.parse_args()
    wanted = json.loads(options.file.read_text(encoding="utf-8")) if options.file else BUILT_IN
    async with AsyncMneme(base_url=options.base_url, api_key=options.api_key) as client:
        collection = (await client.collections.create(name="Evaluation"))["id"]
        try:
            names = await store(client, collection, wanted["memories"])
            turn = asyncio.Semaphore(AT_ONCE)
            ranks = await asyncio.gather(
                *(
                    rank(client, collection, question, names, turn)
                    for question in wanted["questions"]
                )
            )
        finally:
            await client.collections.delete(collection)
    return report(wanted["questions"], ranks, options.require)


async def store(client: AsyncMneme, collection: str, memories: dict[str, str]) -> dict[str, str]:
    """-> memory id -> name, once searches find them."""
    names: dict[str, str] = {}
    items = list(memories.items())
    for start in range(0, len(items), BATCH):
        part = items[start : start + BATCH]
        made = await client.memories.create_batch(
            memories=[{"content": text} for _, text in part],
            collection_id=collection,
            wait_for_index=True,
        )
        names |= {result["id"]: part[result["index"]][0] for result in made["results"]}
    return names


async def rank(
    client: AsyncMneme,
    collection: str,
    question: dict[str, Any],
    names: dict[str, str],
    turn: asyncio.Semaphore,
) -> int:
    """At which place, from 1, the first expected memory is found; 0 for none. Where none is
    expected, how many are found.
    """
    async with turn:
        found = await client.search(question["query"], collection_id=collection, limit=DEPTH)
    places = [
        hit["rank"]
        for hit in found["results"]
        if not question["expects"] or names[hit["id"]] in question["expects"]
    ]
    return (min(places, default=0)) if question["expects"] else len(places)


def report(questions: list[dict[str, Any]], ranks: list[int], require: float) -> int:
    answerable = [
        (question["query"], place)
        for question, place in zip(questions, ranks, strict=True)
        if question["expects"]
    ]
    others = [
        (question["query"], count)
        for question, count in zip(questions, ranks, strict=True)
        if not question["expects"]
    ]
    recall = sum(place > 0 for _, place in answerable) / max(len(answerable), 1)
    print(f"answerable questions       {len(answerable)}")
    print(
        "found first                "
        f"{sum(place == 1 for _, place in answerable) / max(len(answerable), 1):.3f}"
    )
    print(f"found among the first {DEPTH}    {recall:.3f}")
    print(
        "mean reciprocal rank       "
        f"{sum(1 / place for _, place in answerable if place) / max(len(answerable), 1):.3f}"
    )
    print(f"others                     {len(others)}")
    print(
        "of them rightly unanswered "
        f"{sum(count == 0 for _, count in others) / max(len(others), 1):.3f}"
    )
    for query in [query for query, place in answerable if not place]:
        print(f"  not found: {query}")
    for query in [query for query, count in others if count]:
        print(f"  answered all the same: {query}")
    return 0 if recall >= require else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
