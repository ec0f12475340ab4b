"""Embedders under load, cancellation and bad luck: the real model, and a real HTTP server that
misbehaves on request.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runtime import limits
from runtime.inference import (
    Embedder,
    InferenceUnavailable,
    MiniLmEmbedder,
    load_models,
    remembered_for,
)
from runtime.inference.openai_embedder import OpenAiEmbedder
from runtime.settings import Settings
from storage.text import word_set
from tests.support.loops import run_hastily

WAIT_SECONDS_MAX = 120


@pytest.fixture(scope="session")
def models_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by every test here, so that the graph is built once."""
    return tmp_path_factory.mktemp("models")


def with_embedder(embedder: Embedder, body: Callable[[Any], Awaitable[None]]) -> list[float]:
    """Run a test body in a loop of its own and close the embedder in it; -> the seconds that were
    slept, each of which ended at once.
    """

    async def run() -> None:
        try:
            await body(embedder)
        finally:
            await embedder.close()

    return run_hastily(run())[1]


def patient(models_directory: Path, **fields: Any) -> MiniLmEmbedder:
    """The embedded model, which no busy machine makes late unless a test asks for it."""
    return MiniLmEmbedder(models_directory, **{"timeout_seconds": WAIT_SECONDS_MAX} | fields)


def sentences(count: int, salt: str = "") -> list[str]:
    return [
        f"{salt} On day {i} we walked {i % 7} miles along the shore and counted {i * 3} herons."
        for i in range(count)
    ]


# --- the embedded model ---------------------------------------------------------------------------


def test_rows_follow_their_texts(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        assert (embedder.space, embedder.width) == ("all-MiniLM-L6-v2/384", 384)
        texts = [*sentences(150), "short", "short", "a much longer one " * 40]
        together = await embedder.embed(texts)
        assert together.shape == (len(texts), 384) and together.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
        for i in (0, 77, 149, 150, 151, 152):
            np.testing.assert_allclose(
                (await embedder.embed([texts[i]]))[0], together[i], atol=1e-4
            )
        assert (await embedder.embed([])).shape == (0, 384)

    with_embedder(patient(models_directory), body)


def test_concurrent_requests_each_get_their_own(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        texts = sentences(60)
        alone = await embedder.embed(texts)
        pieces = [texts[i : i + 1 + i % 7] for i in range(53)]
        answers = await asyncio.gather(*(embedder.embed(piece) for piece in pieces))
        for i, answer in enumerate(answers):
            np.testing.assert_allclose(answer, alone[i : i + 1 + i % 7], atol=1e-4)

    with_embedder(patient(models_directory, cache_entries=0), body)


def test_the_queue_is_bounded_and_recovers(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        first, second = await asyncio.gather(
            embedder.embed(sentences(30, "a")),
            embedder.embed(sentences(30, "b")),
            return_exceptions=True,
        )
        assert isinstance(first, np.ndarray)
        assert isinstance(second, InferenceUnavailable) and "limit of 40" in str(second)
        assert len(await embedder.embed(sentences(40, "c"))) == 40
        with pytest.raises(InferenceUnavailable, match="queue is full"):
            await embedder.embed(sentences(41, "d"))

    with_embedder(patient(models_directory, queue_max=40), body)


def test_a_remembered_query_needs_no_queue_and_cannot_be_spoiled(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        first = await embedder.embed(["where are the herons?"])
        kept = first.copy()
        first[:] = 0
        busy = asyncio.create_task(embedder.embed(sentences(40)))
        await asyncio.sleep(0)
        np.testing.assert_array_equal(await embedder.embed(["where are the herons?"]), kept)
        with pytest.raises(InferenceUnavailable):
            await embedder.embed(["where are the geese?"])
        await busy
        await embedder.embed(["one", "two"])  # the cache holds two: the herons are out
        busy = asyncio.create_task(embedder.embed(sentences(40, "again")))
        await asyncio.sleep(0)
        with pytest.raises(InferenceUnavailable):
            await embedder.embed(["where are the herons?"])
        await busy

    with remembered_for("ada"):
        with_embedder(patient(models_directory, queue_max=40, cache_entries=2), body)


def test_what_one_account_asks_is_remembered_for_no_other(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        async def known(account: str | None) -> float:
            before = embedder.stats()["known_total"]
            with remembered_for(account):
                await embedder.embed(["where are the herons?"])
                await embedder.embed_words(["where are the geese?"], [[(14, 19)]])
            return embedder.stats()["known_total"] - before

        assert [await known(who) for who in ("ada", "eve", None, "ada", "eve", None)] == [
            0, 0, 0, 2, 2, 0,
        ]  # fmt: skip

    with_embedder(patient(models_directory), body)


def test_a_cancelled_waiter_leaves_the_others_whole(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        tasks = [asyncio.create_task(embedder.embed(sentences(20, str(i)))) for i in range(5)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[3].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [
            True,
            False,
            False,
            True,
            False,
        ]
        np.testing.assert_allclose(answers[4], await embedder.embed(sentences(20, "4")), atol=1e-4)
        assert len(await embedder.embed(sentences(100, "all the room is back"))) == 100

    with_embedder(patient(models_directory, queue_max=100), body)


def test_a_waiter_cancelled_after_its_run_leaves_the_others_whole(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        tasks = [asyncio.create_task(embedder.embed([f"heron {i}"])) for i in range(4)]
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        assert loop.called.wait(
            WAIT_SECONDS_MAX
        )  # the loop stands still, and the worker's answer waits in it
        tasks[0].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert [np.shape(answer) for answer in answers[1:]] == [(1, 384)] * 3

    with_embedder(patient(models_directory), body)


def test_a_query_overtakes_ingestion(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        ingestion = asyncio.create_task(embedder.embed(sentences(600)))
        await asyncio.sleep(0)
        with remembered_for("ada"):
            await embedder.embed(["who counted the herons?"])
        assert not ingestion.done()
        assert len(await ingestion) == 600

    with_embedder(patient(models_directory), body)


def test_a_query_overtakes_long_texts(models_directory: Path) -> None:
    """However few of them a request has."""

    async def body(embedder: MiniLmEmbedder) -> None:
        long = [f"{number} " + "and so on " * 800 for number in range(60)]
        with remembered_for("eve"):
            ingestion = [asyncio.create_task(embedder.embed([text])) for text in long]
        await asyncio.sleep(0)
        with remembered_for("ada"):
            await embedder.embed(["who counted the herons?"])
        assert sum(each.done() for each in ingestion) < 20
        assert len(await asyncio.gather(*ingestion)) == 60

    with_embedder(patient(models_directory), body)


def test_a_short_text_is_read_before_long_ones(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        long = "She met Ada at the harbour, and they talked about herons. " * 300
        reading = [
            asyncio.create_task(embedder.read_language([f"{number} {long}"]))
            for number in range(40)
        ]
        await asyncio.sleep(0)
        (read,) = await embedder.read_language(["Where did she meet Ada?"])
        assert read.sentences and sum(each.done() for each in reading) < 10
        for each in reading:
            each.cancel()
        await asyncio.wait(reading)

    with_embedder(patient(models_directory), body)


def test_a_query_overtakes_jobs(models_directory: Path) -> None:
    """However little each of them asks for."""

    async def body(embedder: MiniLmEmbedder) -> None:
        jobs = [asyncio.create_task(embedder.embed([text])) for text in sentences(300)]
        await asyncio.sleep(0)
        with remembered_for("ada"):
            await embedder.embed(["who counted the herons?"])
        assert sum(each.done() for each in jobs) < 200
        assert len(await asyncio.gather(*jobs)) == 300

    with_embedder(patient(models_directory), body)


def test_large_requests_take_turns(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        first = asyncio.create_task(embedder.embed(sentences(600)))
        await asyncio.sleep(0)
        assert len(await embedder.embed(sentences(40, "Anew:"))) == 40
        assert not first.done()
        assert len(await first) == 600

    with_embedder(patient(models_directory), body)


def test_queries_do_not_starve_ingestion(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        ingestion = asyncio.create_task(embedder.embed(sentences(64)))
        asked = 0

        async def ask() -> None:
            nonlocal asked
            while not ingestion.done():
                asked += 1
                assert asked < 1_500
                with remembered_for("ada"):
                    await embedder.embed([f"question {asked}"])

        # More askers than one turn takes: there is always a query waiting.
        await asyncio.gather(*(ask() for _ in range(100)))
        assert len(ingestion.result()) == 64

    with_embedder(patient(models_directory), body)


def test_texts_gather_while_reads_wait(
    models_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EMBEDDER_YIELDS_SECONDS_MAX", 600.0)

    async def body(embedder: MiniLmEmbedder) -> None:
        embedder.yield_to_reads(True)
        waiting = [asyncio.create_task(embedder.embed([text])) for text in sentences(3)]
        done, _ = await asyncio.wait(waiting, timeout=0.3)
        assert not done and embedder.stats()["waiting"] == 3
        embedder.yield_to_reads(False)
        assert [len(vectors) for vectors in await asyncio.gather(*waiting)] == [1, 1, 1]

    with_embedder(patient(models_directory), body)


def test_giving_way_has_an_end(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        embedder.yield_to_reads(True)
        assert (await embedder.embed(["nobody takes it back"])).shape == (1, 384)

    with_embedder(patient(models_directory), body)


def test_late_is_unavailable_and_frees_its_place(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match=r"longer than 0\.5 seconds"):
            await embedder.embed(sentences(4_000))
        embedder.timeout_seconds = WAIT_SECONDS_MAX
        assert len(await embedder.embed(["and on it goes"])) == 1

    with_embedder(patient(models_directory, timeout_seconds=0.5), body)


def test_odd_texts_are_embedded(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        vectors = await embedder.embed(
            ["", "   ", "half a pair \ud83d", "x" * 1_000_000, "\x00\ufffe", "🜁" * 500]
        )
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    with_embedder(patient(models_directory), body)


def test_closing_answers_those_who_wait(models_directory: Path) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        waiting = [asyncio.create_task(embedder.embed(sentences(2_000, str(i)))) for i in range(2)]
        await asyncio.sleep(0)
        await embedder.close()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(
            isinstance(answer, InferenceUnavailable) and "closed" in str(answer)
            for answer in answers
        )
        with pytest.raises(InferenceUnavailable, match="closed"):
            await embedder.embed(["too late"])

    with_embedder(patient(models_directory), body)


def test_one_loop_after_another(models_directory: Path) -> None:
    embedder = patient(models_directory, cache_entries=0)

    async def abandon() -> None:
        task = asyncio.create_task(embedder.embed(sentences(200)))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(abandon())
    first = asyncio.run(embedder.embed(["the same words"]))
    np.testing.assert_allclose(asyncio.run(embedder.embed(["the same words"])), first, atol=1e-6)
    asyncio.run(embedder.close())


def test_settings_choose_the_models(tmp_path: Path, models_directory: Path) -> None:
    (tmp_path / "models").symlink_to(models_directory)

    async def run() -> None:
        models = load_models(Settings(), tmp_path)
        assert isinstance(models.embedder, MiniLmEmbedder)
        assert (await models.embedder.embed(["herons"])).shape == (1, 384)
        await models.close()
        remote = load_models(
            Settings(
                embedder={
                    "backend": "openai",
                    "base_url": "http://127.0.0.1:1/v1",
                    "model": "m",
                    "api_key": "k",
                }
            ),
            tmp_path,
        )
        assert isinstance(remote.embedder, OpenAiEmbedder)
        await remote.close()

    asyncio.run(run())


# --- an OpenAI-compatible endpoint ----------------------------------------------------------------


def direction(text: str, width: int = 8) -> list[float]:
    """The server's vector of a text, not of unit length."""
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:width]]


def unit(text: str) -> np.ndarray:
    vector = np.array(direction(text))
    return vector / np.linalg.norm(vector)


@dataclass
class Step:
    """How the server meets one request: a status, headers, and a body made from the request's
    texts.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Callable[[list[str]], bytes] | None = None
    hangs: bool = False
    breaks_off: bool = False


def answer(texts: list[str], width: int = 8) -> bytes:
    return json.dumps(
        {
            "object": "list",
            "data": [{"index": i, "embedding": direction(t, width)} for i, t in enumerate(texts)],
        }
    ).encode()


def reversed_answer(texts: list[str]) -> bytes:
    return json.dumps({"data": json.loads(answer(texts))["data"][::-1]}).encode()


class Endpoint:
    """A real server. Each request takes the next step of `script`; after its end every request is
    answered well.
    """

    def __init__(self, script: list[Step]):
        self.requests: list[dict[str, Any]] = []
        self.released = threading.Event()
        steps = iter(script)
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append(
                    {"path": self.path, "authorization": self.headers["Authorization"], **asked}
                )
                step = next(steps, Step())
                if step.hangs:
                    endpoint.released.wait(30)
                body = (step.body or answer)(asked["input"])
                self.send_response(step.status)
                for name, value in {**step.headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body[:10] if step.breaks_off else body)
                self.close_connection = step.breaks_off or step.hangs

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hung up is part of these tests."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self.server.server_port}/v1"


@contextmanager
def endpoint(*script: Step) -> Iterator[Endpoint]:
    made = Endpoint(list(script))
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.released.set()
        made.server.shutdown()
        made.server.server_close()
        thread.join()


def test_remote_vectors_are_normalised_in_order_and_asked_in_bounded_batches() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match="first answer"):
            _ = embedder.space
        texts = sentences(300)
        vectors = await embedder.embed(texts)
        np.testing.assert_allclose(vectors, np.stack([unit(text) for text in texts]), atol=1e-6)
        assert vectors.dtype == np.float32 and (embedder.space, embedder.width) == (
            "herons-large/8",
            8,
        )
        assert (await embedder.embed([])).shape == (0, 8)

    with endpoint(Step(body=reversed_answer)) as served:
        with_embedder(OpenAiEmbedder(served.base_url + "/", "sk-secret", "herons-large"), body)
        assert [len(request["input"]) for request in served.requests] == [128, 128, 44]
        for request in served.requests:
            assert (request["path"], request["authorization"], request["model"]) == (
                "/v1/embeddings",
                "Bearer sk-secret",
                "herons-large",
            )


def test_remote_failures_that_pass_are_tried_again() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        np.testing.assert_allclose((await embedder.embed(["heron"]))[0], unit("heron"), atol=1e-6)

    with endpoint(
        Step(500),
        Step(breaks_off=True),
        Step(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    ) as served:
        with_embedder(OpenAiEmbedder(served.base_url, None, "m"), body)
        assert len(served.requests) == 4 and served.requests[0]["authorization"] is None


def test_remote_retry_after_is_honoured() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        await embedder.embed(["heron"])

    with endpoint(Step(429, {"Retry-After": "5"})) as served:
        assert with_embedder(OpenAiEmbedder(served.base_url, "k", "m"), body) == [5]
        assert len(served.requests) == 2


def test_a_wait_past_the_time_limit_fails_at_once() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match=r"status 429.*past the time limit"):
            await embedder.embed(["heron"])

    with endpoint(Step(429, {"Retry-After": "60"})) as served:
        assert (
            with_embedder(OpenAiEmbedder(served.base_url, "k", "m", timeout_seconds=20), body) == []
        )
        assert len(served.requests) == 1


def test_attempts_are_bounded() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match=r"failed 4 times: status 500"):
            await embedder.embed(["heron"])

    with endpoint(*[Step(500)] * 8) as served:
        with_embedder(OpenAiEmbedder(served.base_url, "k", "m"), body)
        assert len(served.requests) == 4


@pytest.mark.parametrize("status", [302, 400, 401, 404])
def test_refusals_are_final_and_name_no_secret(status: int) -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match=str(status)) as caught:
            await embedder.embed(["a private text"])
        assert "sk-secret" not in str(caught.value) and "private" not in str(caught.value)

    with endpoint(Step(status, {"Location": "/elsewhere"})) as served:
        with_embedder(OpenAiEmbedder(served.base_url, "sk-secret", "m"), body)
        assert len(served.requests) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>It works!</html>",
        b"\xff\xfe",
        b"{}",
        b'{"data": []}',
        b'{"data": [{"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}',
        b'{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}',
        b'{"data": [{"index": 0, "embedding": [0.0]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1.0]}]}',
        b'{"data": [{"index": 0, "embedding": "AACAPw=="}, {"index": 1, "embedding": [1.0]}]}',
    ],
)
def test_garbage_is_unavailable(garbage: bytes) -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable):
            await embedder.embed(["one", "two"])
        np.testing.assert_allclose((await embedder.embed(["one"]))[0], unit("one"), atol=1e-6)

    with endpoint(Step(body=lambda texts: garbage)) as served:
        with_embedder(OpenAiEmbedder(served.base_url, "k", "m"), body)


def test_a_changed_width_is_refused() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        await embedder.embed(["one"])
        with pytest.raises(InferenceUnavailable, match=r"width \[16\], expected 8"):
            await embedder.embed(["two"])

    with endpoint(Step(), Step(body=lambda texts: answer(texts, 16))) as served:
        with_embedder(OpenAiEmbedder(served.base_url, "k", "m"), body)


def test_a_slow_endpoint_is_late_and_its_queue_bounded() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        slow = asyncio.create_task(embedder.embed(["one", "two", "three"]))
        await asyncio.sleep(0)
        with pytest.raises(InferenceUnavailable, match="queue is full"):
            await embedder.embed(["four"])
        with pytest.raises(InferenceUnavailable, match=r"longer than 0\.3 seconds"):
            await slow
        embedder.timeout_seconds = WAIT_SECONDS_MAX
        assert len(await embedder.embed(["four"])) == 1

    with endpoint(Step(hangs=True)) as served:
        with_embedder(
            OpenAiEmbedder(served.base_url, "k", "m", timeout_seconds=0.3, queue_max=3), body
        )


def test_nobody_there_is_unavailable() -> None:
    async def body(embedder: OpenAiEmbedder) -> None:
        with pytest.raises(InferenceUnavailable, match="ConnectError"):
            await embedder.embed(["heron"])

    with endpoint() as gone:
        pass
    with_embedder(OpenAiEmbedder(gone.base_url, "k", "m", timeout_seconds=WAIT_SECONDS_MAX), body)


def test_slips_in_names_that_it_never_met_are_undone_by_few_texts(models_directory: Path) -> None:
    names = word_set(
        """okonkwo kowalczyk gryffindor woodhaven labeouf phuket olafur comfrey kohlrabi velcro
        hogwarts pilsner bellroy belkin instacart sephora oyelaran wojtek annelies tobermory"""
    )

    async def body(embedder: MiniLmEmbedder) -> None:
        tried = found = 0
        for name in names:
            assert not embedder.knows(name)
            for at in range(1, len(name)):
                swapped = name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :]
                left_out, doubled = name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:]
                for slip in {left_out, doubled, *([swapped] if at > 1 else [])} - {name}:
                    undone = embedder.slips_undone(slip)
                    assert len(undone) < 35 * len(slip), "of 53 for each letter"
                    tried, found = tried + 1, found + (name in undone)
        assert found > 0.85 * tried

    with_embedder(patient(models_directory), body)


def test_the_likeliest_spelling_comes_first_and_scripts_it_was_not_taught_are_left_out(
    models_directory: Path,
) -> None:
    async def body(embedder: MiniLmEmbedder) -> None:
        assert embedder.spellings("mushroms") == ["mushrooms"]
        assert embedder.spellings("freind")[0] == "friend"
        assert embedder.spellings("piant")[0] == "paint"
        assert embedder.spellings("friend") == [] and embedder.spellings("xqzzt") == []
        assert embedder.readable("naïve Zürich, 12 €") == "naïve Zürich, 12 €"
        assert embedder.readable("Docker 的配置 on port 80") == "Docker on port 80"
        foreign = "房租多少？ どこですか。 열쇠는 어디 أين المفتاح؟ चाबी कहाँ है? где ключ?"
        for text in (*foreign.split(), foreign):
            assert embedder.readable(text) == ""

    with_embedder(patient(models_directory), body)
