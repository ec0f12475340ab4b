"""A very small service on the real cluster room: one counter per slot, kept in a file, and a
handful of operations.

It has what serve_app has (open_shard, build, build_local), so that tests drive real Ray, real
actors and real HAProxy without waiting for stores and models.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import orjson

from runtime import cluster
from runtime import serve as serving
from runtime.api.operation import Call, Operation, Read, Reply, Write
from runtime.api.plugin import Plugin, Registry
from runtime.errors import ApiError
from runtime.installation import Layout, LayoutError, shard_directory
from runtime.limits import SLOTS
from runtime.placement import PlacementTable
from runtime.serve.haproxy import neighbour
from runtime.settings import Settings


async def _prepared(*_: Any) -> None:
    """Makes an operation a slow one."""


def _operation(name: str, kind: type[Operation], **fields: Any) -> Operation:
    return kind(
        name,
        "GET",
        f"/{name.replace('.', '/')}",
        handler=dict,
        summary="",
        response=None,
        **fields,
    )


PLUGIN = Plugin(
    "tiny",
    operations=(
        _operation("tiny.read", Read),
        _operation("tiny.add", Write),
        _operation("tiny.wait", Read, prepare=_prepared),
        _operation("tiny.crash", Write),
        _operation("tiny.refuse", Read),
    ),
)


def registry() -> Registry:
    return Registry.build([PLUGIN])


class TinyShard:
    """One number in a file, and the sizes of the batches it was asked in."""

    def __init__(self, number: int, file: Path):
        self.number = number
        self._file = file
        self.batches: list[int] = []

    async def execute(self, call: Call) -> Reply:
        count = int(self._file.read_text())
        match call.operation:
            case "tiny.add":
                count += 1
                self._file.write_text(str(count))
            case "tiny.wait":
                while not self._file.with_name("go_on").exists():
                    await asyncio.sleep(0.01)
            case "tiny.refuse":
                error = ApiError("refused")
                return Reply(error.status, error=error)
            case "tiny.crash":
                raise OSError("the disk is gone")
        return Reply(200, {"count": count, "pid": os.getpid(), "batches": self.batches[-100:]})

    async def execute_many(self, calls: list[Call], early: object = None) -> list[Reply]:
        self.batches.append(len(calls))
        return list(await asyncio.gather(*(self.execute(call) for call in calls)))

    async def status(self) -> dict[str, Any]:
        return {"shard": self.number, "open": True}

    async def checkpoint(self) -> None:
        self._file.with_name("checkpoint").touch()

    async def until_fenced(self) -> str:
        """No other process owns it, ever."""
        return await asyncio.get_running_loop().create_future()

    async def drain(self) -> None:
        self._file.with_name("drained").touch()

    async def close(self) -> None:
        self._file.with_name("closed").touch()


async def open_shard(settings: Settings, number: int) -> TinyShard:
    layout = Layout.load(settings.data_dir)
    directory = shard_directory(settings.data_dir, number)
    if not layout.complete or settings.cluster.name is not None:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "count").write_text("0")
    if not (directory / "count").exists():
        raise LayoutError(f"{directory} is damaged: it lacks its count.")
    return TinyShard(number, directory / "count")


class TinyGateway:
    """Answers every path with what a shard says, or with what the request looked like."""

    def __init__(self, shards: cluster.RayShards | cluster.LocalShards):
        self._shards = shards

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        status, body = await self._answer(scope)
        payload = orjson.dumps(body) if not isinstance(body, bytes) else body
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(payload)),
            (b"x-request-id", b"ours"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    async def _answer(self, scope: dict[str, Any]) -> tuple[int, Any]:
        path = scope["path"]
        if path == "/v1/health":
            statuses = await self._shards.status()
            return (200 if all(status["open"] for status in statuses) else 503), statuses
        if path == "/noop":
            return 200, b"{}"
        if path == "/request":
            names = [name.decode() for name, _ in scope["headers"]]
            return 200, {
                "client": scope["client"][0],
                "scheme": scope["scheme"],
                "headers": names,
                "gateway": os.getpid(),
            }
        try:
            reply = await self._shards.execute(call(path.strip("/").replace("/", ".")))
        except ApiError as error:
            return error.status, {"error": error.message}
        return reply.status, reply.body or {}


def call(operation: str, slot: int = 0, body: Any = None) -> Call:
    return Call(operation, slot, now_ms=0, seed=b"", request_id="r", body=body)


async def counts(shards: cluster.LocalShards | cluster.RayShards) -> list[bytes]:
    """Adds once in the first and twice in the last slot; -> what each shard then says."""
    last = SLOTS - 1
    for slot in (0, last, last):
        await shards.execute(call("tiny.add", slot))
    return [(await shards.execute(call("tiny.read", slot))).body for slot in (0, last)]


def build_local(settings: Settings, shards: cluster.LocalShards) -> TinyGateway:
    return TinyGateway(shards)


class Gateway:
    """The Serve deployment around a TinyGateway."""

    def __init__(self, settings: Settings, front_door: bool):
        cluster.log_to_file(settings, cluster.gateway_name())
        shards = cluster.RayShards(settings, registry(), "tests.support.tiny_app:open_shard")
        self._application = neighbour(TinyGateway(shards), front_door)

    def __serve_build_asgi_app__(self) -> Any:
        return self._application


def build(settings: Settings, front_door: bool) -> Any:
    PlacementTable.of(settings).load()  # as gateways do first
    return cluster.application(Gateway, settings, front_door)


def main(arguments: list[str]) -> int:
    """python -m tests.support.tiny_app key=value …"""
    return serving.serve(
        Settings.load(None, arguments),
        lambda url: print(url, flush=True),
        module="tests.support.tiny_app",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
