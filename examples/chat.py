#!/usr/bin/env python3
"""Chat with memory through the official `openai` client, and what Mneme then knows of the user.

.venv/bin/mneme serve --set llm.base_url=http://127.0.0.1:11434/v1 --set llm.model=llama3.2
.venv/bin/python examples/chat.py --api-key mem_sk_…
"""

from __future__ import annotations

import argparse
import time

import httpx
from openai import OpenAI


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", default="http://127.0.0.1:8000")
    parser.add_argument("--api-key", required=True)
    parser.add_argument("--user", default="ada")
    options = parser.parse_args()
    rest = httpx.Client(
        base_url=options.base_url,
        headers={"Authorization": f"Bearer {options.api_key}"},
        timeout=60,
    )
    chat = OpenAI(base_url=f"{options.base_url}/v1", api_key=options.api_key)

    told = {
        "content": "I live in Lisbon and I am allergic to peanuts.",
        "user_id": options.user,
        "wait_for_index": True,
    }
    rest.post("/v1/memories", json=told).raise_for_status()

    # An ordinary completion. What Mneme knows about the question went along, fenced, in front of
    # the conversation.
    question = [
        {"role": "user", "content": "What should I watch out for at the street food market?"}
    ]
    completion = chat.chat.completions.create(model="mneme", messages=question, user=options.user)
    print(completion.choices[0].message.content)
    print("memories put in:", len(completion.memory["injected_ids"]))

    # The same as a stream; the turn is stored, marked as made from memories.
    extras = {"store_conversation": True, "session_id": "market"}
    for chunk in chat.chat.completions.create(
        model="mneme", messages=question, user=options.user, stream=True, extra_body=extras
    ):
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()

    # Without a model's help: the memory's own words, quoted.
    answer = (
        rest.post(
            "/v1/search/reason", json={"query": "What am I allergic to?", "user_id": options.user}
        )
        .raise_for_status()
        .json()
    )
    print("answer:", answer["answer"])
    for citation in answer["citations"]:
        print("  quoted:", citation["quote"])

    # Facts are read from memories in the background, a moment after they are stored.
    for _ in range(100):
        profile = (
            rest.get("/v1/profile", params={"user_id": options.user}).raise_for_status().json()
        )
        if profile["updated_at"]:
            break
        time.sleep(0.1)
    for fact in profile["static"]:
        print(
            f"fact: {fact['key']} = {fact['value']} ({fact['confidence']:.2f}, "
            f"{len(fact['evidence_memory_ids'])} memories)"
        )


if __name__ == "__main__":
    main()
