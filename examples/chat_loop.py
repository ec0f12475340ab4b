#!/usr/bin/env python3
"""A chat in the terminal that remembers you from one day to the next, with the official `openai`
client.

    .venv/bin/mneme serve --set llm.base_url=http://127.0.0.1:11434/v1 --set llm.model=llama3.2
    .venv/bin/python examples/chat_loop.py --api-key mem_sk_… --user ada

Only the address is Mneme's. What it knows about a question goes to the model in front of the
conversation, and each turn is stored, so the conversation itself may be short. Ctrl-D ends it.
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid

from openai import APIError, OpenAI

MESSAGES_MAX = 20  # what was said before is memory's affair


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base-url", default=os.environ.get("MNEME_BASE_URL", "http://127.0.0.1:8000")
    )
    parser.add_argument(
        "--api-key", default=os.environ.get("MNEME_API_KEY"), help="default: $MNEME_API_KEY"
    )
    parser.add_argument("--user", default="me", help="whose memories these are")
    options = parser.parse_args()
    chat = OpenAI(base_url=f"{options.base_url}/v1", api_key=options.api_key)
    session = f"chat-{uuid.uuid4()}"
    conversation: list[dict[str, str]] = []
    while (said := asked()) is not None:
        conversation = [*conversation[-MESSAGES_MAX:], {"role": "user", "content": said}]
        try:
            conversation.append(
                {"role": "assistant", "content": answer(chat, conversation, options.user, session)}
            )
        except APIError as error:
            conversation.pop()
            print(f"({error.message})")


def asked() -> str | None:
    """The next line that says something; None at the end."""
    while True:
        if sys.stdin.isatty():
            print("you: ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            return None
        if line.strip():
            return line.strip()


def answer(chat: OpenAI, conversation: list[dict[str, str]], user: str, session: str) -> str:
    """The model's answer, shown as it comes, and how many memories it was given."""
    pieces, memories = [], 0
    extras = {"store_conversation": True, "session_id": session}
    for chunk in chat.chat.completions.create(
        model="mneme", messages=conversation, user=user, stream=True, extra_body=extras
    ):
        for choice in chunk.choices:
            pieces.append(choice.delta.content or "")
            print(pieces[-1], end="", flush=True)
        if found := getattr(chunk, "memory", None):
            memories = len(found["injected_ids"])
    print(f"\n  [{memories} memories]")
    return "".join(pieces)


if __name__ == "__main__":
    main()
