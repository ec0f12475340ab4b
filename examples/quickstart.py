"""A tour of the interface in one script: store, search, filter, correct, look back, delete.

    .venv/bin/python examples/quickstart.py --api-key mem_sk_…

Everything goes into a collection of its own, which is deleted at the end. Besides the standard
library it needs httpx.
"""

from __future__ import annotations

import argparse
import os
import uuid

import httpx

CONVERSATION = [
    {
        "role": "user",
        "name": "Ben",
        "content": "The offsite is booked: a farmhouse near Porto, from 21 September.",
    },
    {
        "role": "user",
        "name": "Mei",
        "content": "Lovely. Is there a kitchen? I am vegetarian and would rather cook.",
    },
    {"role": "user", "name": "Ben", "content": "A large one. I will bring the espresso machine."},
]
FACT = "The farmhouse has twelve beds."
CORRECTION = "The farmhouse has ten beds and two sofas."


def main() -> None:
    options = argparse.ArgumentParser(description="A tour of the Mneme interface.")
    options.add_argument("--base-url", default="http://127.0.0.1:8000")
    options.add_argument("--api-key", default=os.environ.get("API_KEY"), help="default: $API_KEY")
    chosen = options.parse_args()
    if not chosen.api_key:
        options.error("give --api-key, or set API_KEY; `make run` prints a key")
    with httpx.Client(
        base_url=chosen.base_url, headers={"Authorization": f"Bearer {chosen.api_key}"}, timeout=30
    ) as mneme:
        collection_id = call(mneme, "POST", "/v1/collections", {"name": "Quickstart"})["id"]
        try:
            tour(mneme, collection_id)
        finally:
            call(mneme, "DELETE", f"/v1/collections/{collection_id}")


def tour(mneme: httpx.Client, collection_id: str) -> None:
    print("A conversation becomes one memory per message. The Idempotency-Key makes a retry safe:")
    body = {
        "collection_id": collection_id,
        "session_id": "offsite",
        "occurred_at": "2026-05-08T09:30:00Z",
        "messages": CONVERSATION,
    }
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first = call(mneme, "POST", "/v1/memories", body, key)
    again = call(mneme, "POST", "/v1/memories", body, key)
    print(
        f"  {first['created_count']} memories; sent again: the same ones, "
        f"{again['memory_ids'] == first['memory_ids']}"
    )

    print("\nSearch goes by words, meaning, session and speaker:")
    show(
        call(
            mneme,
            "POST",
            "/v1/search",
            {"query": "What does Mei eat?", "collection_id": collection_id, "limit": 2},
        )
    )

    print("\nFilters narrow what is searched:")
    filters = {"AND": [{"speaker": "Ben"}, {"session_id": "offsite"}]}
    show(
        call(
            mneme,
            "POST",
            "/v1/search",
            {"query": "coffee", "collection_id": collection_id, "filters": filters, "limit": 1},
        )
    )

    print("\nA question that nothing stored answers gets no results:")
    show(
        call(
            mneme,
            "POST",
            "/v1/search",
            {"query": "How tall is the Eiffel Tower?", "collection_id": collection_id},
        )
    )

    print("\nA memory can be corrected, and remembers what it was:")
    memory = call(
        mneme,
        "POST",
        "/v1/memories",
        {"collection_id": collection_id, "content": FACT, "tags": ["house"]},
    )
    call(mneme, "PATCH", f"/v1/memories/{memory['id']}", {"content": CORRECTION})
    for version in call(mneme, "GET", f"/v1/memories/{memory['id']}/history")["items"]:
        print(f"  version {version['version']}: {version['content']}")


def call(
    mneme: httpx.Client,
    method: str,
    path: str,
    body: dict | None = None,
    headers: dict | None = None,
) -> dict:
    """The decoded answer, {} when it has no body. A refusal ends the script with the service's own
    sentence.
    """
    answer = mneme.request(method, path, json=body, headers=headers)
    if answer.is_error:
        raise SystemExit(
            f"{method} {path}: {answer.status_code}: {answer.json()['error']['message']}"
        )
    return answer.json() if answer.content else {}


def show(found: dict) -> None:
    for hit in found["results"]:
        print(f"  {hit['normalized_score']:.2f}  {hit['speaker']}: {hit['content']}")
    if found["no_match"]:
        print(f"  none. {found['grounding']['reason']}")


if __name__ == "__main__":
    main()
