"""Live through accounts for as long as one likes and see what stays behind.

    python loadtests/soak.py [--minutes 30] [--engine ray]

One account stays, and replaces a tenth of its memories in each round. Beside it visitors have whole
lives: registered, a visitor stores a conversation and documents, changes, deletes and asks in every
way, hears events, decides and reports, exports, and erases its account. What the service has to
hold stays the same all the time, so whatever grows is left over.

It is measured after each round, when nobody is at work: the memory of every process (PSS), their
threads and open files, and the bytes of the data directory and of the run directory. The first
quarter of the time warms the service up. Of the rest the medians of the first and of the last third
are printed, and what a thousand lives would add at that pace.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
import psutil

from loadtests.fleet import memories_of
from loadtests.load import settle
from runtime.serve import RunDirectory
from tests.support.corpus import docx, long_pdf
from tests.support.receivers import receiver
from tests.support.served import PASSWORD, Served, served
from tests.support.upstream import upstream

RESIDENT_MEMORIES = 600
REPLACED = 60  # of them in a round
LIVES_AT_ONCE = 3
REQUEST_SECONDS_MAX = 60
SETTLED_SECONDS_MAX = 60
UPLOADS = {"timetable.docx": docx(), "report.pdf": long_pdf(2)}
EVENTS = ["memory.created", "memory.deleted", "document.processed"]


class Tally:
    """What was asked, how long it took by operation, and what was not answered well."""

    def __init__(self) -> None:
        self.requests = 0
        self.refused: Counter[str] = Counter()
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, operation: str, answer: httpx.Response, seconds: float) -> None:
        self.requests += 1
        self.milliseconds[operation].append(seconds * 1000)
        if not answer.is_success:
            self.refused[f"{operation}: {answer.status_code} {answer.text[:200]}"] += 1


class Caller:
    """One account's requests."""

    def __init__(self, client: httpx.AsyncClient, tally: Tally, token: str = ""):
        self._client, self._tally, self.token = client, tally, token

    async def __call__(self, line: str, body: Any = None, **request: Any) -> Any:
        """line: method and path. -> the decoded answer, {} where it is no JSON."""
        method, path = line.split(" ")
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        headers |= request.pop("headers", {})
        began = time.perf_counter()
        answer = await self._client.request(method, path, json=body, headers=headers, **request)
        operation = re.sub(r"[a-z]{3}_[0-9a-z]{20,}", "{id}", line.partition("?")[0])
        self._tally.add(operation, answer, time.perf_counter() - began)
        return answer.json() if answer.headers.get("Content-Type") == "application/json" else {}


async def visit(call: Caller, number: int, hook: str) -> None:
    """All that an account does, from its registration to its erasure."""
    account = {"email": f"visitor-{number}@example.com", "password": PASSWORD, "full_name": "Ada"}
    call.token = (await call("POST /v1/auth/register", account))["access_token"]
    key = await call("POST /v1/auth/api-keys", {"name": "agent"})
    await call("POST /v1/webhooks", {"url": hook, "events": EVENTS})
    texts = [each["content"] for each in memories_of(number, 40)]
    stored = await store(call, texts)
    documents = [
        (await call("POST /v1/documents/upload", files={"file": upload}))["document"]["id"]
        for upload in UPLOADS.items()
    ]
    await ask(call, texts)
    await decide(call)
    chance = random.Random(number)
    for memory in chance.sample(stored, 6):
        await call(f"PATCH /v1/memories/{memory}", {"content": chance.choice(texts)})
        await call(f"GET /v1/memories/{memory}/history")
    for memory in chance.sample(stored, 6):
        await call(f"DELETE /v1/memories/{memory}")
    for document in documents:
        while (await call(f"GET /v1/documents/{document}"))["status"] not in (
            "completed",
            "failed",
        ):
            await asyncio.sleep(0.2)
        await call(f"DELETE /v1/documents/{document}")
    await call("GET /v1/account/export")
    await call("GET /v1/usage")
    await call(f"DELETE /v1/auth/api-keys/{key['id']}")
    await call("DELETE /v1/account?confirm=erase-account")


async def store(call: Caller, texts: list[str]) -> list[str]:
    """Memories as they come, and what a conversation says."""
    items = [{"content": text, "user_id": "ada", "tags": [text[:1]]} for text in texts]
    stored = (await call("POST /v1/memories/batch", {"memories": items}))["memory_ids"]
    for text in texts[:4]:
        await call("POST /v1/memories", {"content": f"{text} Again."})
    said = ["I live in Lisbon. I love jazz.", *texts[:6], "I moved to Oslo."]
    messages = [{"role": "user", "name": "Ada", "content": text} for text in said]
    now = {"Prefer": "wait=30"}
    await call("POST /v1/memories/process", {"messages": messages}, headers=now)
    return stored


async def ask(call: Caller, texts: list[str]) -> None:
    for at, kind in enumerate(("hybrid", "vector", "bm25", "graph") * 2):
        query = {"query": f"What of {texts[at][:60]}?", "search_type": kind}
        await call("POST /v1/search", query)
        await call("POST /v1/search/advanced", {**query, "facets": ["tags"], "explain": True})
    question = "Where does Ada live?"
    await call("POST /v1/search/reason", {"query": question})
    await call("POST /v1/context", {"query": question})
    await call("POST /v1/search/graph", {"query": question})
    messages = [{"role": "user", "content": question}]
    await call("POST /v1/chat/completions", {"messages": messages, "store_conversation": True})
    graph = "knowledge-graph"
    for path in ("profile?user_id=ada", f"{graph}/stats", f"{graph}/entities", "memories?limit=50"):
        await call(f"GET /v1/{path}")


async def decide(call: Caller) -> None:
    candidates = [{"action_key": "refund"}, {"action_key": "voucher"}]
    new = {"policy_key": "support", "candidates": candidates, "context": {"late": "yes"}}
    made = (await call("POST /v1/learning/decisions", new))["decision_id"]
    told = {"observations": [{"metric_key": "joy", "value": 0.5}]}
    await call(f"POST /v1/learning/decisions/{made}/outcomes", told)


async def stay(call: Caller, kept: list[str], round_: int) -> None:
    """A round of the account that stays. kept: its memories, the eldest first."""
    texts = [each["content"] for each in memories_of(10_000_000 + round_, 2 * REPLACED)]
    items = [{"content": text, "user_id": "bo"} for text in texts[:REPLACED]]
    made = (await call("POST /v1/memories/batch", {"memories": items}))["memory_ids"]
    for memory in kept[: RESIDENT_MEMORIES // 10]:
        await call(f"DELETE /v1/memories/{memory}")
    kept[:] = [*kept[RESIDENT_MEMORIES // 10 :], *made]
    for memory, text in zip(kept, texts[REPLACED:], strict=False):
        await call(f"PATCH /v1/memories/{memory}", {"content": text})
    for text in texts[:REPLACED:3]:
        await call("POST /v1/search", {"query": f"What of {text[:60]}?"})


class Sample:
    """What the service takes, by name."""

    def __init__(self, service: Served):
        self.taken: Counter[str] = Counter()
        directory = RunDirectory.of(service.data_dir)
        for process in [psutil.Process(service.process.pid), *directory.processes()]:
            try:
                name = re.sub(r"[^A-Za-z_:.]+.*", "", process.cmdline()[0].rpartition("/")[2])
                rolled = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
                pss = int(re.search(r"^Pss: +(\d+) kB", rolled, re.MULTILINE)[1])  # type: ignore[index]
                self.taken[f"memory of {name} (kB)"] += pss
                self.taken["memory of all (kB)"] += pss
                self.taken["threads"] += process.num_threads()
                self.taken["open files"] += process.num_fds()
                self.taken["processes"] += 1
            except (psutil.NoSuchProcess, OSError, IndexError):
                continue  # it has ended meanwhile
        for part in [*service.data_dir.iterdir(), directory.path]:
            files = part.rglob("*") if part.is_dir() else [part]
            self.taken[f"disk, {'run directory' if part == directory.path else part.name} (kB)"] = (
                sum(map(_occupied, files)) // 1024
            )
        self.taken["standard error (bytes)"] = len(service.errors)


def _occupied(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512 if path.is_file() else 0
    except OSError:
        return 0


def _of_thirds(samples: list[tuple[int, Sample]]) -> list[str]:
    """Lines that say what each figure was and became. samples: with the lives lived until then."""
    third = max(1, len(samples) // 3)
    early, late = samples[:third], samples[-third:]
    lived = statistics.median(n for n, _ in late) - statistics.median(n for n, _ in early)
    lines = []
    for name in sorted({name for _, sample in samples for name in sample.taken}):
        was, became = (
            statistics.median(sample.taken[name] for _, sample in part) for part in (early, late)
        )
        grown = (became - was) * 1000 / lived if lived else 0
        lines.append(f"{name}: {was:,.0f} -> {became:,.0f}, {grown:+,.0f} in a thousand lives")
    return lines


async def lived(
    service: Served, minutes: float, tally: Tally, hook: str
) -> list[tuple[int, Sample]]:
    """-> the samples, each with the lives lived until then."""
    samples, lives, began = [], 0, time.monotonic()
    timeout = httpx.Timeout(REQUEST_SECONDS_MAX)
    async with httpx.AsyncClient(base_url=service.url, timeout=timeout) as client:
        resident = Caller(client, tally, service.register())
        kept: list[str] = []
        for round_ in range(RESIDENT_MEMORIES // REPLACED):
            texts = memories_of(20_000_000 + round_, REPLACED)
            items = [{"content": each["content"], "user_id": "bo"} for each in texts]
            kept += (await resident("POST /v1/memories/batch", {"memories": items}))["memory_ids"]
        while (passed := time.monotonic() - began) < minutes * 60:
            numbers = range(lives + 1, lives + 1 + LIVES_AT_ONCE)
            visits = [visit(Caller(client, tally), number, hook) for number in numbers]
            await asyncio.gather(stay(resident, kept, lives), *visits)
            lives += LIVES_AT_ONCE
            await asyncio.to_thread(settle, service.url, SETTLED_SECONDS_MAX)
            sample = await asyncio.to_thread(Sample, service)
            if passed > minutes * 15:
                samples.append((lives, sample))
            print(f"{passed / 60:.1f} minutes, {lives} lives, {tally.requests} requests, "
                  f"{sample.taken['memory of all (kB)'] // 1024} MB", flush=True)  # fmt: skip
    return samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30, help="five at least")
    parser.add_argument("--engine", choices=("local", "ray"), default="ray")
    given = parser.parse_args()
    if given.minutes < 5:
        parser.error("what is left over does not show in less than five minutes")
    tally = Tally()
    with (
        tempfile.TemporaryDirectory(prefix="mneme-soak-") as directory,
        receiver() as heard,
        upstream() as model,
        served(
            Path(directory) / "data",
            given.engine,
            llm__base_url=model.url,
            webhooks__allow_private_networks=True,
        ) as service,
    ):
        samples = asyncio.run(lived(service, given.minutes, tally, heard.url))
        print("\n".join(_of_thirds(samples)))
        print(service.errors[-2000:])
    for operation, each in sorted(tally.milliseconds.items()):
        part = max(1, len(each) // 4)
        was, became = statistics.median(each[part : 2 * part]), statistics.median(each[-part:])
        print(f"{operation}: {len(each)}, {was:.1f} -> {became:.1f} ms")
    for refusal, count in tally.refused.most_common(20):
        print(f"NOT WELL: {count} × {refusal}")
    return 1 if tally.refused else 0


if __name__ == "__main__":
    sys.exit(main())
