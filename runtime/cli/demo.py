"""The demonstration: an account to try the service with, and a conversation to ask about.

`ensure_account` keeps one account per data directory, in demo.json with mode 0600, so that a
restart prints the same key and sign-in. `run` stores two short conversations in a collection of
their own, asks three questions and prints what came back and why. Everything goes through the
public API of a running service; nothing here reaches into it.
"""

from __future__ import annotations

import json
import os
import secrets
import textwrap
import time
from pathlib import Path
from typing import Any

from runtime.cli.client import CallFailed, Client

ACCOUNT_FILE = "demo.json"
ACCOUNT_FILE_BYTES_MAX = 16 * 1024
RESULTS_PER_QUESTION = 3
LINE_CHARS = 100

# (session, when, [(speaker, text)]): written for this demonstration.
CONVERSATIONS = (
    (
        "allotment",
        "2025-03-08T10:15:00Z",
        (
            (
                "Nadia",
                "We finally got the allotment by the canal! Plot 14, right next to the old pump "
                "house.",
            ),
            ("Jonas", "Congratulations! What will you grow first?"),
            (
                "Nadia",
                "Broad beans and garlic now, tomatoes once the frost is over. I am allergic to "
                "strawberries, so none of those.",
            ),
            (
                "Jonas",
                "I started cello lessons on Tuesday, with a teacher called Mrs. Okafor. My fingers "
                "hurt already.",
            ),
            ("Nadia", "Cello! You always said you would pick up the trumpet again."),
            (
                "Jonas",
                "The neighbours voted against the trumpet. I play for twenty minutes every morning "
                "before work.",
            ),
        ),
    ),
    (
        "lisbon",
        "2025-06-21T18:40:00Z",
        (
            (
                "Jonas",
                "I have news: the studio is sending me to Lisbon in September, for at least a "
                "year.",
            ),
            ("Nadia", "A whole year! What happens to the cello lessons?"),
            (
                "Jonas",
                "Mrs. Okafor knows someone in Alfama who teaches. Pepper, my dog, comes along as "
                "well.",
            ),
            (
                "Nadia",
                "I will visit in October. By then the tomatoes are done and I have two weeks off "
                "from the clinic.",
            ),
            ("Jonas", "Bring garlic. You promised me a braid of it when you took over the plot."),
            (
                "Nadia",
                "You will get the first one, and the jar of green tomato chutney that won second "
                "prize at the fair.",
            ),
        ),
    ),
)
QUESTIONS = (
    "Which instrument is Jonas learning, and from whom?",
    "What can Nadia not eat?",
    "When is Nadia going to visit Jonas in Lisbon?",
)


def kept_key(data_dir: Path) -> str | None:
    """The API key of the demo account that was made from this data directory, if one was."""
    account = _read_account(data_dir / ACCOUNT_FILE)
    return None if account is None else account["api_key"]


def ensure_account(base_url: str, data_dir: Path) -> dict[str, str]:
    """email, password and api_key of the local demo account: the one kept in `data_dir` if it still
    works, else a new one.

    Raises CallFailed.
    """
    path = data_dir / ACCOUNT_FILE
    account = _read_account(path)
    if account is not None and works(base_url, account["api_key"]):
        return account
    account = {
        "email": f"demo-{secrets.token_hex(4)}@example.com",
        "password": secrets.token_urlsafe(18),
    }
    account["api_key"] = register(
        base_url, account["email"], account["password"], ["read", "write", "admin"]
    )
    _write_account(path, account)
    return account


def register(base_url: str, email: str, password: str, scopes: list[str]) -> str:
    """Make an account and -> an API key of it. Raises CallFailed."""
    with Client(base_url) as client:
        body = {"email": email, "password": password, "full_name": "Demo account"}
        session = client.call("POST", "/v1/auth/register", body)
    with Client(base_url, session["access_token"]) as client:
        return client.call("POST", "/v1/auth/api-keys", {"name": "demo", "scopes": scopes})["key"]


def _read_account(path: Path) -> dict[str, str] | None:
    """The kept account, or None when there is none or the file is not ours: a new one is made
    then.
    """
    try:
        with path.open("rb") as file:
            account = json.loads(file.read(ACCOUNT_FILE_BYTES_MAX))
    except (FileNotFoundError, ValueError):
        return None
    fields = ("email", "password", "api_key")
    return (
        account
        if isinstance(account, dict) and all(isinstance(account.get(name), str) for name in fields)
        else None
    )


def works(base_url: str, api_key: str) -> bool:
    """Whether the service there knows the key. Raises CallFailed."""
    try:
        with Client(base_url, api_key) as client:
            client.call("GET", "/v1/auth/me")
    except CallFailed as failed:
        if failed.status in (
            401,
            403,
        ):  # revoked, or minted by an installation whose secrets are gone
            return False
        raise
    return True


def _write_account(path: Path, account: dict[str, str]) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(account, file)
        file.write("\n")


def run(client: Client, *, keep: bool = False) -> None:
    """Store the conversations, ask the questions, print the answers; the collection goes again
    unless `keep`. Raises CallFailed.
    """
    collection_id = client.call("POST", "/v1/collections", {"name": "Demo: Nadia and Jonas"})["id"]
    try:
        started = time.monotonic()
        stored = sum(_store(client, collection_id, *conversation) for conversation in CONVERSATIONS)
        print(
            f"Stored {stored} memories of {len(CONVERSATIONS)} conversations in "
            f"{time.monotonic() - started:.2f} s."
        )
        for question in QUESTIONS:
            body = {
                "query": question,
                "collection_id": collection_id,
                "limit": RESULTS_PER_QUESTION,
                "explain": True,
            }
            print("\n" + "\n".join(_answer(question, client.call("POST", "/v1/search", body))))
    finally:
        if not keep:
            client.call("DELETE", f"/v1/collections/{collection_id}")
    if keep:
        print(f"\nThe memories stay in collection {collection_id}.")


def _store(
    client: Client,
    collection_id: str,
    session: str,
    occurred_at: str,
    messages: tuple[tuple[str, str], ...],
) -> int:
    """Store one conversation, searchable when this returns; -> the number of its memories."""
    body = {
        "messages": [
            {"role": "user", "name": speaker, "content": text} for speaker, text in messages
        ],
        "collection_id": collection_id,
        "session_id": session,
        "occurred_at": occurred_at,
        "wait_for_index": True,
    }
    return len(client.call("POST", "/v1/memories", body)["memory_ids"])


def _answer(question: str, found: dict[str, Any]) -> list[str]:
    """The lines for one question: what was found, how sure the service is, and which channels said
    so.
    """
    lines = [
        f"{question}   ({found['processing_time_ms']:.0f} ms, confidence "
        f"{found['query_confidence']:.2f})"
    ]
    if not found["results"]:
        return [*lines, f"     nothing that answers it: {found['grounding']['reason']}"]
    for hit in found["results"]:
        told = f"{hit['speaker']}, {hit['occurred_at'][:10]}: {hit['content']}"
        first, *rest = textwrap.wrap(told, LINE_CHARS)
        lines.append(f"  {hit['rank']}. {hit['normalized_score']:6.3f}  {first}")
        lines += [" " * 13 + line for line in rest]
        matched = {name: share for name, share in (hit.get("explanation") or {}).items() if share}
        channels = [
            f"{name} {share:+.2f}"
            for name, share in sorted(matched.items(), key=lambda item: -abs(item[1]))
        ]
        lines += [
            " " * 13 + line for line in textwrap.wrap("why: " + ", ".join(channels), LINE_CHARS)
        ]
    return lines
