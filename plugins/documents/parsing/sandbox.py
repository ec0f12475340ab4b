"""Takes from this process, for good, what a parser has no business with: memory, time, files, other
programs and the network.

Called first of all in the child, after its own modules are imported and before a byte of the file
is looked at. Memory, processor time, the size of written files and open descriptors are limits of
the kernel (setrlimit); sockets, new programs and foreign processes are refused by a filter on
system calls (seccomp, on Linux with x86-64 or ARM64), and everywhere by Python itself (audit
hooks). The clock on the wall is the parent's.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from typing import Any

FILES_MAX = 64

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 1, 38, 22, 2
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000
# (architecture of the filter, numbers of: socket, socketpair, connect, bind, listen, accept,
# accept4, sendto, sendmsg, execve, execveat, fork and vfork where they exist, ptrace,
# process_vm_readv, process_vm_writev, kill, tkill, io_uring_setup, unshare, setns)
_CALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    "x86_64": (
        0xC000003E,
        (
            41,
            53,
            42,
            49,
            50,
            43,
            288,
            44,
            46,
            59,
            322,
            57,
            58,
            101,
            310,
            311,
            62,
            200,
            425,
            272,
            308,
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (
            198,
            199,
            203,
            200,
            201,
            202,
            242,
            206,
            211,
            221,
            281,
            117,
            270,
            271,
            129,
            130,
            425,
            97,
            268,
        ),
    ),
}
_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
              "os.system", "os.kill", "os.remove",
              "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.truncate",
              "shutil.", "ftplib.", "http.", "urllib.",
              "smtplib.", "webbrowser.", "pty.")  # fmt: skip


def confine(memory_bytes: int, seconds: int) -> None:
    """No way back. seconds: of processor time."""
    _end_with_parent()
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    _filter_system_calls()
    sys.addaudithook(_refuse)


def _end_with_parent() -> None:
    """Whoever waits for the answer may be killed; nobody else would end this process then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    writes = (
        event == "open"
        and not isinstance(arguments[0], int)
        and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"a parser may not do this: {event}")


def _filter_system_calls() -> None:
    known = _CALLS.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return
    architecture, refused = known
    program = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_JUMP_IF_GREATER_EQUAL, len(refused) + 1, 0, _X32),
        *(
            (_JUMP_IF_EQUAL, len(refused) - place, 0, number)
            for place, number in enumerate(refused)
        ),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the filter on system calls cannot be installed")
