"""Documents through the whole service: each format read, found, deleted; and every way in which a
file can be no good.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from plugins import documents
from plugins.documents.limits import CHUNKS_PER_STEP
from plugins.documents.store import (
    DOCUMENT_DIGESTS,
    DOCUMENT_FIELDS,
    DOCUMENT_IDS,
    DOCUMENT_SWEEP,
    DOCUMENT_TEXT_BYTES,
    DOCUMENTS,
)
from runtime.api import tenants
from runtime.api.checks import Finding
from runtime.api.context import WriteContext
from runtime.api.operation import Call
from storage.blobs import BlobStore
from storage.store import Scope, Transaction
from tests.support import corpus, sounds
from tests.support.document_harness import DocumentHarness
from tests.support.endpoints import endpoint
from tests.support.in_process import in_process
from tests.support.receivers import receiver

pytestmark = pytest.mark.usefixtures("without_delay")


# --- the golden corpus ----------------------------------------------------------------------------


REPORT = [
    [(20, "Grüße"), (11, "Die Pumpe ist grün."), (11, "Sie läuft.")],
    [(20, "Правила"), (11, "Якорь у мола 大阪.")],
]
# name -> (file, its text, [(heading, page) of each chunk], title, pages)
GOLDEN: dict[str, tuple[Any, str, list[tuple[str | None, int | None]], str | None, int | None]] = {
    "report.pdf": (
        lambda: corpus.pdf(REPORT, title="Bericht"),
        "Grüße\n\nDie Pumpe ist grün.\nSie läuft.\n\nПравила\n\nЯкорь у мола 大阪.",
        [("Grüße", 1), ("Правила", 2)], "Bericht", 2,
    ),
    "handbook.docx": (
        corpus.docx,
        "Opening hours\n\nThe harbour office opens at seven.\nBerth | Fee\nNorth | 12 "
        "€\n\nПравила\n\nЯкорь бросают только у южного мола.",
        [("Opening hours", 1), ("Правила", 2)], "Harbour handbook", 2,
    ),
    "review.pptx": (
        corpus.pptx,
        "Quarterly review\nSales rose in Lisbon.\n\n数字\nCity | Sales\n大阪 | 42\n\nMention the "
        "warehouse fire.",
        [("Quarterly review", 1), ("数字", 2)], "Quarterly review", 2,
    ),
    "people.xlsx": (
        corpus.xlsx,
        "People\n\nName | Born | City\nName: Ada Lovelace; Born: 1815; City: London\nName: "
        "اليزابيث; Born: 1990.5\n\nTotals\n\n1 | 2 | 3",
        [("People", 1), ("Totals", 2)], None, 2,
    ),
    "garden.md": (
        corpus.MARKDOWN.encode,
        "Garden\n\nBeans are sown in *April*.\n\nTools\n\n```\n# not a "
        "heading\n```\n\nShears\n\nThey hang in the shed.",
        [("Garden", None), ("Tools", None), ("Shears", None)], "Garden", None,
    ),
    "tides.html": (
        corpus.HTML.encode,
        "High water\n\nAt Dover it is high at six.\nEbb follows.\nSpring tide\nNeap tide\nPort | "
        "Time\nΠειραιάς | 06:10",
        [("High water", None)], "Tide table", None,
    ),
    "visits.csv": (
        corpus.CSV.encode,
        "Name | City | Visits\nName: Grace; City: New York; Visits: 3\nName: Jürgen; City: Köln; "
        "Visits: 12",
        [(None, None)], None, None,
    ),
    "boats.json": (
        corpus.JSON.encode,
        "owner: Ada\nboats[0].name: Sparrow\nboats[0].length: 9.5\nboats[1].name: "
        "雀\nboats[1].sold: true",
        [(None, None)], None, None,
    ),
    "mail.eml": (
        corpus.eml,
        "Änderung der Lieferung\n\nFrom: Ada <ada@example.com>\nTo: bob@example.com\nDate: Thu, 07 "
        "May 2026 10:00:00 +0000\n\n"
        "Hello Bob,\n\nthe pump arrives on Friday.\n\nAttachments: note.pdf",
        [("Änderung der Lieferung", None)], "Änderung der Lieferung", None,
    ),
    "koi.txt": (
        lambda: "Якорь бросают только у южного мола, а не у северного.".encode("cp1251"),
        "Якорь бросают только у южного мола, а не у северного.",
        [(None, None)], None, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_a_file_is_read_exactly(reader: DocumentHarness, name: str) -> None:
    make, text, chunks, title, pages = GOLDEN[name]
    content = make()
    document = reader.processed(name, content)
    assert (document["status"], document["error"], document["result"]) == (
        "completed",
        None,
        {"kind": "text", "language": None},
    )
    assert (document["title"], document["page_count"], document["filename"]) == (title, pages, name)
    assert (document["size_bytes"], document["sha256"]) == (
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    assert reader.text(document) == text
    found = reader.chunks(document)
    assert [(chunk["heading"], chunk["page"]) for chunk in found] == chunks
    assert [chunk["index"] for chunk in found] == list(range(len(found)))
    for chunk in found:
        assert chunk["content"] == text[chunk["start"] : chunk["end"]]
    assert {place for chunk in found for place in range(chunk["start"], chunk["end"])} == set(
        range(len(text))
    )
    original = reader.service.request(
        "GET", f"/v1/documents/{document['id']}/content", who=reader.token
    )
    assert (original.content, original.headers["Content-Type"]) == (content, document["media_type"])
    assert original.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{name}"


@pytest.mark.parametrize(
    ("name", "content"), [("ferry.srt", corpus.SRT), ("ferry.vtt", corpus.VTT)]
)
def test_subtitles_keep_their_times(reader: DocumentHarness, name: str, content: str) -> None:
    document = reader.processed(name, content.encode())
    assert document["result"] == {"kind": "transcript", "language": None}
    assert document["duration_seconds"] == 3_725.0
    (chunk,) = reader.chunks(document)
    assert (chunk["start_seconds"], chunk["end_seconds"]) == (1.5, 3_725.0)


def test_a_question_finds_its_chunk_and_page(reader: DocumentHarness) -> None:
    collection = reader.collection("questions")
    pages = [
        [(18, f"Part {n}"), (11, f"The {what} is kept in room {n}.")]
        for n, what in enumerate(("ladder", "generator", "trumpet"), 1)
    ]
    document = reader.processed(
        "rooms.pdf",
        corpus.pdf(pages),
        collection_id=collection,
        tags="house, keys",
        metadata='{"floor": 2}',
    )
    best = reader.search("Where is the generator kept?", collection_id=collection)[0]
    chunk = reader.chunks(document)[1]
    assert (best["memory_id"], best["content"]) == (chunk["memory_id"], chunk["content"].strip())
    assert best["metadata"] == {
        "floor": 2, "document_id": document["id"], "chunk_index": 1, "filename": "rooms.pdf",
        "page": 2, "heading": "Part 2",
    }  # fmt: skip
    assert best["tags"] == ["house", "keys"]
    memory = reader("GET", f"/v1/memories/{chunk['memory_id']}")
    assert (memory["source_type"], memory["source"], memory["source_reference"]) == (
        "document",
        "rooms.pdf",
        document["id"],
    )


def test_a_long_document_is_found_to_its_end(reader: DocumentHarness) -> None:
    collection = reader.collection("long")
    document = reader.processed("long.pdf", corpus.long_pdf(30), collection_id=collection)
    assert document["status"] == "completed" and document["page_count"] == 30
    assert document["chunk_count"] > CHUNKS_PER_STEP, "too short to take two steps"
    text, chunks = reader.text(document), []
    page: dict[str, Any] = {"has_more": True, "next_cursor": ""}
    while page["has_more"]:
        page = reader(
            "GET", f"/v1/documents/{document['id']}/chunks?limit=100&cursor={page['next_cursor']}"
        )
        chunks += page["items"]
    assert [chunk["index"] for chunk in chunks] == list(range(document["chunk_count"]))
    for chunk in chunks:
        assert chunk["content"] == text[chunk["start"] : chunk["end"]]
        assert chunk["page"] == int(re.search(r"Remark (\d+)\d{3} ", chunk["content"])[1])
    assert max(chunk["end"] for chunk in chunks) == len(text)
    assert (
        reader.search("remark 29029", collection_id=collection, search_type="bm25")[0]["metadata"][
            "page"
        ]
        == 29
    )


# --- files that are no good -----------------------------------------------------------------------


BROKEN: dict[str, tuple[str, Any, str]] = {
    "an encrypted PDF": ("a.pdf", corpus.encrypted_pdf, "encrypted"),
    "a PDF cut short": ("b.pdf", lambda: corpus.pdf([[(12, "One.")]])[:300], "damaged"),
    "a PDF of 100,000 pages": ("c.pdf", lambda: corpus.claiming_pdf(100_000), "too_many_pages"),
    "a PDF of nothing": ("d.pdf", lambda: corpus.pdf([[]]), "no_text"),
    "an Office file cut short": ("a.docx", lambda: corpus.docx()[:5_000], "damaged"),
    "a zip bomb": ("b.docx", corpus.bomb, "archive_too_large"),
    "billion laughs": ("c.docx", corpus.billion_laughs, "forbidden_xml"),
    "an archive that is no Office file": ("d.xlsx", lambda: corpus.zip_of({"readme.md": b"no"}),
                                          "unsupported"),
    "many entries": ("e.docx", lambda: corpus.zip_of(dict.fromkeys(map(str, range(10_001)), b"")),
                     "archive_too_large"),
    "broken JSON": ("a.json", lambda: b'{"a": [1, 2', "damaged"),
    "deep JSON": ("b.json", lambda: b"[" * 50_000 + b"]" * 50_000, "damaged"),
    "subtitles without times": ("a.srt", lambda: b"no times at all", "damaged"),
    "an MP4 cut short": ("a.mp4", lambda: corpus.recording(sounds.speech("Hello there, "
        "this is cut."), "mp4")[:3_000], "damaged"),
    "white space": ("a.txt", lambda: b" \n\n \t", "no_text"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_fails_with_a_reason(alone: DocumentHarness, what: str) -> None:
    name, make, reason = BROKEN[what]
    uploaded = alone.service.upload(name, make(), who=alone.token).json()
    alone.service.until(lambda: alone("GET", uploaded["status_url"])["status"] == "failed")
    document = alone("GET", uploaded["status_url"])
    assert (document["error"]["reason"], document["result"]) == (reason, None)
    assert document["error"]["message"].endswith(".")
    assert (document["chunk_count"], alone.chunks(document), alone.text(document)) == (0, [], "")
    job = alone("GET", f"/v1/memories/jobs/{uploaded['job_id']}")
    assert job["status"] == "failed" and job["error"].startswith(f"{reason}: ")


def test_a_parser_that_takes_too_much_is_ended_and_others_go_on(tmp_path: Path) -> None:
    with in_process(tmp_path, documents__parser_memory_bytes=128 * 1024**2) as service:
        token = service.register("ada@example.com")
        numbers = ",".join(f'{{"n{n}": {n}}}' for n in range(400_000)).encode()
        slow = service.upload("slow.json", b"[" + numbers + b"]", who=token)
        assert service.processed("fine.txt", b"All is well.", who=token)["status"] == "completed"
        url = slow.json()["status_url"]
        service.until(lambda: service.request("GET", url, who=token).json()["status"] == "failed")
        reason = service.request("GET", url, who=token).json()["error"]["reason"]
        assert reason in ("too_large_to_parse", "parser_crashed")


# --- the life of a document -----------------------------------------------------------------------


def test_a_document_is_stored_once_and_deleted_with_everything(reader: DocumentHarness) -> None:
    with receiver() as there:
        kinds = ["document.created", "document.processed", "document.deleted"]
        webhook = reader.service.request(
            "POST", "/v1/webhooks", {"url": there.url, "events": kinds}, who=reader.token
        ).json()["id"]
        first, elsewhere = _stored_once_and_deleted(reader)
        assert (
            reader.service.request(
                "DELETE", f"/v1/webhooks/{webhook}", who=reader.token
            ).status_code
            == 200
        )
    events = sorted(
        (received.event for received in there.received), key=lambda event: event["data"]["version"]
    )
    told = [(event["event_type"], event["data"]) for event in events]
    assert [
        (kind, data["status"], data["version"]) for kind, data in told if data["id"] == first["id"]
    ] == [
        ("document.created", "pending", 1),
        ("document.processed", "completed", 2),
        ("document.deleted", "deleted", 3),
    ]
    assert ("document.deleted", 3) in [
        (kind, data["version"]) for kind, data in told if data["id"] == elsewhere["id"]
    ]


def _stored_once_and_deleted(reader: DocumentHarness) -> tuple[dict[str, Any], dict[str, Any]]:
    """The life of a document, and of another one with the same content."""
    collection, other = reader.collection("one"), reader.collection("another")
    content, before = b"The anchor winch needs grease every spring.", len(reader.files())
    first = reader.processed("winch.txt", content, collection_id=collection, title="Winch")
    again = reader.service.upload("winch.txt", content, who=reader.token, collection_id=collection)
    assert (again.status_code, again.json()["document"]) == (200, first)
    elsewhere = reader.processed("winch.txt", content, collection_id=other)
    assert elsewhere["id"] != first["id"]
    reader.idle()
    assert len(reader.files()) == before + 1, "the same content is kept once"
    listed = reader(
        "GET", f"/v1/documents?sha256={first['sha256']}&collection_id={collection}&status=completed"
    )
    assert (listed["items"], listed["total_count"]) == ([first], 1)
    assert reader("GET", f"/v1/collections/{collection}")["document_count"] == 1
    memory = reader.chunks(first)[0]["memory_id"]

    assert reader("DELETE", f"/v1/documents/{first['id']}") == {"id": first["id"], "deleted": True}
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/chunks"),
        ("GET", "/text"),
        ("GET", "/content"),
    ):
        assert (
            reader.service.request(
                method, f"/v1/documents/{first['id']}{path}", who=reader.token
            ).status_code
            == 404
        )
    assert (
        reader.service.request("GET", f"/v1/memories/{memory}", who=reader.token).status_code == 404
    )
    assert reader.search("anchor winch grease", collection_id=collection) == []
    assert reader("GET", f"/v1/collections/{collection}")["document_count"] == 0
    reader.idle()
    assert len(reader.files()) == before + 1, "another document needs the file"

    reader("DELETE", f"/v1/collections/{other}")
    assert (
        reader.service.request(
            "GET", f"/v1/documents/{elsewhere['id']}", who=reader.token
        ).status_code
        == 404
    )
    assert elsewhere["id"] not in {item["id"] for item in reader("GET", "/v1/documents")["items"]}
    reader.idle()
    assert len(reader.files()) == before
    return first, elsewhere


def test_a_failed_document_is_tried_again_by_uploading_it_again(
    tmp_path: Path, spoken: np.ndarray
) -> None:
    with endpoint() as models:
        models.segments = [(0.0, 2.0, "At nine.")]
        with in_process(tmp_path, transcriber__base_url=models.url) as service:
            token = service.register("ada@example.com")
            models.failures = [400]
            failed = service.processed("meeting.wav", corpus.recording(spoken, "wav"), who=token)
            assert failed["error"]["reason"] == "model_refused"
            again = service.processed(
                "meeting.wav", corpus.recording(spoken, "wav"), who=token, title="Second try"
            )
            assert (again["id"], again["status"], again["title"], again["error"]) == (
                failed["id"],
                "completed",
                "Second try",
                None,
            )
            assert again["version"] > failed["version"]


@pytest.mark.parametrize("which", ["one of its memories", "all memories"])
def test_a_document_whose_memories_were_deleted_is_read_again_by_uploading_it_again(
    tmp_path: Path, which: str
) -> None:
    handbook = corpus.docx()
    with in_process(tmp_path) as service:
        token = service.register("ada@example.com")

        def request(method: str, path: str, body: Any = None) -> Any:
            return service.request(method, path, body, who=token).json()

        def memories() -> list[str | None]:
            listed = request("GET", f"/v1/documents/{first['id']}/chunks")["items"]
            return [chunk["memory_id"] for chunk in listed]

        first = service.processed("handbook.docx", handbook, who=token)
        before = memories()
        assert len(before) == 2 and all(before)
        if which == "all memories":
            request("DELETE", "/v1/memories/all?confirm=delete-all-memories")
            gone = [None, None]
        else:
            request("DELETE", f"/v1/memories/{before[0]}")
            gone = [None, before[1]]
        assert memories() == gone
        again = service.processed("handbook.docx", handbook, who=token)
        assert (again["id"], again["status"]) == (first["id"], "completed")
        after = memories()
        assert len(after) == 2 and all(after) and not set(after) & set(before)
        service.settle()
        found = request("POST", "/v1/search", {"query": "when does the harbour office open"})
        assert found["results"][0]["id"] == after[0]
        assert request("GET", "/v1/memories")["total_count"] == 2
        answer = service.upload("handbook.docx", handbook, who=token)
        assert answer.status_code == 200 and memories() == after


def test_the_file_of_a_failed_document_is_removed_and_comes_back(tmp_path: Path) -> None:
    page = corpus.picture("AT NINE")
    with endpoint() as models:
        models.text = "AT NINE"
        asked = {"ocr__base_url": models.url, "ocr__model": "eyes"}
        asked["documents__failed_file_kept_seconds"] = 0
        with in_process(tmp_path, **asked) as service:
            token = service.register("ada@example.com")
            ada = DocumentHarness(service, token, models)
            models.failures = [400]
            failed = service.processed("page.png", page, who=token)
            service.settle()
            url = f"/v1/documents/{failed['id']}"
            (listed,) = ada("GET", "/v1/documents")["items"]
            assert (listed["status"], listed["error"]) == ("failed", failed["error"])
            assert listed["file_removed_at"] is not None and ada.files() == []
            gone = service.request("GET", f"{url}/content", who=token)
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, "resource_not_found")
            assert "upload it again" in gone.json()["error"]["message"]
            again = service.processed("page.png", page, who=token)
            assert (again["id"], again["status"]) == (failed["id"], "completed")
            assert again["file_removed_at"] is None
            assert service.request("GET", f"{url}/content", who=token).content == page
            ada("DELETE", url)
            ada.idle()
            assert ada.files() == []


def test_the_file_of_a_failed_document_stays_for_a_while(tmp_path: Path) -> None:
    with in_process(tmp_path, documents__failed_file_kept_seconds=3600) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        failed = ada.processed("bad.json", b"{")
        assert failed["status"] == "failed" and failed["file_removed_at"] is None
        content = service.request(
            "GET", f"/v1/documents/{failed['id']}/content", who=ada.token
        ).content
        assert content == b"{"
        ada("DELETE", f"/v1/documents/{failed['id']}")
        ada.idle()
        assert ada.files() == []


def test_the_files_of_an_account_have_the_room_of_its_tier(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_file_bytes=40) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        shared, large = b"abcdefghijkl", b"mnopqrstuvwxyzabcd"
        first = ada.processed("first.txt", shared)
        assert first["status"] == "completed"
        refused = service.upload("second.txt", large, who=ada.token)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "document_too_large")
        assert "40 bytes" in refused.json()["error"]["message"]
        elsewhere = ada.collection("elsewhere")
        # One file for both; what is read out of it is kept for each.
        twin = ada.processed("twin.txt", shared, collection_id=elsewhere)
        assert ada.processed("small.txt", b"gh")["status"] == "completed"
        for document in (first, twin):
            assert service.upload("second.txt", large, who=ada.token).status_code == 413
            ada("DELETE", f"/v1/documents/{document['id']}")
        assert ada.processed("second.txt", large)["status"] == "completed"
        ada.idle()
        assert len(ada.files()) == 2


def test_one_key_one_upload(reader: DocumentHarness) -> None:
    key, content = {"Idempotency-Key": "upload-1"}, b"Under one key."
    first = reader.service.upload("key.txt", content, who=reader.token, headers=key)
    again = reader.service.upload("key.txt", content, who=reader.token, headers=key)
    assert (first.status_code, again.status_code, again.content) == (202, 202, first.content)
    assert again.headers["X-Idempotent-Replay"] == "true"
    other = reader.service.upload("key.txt", b"Other content.", who=reader.token, headers=key)
    assert other.status_code == 409
    reader.idle()
    assert (
        sum(
            path.name.startswith(hashlib.sha256(b"Other content.").hexdigest())
            for path in reader.files()
        )
        == 0
    )
    assert (
        sum(path.name.startswith(hashlib.sha256(content).hexdigest()) for path in reader.files())
        == 1
    )


def test_a_document_has_as_many_tags_as_a_memory(reader: DocumentHarness) -> None:
    """Each of its passages is a memory with its tags."""

    def statuses(tags: list[str]) -> tuple[int, int]:
        sent = {"content": "A tagged note.", "tags": list(dict.fromkeys(tags))}
        made = reader.service.request("POST", "/v1/memories", sent, who=reader.token)
        form = ",".join(tags)
        content = f"Tagged {len(set(tags))} times.".encode()
        answer = reader.service.upload("tags.txt", content, who=reader.token, tags=form)
        return made.status_code // 100, answer.status_code // 100

    numbers = [str(number) for number in range(33)]
    assert statuses([*numbers[:32], "0"]) == (2, 2)
    assert statuses(numbers) == statuses(["x" * 65]) == (4, 4)
    reader.idle()


def test_deleting_while_it_is_processed_leaves_nothing(reader: DocumentHarness) -> None:
    collection = reader.collection("short-lived")
    uploaded = reader.service.upload(
        "gone.pdf", corpus.long_pdf(5), who=reader.token, collection_id=collection
    ).json()
    reader("DELETE", uploaded["status_url"])
    reader.idle()
    assert reader("GET", f"/v1/memories?collection_id={collection}")["total_count"] == 0
    assert reader("GET", f"/v1/collections/{collection}")["document_count"] == 0
    job = reader("GET", f"/v1/memories/jobs/{uploaded['job_id']}")
    assert (job["status"], job["result"]) == ("failed", None)
    assert job["error"].startswith("The document was deleted meanwhile")


def test_media_need_their_tier_and_count_against_their_cap(tmp_path: Path) -> None:
    caps = {
        "billing__default_tier": "free",
        "limits__endpoint_caps": True,
        "limits__requests_per_minute": 0,
    }
    with in_process(tmp_path, **caps) as service:
        token = service.register("ada@example.com")
        refused = service.upload("a.wav", sounds.wav(sounds.silence(1)), who=token)
        assert (refused.status_code, refused.json()["feature"]) == (403, "media")
        for n in range(20):
            assert service.upload(f"{n}.png", corpus.picture(str(n)), who=token).status_code == 202
        capped = service.upload("z.png", corpus.picture("z"), who=token)
        assert (capped.status_code, capped.headers["X-RateLimit-Limit"]) == (429, "20")
        assert service.upload("a.txt", b"Text has no such cap.", who=token).status_code == 202


def test_an_upload_costs_what_came_of_it(tmp_path: Path) -> None:
    with in_process(tmp_path, limits__credits_per_month=31) as service:
        token = service.register("ada@example.com")

        def used() -> tuple[int, int]:
            shown = service.request("GET", "/v1/usage", who=token).json()
            share = next(
                share for share in shown["by_operation"] if share["operation"] == "documents.upload"
            )
            assert shown["storage"]["bytes"] >= sum(len(content) for content in kept.values())
            return shown["credits"]["used"], share["count"]

        kept = {"one.txt": b"One chunk.", "two.md": b"# One\n\nA chunk.\n\n# Two\n\nAnother chunk."}
        for name, content in kept.items():
            service.processed(name, content, who=token)
        assert used() == (5 + 1 + 5 + 2, 2)
        service.processed("copy.txt", kept["one.txt"], who=token)
        assert service.processed("bad.json", b"{", who=token)["status"] == "failed"
        url = service.upload("gone.pdf", corpus.long_pdf(5), who=token).json()["status_url"]
        assert service.request("DELETE", url, who=token).status_code == 200
        service.settle()
        assert used() == (13, 5), "what failed, was there or was deleted on the way costs nothing"
        for number in range(2):
            service.processed(f"{number}.txt", b"Number %d." % number, who=token)
        assert used() == (25, 7)
        service.processed("last.txt", b"The last one.", who=token)
        refused = service.upload("more.txt", b"One too many.", who=token)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "quota_exceeded")
        service.until(
            lambda: len([path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]) == 6
        )


def test_files_that_no_document_needs_are_swept(reader: DocumentHarness) -> None:
    home = reader.service.settings.data_dir / "blobs"
    (owner,) = {path.relative_to(home).parts[0] for path in reader.files()}
    writer = BlobStore(home).writer(owner)
    writer.write(b"an upload whose end nobody learnt")
    name = writer.finish().name
    orphan = next(path for path in reader.files() if path.name == name)
    needed = next(path for path in reader.files() if path != orphan)
    for path in (orphan, needed):
        os.utime(path, (0, 0))
    scope = reader.service.shard.store
    with scope.snapshot() as snapshot:
        slots = list(snapshot.slots())

    def forget_when(transaction: Transaction) -> None:
        for slot in slots:
            transaction.bind(DOCUMENT_SWEEP, Scope(slot, 1, b"")).delete_prefix()

    scope.write(forget_when)
    reader.service.upload("late.txt", b"One more upload.", who=reader.token)
    reader.idle()
    assert needed.exists() and not orphan.exists()


def test_what_must_agree_is_found_and_mended(reader: DocumentHarness) -> None:
    shard = reader.service.shard

    def damaged_and_mended(transaction: Transaction) -> None:
        scope = next(scope for scope in transaction.scopes() if scope.tenant)
        principal, scope = tenants.tenant(transaction, scope.slot, scope.tenant)
        call = Call("check", scope.slot, 0, b"s" * 32, "r")
        ctx = WriteContext(transaction, scope, call, shard.environment, principal)

        def findings() -> list[Finding]:
            return [finding for check in documents.plugin.checks for finding in check(ctx)]

        assert ctx[DOCUMENTS].count() >= 3 and findings() == []
        (ordinal,), row = next(ctx[DOCUMENTS].scan())
        ctx[DOCUMENT_IDS].delete(row.id)
        ctx[DOCUMENT_DIGESTS].delete_prefix()
        ctx.index(DOCUMENT_FIELDS).remove(ordinal, "live", 1)
        ctx[DOCUMENTS].put((ordinal,), msgspec.structs.replace(row, status="processing"))
        ctx[DOCUMENT_TEXT_BYTES].delete_prefix()
        for finding in findings():
            finding.repair(ctx)
        for finding in findings():  # an index made again shows what waits for a job
            finding.repair(ctx)
        assert findings() == []
        assert ctx[DOCUMENTS].get(ordinal).job_id != row.job_id

    shard.store.write(damaged_and_mended)
    reader.idle()
