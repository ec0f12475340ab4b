"""The month's credits hold also where the price is known only when the work is done: what a
conversation teaches, and the chunks of a document.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.document_harness import DocumentHarness
from tests.support.in_process import InProcess, in_process
from tests.support.upstream import upstream

TURNS = [
    {"role": "user", "content": f"My {thing} is called {name}."}
    for thing, name in zip(
        ("cat", "dog", "horse", "boat", "sister", "brother", "canary", "tortoise"),
        ("Momo", "Rex", "Bella", "Argo", "Ines", "Paul", "Pip", "Leo"),
        strict=True,
    )
]


def process(service: InProcess, who: str, turns: int, **headers: str) -> Any:
    body = {"messages": TURNS[:turns], "user_id": "ada"}
    return service.request("POST", "/v1/memories/process", body, who=who, **headers)


def used(service: InProcess, who: str) -> int:
    return service.request("GET", "/v1/usage", who=who).json()["credits"]["used"]


def kept(service: InProcess, who: str) -> int:
    return service.request("GET", "/v1/memories", who=who).json()["total_count"]


def test_what_a_conversation_teaches_is_stored_whole_or_refused(tmp_path: Path) -> None:
    with in_process(tmp_path, limits__credits_per_month=12) as service:
        ada = service.register("ada@example.com")
        refused = process(service, ada, 8, Prefer="wait=30")
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "quota_exceeded"), refused.text
        assert "of the 12 credits of this month, and 12 are left" in error["message"]
        assert refused.headers["X-RateLimit-Limit"] == "12"
        assert (used(service, ada), kept(service, ada)) == (0, 0)
        told = process(service, ada, 1, Prefer="wait=30")
        made = told.json()["result"]["memories_created"]
        assert made and used(service, ada) == 5 + made == 5 + kept(service, ada)


def test_what_is_learnt_in_the_background_is_refused_at_once(tmp_path: Path) -> None:
    with in_process(tmp_path, limits__credits_per_month=12) as service:
        ada = service.register("ada@example.com")
        begun = process(service, ada, 8, Prefer="respond-async")
        assert begun.status_code == 202
        service.settle()
        job = service.request("GET", begun.json()["status_url"], who=ada).json()
        assert (job["status"], job["attempts"]) == ("failed", 1), "another attempt costs, and fails"
        assert "of the 12 credits of this month" in job["error"]
        assert (used(service, ada), kept(service, ada)) == (5, 0)


def test_a_document_is_indexed_whole_or_not_at_all(tmp_path: Path) -> None:
    with in_process(tmp_path, limits__credits_per_month=20) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        chapters = b"".join(b"# Part %d\n\nSaid in part %d.\n\n" % (n, n) for n in range(16))
        failed = ada.processed("long.md", chapters)
        assert (failed["status"], failed["error"]["reason"]) == ("failed", "quota_exceeded")
        assert "of the 20 credits of this month" in failed["error"]["message"]
        assert (used(service, ada.token), kept(service, ada.token)) == (0, 0)
        done = ada.processed("short.md", chapters[: chapters.index(b"# Part 3")])
        assert (done["status"], done["chunk_count"]) == ("completed", 3)
        assert (used(service, ada.token), kept(service, ada.token)) == (8, 3)


def test_documents_that_are_read_at_once_share_what_is_left(tmp_path: Path) -> None:
    with in_process(tmp_path, limits__credits_per_month=20) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        chapters = b"".join(b"# Part %d\n\nSaid in part %d.\n\n" % (n, n) for n in range(6))
        urls = [
            service.upload(f"{n}.md", b"Copy %d.\n\n" % n + chapters, who=ada.token).json()[
                "status_url"
            ]
            for n in range(3)
        ]
        service.settle()
        ended = [ada("GET", url)["status"] for url in urls]
        assert "failed" in ended
        assert used(service, ada.token) <= 20


def test_a_chat_that_is_stored_needs_the_credits_for_that_as_well(tmp_path: Path) -> None:
    with (
        upstream() as model,
        in_process(
            tmp_path,
            llm__base_url=model.url,
            chat__max_tokens_max=100,
            limits__credits_per_month=23,
        ) as service,
    ):
        ada = service.register("ada@example.com")
        asked = {"messages": [{"role": "user", "content": "Hello?"}], "store_conversation": True}

        def chat(**more: Any) -> Any:
            return service.request("POST", "/v1/chat/completions", {**asked, **more}, who=ada)

        assert chat().status_code == 200
        assert (used(service, ada), kept(service, ada)) == (12, 2)
        refused = chat()
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "quota_exceeded")
        assert "needs 12 of the 23 credits" in refused.json()["error"]["message"]
        assert len(model.requests) == 1
        assert chat(store_conversation=False).status_code == 200
        assert (used(service, ada), kept(service, ada)) == (22, 2)
