#!/usr/bin/env python3
"""What open chat streams cost everybody else: reads of memories with and without slow streams
beside them.

    mneme serve … --set llm.base_url=http://127.0.0.1:8077/v1 python loadtests/streams.py --base-url
    http://127.0.0.1:8000 --listen 8077 [--streams 200] [--pause 0.5]

A language model's endpoint that says one word every `--pause` seconds runs in a process of its own.
Rounds alternate: reads alone, then reads while `--streams` chats are open. Printed are the reads
per second of each and the ratio of the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import secrets
import statistics
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

PASSWORD = "correct horse battery staple"
READERS = 8


def endpoint(port: int, pause: float) -> None:
    """The slow endpoint: it streams until its client leaves."""

    def event(delta: dict, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "slow",
            "choices": [choice],
        }
        line = b"data: " + json.dumps(body).encode() + b"\n\n"
        return b"%x\r\n%s\r\n" % (len(line), line)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: "
                b"chunked\r\n\r\n"
            )
            writer.write(event({"role": "assistant", "content": ""}))
            while not writer.is_closing():
                await writer.drain()
                await asyncio.sleep(pause)
                writer.write(event({"content": "word "}))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", port, backlog=1_024)
        await server.serve_forever()

    asyncio.run(serve())


async def reads(http: httpx.AsyncClient, memory_id: str, seconds: float) -> float:
    """Reads per second of one memory by READERS clients."""
    count, end = 0, time.perf_counter() + seconds

    async def reader() -> None:
        nonlocal count
        while time.perf_counter() < end:
            (await http.get(f"/v1/memories/{memory_id}")).raise_for_status()
            count += 1

    started = time.perf_counter()
    await asyncio.gather(*(reader() for _ in range(READERS)))
    return count / (time.perf_counter() - started)


def hold(base_url: str, token: str, count: int, opened: Any, stop: Any, chunks: Any) -> None:
    """Keep `count` chats open and throw away what comes; in a process of its own, which costs the
    reads next to nothing.
    """
    address = urlsplit(base_url)
    body = json.dumps(
        {"messages": [{"role": "user", "content": "Where is the spare key?"}], "stream": True}
    )
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\nauthorization: Bearer "
        f"{token}\r\n"
    )
    kind = f"content-type: application/json\r\ncontent-length: {len(body)}"
    request = f"{head}{kind}\r\n\r\n{body}".encode()

    async def chat() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        opened.release()
        while await reader.read(65_536):
            chunks.value += 1

    async def chats() -> None:
        tasks = [asyncio.create_task(chat()) for _ in range(count)]
        await asyncio.to_thread(stop.wait)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(chats())


class Streams:
    """Open chats, from `open` to `close`."""

    def __init__(self, base_url: str, token: str, count: int):
        self._opened, self._stop, self._count = (
            multiprocessing.Semaphore(0),
            multiprocessing.Event(),
            count,
        )
        self.chunks = multiprocessing.Value("q", 0)
        self._process = multiprocessing.Process(
            target=hold, args=(base_url, token, count, self._opened, self._stop, self.chunks)
        )

    async def open(self) -> None:
        self._process.start()
        for _ in range(self._count):
            await asyncio.to_thread(self._opened.acquire)

    async def close(self) -> None:
        self._stop.set()
        await asyncio.to_thread(self._process.join)


async def measure(options: argparse.Namespace) -> None:
    async with httpx.AsyncClient(base_url=options.base_url.removesuffix("/v1"), timeout=60) as http:
        account = {
            "email": f"{secrets.token_hex(8)}@example.com",
            "password": PASSWORD,
            "full_name": "Load Test",
        }
        token = (await http.post("/v1/auth/register", json=account)).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        body = {"content": "The spare key is under the blue flowerpot.", "wait_for_index": True}
        memory_id = (await http.post("/v1/memories", json=body)).json()["id"]
        alone, beside = [], []
        await reads(http, memory_id, 1)
        for number in range(options.rounds):
            alone.append(await reads(http, memory_id, options.seconds))
            streams = Streams(options.base_url, token, options.streams)
            await streams.open()
            before, started = streams.chunks.value, time.perf_counter()
            beside.append(await reads(http, memory_id, options.seconds))
            rate = (streams.chunks.value - before) / (time.perf_counter() - started)
            await streams.close()
            print(
                f"round {number + 1}: alone {alone[-1]:.0f}/s, beside {options.streams} streams "
                f"({rate:.0f} events/s) {beside[-1]:.0f}/s"
            )
        print(f"ratio of the medians: {statistics.median(beside) / statistics.median(alone):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True)
    parser.add_argument(
        "--listen",
        type=int,
        required=True,
        help="port of the slow endpoint, as in the service's llm.base_url",
    )
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument(
        "--pause", type=float, default=0.5, help="seconds between two words of a stream"
    )
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    model = multiprocessing.Process(
        target=endpoint, args=(options.listen, options.pause), daemon=True
    )
    model.start()
    try:
        asyncio.run(measure(options))
    finally:
        model.terminate()
        model.join()


if __name__ == "__main__":
    main()
