"""How fast a long document becomes searchable, against the embedder by itself; and what a large
upload costs in memory.

    .venv/bin/python loadtests/documents.py [--pages 1000] [--engine local|ray]

A PDF of so many pages is made, uploaded and waited for. Then the embedding model embeds the same
chunks in this process, with as many threads, and nothing else to do. The ratio of the two speeds is
what counts. Before and after, a service gets an upload of 50 MiB while the memory of its processes
is looked at, at its highest.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.inference import MiniLmEmbedder
from tests.support import corpus
from tests.support.served import Served, served

THREADS = 1
UPLOAD_BYTES = 50 * 1024**2
POLL_SECONDS = 0.2


def upload(service: Served, headers: dict[str, str], name: str, content: bytes) -> dict:
    answer = service.http.post(
        "/v1/documents/upload", files={"file": (name, content)}, headers=headers
    )
    assert answer.status_code == 202, answer.text
    return answer.json()


def index(
    service: Served, headers: dict[str, str], content: bytes
) -> tuple[float, float, list[str]]:
    """(seconds until the text was there, seconds until all was searchable, the chunks)"""
    started = time.perf_counter()
    url, parsed = upload(service, headers, "long.pdf", content)["status_url"], 0.0
    while True:
        document = service.http.get(url, headers=headers).json()
        parsed = parsed or (time.perf_counter() - started if document["chunk_count"] else 0.0)
        if document["status"] in ("completed", "failed"):
            break
        time.sleep(POLL_SECONDS)
    seconds = time.perf_counter() - started
    assert document["status"] == "completed", document
    texts, page = [], {"has_more": True, "next_cursor": ""}
    while page["has_more"]:
        page = service.http.get(
            f"{url}/chunks?limit=100&cursor={page['next_cursor']}", headers=headers
        ).json()
        texts += [chunk["content"].strip() for chunk in page["items"]]
    return parsed, seconds, texts


async def embed_alone(texts: list[str]) -> float:
    """Seconds the embedder needs for these texts."""
    with tempfile.TemporaryDirectory() as directory:
        embedder = MiniLmEmbedder(
            Path(directory),
            threads=THREADS,
            timeout_seconds=600,
            queue_max=1_000_000,
            cache_entries=0,
        )
        await embedder.embed(texts[:64])
        started = time.perf_counter()
        for start in range(0, len(texts), 512):
            await embedder.embed(texts[start : start + 512])
        seconds = time.perf_counter() - started
        await embedder.close()
    return seconds


def memory_of_upload(service: Served, headers: dict[str, str]) -> float:
    """MiB by which all processes of the service together grow, at most, while a large upload comes
    in.
    """
    root = psutil.Process(service.process.pid)
    processes = [root, *root.children(recursive=True)]
    upload(service, headers, "warm.png", b"\x89PNG\r\n\x1a\n" + os.urandom(5_000_000))
    time.sleep(2)

    def used() -> int:
        return sum(process.memory_info().rss for process in processes if process.is_running())

    before = highest = used()
    block = os.urandom(64 * 1024)

    def form() -> Iterator[bytes]:
        nonlocal highest
        yield (
            b'--B\r\nContent-Disposition: form-data; name="file"; '
            b'filename="b.png"\r\n\r\n\x89PNG\r\n\x1a\n'
        )
        for number in range((UPLOAD_BYTES - 100) // len(block)):
            yield block
            if number % 16 == 0:
                highest = max(highest, used())
        yield b"\r\n--B--\r\n"

    kind = {"Content-Type": "multipart/form-data; boundary=B"}
    answer = httpx.post(
        f"{service.url}/v1/documents/upload",
        content=form(),
        headers={**headers, **kind},
        timeout=120,
    )
    assert answer.status_code == 202, answer.text
    return (max(highest, used()) - before) / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Documents: speed of indexing, memory of an upload."
    )
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    asked = parser.parse_args()
    content = corpus.long_pdf(asked.pages)
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        with served(
            data, asked.engine, embedder__threads=THREADS, write__ready_wait_ms=30_000
        ) as service:
            headers = {"Authorization": f"Bearer {service.register()}"}
            print(f"an upload of 50 MiB: {memory_of_upload(service, headers):.1f} MiB")
            parsed, seconds, texts = index(service, headers, content)
    alone = asyncio.run(embed_alone(texts))
    print(
        f"{asked.pages} pages, {len(content) / 2**20:.1f} MiB, {len(texts)} chunks: read in "
        f"{parsed:.1f} s, searchable in {seconds:.1f} s"
    )
    print(
        f"{len(texts) / seconds:.0f} chunks/s; the embedder alone {len(texts) / alone:.0f} "
        f"chunks/s; ratio {alone / seconds:.2f}"
    )


if __name__ == "__main__":
    main()
