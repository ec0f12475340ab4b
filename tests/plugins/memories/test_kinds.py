"""What kind a memory is, by its source, of all that make memories."""

from __future__ import annotations

from pathlib import Path

from plugins.documents.chunk_memories import SOURCE_TYPE as DOCUMENT
from plugins.ingestion.store import FACT, TURN
from plugins.memory_tools.files import FILE
from tests.support.in_process import in_process

KINDS = {
    TURN: "episodic", "chat": "episodic", FACT: "semantic", DOCUMENT: "document", FILE: "file",
    "text": "note", "correction": "note",
}  # fmt: skip


def test_a_memory_says_of_what_kind_it_is_and_is_found_by_it(tmp_path: Path) -> None:
    told = [{"content": f"about {source}", "source_type": source} for source in KINDS]
    told.append({"content": "said in a chat", "role": "user"})
    with in_process(tmp_path) as service:
        me = service.register("ada@example.com")
        for each in told:
            assert service.request("POST", "/v1/memories", each, who=me).status_code == 201
        items = service.request("GET", "/v1/memories", who=me).json()["items"]
        shown = {item["content"]: item["kind"] for item in items}
        expected = {f"about {source}": kind for source, kind in KINDS.items()}
        assert shown == expected | {"said in a chat": "episodic"}
        for kind in {*KINDS.values()}:
            asked = {"filters": {"kind": kind}}
            found = service.request("POST", "/v1/memories/query", asked, who=me).json()["items"]
            assert {item["content"] for item in found} == {
                content for content, own in shown.items() if own == kind
            }
