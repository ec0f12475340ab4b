#!/usr/bin/env python3
"""How often an answer quotes the right turn of a conversation, and how often none is given where
there is none to give.

    python loadtests/answers.py --base-url http://127.0.0.1:8000 --data conversations.json [--json
    out.json]

The data is a list of {conversation: {speaker_a, speaker_b, session_<n>_date_time, session_<n>:
[{speaker, dia_id, text, blip_caption?}]}, qa: [{question, category, evidence: [dia_id]}]}. Each
turn becomes a memory, each conversation a collection of one new account. Then POST
/v1/search/reason answers

    the questions of --category (4: one turn holds the answer)   cited: a citation is of a gold
                                                                 turn; first: the first one is
    foreign questions, of other conversations, in which the speakers are renamed to this one's

An abstention on an answerable question counts as a miss. Every citation is checked against its
memory's content.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import secrets
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

BATCH = 100
PASSWORD = "correct horse battery staple"


class Conversation:
    def __init__(self, record: dict[str, Any]):
        talk = record["conversation"]
        self.speakers = [talk["speaker_a"], talk["speaker_b"]]
        self.questions = [q for q in record["qa"] if q.get("evidence")]
        self.turns = []
        for number in sorted(
            int(name.split("_")[1]) for name in talk if re.fullmatch(r"session_\d+", name)
        ):
            started = datetime.strptime(
                talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y"
            ).replace(tzinfo=UTC)
            for place, turn in enumerate(talk[f"session_{number}"]):
                text = turn["text"] + (
                    f" [shares image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
                )
                self.turns.append(
                    {
                        "content": text.strip() or "(no text)",
                        "speaker": turn["speaker"],
                        "session_id": f"s{number}",
                        "occurred_at": (started + timedelta(seconds=place)).isoformat(),
                        "metadata": {"dia_id": turn["dia_id"]},
                    }
                )


def renamed(question: str, theirs: list[str], ours: list[str]) -> str:
    for number, name in enumerate(theirs):
        question = re.sub(rf"\b{re.escape(name.split()[0])}\b", f"@@{number}", question)
    for number, name in enumerate(ours):
        question = question.replace(f"@@{number}", name.split()[0])
    return question


class Service:
    def __init__(self, base_url: str, at_once: int):
        self.http = httpx.AsyncClient(
            base_url=base_url.removesuffix("/").removesuffix("/v1"), timeout=120
        )
        self.room = asyncio.Semaphore(at_once)

    async def post(self, path: str, body: Any) -> dict[str, Any]:
        async with self.room:
            answer = await self.http.post(path, json=body)
        answer.raise_for_status()
        return answer.json()

    async def register(self) -> None:
        email = f"{secrets.token_hex(8)}@example.com"
        token = (
            await self.post(
                "/v1/auth/register",
                {"email": email, "password": PASSWORD, "full_name": "Load Test"},
            )
        )["access_token"]
        self.http.headers["Authorization"] = f"Bearer {token}"

    async def store(self, conversation: Conversation) -> str:
        collection = (await self.post("/v1/collections", {"name": "conversation"}))["id"]
        for start in range(0, len(conversation.turns), BATCH):
            batch = {
                "memories": conversation.turns[start : start + BATCH],
                "collection_id": collection,
                "wait_for_index": True,
            }
            await self.post("/v1/memories/batch", batch)
        return collection


async def asked(
    service: Service, collection: str, question: str, gold: set[str], dialogue: dict[str, str]
) -> dict[str, Any]:
    reply = await service.post(
        "/v1/search/reason", {"query": question, "collection_id": collection}
    )
    contents = {source["memory_id"]: source["content"] for source in reply["sources"]}
    for citation in reply["citations"]:
        assert (
            contents[citation["memory_id"]][citation["start"] : citation["end"]]
            == citation["quote"]
        ), citation
    assert (reply["answer"] is None) == (not reply["citations"]) == reply["abstain_recommended"]
    cited = [dialogue.get(contents[citation["memory_id"]], "") for citation in reply["citations"]]
    return {
        "answered": reply["answer"] is not None,
        "confidence": reply["query_confidence"],
        "cited": bool(gold & set(cited)),
        "first": bool(cited) and cited[0] in gold,
        "citations": len(cited),
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    conversations = [Conversation(record) for record in json.loads(options.data.read_text())][
        : options.conversations
    ]
    service, chance = Service(options.base_url, options.at_once), random.Random(options.seed)
    await service.register()
    answerable, foreign = [], []
    for here in conversations:
        collection = await service.store(here)
        dialogue = {turn["content"]: turn["metadata"]["dia_id"] for turn in here.turns}
        own = [q for q in here.questions if q["category"] == options.category]
        answerable += await asyncio.gather(
            *(
                asked(service, collection, q["question"], set(q["evidence"]), dialogue)
                for q in own[: options.questions]
            )
        )
        others = [
            (c, q)
            for c in conversations
            if not set(c.speakers) & set(here.speakers)
            for q in c.questions
            if q["category"] != 5
        ]
        drawn = chance.sample(others, min(options.foreign, len(others)))
        foreign += await asyncio.gather(
            *(
                asked(
                    service,
                    collection,
                    renamed(q["question"], c.speakers, here.speakers),
                    set(),
                    dialogue,
                )
                for c, q in drawn
            )
        )
        print(f"{len(answerable)} answerable, {len(foreign)} foreign", file=sys.stderr)
    await service.http.aclose()

    def share(rows: list[dict[str, Any]], name: str) -> float:
        return round(sum(row[name] for row in rows) / max(1, len(rows)), 4)

    return {
        "answerable": len(answerable),
        "cited": share(answerable, "cited"),
        "first": share(answerable, "first"),
        "answered": share(answerable, "answered"),
        "citations": share(answerable, "citations"),
        "foreign": len(foreign),
        "abstained": round(1 - share(foreign, "answered"), 4),
        "rows": {"answerable": answerable, "foreign": foreign},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--category", type=int, default=4)
    parser.add_argument("--conversations", type=int, default=1_000)
    parser.add_argument(
        "--questions", type=int, default=10_000, help="at most so many of each conversation"
    )
    parser.add_argument(
        "--foreign", type=int, default=50, help="foreign questions for each conversation"
    )
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = asyncio.run(measure(options))
    if options.json:
        options.json.write_text(json.dumps(result))
    print(json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1))


if __name__ == "__main__":
    main()
