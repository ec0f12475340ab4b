"""The short cut between gateway and shard: messages arrive whole and answers are theirs, and a loss
is told from never having sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import uvloop

from runtime.cluster.unix_socket import ClientSocket, Early, NotConnected, listen, remove

RELEASE = "1.0.0 (schema 0123456789abcdef)"


@pytest.fixture
def path() -> Iterator[Path]:
    with TemporaryDirectory(dir="/tmp") as directory:  # pytest's own have long names
        yield Path(directory) / "private" / "shard-0"


async def echo(message: bytes, early: Early) -> bytes:
    await asyncio.sleep(
        0.001 * (10 - len(message) % 10)
    )  # the first to be sent is not the first to be answered
    return message


def test_each_message_gets_its_own_answer(path: Path) -> None:
    async def work() -> None:
        async with await listen(path, RELEASE, echo):
            shard = ClientSocket(path, RELEASE)
            messages = [bytes([number]) * (number + 1) for number in range(50)] + [
                b"",
                b"x" * 5_000_000,
            ]
            assert await asyncio.gather(*(shard.send(message) for message in messages)) == messages
            assert await asyncio.gather(*(shard.send(message) for message in messages)) == messages

    asyncio.run(work())


def test_parts_of_an_answer_come_before_the_rest(path: Path) -> None:
    async def work() -> None:
        may_end = asyncio.Event()

        async def execute(message: bytes, early: Early) -> bytes:
            early(b"one")
            early(b"")
            await may_end.wait()
            return b"two"

        async with await listen(path, RELEASE, execute):
            shard, parts, came = ClientSocket(path, RELEASE), [], asyncio.Event()

            def take(part: bytes) -> None:
                parts.append(part)
                if len(parts) == 2:
                    came.set()

            for _ in range(2):
                sent = asyncio.create_task(shard.send(b"many", take))
                await came.wait()
                assert parts == [b"one", b""] and not sent.done()
                may_end.set()
                assert await sent == b"two"
                came.clear(), may_end.clear(), parts.clear()

    asyncio.run(work())


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_nothing_fails_where_the_gateway_has_gone(path: Path, run: Callable[..., None]) -> None:
    """Who executes is a shard, which ends its process for what fails in it."""

    async def work() -> None:
        begun, gone, outcome = asyncio.Event(), asyncio.Event(), asyncio.Queue[object]()
        troubles: list[dict] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: troubles.append(what))

        async def execute(message: bytes, early: Early) -> bytes:
            begun.set()
            await gone.wait()
            try:
                for _ in range(10):
                    early(b"x" * 100_000)
                    await asyncio.sleep(0.001)
            except BaseException as failed:
                outcome.put_nowait(failed)
                raise
            outcome.put_nowait(None)
            return b"the rest"

        async with await listen(path, RELEASE, execute):
            sent = asyncio.create_task(ClientSocket(path, RELEASE).send(b"many"))
            await begun.wait()
            sent.cancel()  # as where its clients have gone
            with pytest.raises(asyncio.CancelledError):
                await sent
            gone.set()
            assert await outcome.get() is None
            begun.clear()
            assert await ClientSocket(path, RELEASE).send(b"many", lambda part: None) == b"the rest"
        assert troubles == []

    run(work())


def test_only_a_directory_of_ones_own_is_used(path: Path) -> None:
    async def work() -> None:
        async with await listen(path, RELEASE, echo):
            path.parent.chmod(0o750)
            with pytest.raises(NotConnected):
                await ClientSocket(path, RELEASE).send(b"secret")
            assert await listen(path.with_name("shard-1"), RELEASE, echo) is None

    asyncio.run(work())


def test_a_shard_that_is_gone_is_told_from_one_that_goes_under_a_message(path: Path) -> None:
    async def work() -> None:
        shard = ClientSocket(path, RELEASE)
        with pytest.raises(NotConnected):
            await shard.send(b"nobody has listened yet")

        async def leave(_: bytes, early: Early) -> bytes:
            raise ConnectionError

        async with await listen(path, RELEASE, leave):
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await shard.send(b"the outcome is unknown")
        with pytest.raises(NotConnected):
            await shard.send(b"nobody listens any more")
        async with await listen(path, RELEASE, echo):
            assert await shard.send(b"it is back") == b"it is back"

    asyncio.run(work())


def test_a_connection_of_a_call_that_was_given_up_is_not_used_again(path: Path) -> None:
    async def work() -> None:
        async with await listen(path, RELEASE, echo):
            shard = ClientSocket(path, RELEASE)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await shard.send(b"0123456789")
            assert await shard.send(b"another") == b"another"

    asyncio.run(work())


def test_the_last_socket_takes_the_directory_with_it(path: Path) -> None:
    async def work() -> None:
        async with (
            await listen(path, RELEASE, echo),
            await listen(path.with_name("shard-1"), RELEASE, echo),
        ):
            remove(path)
            assert path.parent.exists()
            remove(path.with_name("shard-1"))
            assert not path.parent.exists()

    asyncio.run(work())
