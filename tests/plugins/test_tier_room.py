"""What a tier has room for: memories, documents and entities, counted in the transaction that
brings them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.document_harness import DocumentHarness
from tests.support.in_process import InProcess, in_process
from tests.support.upstream import upstream


def refused(answer: Any) -> str:
    """The message of a refusal for want of room."""
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "quota_exceeded"), answer.text
    assert "Delete" in error["message"] and "upgrade" in error["message"]
    return error["message"]


def stored(service: InProcess, who: str) -> dict[str, Any]:
    return service.request("GET", "/v1/usage", who=who).json()["storage"]


def raw(service: InProcess, content: str, who: str) -> Any:
    return service.request("POST", "/v1/memories/raw", {"content": content}, who=who)


def test_memories_have_the_room_of_the_tier(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_memories=3) as service:
        ada, bob = service.register("ada@example.com"), service.register("bob@example.com")
        made = [raw(service, f"Note {number}.", ada).json()["id"] for number in range(2)]
        batch = {"memories": [{"content": f"Note {number}."} for number in (3, 4)]}
        answer = service.request("POST", "/v1/memories/batch", batch, who=ada)
        assert "keeps 3 memories; 2 are there, and this would add 2" in refused(answer)
        assert stored(service, ada)["memories"] == 2, "all of a batch or nothing"
        assert raw(service, "The third.", ada).status_code == 201
        refused(raw(service, "The fourth.", ada))
        tool = {"command": "create", "path": "/memories/a.txt", "file_text": "x"}
        refused(service.request("POST", "/v1/memory-tool", tool, who=ada))
        shown = stored(service, ada)
        assert (shown["memories"], shown["limits"]["memories"]) == (3, 3)
        # What is there can be read, found and changed, and what is deleted makes room.
        changed = {"content": "Note zero, changed."}
        path = f"/v1/memories/{made[0]}"
        assert service.request("PATCH", path, changed, who=ada).status_code == 200
        assert service.request("DELETE", path, who=ada).status_code in (200, 204)
        assert raw(service, "The fourth.", ada).status_code == 201
        assert raw(service, "Of somebody else.", bob).status_code == 201


@pytest.mark.parametrize("room", [{"memories": 2}, {"text_bytes": 320}])
def test_a_conversation_without_room_is_refused_before_the_model_is_asked(
    tmp_path: Path, room: dict[str, int]
) -> None:
    settings = {f"tiers__enterprise_{name}": limit for name, limit in room.items()}
    with upstream() as model, in_process(tmp_path, llm__base_url=model.url, **settings) as service:
        ada = service.register("ada@example.com")
        asked = {"messages": [{"role": "user", "content": "Who keeps the key?" * 10}]}

        def chat(**more: Any) -> Any:
            return service.request("POST", "/v1/chat/completions", {**asked, **more}, who=ada)

        assert raw(service, "Ben keeps it." * 10, ada).status_code == 201
        refused(chat(store_conversation=True))
        refused(chat(store_conversation=True, stream=True))
        assert model.requests == []
        used = service.request("GET", "/v1/usage", who=ada).json()["credits"]["used"]
        assert used == 1, "an answer that nobody was given costs nothing"
        assert chat().status_code == 200
        asked["messages"][0]["content"] = "Who?"
        if "text_bytes" in room:
            assert chat(store_conversation=True).status_code == 200


def test_an_import_has_the_room_of_the_tier(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_memories=3) as service:
        ada, bob = service.register("ada@example.com"), service.register("bob@example.com")
        for number in range(3):
            assert raw(service, f"Note {number}.", ada).status_code == 201
        assert raw(service, "Of Bob.", bob).status_code == 201
        export = service.request("GET", "/v1/account/export", who=ada)
        assert export.status_code == 200
        answer = service.request(
            "POST",
            "/v1/account/import",
            export.content,
            who=bob,
            Content_Type=export.headers["Content-Type"],
        )
        refused(answer)
        assert stored(service, bob)["memories"] == 1


def test_documents_have_the_room_of_the_tier(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_documents=1) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        first = ada.processed("first.txt", b"The first.")
        assert "keeps 1 documents" in refused(
            service.upload("second.txt", b"The second.", who=ada.token)
        )
        again = service.upload("first.txt", b"The first.", who=ada.token)
        assert again.json()["document"]["id"] == first["id"], (
            "the same once more is no other document"
        )
        shown = stored(service, ada.token)
        assert (shown["documents"], shown["limits"]["documents"]) == (1, 1)
        assert shown["file_bytes"] == 2 * len(b"The first."), "the file and its text"
        ada("DELETE", f"/v1/documents/{first['id']}")
        assert ada.processed("second.txt", b"The second.")["status"] == "completed"


@pytest.mark.parametrize("room", [{"memories": 1}, {"text_bytes": 60}])
def test_a_document_whose_memories_have_no_room_says_so(
    tmp_path: Path, room: dict[str, int]
) -> None:
    limits = {f"tiers__enterprise_{kind}": limit for kind, limit in room.items()}
    with in_process(tmp_path, **limits) as service:
        ada = DocumentHarness(service, service.register("ada@example.com"), None)
        assert raw(service, "The only one.", ada.token).status_code == 201
        failed = ada.processed("long.txt", b"There is no room for this.")
        assert (failed["status"], failed["error"]["reason"]) == ("failed", "quota_exceeded")
        assert "upgrade" in failed["error"]["message"]
        assert stored(service, ada.token)["memories"] == 1


def test_what_is_read_out_of_documents_has_the_room_of_the_tier(tmp_path: Path) -> None:
    """Beside their files; it is freed by deleting documents, and not by deleting their memories."""
    said = b"The pier was built of oak. " * 20
    room = 15 * len(said) // 2
    with in_process(tmp_path, tiers__enterprise_file_bytes=room) as service:
        ada, bob = (
            DocumentHarness(service, service.register(f"{name}@example.com"), None)
            for name in ("ada", "bob")
        )
        made: list[dict[str, Any]] = []
        while not made or made[-1]["status"] == "completed":
            made.append(ada.processed(f"{len(made)}.txt", b"%d " % len(made) + said))
            for memory in service.request("GET", "/v1/memories", who=ada.token).json()["items"]:
                ada("DELETE", f"/v1/memories/{memory['id']}")
        assert len(made) == 4, "three have room for their files and texts, the fourth for its file"
        assert made[-1]["error"]["reason"] == "quota_exceeded"
        assert "upgrade" in made[-1]["error"]["message"]
        assert room - len(said) < stored(service, ada.token)["file_bytes"] <= room
        refused = service.upload("further.txt", b"further " + said, who=ada.token)
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "document_too_large")
        assert bob.processed("of Bob.txt", said)["status"] == "completed"
        for document in made:
            ada("DELETE", f"/v1/documents/{document['id']}")
        assert stored(service, ada.token)["file_bytes"] == 0
        assert ada.processed("again.txt", said)["status"] == "completed"


@pytest.mark.parametrize("asked", [1, 2])
def test_entities_that_are_asked_for_have_the_room_of_the_tier(tmp_path: Path, asked: int) -> None:
    with in_process(tmp_path, tiers__enterprise_entities=asked) as service:
        ada = service.register("ada@example.com")
        for number in range(asked):
            entity = {"name": f"Pier {number}", "type": "place"}
            answer = service.request("POST", "/v1/knowledge-graph/entities", entity, who=ada)
            assert answer.status_code == 201, answer.text
        further = {"name": "Pier 9", "type": "place"}
        refused(service.request("POST", "/v1/knowledge-graph/entities", further, who=ada))
        known = {"name": "Pier 0", "type": "place"}
        assert (
            service.request("POST", "/v1/knowledge-graph/entities", known, who=ada).status_code
            == 200
        )
        shown = stored(service, ada)
        assert (shown["entities"], shown["limits"]["entities"]) == (asked, asked)


def test_entities_that_memories_speak_of_take_no_room(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_entities=1) as service:
        ada = service.register("ada@example.com")
        pier = {"name": "Pier 0", "type": "place"}
        for content in ("I live in Oslo and I work at Acme.", "I moved to Riga."):
            said = {"content": content, "infer": True, "user_id": "ada"}
            assert service.request("POST", "/v1/memories", said, who=ada).status_code == 201
        entities = service.request("GET", "/v1/knowledge-graph/entities", who=ada).json()
        assert entities["total_count"] > 1
        for _ in range(2):
            made = service.request("POST", "/v1/knowledge-graph/entities", pier, who=ada)
            assert made.status_code == 201, made.text
            further = {"name": "Pier 9", "type": "place"}
            refused(service.request("POST", "/v1/knowledge-graph/entities", further, who=ada))
            path = f"/v1/knowledge-graph/entities/{made.json()['id']}"
            assert service.request("DELETE", path, who=ada).status_code == 200


def test_collections_have_the_room_of_the_tier(tmp_path: Path) -> None:
    """Those of an import as well: neither costs a credit."""
    with in_process(tmp_path, tiers__enterprise_collections=2) as service:
        ada, bob = service.register("ada@example.com"), service.register("bob@example.com")

        def create(name: str, who: str) -> Any:
            return service.request("POST", "/v1/collections", {"name": name}, who=who)

        first = create("first", ada).json()["id"]
        assert create("second", ada).status_code == 201
        assert "keeps 2 collections" in refused(create("third", ada))
        shown = stored(service, ada)
        assert (shown["collections"], shown["limits"]["collections"]) == (2, 2)
        assert create("of Bob", bob).status_code == 201
        export = service.request("GET", "/v1/account/export", who=ada)
        answer = service.request(
            "POST",
            "/v1/account/import",
            export.content,
            who=bob,
            Content_Type=export.headers["Content-Type"],
        )
        refused(answer)
        service.request("DELETE", f"/v1/collections/{first}?confirm=first", who=ada)
        assert create("third", ada).status_code == 201


def test_the_default_collection_takes_no_room(tmp_path: Path) -> None:
    """Changed, emptied or imported: everybody has one, and nobody asked for it."""
    with in_process(tmp_path, tiers__enterprise_collections=1) as service:
        ada, bob = service.register("ada@example.com"), service.register("bob@example.com")

        def asked(method: str, path: str, body: Any = None, who: str = ada, **headers: str) -> Any:
            answer = service.request(method, path, body, who=who, **headers)
            assert answer.status_code in (200, 201), answer.text
            return answer

        default = asked("GET", "/v1/collections/default").json()["id"]
        asked("PATCH", f"/v1/collections/{default}", {"description": "Whatever comes"})
        asked("DELETE", "/v1/collections/all?confirm=delete-all-collections")
        assert stored(service, ada)["collections"] == 0
        export = asked("GET", "/v1/account/export").content
        lines = {"Content_Type": "application/x-ndjson"}
        asked("POST", "/v1/account/import", export, bob, **lines)
        for who in (ada, bob):
            asked("POST", "/v1/collections", {"name": "first"}, who)
            assert stored(service, who)["collections"] == 1


def test_profiles_that_are_asked_for_have_the_room_of_the_tier(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__enterprise_profiles=2) as service:
        ada = service.register("ada@example.com")

        def give(user: str) -> Any:
            path = f"/v1/profile?user_id={user}"
            return service.request("PATCH", path, {"name": "Somebody"}, who=ada)

        assert [give(user).status_code for user in ("first", "second", "first")] == [200] * 3
        assert "keeps 2 profiles" in refused(give("third"))
        shown = stored(service, ada)
        assert (shown["profiles"], shown["limits"]["profiles"]) == (2, 2)
        service.request("DELETE", "/v1/profile?user_id=first", who=ada)
        assert give("third").status_code == 200


def test_every_tier_says_what_it_has_room_for(tmp_path: Path) -> None:
    with in_process(tmp_path, tiers__free_memories=7) as service:
        tiers = service.request("GET", "/v1/billing/tiers").json()["items"]
        assert [tier["memories"] for tier in tiers][:2] == [7, 250_000]
        assert all(tier["documents"] and tier["entities"] for tier in tiers)
