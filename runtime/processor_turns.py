"""Which threads the kernel runs first, where more want a processor than there are.

Linux gives each thread a slice of some milliseconds before it looks for another, so that one which
was woken to pass an answer on waits for as long beside threads that calculate. A thread that asks
for short slices (Linux 6.12 and later) is run soon after it was woken, and has no larger share for
it. What takes long, in contrast, has a small one (nice(2)).

Other systems, and Linux before that, run all as they see fit: nothing here fails there.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
import threading

LAST = 10  # niceness: a tenth of a processor that another wants, too
SLICE_NS = 100_000

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
# struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, bounds of use
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")
_SCHED_OTHER, _RESET_ON_FORK = 0, 1


def last() -> int:
    """The niceness of what takes long; never below that of the service, which may have been told to
    come after others, and could not be lowered again.
    """
    return max(LAST, os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))


def go_last() -> None:
    """Let this thread, or where the system knows none by itself nobody, have a processor only when
    others leave one. For what takes long without the interpreter's lock: whoever holds that, and
    gets no processor, makes all others wait.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), last())


def come_soon() -> None:
    """Let this thread have a processor soon after it is woken; those that it starts have slices as
    usual. For what others wait for, and that seldom takes more than SLICE_NS at a time.
    """
    call = _SCHED_SETATTR.get(platform.machine())
    if sys.platform != "linux" or call is None:
        return
    own = threading.get_native_id()
    niceness = os.getpriority(os.PRIO_PROCESS, own)
    if os.sched_getscheduler(own) != _SCHED_OTHER or niceness < 0:
        return  # whoever runs the service has said how its threads come
    attributes = _ATTRIBUTES.pack(
        _ATTRIBUTES.size,
        _SCHED_OTHER,
        _RESET_ON_FORK,
        niceness,
        0,
        SLICE_NS,
        *(0, 0, 0, 0),
    )
    ctypes.CDLL(None).syscall(call, own, attributes, 0)  # what is refused leaves all as it was
