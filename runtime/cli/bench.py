"""`mneme bench`: what this machine does with this service, in about a minute, through the front
door.

An account of its own is registered, filled with texts made up here, searched and erased again, so
nothing of it stays and nobody else's memories are touched. Each phase sends requests over so many
connections for so many seconds, every question another one, so that nothing is answered from what
is remembered; what failed is counted, and not among the latencies. The generator runs where the
command does and takes its part of the processor, which the report says. The model is timed in this
process, with the service idle.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import platform
import random
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

import numpy as np
import psutil

from runtime.inference import InferenceUnavailable, ModelUnusable, load_models
from runtime.limits import CALL_SECONDS_MAX
from runtime.settings import Settings

BATCH_MEMORIES = 50
RESULTS = 10
SEED = 20260101
# name, what is counted, connections, share of the time
INGEST = ("ingest, batches of 50", "memories", 2, 0.25)
LONE_SEARCH = "search, one at a time"
PHASES = (
    ("write, one at a time", "memories", 1, 0.1),
    ("write, 8 at once", "memories", 8, 0.15),
    ("read, 8 at once", "reads", 8, 0.1),
    (LONE_SEARCH, "searches", 1, 0.2),
    ("search, 8 at once", "searches", 8, 0.2),
)
MODEL_SECONDS_MAX = 3.0
BUSY_SHARE = 0.25  # of the cores, in waiting processes; more, and they share them with the service
MODEL_TEXTS = {
    "a question of 9 words": 9,
    "a memory of 25 words": 25,
    "a passage of 180 words": 180,
}

PEOPLE = ("Ines", "Tomás", "Karin", "Yusuf", "Odile", "Piet", "Ama", "Lorcan", "Sunniva", "Ravi")
DEEDS = ("repaired", "borrowed", "sold", "painted", "photographed", "measured", "hid", "found")
THINGS = (
    *("a brass lantern", "the blue canoe", "an oak ladder", "the second beehive"),
    *("a broken cello bow", "the map of the quarry", "eleven clay bowls", "the greenhouse heater"),
)
PLACES = (
    *("behind the old dairy", "at the harbour office", "in the chapel loft", "beside the weir"),
    *(
        "under the cable car",
        "in Mrs. Adeyemi's garage",
        "on the third terrace",
        "at the tram depot",
    ),
)
REASONS = (
    *("because the roof leaked", "before the fair opened", "while the ferry was late"),
    *("after the vote was lost", "since nobody else had the key", "as the doctor had advised"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """One phase: `what` a second, and milliseconds a request from sending to answer."""

    phase: str
    what: str
    connections: int
    seconds: float
    requests: int
    failed: int
    per_second: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


def texts(seed: int) -> Iterator[str]:
    """Memories of one or two sentences, never the same twice."""
    chance = random.Random(seed)
    for number in itertools.count(1):
        yield (
            f"{chance.choice(PEOPLE)} {chance.choice(DEEDS)} {chance.choice(THINGS)} "
            f"{chance.choice(PLACES)} {chance.choice(REASONS)}. It was item {number} of list "
            f"{chance.randrange(10**6)}, and {chance.choice(PEOPLE)} wrote it down."
        )


def questions(seed: int) -> Iterator[str]:
    """Questions about such memories, never the same twice."""
    chance = random.Random(seed)
    for number in itertools.count(1):
        yield (
            f"Who {chance.choice(DEEDS)} {chance.choice(THINGS)} {chance.choice(PLACES)}, "
            f"on day {number}?"
        )


def run(base_url: str, api_key: str, seconds: float, out: TextIO) -> list[Figures]:
    """Every phase in turn, `seconds` in all. Raises OSError where the service goes away."""
    generator = _Generator(base_url, api_key)
    memories, asked = texts(SEED), questions(SEED + 1)
    stored: list[str] = []
    lock = threading.Lock()

    def batch() -> tuple[str, str, Any]:
        with lock:
            many = [{"content": next(memories)} for _ in range(BATCH_MEMORIES)]
        return "POST", "/v1/memories/batch", {"memories": many, "wait_for_index": True}

    def write() -> tuple[str, str, Any]:
        with lock:
            content = next(memories)
        return "POST", "/v1/memories/raw", {"content": content, "wait_for_index": True}

    def read() -> tuple[str, str, Any]:
        with lock:
            return "GET", f"/v1/memories/{chance.choice(stored)}", None

    def search() -> tuple[str, str, Any]:
        with lock:
            query = next(asked)
        return "POST", "/v1/search", {"query": query, "limit": RESULTS}

    chance = random.Random(SEED)
    name, what, connections, share = INGEST
    print(name, file=out, flush=True)
    found = [
        generator.measure(
            name,
            what,
            connections,
            seconds * share,
            batch,
            lambda answer: stored.extend(answer["memory_ids"]),
            BATCH_MEMORIES,
        )
    ]
    if not stored:
        return found
    for (name, what, connections, share), ask in zip(
        PHASES, (write, write, read, search, search), strict=True
    ):
        print(name, file=out, flush=True)
        found.append(generator.measure(name, what, connections, seconds * share, ask))
    return found


class _Generator:
    """Requests over open connections, each as soon as the one before it is answered."""

    def __init__(self, base_url: str, api_key: str):
        self._at = urlsplit(base_url)
        self._headers = {
            "Authorization": f"Bearer {api_key}",
            "Content-Type": "application/json",
        }

    def measure(
        self,
        phase: str,
        what: str,
        connections: int,
        seconds: float,
        ask: Callable[[], tuple[str, str, Any]],
        answered: Callable[[dict[str, Any]], object] | None = None,
        each: int = 1,
    ) -> Figures:
        """Send what `ask` gives for so long; a request counts as `each`. Raises OSError."""
        taken: list[float] = []
        failed, lost = [0], []
        until = time.perf_counter() + seconds

        def send() -> None:
            connection = self._connection()
            try:
                while (begun := time.perf_counter()) < until:
                    method, path, body = ask()
                    sent = None if body is None else json.dumps(body).encode()
                    connection.request(method, path, sent, self._headers)
                    answer = connection.getresponse()
                    content = answer.read()
                    if answer.status >= 300 or answer.status == 202:
                        failed[0] += 1
                        continue
                    taken.append(time.perf_counter() - begun)
                    if answered is not None:
                        answered(json.loads(content))
            except (OSError, http.client.HTTPException) as broken:
                lost.append(broken)
            finally:
                connection.close()

        begun = time.perf_counter()
        threads = [threading.Thread(target=send) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if lost:
            raise OSError(f"the service went away while it was measured ({phase}): {lost[0]}")
        passed = time.perf_counter() - begun
        cuts = np.percentile(taken, (50, 95, 99)) * 1000 if taken else np.zeros(3)
        return Figures(
            phase,
            what,
            connections,
            round(passed, 2),
            len(taken),
            failed[0],
            round(len(taken) * each / passed, 1),
            *(round(float(cut), 2) for cut in cuts),
        )

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._at.hostname or "", self._at.port
        if self._at.scheme != "https":
            return http.client.HTTPConnection(host, port, timeout=CALL_SECONDS_MAX)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=CALL_SECONDS_MAX, context=context)


def model_cost(settings: Settings) -> dict[str, dict[str, float]]:
    """Milliseconds that the embedding model takes for a text: alone, and among 32; empty where it
    cannot be loaded here, or does not answer in time. Texts are cut out of running text, by words.
    """
    try:
        with tempfile.TemporaryDirectory() as directory:  # what is made of the weights at first
            embedder = load_models(settings, Path(directory)).shard_embedder
            return {} if embedder is None else asyncio.run(_timed(embedder))
    except (ModelUnusable, InferenceUnavailable):
        return {}


async def _timed(embedder: Any) -> dict[str, dict[str, float]]:
    words = itertools.cycle(" ".join(itertools.islice(texts(SEED + 2), 400)).split())
    found = {}

    def text(length: int) -> str:
        return " ".join(itertools.islice(words, length))

    try:
        await embedder.embed([text(180)])  # what is made ready at the first call
        for name, length in MODEL_TEXTS.items():
            alone, among = [], []
            until = time.perf_counter() + MODEL_SECONDS_MAX / len(MODEL_TEXTS)
            while time.perf_counter() < until:
                for taken, count in ((alone, 1), (among, 32)):
                    several = [text(length) for _ in range(count)]
                    begun = time.perf_counter()
                    await embedder.embed(several)
                    taken.append((time.perf_counter() - begun) * 1000 / count)
            found[name] = {
                "alone_ms": round(float(np.median(alone)), 2),
                "of_32_ms": round(float(np.median(among)), 2),
            }
    finally:
        await embedder.close()
    return found


def machine() -> dict[str, Any]:
    """What it ran on."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        name = next(names, name)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "processor": name,
        "cores": len(psutil.Process().cpu_affinity())
        if hasattr(psutil.Process, "cpu_affinity")
        else psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(load, 2),
    }


def described(report: Mapping[str, Any]) -> str:
    """The report as a table, for people."""
    on, service = report["machine"], report["service"]
    lines = [
        f"{on['processor']}, {on['cores']} cores, {on['memory_gib']} GiB, {on['system']}",
        f"mneme {service['version']} ({service['build']}), {service['shards']} shards, at "
        f"{service['base_url']}; load before the run {on['load_before']}",
        "",
        f"{'':24}{'per second':>22}{'p50 ms':>10}{'p95 ms':>10}{'p99 ms':>10}{'failed':>8}",
    ]
    for each in report["phases"]:
        rate = f"{each['per_second']:,.1f} {each['what']}"
        lines.append(
            f"{each['phase']:<24}{rate:>22}{each['p50_ms']:>10,.1f}{each['p95_ms']:>10,.1f}"
            f"{each['p99_ms']:>10,.1f}{each['failed']:>8,}"
        )
    if report["model"]:
        lines += ["", f"{'the model, ms a text':<24}{'alone':>22}{'among 32':>10}"]
        lines += [
            f"{name:<24}{cost['alone_ms']:>22,.2f}{cost['of_32_ms']:>10,.2f}"
            for name, cost in report["model"].items()
        ]
        alone = next((x["p50_ms"] for x in report["phases"] if x["phase"] == LONE_SEARCH), 0)
        asked = next(iter(report["model"].values()))["alone_ms"]
        lines.append(f"A lone search takes {alone / asked:.1f} times what the model takes for it.")
    lines += ["", f"Ended with {report['memories']:,} memories in one account."]
    if on["load_before"] > on["cores"] * BUSY_SHARE:
        lines.append("The machine was busy before: it can do better than these figures.")
    if report["generator_cores"] is not None:
        lines.append(
            f"The generator took {report['generator_cores']:.2f} of the {on['cores']} cores."
        )
    return "\n".join(lines)


def as_report(
    phases: list[Figures],
    service: Mapping[str, Any],
    model: Mapping[str, Any],
    on: Mapping[str, Any],
    generator_cores: float | None,
    memories: int,
) -> dict[str, Any]:
    """What --json prints: everything that `described` says."""
    return {
        "machine": on,
        "service": service,
        "phases": [asdict(each) for each in phases],
        "model": model,
        "generator_cores": generator_cores,
        "memories": memories,
    }
