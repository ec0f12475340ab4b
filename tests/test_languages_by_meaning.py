"""Memories and questions in different languages, on a real service with the multilingual model
beside the embedded one; and a store that had the embedded one alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.commands import admin
from tests.support.served import Served, refusal, served

EMAIL = "ada@example.com"
MULTILINGUAL = {"embedder__multilingual": True}
# Memories and what somebody asks of them in another language; none shares a word with its question.
FOREIGN = {
    "我姐姐对花生过敏，不能吃坚果。": "Is my sister allergic to peanuts?",
    "Моя мать играет на скрипке в оркестре.": "Which instrument does my mother play?",
    "Der Zug nach Hamburg fährt um acht Uhr morgens.": "What time does the train leave?",
    "車の修理は来週の火曜日です。": "When will the car be repaired?",
}
ENGLISH = {
    "The train to the coast leaves at eight in the morning.": "Когда отправляется поезд к морю?",
    "Our dog is called Biscuit.": "Wie heißt unser Hund?",
    "The spare key is under the blue flower pot.": "备用钥匙在哪里？",
}


def remembered(service: Served, token: str, asked: Mapping[str, str]) -> dict[str, str]:
    """Store the memories; content -> id."""
    answer = service.http.post(
        "/v1/memories/batch",
        json={"memories": [{"content": text} for text in asked], "wait_for_index": True},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 201, answer.text
    return {text: each["id"] for text, each in zip(asked, answer.json()["results"], strict=True)}


def found(service: Served, token: str, question: str) -> list[str]:
    answer = service.http.post(
        "/v1/search", json={"query": question}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 200, answer.text
    assert not answer.json()["degraded"]
    return [hit["content"] for hit in answer.json()["results"]]


def assert_all_found(service: Served, token: str, asked: Mapping[str, str]) -> None:
    for memory, question in asked.items():
        assert memory in found(service, token, question)[:2], question


@pytest.mark.parametrize("asked", [FOREIGN, ENGLISH], ids=["foreign", "english"])
def test_what_is_asked_in_one_language_is_found_in_another(
    tmp_path: Path, asked: Mapping[str, str]
) -> None:
    with served(tmp_path / "data", **MULTILINGUAL) as service:
        token = service.register(EMAIL)
        known = remembered(service, token, asked)
        assert_all_found(service, token, asked)
        forgotten, question = next(iter(asked.items()))
        gone = service.http.delete(
            f"/v1/memories/{known[forgotten]}", headers={"Authorization": f"Bearer {token}"}
        )
        assert gone.status_code in (200, 204)
        assert forgotten not in found(service, token, question)
        service.kill()
    with served(tmp_path / "data", **MULTILINGUAL) as service:
        assert forgotten not in found(service, token, question)
        assert_all_found(service, token, dict(list(asked.items())[1:]))


@pytest.mark.long
def test_a_store_of_the_embedded_model_alone_is_embedded_anew(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as service:
        token = service.register(EMAIL)
        remembered(service, token, FOREIGN)
    said = refusal(data, **{"embedder.multilingual": True})
    assert "previous_embedder" in said and "mneme admin re-embed" in said
    with served(data, **MULTILINGUAL, previous_embedder__backend="minilm") as service:
        assert admin("re-embed", data, service=service)[0] == 0
        assert_all_found(service, token, FOREIGN)
    with served(data, **MULTILINGUAL) as service:
        assert_all_found(service, token, FOREIGN)


def test_it_goes_with_the_embedded_model_alone(tmp_path: Path) -> None:
    said = refusal(
        tmp_path,
        **{
            "embedder.multilingual": True,
            "embedder.backend": "openai",
            "embedder.base_url": "http://127.0.0.1:9/v1",
            "embedder.model": "one",
        },
    )
    assert "embedder.backend must be minilm" in said
