"""This service beside what people put together instead, in one run: the same texts, questions,
client and embedding model.

    mneme    this service
    chroma   Chroma's server, and the embedding model in the application that asks it: each text and
             each question is embedded by the client first, as Chroma's own server would not

    python loadtests/peers.py [--engine ray] [--memories 6000] [--data FILE] [--rounds 3]

Both are up at once and asked in turns, questions that are asked once each; rates and latencies are
medians of the rounds, and memory is what all processes of a server have for themselves (PSS), with
the client's model counted to chroma. --data is a file of conversations with questions and their
evidence, in the format of the LoCoMo benchmark; with it the share of the evidence among the ten
best results is printed too. Without it the texts are made up (conversations.py).

Chroma is installed from the package index into a virtual environment of its own, once.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from loadtests import conversations
from loadtests.answers import Conversation
from loadtests.load import (
    HOST,
    LoadFailed,
    Service,
    ended_with_us,
    quantile,
    settle,
    wait_until_healthy,
)
from runtime.inference import MiniLmEmbedder
from runtime.serve import free_port

CHROMA = "chromadb==1.5.9"
ENVIRONMENTS = Path("build/peers")
BATCH, RESULTS = 100, 10
ANSWER_SECONDS_MAX = 300
CONNECTIONS = (1, 8)
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"  # Chroma's
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Corpus:
    """Texts, questions, and for each question the texts that hold its answer; none where nobody
    knows.
    """

    texts: list[str]
    questions: list[str]
    evidence: list[frozenset[int]]

    @classmethod
    def made_up(cls, count: int, questions: int) -> Corpus:
        texts = [memory["content"] for memory in conversations.memories(count)]
        return cls(texts, conversations.questions(questions), [frozenset()] * questions)

    @classmethod
    def read(cls, path: Path, count: int, questions: int) -> Corpus:
        """The first conversations that have so many turns together, whole."""
        texts: list[str] = []
        asked: list[tuple[str, frozenset[int]]] = []
        for record in json.loads(path.read_text()):
            told, first = Conversation(record), len(texts)
            if first >= count:
                break
            places = {
                turn["metadata"]["dia_id"]: first + place for place, turn in enumerate(told.turns)
            }
            texts += [f"{turn['speaker']}: {turn['content']}" for turn in told.turns]
            for question in told.questions:
                found = frozenset(places[each] for each in question["evidence"] if each in places)
                if found:
                    asked.append((question["question"], found))
        step = max(1, len(asked) // questions)
        chosen = asked[::step][:questions]
        return cls(texts, [text for text, _ in chosen], [found for _, found in chosen])


class Peer(ABC):
    """A system under test. Its methods are called by several threads at once, each with a
    connection of its own.
    """

    def __init__(self, name: str, address: str):
        self.name = name
        self._address = address
        self._here = threading.local()

    @abstractmethod
    def store(self, first: int, texts: Sequence[str]) -> None:
        """Store texts; first: the place of the first among all."""

    @abstractmethod
    def search(self, question: str) -> list[int]:
        """The places of the ten best."""

    @abstractmethod
    def memory(self) -> int:
        """Bytes of all its processes."""

    @abstractmethod
    def settle(self) -> None:
        """Return when nothing that was stored is still worked on."""

    def _post(self, path: str, body: Any, headers: dict[str, str]) -> Any:
        connection = getattr(self._here, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(self._address, timeout=ANSWER_SECONDS_MAX)
            self._here.connection = connection
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise LoadFailed(f"{self.name} answered {answer.status}: {content[:200]!r}")
        return json.loads(content)


class Mneme(Peer):
    def __init__(self, service: Service, engine: str):
        super().__init__(f"mneme, {engine}", service.base_url.removeprefix("http://"))
        self._service = service
        self._places: dict[str, int] = {}

    def store(self, first: int, texts: Sequence[str]) -> None:
        body = {"memories": [{"content": text} for text in texts], "wait_for_index": True}
        ids = self._post("/v1/memories/batch", body, self._service.headers)["memory_ids"]
        self._places |= {each: first + place for place, each in enumerate(ids)}

    def search(self, question: str) -> list[int]:
        body = {"query": question, "limit": RESULTS}
        found = self._post("/v1/search", body, self._service.headers)["results"]
        return [self._places[each["id"]] for each in found]

    def settle(self) -> None:
        settle(self._service.base_url, ANSWER_SECONDS_MAX)

    def memory(self) -> int:
        holding = str(self._service.data_dir)
        return sum(
            _pss(tree)
            for process in psutil.Process().children()
            if holding in " ".join(process.cmdline())
            for tree in (process, *process.children(recursive=True))
        )


class Chroma(Peer):
    def __init__(self, address: str, process: psutil.Process, model: Model):
        super().__init__("chroma", address)
        self._process, self._model = process, model
        made = self._post(
            COLLECTIONS,
            {"name": "peers", "configuration": {"hnsw": {"space": "cosine"}}},
            JSON,
        )
        self._collection = f"{COLLECTIONS}/{made['id']}"

    def store(self, first: int, texts: Sequence[str]) -> None:
        body = {
            "ids": [str(first + place) for place in range(len(texts))],
            "embeddings": self._model.embed(texts),
            "documents": list(texts),
        }
        self._post(f"{self._collection}/add", body, JSON)

    def search(self, question: str) -> list[int]:
        body = {
            "query_embeddings": self._model.embed([question]),
            "n_results": RESULTS,
            "include": ["documents", "distances"],
        }
        found = self._post(f"{self._collection}/query", body, JSON)
        return [int(each) for each in found["ids"][0]]

    def settle(self) -> None:
        """What it has taken is in its index."""

    def memory(self) -> int:
        server = (self._process, *self._process.children(recursive=True))
        return sum(map(_pss, server)) + self._model.bytes


class Model:
    """The embedding model in this process, with the worker that batches who asks at once."""

    def __init__(self, directory: Path):
        before = _pss(psutil.Process())
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._embedder = asyncio.run_coroutine_threadsafe(
            self._opened(directory), self._loop
        ).result()
        self.embed(["Something to begin with."])
        self.bytes = _pss(psutil.Process()) - before

    async def _opened(self, directory: Path) -> MiniLmEmbedder:
        return MiniLmEmbedder(directory, timeout_seconds=ANSWER_SECONDS_MAX)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        asking = self._embedder.embed(list(texts))
        return asyncio.run_coroutine_threadsafe(asking, self._loop).result().tolist()


def _pss(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


@contextmanager
def chroma(directory: Path, model: Model) -> Iterator[Chroma]:
    """Its server, installed first where it is not."""
    home = ENVIRONMENTS / CHROMA
    program = home / "bin" / "chroma"
    if not program.exists():
        print(f"installing {CHROMA} into {home}", flush=True)
        venv.create(home, with_pip=True)
        pip = [home / "bin" / "python", "-m", "pip", "install", "--quiet", CHROMA]
        subprocess.run(pip, check=True)
    port = free_port(HOST)
    output = directory / "chroma.out"
    command = [str(program.absolute()), "run", "--path", str(directory / "chroma"), "--host", HOST]
    with ended_with_us([*command, "--port", str(port)], output=output, cwd=directory) as process:
        wait_until_healthy(port, process, output, "/api/v2/heartbeat")
        yield Chroma(f"{HOST}:{port}", psutil.Process(process.pid), model)


@dataclass(frozen=True)
class Round:
    per_second: float
    p50_ms: float
    p99_ms: float
    found: list[list[int]]


def searched(peer: Peer, questions: Sequence[str], connections: int) -> Round:
    """All questions once, so many at a time."""

    def ask(question: str) -> tuple[float, list[int]]:
        begun = time.perf_counter()
        found = peer.search(question)
        return (time.perf_counter() - begun) * 1000, found

    begun = time.perf_counter()
    with ThreadPoolExecutor(connections) as asking:
        answers = list(asking.map(ask, questions))
    seconds = time.perf_counter() - begun
    taken = sorted(milliseconds for milliseconds, _ in answers)
    return Round(
        len(taken) / seconds,
        quantile(taken, 0.5),
        quantile(taken, 0.99),
        [found for _, found in answers],
    )


def stored(peer: Peer, texts: Sequence[str]) -> float:
    """Texts per second, two batches in flight."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(2) as storing:
        firsts = range(0, len(texts), BATCH)
        list(storing.map(lambda first: peer.store(first, texts[first : first + BATCH]), firsts))
    return len(texts) / (time.perf_counter() - begun)


def recall(found: Sequence[Sequence[int]], evidence: Sequence[frozenset[int]]) -> float:
    """The mean share of a question's evidence that was found."""
    return statistics.fmean(
        len(right.intersection(places)) / len(right)
        for places, right in zip(found, evidence, strict=True)
    )


def measure(peers: Sequence[Peer], corpus: Corpus, rounds: int) -> None:
    """Fill all, then ask them in turns, and print a line for each figure: theirs, and ours by
    theirs.
    """
    rates = [stored(peer, corpus.texts) for peer in peers]
    _line("stored, texts/s", rates)
    for peer in peers:
        peer.settle()
    asked = 0
    for connections in CONNECTIONS:
        measured: list[list[Round]] = [[] for _ in peers]
        for number in range(rounds + 1):  # the first warms up
            asked += 1
            # Nobody may know a question's vector already.
            questions = [f"{question} ({asked})" for question in corpus.questions]
            order = range(len(peers)) if number % 2 else reversed(range(len(peers)))
            for place in order:
                measured[place].append(searched(peers[place], questions, connections))
        kept = [each[1:] for each in measured]
        for name, figure in (
            ("searches/s", "per_second"),
            ("p50, ms", "p50_ms"),
            ("p99, ms", "p99_ms"),
        ):
            medians = [statistics.median(getattr(each, figure) for each in one) for one in kept]
            _line(f"c={connections} {name}", medians)
    if all(corpus.evidence):
        plain = [searched(peer, corpus.questions, 8).found for peer in peers]
        _line("recall at 10, %", [100 * recall(found, corpus.evidence) for found in plain])
    _line("memory, MB", [peer.memory() / 1e6 for peer in peers])


def _line(name: str, figures: Sequence[float]) -> None:
    shown = "".join(f"{each:>12.1f}" for each in figures)
    ratios = "".join(f"{figures[0] / each:>10.2f}" for each in figures[1:] if each)
    print(f"{name:<24}{shown}{ratios}", flush=True)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--engine", default="ray", choices=("ray", "local"))
    asked.add_argument("--memories", type=int, default=6_000)
    asked.add_argument("--questions", type=int, default=600)
    asked.add_argument("--data", type=Path)
    asked.add_argument("--rounds", type=int, default=3)
    given = asked.parse_args()
    corpus = (
        Corpus.made_up(given.memories, given.questions)
        if given.data is None
        else Corpus.read(given.data, given.memories, given.questions)
    )
    with ExitStack() as running:
        directory = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="peers")))
        model = Model(directory / "models")
        service = running.enter_context(Service.started(given.engine, directory / "mneme"))
        peers = [Mneme(service, given.engine), running.enter_context(chroma(directory, model))]
        print(f"{len(corpus.texts)} texts, {len(corpus.questions)} questions")
        print(f"{'':<24}" + "".join(f"{peer.name[:11]:>12}" for peer in peers) + "     ratio")
        measure(peers, corpus, given.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
