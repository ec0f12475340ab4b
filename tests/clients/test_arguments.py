"""What the client refuses before anything is sent, and what it takes in more than one form."""

from __future__ import annotations

import asyncio
import io
import math
import uuid
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from mneme_client import AsyncMneme, Mneme

from tests.clients.endpoint import Endpoint, answers, endpoint

PAGE = {"items": [], "next_cursor": None, "has_more": False, "total_count": 0}


def blocking(call: Callable[[Any], Any], service: Endpoint, **given: Any) -> None:
    with Mneme(base_url=service.url, **given) as client:
        call(client)


def awaited(call: Callable[[Any], Any], service: Endpoint, **given: Any) -> None:
    async def run() -> None:
        async with AsyncMneme(base_url=service.url, **given) as client:
            await call(client)

    asyncio.run(run())


@pytest.fixture(params=[blocking, awaited])
def calling(request: pytest.FixtureRequest) -> Callable[..., None]:
    return request.param


@pytest.mark.parametrize("name", ["user_id", "session_id", "agent_id", "app_id", "collection_id"])
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_id_that_is_an_empty_text_is_refused(
    calling: Callable[..., None], name: str, empty: str
) -> None:
    """The service would take it for everybody's."""
    calls: list[Callable[[Any], Any]] = [
        lambda client: client.memories.list(**{name: empty}).page(),
        lambda client: client.memories.delete_all(confirm="delete-all-memories", **{name: empty}),
        lambda client: client.memories.delete_matching({"tags": "x"}, **{name: empty}),
        lambda client: client.search("tea", **{name: empty}),
    ]
    with endpoint(answers(PAGE)) as service:
        for call in calls:
            with pytest.raises(ValueError, match=f"^{name} is an empty text"):
                calling(call, service)
        assert service.received == []


def test_any_other_empty_text_of_a_query_is_refused(calling: Callable[..., None]) -> None:
    with endpoint(answers(PAGE)) as service:
        with pytest.raises(ValueError, match=r"^tag is an empty text"):
            calling(lambda client: client.memories.list(tag="").page(), service)
        assert service.received == []


def test_an_id_may_be_a_uuid_and_not_nothing(calling: Callable[..., None]) -> None:
    name = uuid.uuid4()
    with endpoint(answers({})) as service:
        calling(lambda client: client.memories.get(name), service)
        calling(lambda client: client.search("tea", user_id=name), service)
        assert service.received[0].path == f"/v1/memories/{name}"
        assert str(name) in service.received[1].body.decode()
        with pytest.raises(TypeError, match="An id is a text, and not NoneType"):
            calling(lambda client: client.memories.get(None), service)
        assert len(service.received) == 2


@pytest.mark.parametrize(
    ("fields", "where", "kind"),
    [
        ({"occurred_at": date(2026, 5, 8)}, "occurred_at: date", TypeError),
        ({"importance": Decimal("0.5")}, "importance: Decimal", TypeError),
        ({"importance": math.nan}, "importance: Out of range", ValueError),
        ({"tags": {"a"}}, "tags: set", TypeError),
        ({"metadata": {"a": [1, {"b": uuid.uuid4()}]}}, r"metadata\.a\.1\.b: UUID", TypeError),
        ({"content": "a\ud800"}, "content: a text with half", ValueError),
    ],
)
def test_what_does_not_become_json_is_refused_by_its_name(
    calling: Callable[..., None], fields: dict[str, Any], where: str, kind: type[Exception]
) -> None:
    with endpoint(answers({})) as service:
        with pytest.raises(kind, match=f"^{where}"):
            calling(lambda client: client.memories.create(**{"content": "x", **fields}), service)
        assert service.received == []


def test_the_space_around_a_key_is_no_part_of_it(calling: Callable[..., None]) -> None:
    """As around one that was read from a file."""
    with endpoint(answers({})) as service:
        calling(
            lambda client: client.memories.create(content="x", idempotency_key=" mine\n"),
            service,
            api_key=" mem_sk_1\r\n",
        )
        headers = service.received[0].headers
        assert (headers["authorization"], headers["idempotency-key"]) == ("Bearer mem_sk_1", "mine")


@pytest.mark.parametrize("key", ["mem_sk_secret\nx", "mem_sk_secreté", "mem_sk_secret\0", "", "\n"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_API_KEY", "mem_sk_of_the_surroundings")
    for client in (Mneme, AsyncMneme):
        with pytest.raises(ValueError, match=r"^api_key ") as raised:
            client(api_key=key)
        assert "secret" not in str(raised.value)
    with Mneme() as made, pytest.raises(ValueError, match=r"^idempotency_key ") as raised:
        made.memories.create(content="x", idempotency_key=key)
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("MNEME_API_KEY", "mem_sk_secret\n\nx")
    with pytest.raises(ValueError, match=r"^\$MNEME_API_KEY ") as raised:
        Mneme()
    assert "secret" not in str(raised.value)


def test_any_other_header_is_checked_too(calling: Callable[..., None]) -> None:
    with endpoint(answers({})) as service:
        with pytest.raises(ValueError, match=r"^Prefer holds a character"):
            calling(lambda client: client.memories.create(content="x", prefer="a\nb"), service)
        with pytest.raises(ValueError, match=r"^If-Match is an empty text"):
            calling(lambda client: client.memories.update("mem_1", title="x", if_match=""), service)
        calling(lambda client: client.memories.update("mem_1", title="x", if_match=3), service)
        assert [each.headers["if-match"] for each in service.received] == ['"3"']


@pytest.mark.parametrize("end", ["", "/v1", "/v1/", "/", " ", "/v1\n"])
@pytest.mark.parametrize("above", ["", "/behind"])
def test_an_address_may_have_the_path_of_the_interface(
    calling: Callable[..., None], above: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint(answers({})) as service:
        service.url += above + end
        calling(lambda client: client.memories.get("mem_1"), service)
        monkeypatch.setenv("MNEME_BASE_URL", service.url)
        with Mneme() as client:
            client.memories.get("mem_1")
        assert [each.path for each in service.received] == [f"{above}/v1/memories/mem_1"] * 2


@pytest.mark.parametrize("url", ["", "localhost:8000", "http://127.0.0.1:port", "http:///v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    for client in (Mneme, AsyncMneme):
        with pytest.raises(ValueError, match="is no address"):
            client(base_url=url)


def test_a_label_of_a_file_that_would_become_two_is_refused(calling: Callable[..., None]) -> None:
    with endpoint(answers({})) as service:
        with pytest.raises(ValueError, match="tags: no comma"):
            tags = ["house", "red, blue"]
            calling(lambda client: client.documents.upload(b"x", filename="x", tags=tags), service)
        assert service.received == []


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_file_is_given_by_its_bytes(calling: Callable[..., None], kind: Any) -> None:
    with endpoint(answers({})) as service:
        content = kind(b"The offsite is in Porto.")
        calling(lambda client: client.documents.upload(content, filename="x.txt"), service)
        assert b"\r\n\r\nThe offsite is in Porto.\r\n" in service.received[0].body
    with Mneme() as client, pytest.raises(ValueError, match="needs a filename"):
        client.documents.upload(io.BytesIO(b"x"))
