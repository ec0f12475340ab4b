"""The writer of a shard whose device fails while others wait."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import serve_app
from runtime.api import Reply
from runtime.shard.writer import StorageFailed, WriteOutcome, Writer
from storage.store import DeviceFailed, Transaction
from tests.support.stores import ALICE, BLOBS, blobs, open_store


def test_nothing_that_waits_behind_a_failure_of_the_device_is_written(tmp_path: Path) -> None:
    store = open_store(tmp_path / "shard")
    writer = Writer(store, serve_app.registry(), lambda due: None, lambda committed: None)
    has_begun, is_followed = threading.Event(), threading.Event()

    def fail(transaction: Transaction) -> WriteOutcome:
        has_begun.set()
        is_followed.wait()
        raise DeviceFailed("its device failed")

    def write(transaction: Transaction) -> WriteOutcome:
        transaction.bind(BLOBS, ALICE).put((1,), b"too late")
        return WriteOutcome(Reply())

    async def submit() -> tuple[Reply | BaseException, ...]:
        first = asyncio.create_task(writer.submit(fail, "first"))
        await asyncio.to_thread(has_begun.wait)
        second = asyncio.create_task(writer.submit(write, "second"))
        await asyncio.sleep(0)  # until it stands in the queue
        is_followed.set()
        return await asyncio.gather(first, second, return_exceptions=True)

    told = asyncio.run(submit())
    assert [type(answer) for answer in told] == [StorageFailed] * 2
    assert blobs(store) == {}
    writer.close()
    store.close()
