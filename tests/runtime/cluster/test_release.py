"""Processes of another release are refused, by name, before anything is asked of them: gateways,
shards and nodes.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

import serve_app
from runtime.api.operation import Operation, Read
from runtime.api.plugin import Plugin, Registry
from runtime.cluster import nodes
from runtime.cluster.actors import ShardActor
from runtime.cluster.batching import BatchingQueue, pack_calls
from runtime.cluster.release import OtherRelease, release_of, schema_digest
from runtime.cluster.unix_socket import ClientSocket, NotConnected, listen
from runtime.errors import Unavailable
from storage.store import Table
from tests.support.tiny_app import call
from tests.support.worlds import settings

OWN, OTHER = "1.0.0 (schema 0123456789abcdef)", "1.0.0 (schema fedcba9876543210)"
OPENER = "tests.support.tiny_app:open_shard"


class Part(BaseModel):
    text: str


class LongerPart(BaseModel):
    text: str
    at: int = 0


class Body(BaseModel):
    parts: list[Part] | None = None


class OtherBody(BaseModel):
    parts: list[LongerPart] | None = None


class Row(msgspec.Struct):
    count: int = 0


class LongerRow(msgspec.Struct):
    count: int = 0
    at: int = 0


def registry_of(body: type[BaseModel] = Body, **table: Any) -> Registry:
    operation: Operation = Read(
        "tiny.ask", "POST", "/tiny/ask", handler=dict, summary="", response=None, body=body
    )
    declared = Table("tiny.rows", key=("id",), **{"row": Row, **table})
    return Registry.build([Plugin("tiny", operations=(operation,), tables=(declared,))])


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp") as directory:  # pytest's own have long names
        yield Path(directory) / "private" / "shard-0"


def test_the_digest_is_of_what_processes_share() -> None:
    own = schema_digest(registry_of())
    assert own == schema_digest(registry_of())
    assert own != schema_digest(registry_of(row=LongerRow)), "a field without a version"
    assert own != schema_digest(registry_of(version=2))
    assert own != schema_digest(registry_of(body=OtherBody)), "a field deep in a body"
    assert release_of("serve_app:open_shard").endswith(
        f"(schema {schema_digest(serve_app.registry())})"
    )


def test_no_message_is_read_from_a_gateway_of_another_release(path: Path) -> None:
    heard: list[bytes] = []

    async def execute(message: bytes, early: object) -> bytes:
        heard.append(message)
        return message

    async def work() -> None:
        async with await listen(path, OWN, execute):
            with pytest.raises(OtherRelease, match=f"shard is of release {OWN[:5]}"):
                await ClientSocket(path, OTHER).send(b"a pickle")
            # One that does not know of releases, or does not care, sends a message at once.
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"\x02\0\0\0hi\x02\0\0\0ho")
            length = int.from_bytes(await reader.readexactly(4), "little")
            assert await reader.readexactly(length) == OWN.encode()
            assert await reader.read() == b"", "it is hung up on"
            writer.close()
            assert heard == []
            assert await ClientSocket(path, OWN).send(b"a pickle") == b"a pickle"

    asyncio.run(work())


def test_a_shard_that_goes_before_it_says_its_release_was_sent_nothing(path: Path) -> None:
    async def work() -> None:
        path.parent.mkdir(mode=0o700)

        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_unix_server(hang_up, path):
            with pytest.raises(NotConnected):
                await ClientSocket(path, OWN).send(b"a pickle")

    asyncio.run(work())


def test_callers_hear_of_it_in_a_sentence_and_the_queue_goes_on() -> None:
    async def work() -> None:
        tries: list[bytes] = []

        async def send(message: bytes, early: object) -> bytes:
            tries.append(message)
            raise OtherRelease("Shard 0 is of release 2.")

        async def wait_until_up(seconds: float) -> bool:
            raise AssertionError("it is not lost")

        queue = BatchingQueue("write", send, wait_until_up)
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"Shard 0 is of release 2\."):
                await queue.execute(call("tiny.add"))
        assert len(tries) == 2

    asyncio.run(work())


def test_a_shard_takes_no_calls_through_ray_from_another_release(tmp_path: Path) -> None:
    actor = ShardActor(settings(data_dir=str(tmp_path)), 3, OPENER)
    for other in ("", OTHER):
        with pytest.raises(OtherRelease, match="Shard 3 is of release"):
            asyncio.run(actor.execute(pack_calls([]), other))


@pytest.mark.parametrize("is_other", [False, True])
def test_a_node_of_another_release_gets_no_shard(tmp_path: Path, is_other: bool) -> None:
    asked: list[Callable[..., Any]] = []

    async def run_there(node: str, function: Callable[..., Any], *given: Any) -> Any:
        asked.append(function)
        assert inspect.isfunction(function), "Ray ships nothing else"
        if function is nodes.release_there:
            return OTHER if is_other else release_of(*given)
        return nodes.Inspection("somewhere")

    given = settings(data_dir=str(tmp_path))
    found = asyncio.run(nodes.inspected(given, OPENER, "b", {"a", "b"}, run_there))
    if is_other:
        assert f"Node b is of release {OTHER}" in found.problem and "one release" in found.problem
        assert asked == [nodes.release_there], "its settings are another release's, too"
    else:
        assert found == nodes.Inspection("somewhere")
