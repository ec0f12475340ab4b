"""What an upload of a content that is there makes of its document."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.documents.limits import CHUNKS_PER_STEP
from tests.support import corpus
from tests.support.document_harness import DocumentHarness

pytestmark = pytest.mark.usefixtures("without_delay")


def described(document: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(document[name] for name in ("filename", "title", "tags", "metadata"))


def memories_of(reader: DocumentHarness, document: dict[str, Any]) -> list[dict[str, Any]]:
    listed = reader("GET", f"/v1/documents/{document['id']}/chunks?limit=100")["items"]
    return [reader("GET", f"/v1/memories/{chunk['memory_id']}") for chunk in listed]


def test_what_is_not_sent_again_stays(alone: DocumentHarness) -> None:
    """Of a document that is read once more, of one that is whole, and of one that failed."""
    fields = {"title": "Pumps", "tags": "house,keys", "metadata": '{"floor": 2}'}
    told = ("Pumps", ["house", "keys"], {"floor": 2})
    content = b"The pump hums at night."
    first = alone.processed("pump.txt", content, **fields)
    (memory,) = memories_of(alone, first)
    alone("DELETE", f"/v1/memories/{memory['id']}")
    again = alone.processed("pump.txt", content)
    assert (again["id"], described(again)) == (first["id"], ("pump.txt", *told))
    (memory,) = memories_of(alone, again)
    assert (memory["title"], memory["tags"], memory["metadata"]["floor"]) == ("Pumps", told[1], 2)
    assert alone.processed("pump.txt", content) == again
    failed = alone.processed("pump.json", b"{", **fields)
    assert failed["status"] == "failed"
    assert described(alone.processed("pump.json", b"{")) == ("pump.json", *told)


def test_what_is_sent_again_is_taken_over_by_a_document_and_its_memories(
    alone: DocumentHarness,
) -> None:
    content = corpus.long_pdf(30)
    first = alone.processed("old.pdf", content, tags="draft", metadata='{"floor": 2}')
    assert first["chunk_count"] > CHUNKS_PER_STEP, "too short to take two steps"
    changed = memories_of(alone, first)[0]
    path, marked = f"/v1/memories/{changed['id']}", {**changed["metadata"], "mark": 1}
    alone("PATCH", path, {"metadata": marked})

    def sent() -> Any:
        return alone.service.upload(
            "new.pdf", content, who=alone.token, tags="final,read", title="Remarks"
        )

    def used() -> int:
        return alone("GET", "/v1/usage")["credits"]["used"]

    before, answer = used(), sent()
    document = answer.json()["document"]
    assert (answer.status_code, document["id"]) == (200, first["id"])
    assert described(document) == ("old.pdf", "Remarks", ["final", "read"], {"floor": 2})
    assert document["version"] == first["version"] + 1
    alone.idle()
    memories = memories_of(alone, document)
    for memory in memories:
        assert (memory["tags"], memory["source"]) == (["final", "read"], "old.pdf")
        assert memory["metadata"]["floor"] == 2
    assert memories[0]["metadata"]["mark"] == 1
    assert used() == before + first["chunk_count"], "each for what a change of it costs"
    versions = [memory["version"] for memory in memories]
    assert sent().json()["document"] == document
    alone.idle()
    assert [memory["version"] for memory in memories_of(alone, document)] == versions
