"""What others wait for is run soon after it was woken; by the kernel's own word, since how soon is
a matter of the machine (loadtests/hostile.py measures it).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from runtime.processor_turns import SLICE_NS, come_soon
from tests.support.served import served

_ATTRIBUTES = struct.Struct("=IIQiIQQQII")
_SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}[platform.machine()]
# Before 6.12 Linux has one slice for all, and says none.
KNOWS_SLICES = tuple(map(int, platform.release().split("-")[0].split(".")[:2])) >= (6, 12)


def slice_of(thread: int) -> int:
    """Nanoseconds."""
    found = ctypes.create_string_buffer(_ATTRIBUTES.size)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(_SCHED_GETATTR, thread, found, _ATTRIBUTES.size, 0) == 0, os.strerror(
        ctypes.get_errno()
    )
    return _ATTRIBUTES.unpack(found.raw)[5]


def on_a_thread(look: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            look()
        except BaseException as failed:
            failures.append(failed)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failures, failures


def test_a_thread_comes_soon_and_those_that_it_starts_as_usual() -> None:
    own = slice_of(threading.get_native_id())

    def look() -> None:
        come_soon()
        assert (slice_of(threading.get_native_id()) == SLICE_NS) == KNOWS_SLICES
        on_a_thread(check_usual)

    on_a_thread(look)
    assert slice_of(threading.get_native_id()) == own


def check_usual() -> None:
    assert slice_of(threading.get_native_id()) != SLICE_NS


def test_the_loop_the_writer_and_the_model_come_soon(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        threads = [int(each.name) for each in Path(f"/proc/{service.process.pid}/task").iterdir()]
        soon = [thread for thread in threads if slice_of(thread) == SLICE_NS]
        assert len(soon) >= (3 if KNOWS_SLICES else 0)
        assert service.process.pid in soon or not KNOWS_SLICES, "the loop is on the first thread"
