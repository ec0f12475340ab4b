#!/usr/bin/env python3
"""Whether what mem0's own client adds, with its defaults, is found by it.

    python -m venv /tmp/mem0 && /tmp/mem0/bin/pip install mem0ai
    /tmp/mem0/bin/python loadtests/mem0_client.py --base-url http://127.0.0.1:8000 --key mem_sk_… \
        [CORPUS.jsonl …]

Each of the dialogues and statements of loadtests/statements is what one user says: `add` with the
messages, no more said of how, and once its event has succeeded

    found     questions about a dialogue for which `search`, with its defaults, returns the text of
              the turn that answers it, word for word
    kept      statements that tell something whose text `get_all` lists, word for word
    telling   nothing: of the others, those that are listed

The client runs as its package has it, but for its telemetry, which is switched off.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"

from mem0 import MemoryClient  # pyright: ignore[reportMissingImports]

CORPORA = Path(__file__).resolve().parent / "statements"
SECONDS_MAX, POLL_SECONDS = 60, 0.02


def added(client: MemoryClient, messages: list[dict[str, str]], user: str) -> None:
    """Add messages and wait for their event."""
    event = client.add(messages, user_id=user)["event_id"]
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        status = client.client.get(f"/v1/event/{event}/").raise_for_status().json()["status"]
        if status in ("SUCCEEDED", "FAILED"):
            assert status == "SUCCEEDED", event
            return
        time.sleep(POLL_SECONDS)
    raise TimeoutError(event)


def texts(answer: dict[str, Any]) -> list[str]:
    return [memory["memory"] for memory in answer["results"]]


def measure(client: MemoryClient, corpus: Path) -> dict[str, list[int]]:
    """Name of a figure -> of how many, how many."""
    counts = {"found": [0, 0], "kept": [0, 0], "telling nothing": [0, 0]}

    def count(name: str, holds: bool) -> None:
        counts[name][0] += 1
        counts[name][1] += holds

    for line in corpus.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        user = record["id"]
        if record["kind"] == "statement":
            added(client, [{"role": "user", "content": record["text"]}], user)
            listed = texts(client.get_all(filters={"user_id": user}))
            count("kept" if record["keep"] else "telling nothing", record["text"] in listed)
        elif record["kind"] == "dialogue":
            said = record["turns"]
            # The client has no names of speakers; all that is not the assistant's is the user's.
            added(
                client,
                [
                    {
                        "role": "assistant" if turn["role"] == "assistant" else "user",
                        "content": turn["text"],
                    }
                    for turn in said
                ],
                user,
            )
            for question in record["questions"]:
                answer = said[question["turn"]]
                if answer["role"] == "assistant":
                    continue  # whose words are no memories of the user
                found = texts(client.search(question["question"], filters={"user_id": user}))
                count("found", any(answer["text"] in text for text in found))
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument("corpora", type=Path, nargs="*", metavar="CORPUS.jsonl")
    parser.add_argument("--key", required=True, help="an API key")
    options = parser.parse_args()
    client = MemoryClient(api_key=options.key, host=options.base_url)
    for corpus in options.corpora or sorted(CORPORA.glob("*.jsonl")):
        shares = [
            f"{name} {good} of {all_}" for name, (all_, good) in measure(client, corpus).items()
        ]
        print(f"{corpus.stem}: {', '.join(shares)}", flush=True)


if __name__ == "__main__":
    main()
