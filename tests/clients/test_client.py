"""The client against the real service: calls, lists, files, streams, waiting, errors."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from mneme_client import (
    UNSET,
    AsyncMneme,
    ConnectionFailed,
    DeadlineExceeded,
    Mneme,
    ProcessingFailed,
    Retries,
    errors,
)

import serve_app
from runtime import errors as service_errors
from runtime.cli.export_openapi import exported
from tests.clients.endpoint import answers, endpoint
from tests.support.over_http import OverHttp, over_http
from tests.support.upstream import Upstream, breaks_off, says, upstream

ONCE = Retries(attempts_max=1)
QUESTION = [{"role": "user", "content": "What must Ada not eat?"}]


@pytest.fixture(scope="module")
def model() -> Iterator[Upstream]:
    with upstream() as running:
        yield running


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, model: Upstream) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("client"), llm__base_url=model.url) as running:
        yield running


@pytest.fixture(scope="module")
def token(service: OverHttp) -> str:
    return service.register()


@pytest.fixture
def client(service: OverHttp, token: str) -> Iterator[Mneme]:
    with Mneme(base_url=service.url, api_key=token, retries=ONCE) as made:
        yield made


def test_a_memory_from_its_creation_to_its_end(client: Mneme) -> None:
    memory = client.memories.create(
        content="Ada eats no nuts.", user_id="ada", tags=["food"], title="Diet", wait_for_index=True
    )
    assert memory["processing_status"] == "completed"
    assert [hit["id"] for hit in client.search("nuts", user_id="ada")["results"]] == [memory["id"]]
    changed = client.memories.update(
        memory["id"], tags=None, title=UNSET, if_match=memory["version"]
    )
    assert (changed["tags"], changed["title"]) == ([], "Diet")
    with pytest.raises(errors.PreconditionFailed):
        client.memories.update(memory["id"], title="Food", if_match=memory["version"])
    assert client.memories.update(memory["id"], title=None)["title"] is None
    assert client.memories.delete(memory["id"])["deleted"]
    with pytest.raises(errors.NotFound) as raised:
        client.memories.get(memory["id"])
    assert (
        type(raised.value) is errors.NotFound
        and raised.value.code == "resource_not_found"
        and raised.value.status == 404
    )


def test_a_list_is_walked_page_by_page(client: Mneme) -> None:
    made = client.memories.create_batch(
        memories=[{"content": f"fact {n}"} for n in range(7)], user_id="pages"
    )["memory_ids"]
    listing = client.memories.list(user_id="pages", limit=3)
    assert sorted(memory["id"] for memory in listing) == sorted(made)
    assert [len(page["items"]) for page in listing.pages()] == [3, 3, 1]
    assert listing.page()["total_count"] == 7
    assert len(list(client.collections.list())) == 1


def test_async_calls_lists_and_waits_are_the_same(service: OverHttp, token: str) -> None:
    async def run() -> None:
        async with AsyncMneme(base_url=service.url, api_key=token) as client:
            made = await asyncio.gather(
                *(client.memories.create(content=f"note {n}", user_id="async") for n in range(5))
            )
            listing = client.memories.list(user_id="async", limit=2)
            assert sorted([memory["id"] async for memory in listing]) == sorted(
                memory["id"] for memory in made
            )
            assert (await listing.page())["total_count"] == 5
            ready = await client.wait_ready(made[0])
            assert (
                ready["searchable"] and (await client.search("note", user_id="async"))["total"] > 0
            )
            job = await client.memories.process(
                content="I moved to Lisbon in May.", user_id="async"
            )
            assert (await client.wait_job(job))["status"] == "completed"
            uploaded = await client.documents.upload(
                b"The async handbook.", filename="handbook.txt"
            )
            document = await client.wait_document(uploaded)
            assert await client.documents.text(document["id"]) == "The async handbook."
            kinds = [record["kind"] async for record in client.account.export()]
            assert kinds[-1] == "manifest" and kinds.count("memory") >= 5
            with pytest.raises(errors.CollectionNotFound):
                await client.collections.get("col_nowhere")

    asyncio.run(run())


def test_files_go_up_from_path_bytes_and_stream(client: Mneme, tmp_path: Path) -> None:
    path = tmp_path / "handbook.txt"
    path.write_text("The kitchen is on the second floor.")
    uploaded = client.documents.upload(path, tags=["house", "kitchen"], metadata={"year": 2026})
    document = client.wait_document(uploaded)
    assert (document["filename"], document["tags"], document["metadata"]) == (
        "handbook.txt",
        ["house", "kitchen"],
        {"year": 2026},
    )
    assert client.documents.content(document["id"]) == path.read_bytes()
    assert [chunk["content"] for chunk in client.documents.chunks(document["id"])] == [
        path.read_text()
    ]
    stream = io.BytesIO(b"skip:The garden has a pond.")
    stream.seek(5)
    document = client.wait_document(
        client.documents.upload(stream, filename="garden.txt")["document"]["id"]
    )
    assert client.documents.text(document["id"]) == "The garden has a pond."
    with pytest.raises(errors.UnsupportedFormat):
        client.documents.upload(bytes(range(256)) * 8, filename="what.bin")
    with pytest.raises(ProcessingFailed) as raised:
        client.wait_document(
            client.documents.upload(b"%PDF-1.7 and no more", filename="broken.pdf")
        )
    assert raised.value.last["status"] == "failed"


def test_waiting_takes_what_a_create_answered(client: Mneme) -> None:
    one = client.memories.create(content="stored for later", prefer="respond-async")
    assert client.wait_ready(one)["id"] == client.wait_ready(one["id"])["id"] == one["id"]
    several = client.memories.create(
        messages=[{"role": "user", "content": text} for text in ("one", "two")],
        prefer="respond-async",
    )
    assert client.wait_job(several)["status"] == "completed"
    assert client.wait_job(client.rl.train())["status"] == "completed"


def test_waiting_ends_at_its_deadline() -> None:
    with (
        endpoint(answers({"id": "mem_1", "processing_status": "processing"})) as slow,
        Mneme(base_url=slow.url) as client,
    ):
        with pytest.raises(DeadlineExceeded, match=r"within 0\.2 seconds") as raised:
            client.wait_ready("mem_1", deadline_seconds=0.2)
        assert raised.value.last == {"id": "mem_1", "processing_status": "processing"}
        with pytest.raises(ValueError, match="no path of the service"):
            client.wait_ready({"status_url": "https://elsewhere.example/v1/memories/mem_1"})


def test_a_completion_comes_whole_or_as_a_stream(
    client: Mneme, model: Upstream, service: OverHttp, token: str
) -> None:
    client.memories.create(content="Ada must not eat nuts.", user_id="chat", wait_for_index=True)
    model.will(says("Nuts, I am afraid."))
    whole = client.chat.completions(QUESTION, user="chat", temperature=0)
    assert (
        whole["choices"][0]["message"]["content"] == "Nuts, I am afraid."
        and len(whole["memory"]["injected_ids"]) == 1
    )
    assert model.last["temperature"] == 0

    def text_of(chunk: dict[str, Any]) -> str:
        return "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])

    chunks = list(client.chat.stream_completions(QUESTION, user="chat"))
    assert "".join(map(text_of, chunks)) == "Nuts, I am afraid. "
    assert [chunk["memory"]["injected_ids"] for chunk in chunks if "memory" in chunk] == [
        whole["memory"]["injected_ids"]
    ]

    async def run() -> str:
        async with (
            AsyncMneme(base_url=service.url, api_key=token) as client,
            client.chat.stream_completions(QUESTION) as stream,
        ):
            return "".join([text_of(chunk) async for chunk in stream])

    assert asyncio.run(run()) == "Nuts, I am afraid. "


def test_a_stream_that_fails_in_the_middle_says_so(client: Mneme, model: Upstream) -> None:
    model.will(breaks_off(2))
    seen = []
    with pytest.raises(errors.ServerError):
        for chunk in client.chat.stream_completions(QUESTION):
            seen.append(chunk)
    assert seen


def test_a_stream_is_read_in_whatever_pieces_it_comes() -> None:
    """Other separators of lines are characters of the text; an end before [DONE] is no end."""
    whole = (
        'data: {"text": "one\u2028two\x85"}\r\n\r\n: a comment\n\nevent: x\ndata: {"text":\ndata: '
        '"three"}\n\n'
    )
    for body, fails in ((whole + "data: [DONE]\n\n", False), (whole, True)):
        with (
            endpoint(answers(body.encode(), content_type="text/event-stream")) as model,
            Mneme(base_url=model.url) as client,
        ):
            stream = iter(client.chat.stream_completions(QUESTION))
            assert [next(stream)["text"], next(stream)["text"]] == ["one\u2028two\x85", "three"]
            with pytest.raises(ConnectionFailed if fails else StopIteration):
                next(stream)


def test_errors_are_named_after_what_happened(client: Mneme, service: OverHttp) -> None:
    with pytest.raises(errors.ValidationFailed) as raised:
        client.search("")
    error = raised.value
    assert (error.status, error.code, error.param, error.type) == (
        422,
        "validation_error",
        "body.query",
        "validation_error",
    )
    assert (
        error.details[0]["loc"] == ["body", "query"]
        and error.request_id.startswith("req_")
        and error.retry_after is None
    )
    assert f"422 validation_error, request {error.request_id}" in str(error)
    with pytest.raises(errors.CollectionNotFound):
        client.memories.create(content="x", collection_id="col_nowhere")
    with pytest.raises(errors.BadRequest):
        client.memories.list(cursor="nonsense").page()
    client.memories.create(content="x", idempotency_key="twice")
    with pytest.raises(errors.Conflict):
        client.memories.create(content="y", idempotency_key="twice")
    with Mneme(base_url=service.url) as nobody, pytest.raises(errors.MissingApiKey):
        nobody.memories.list().page()
    with (
        Mneme(base_url=service.url, api_key="mem_sk_nonsense") as stranger,
        pytest.raises(errors.InvalidApiKey),
    ):
        stranger.usage.get()
    read_only = client.auth.api_keys.create(name="reader", scopes=["read"])["key"]
    with (
        Mneme(base_url=service.url, api_key=read_only) as reader,
        pytest.raises(errors.PermissionDenied),
    ):
        reader.memories.create(content="x")


def test_every_error_of_the_service_has_a_class_of_its_own() -> None:
    document = orjson.loads(exported(serve_app.registry(), serve_app.Settings()))
    error = document["components"]["schemas"]["Error"]
    codes = error["properties"]["error"]["properties"]["code"]["enum"]
    classes = {errors.BY_CODE[code] for code in codes}
    assert len(classes) == len(codes) == 13
    for kind in _every(service_errors.ApiError):
        made = errors.kind_of(kind.status, kind.code)
        assert made is not errors.ApiError and made is not errors.ServerError, kind
    assert (
        errors.kind_of(418, None) is errors.ApiError
        and errors.kind_of(599, None) is errors.ServerError
    )
    assert errors.kind_of(404, "invalid_request") is errors.NotFound


def _every(kind: type) -> Iterator[type]:
    for derived in kind.__subclasses__():
        yield derived
        yield from _every(derived)


def test_a_missing_feature_is_told_with_its_tier() -> None:
    flat = {
        "error": "feature_not_available",
        "feature": "graph_write",
        "message": "Not on this tier.",
        "upgrade_url": "https://x.test",
    }
    with endpoint(answers(flat, 403)) as service, Mneme(base_url=service.url) as client:
        with pytest.raises(errors.FeatureNotAvailable, match="Not on this tier") as raised:
            client.graph.entities.create(name="Ada")
        assert (
            raised.value.body["feature"] == "graph_write"
            and raised.value.code == "feature_not_available"
        )


def test_the_surroundings_name_the_service(
    service: OverHttp, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_BASE_URL", service.url + "/")
    monkeypatch.setenv("MNEME_API_KEY", token)
    with Mneme() as client:
        assert client.auth.me()["email"] == "ada@example.com"
        assert client.service.health()["status"] == "ok"
        assert "mneme_" in client.service.metrics()
