"""Documents survive what memories survive: a killed process loses no accepted upload, and processes
none twice.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.support import corpus, sounds
from tests.support.in_process import in_process
from tests.support.parsers import has_ended, parsers
from tests.support.served import Served, served
from tests.support.served_documents import DONE_SECONDS_MAX, auth, done, until


@pytest.mark.slow
def test_a_kill_at_any_step_repeats_one_step_and_nothing_twice(tmp_path: Path) -> None:
    content = corpus.long_pdf(20)
    steps = {
        "when it was accepted": lambda document: True,
        "while it is read": lambda document: document["status"] in ("processing", "completed"),
        "while it is indexed": lambda document: document["chunk_count"] > 0,
    }
    urls: dict[str, str] = {}
    token = ""
    for number, (step, reached) in enumerate(steps.items()):
        with served(tmp_path / "data") as service:
            token = token or service.register()
            form = {"files": {"file": (f"{number}.pdf", content + b"%" + str(number).encode())}}
            answer = service.http.post("/v1/documents/upload", headers=auth(token), **form)
            assert answer.status_code == 202
            urls[step] = answer.json()["status_url"]
            until(service, token, urls[step], reached)
            service.kill()
    with served(tmp_path / "data") as service:
        for url in urls.values():
            document = until(service, token, url, done)
            assert (document["status"], document["version"]) == ("completed", 2)
            chunks: list[dict[str, Any]] = []
            page: dict[str, Any] = {"has_more": True, "next_cursor": ""}
            while page["has_more"]:
                page = service.http.get(
                    f"{url}/chunks?limit=100&cursor={page['next_cursor']}", headers=auth(token)
                ).json()
                chunks += page["items"]
            memories = {chunk["memory_id"] for chunk in chunks}
            assert len(memories) == len(chunks) == document["chunk_count"] and None not in memories
            page = service.http.get(
                f"/v1/memories?session_id={document['id']}&limit=1", headers=auth(token)
            ).json()
            assert page["total_count"] == document["chunk_count"], "a chunk is one memory"
        collection = service.http.get("/v1/collections/default", headers=auth(token)).json()
        assert collection["document_count"] == len(steps)
        files = [path for path in (tmp_path / "data" / "blobs").rglob("*") if path.is_file()]
        assert len(files) == len(steps)
        assert service.stop() == 0


def parser_of(service: Served) -> psutil.Process:
    """The confined process that reads a document, once there is one."""
    deadline = time.monotonic() + DONE_SECONDS_MAX
    while time.monotonic() < deadline:
        for parser in parsers(service.process.pid):
            return parser
        time.sleep(0.005)
    raise AssertionError("nothing is read")


def test_a_stop_while_a_document_is_read_is_orderly(tmp_path: Path) -> None:
    """SIGTERM: the service ends as asked, its parser with it, and the document is read after the
    next start.
    """
    recording = sounds.wav(
        np.tile(sounds.NOT_SPEECH["white noise"](), 45)
    )  # minutes, which takes a while to hear
    with served(tmp_path / "data") as service:
        token = service.register()
        answer = service.http.post(
            "/v1/documents/upload", headers=auth(token), files={"file": ("noise.wav", recording)}
        )
        assert answer.status_code == 202, answer.text
        url, parser = answer.json()["status_url"], parser_of(service)
        assert service.stop() == 0
        assert has_ended(parser)
    with served(tmp_path / "data") as service:
        document = until(service, token, url, done)
        assert (document["status"], document["result"]["kind"], document["version"]) == (
            "completed",
            "no_speech_detected",
            2,
        )
        assert service.stop() == 0


def test_a_damaged_file_fails_its_document_and_no_more(tmp_path: Path) -> None:
    with in_process(tmp_path / "data") as service:
        token = service.register("ada@example.com")
        made = {
            name: service.processed(f"{name}.txt", f"This is number {name}.".encode(), who=token)
            for name in ("one", "two")
        }
        sealed = next((tmp_path / "data" / "blobs").glob(f"*/*/{made['one']['sha256']}-*"))
        sealed.unlink()
        assert (
            service.request(
                "GET", f"/v1/documents/{made['one']['id']}/content", who=token
            ).status_code
            == 404
        )
        assert (
            service.request("GET", f"/v1/documents/{made['one']['id']}/text", who=token).text
            == "This is number one."
        )
        assert (
            service.request("GET", f"/v1/documents/{made['two']['id']}/content", who=token).text
            == "This is number two."
        )
