"""Takes from this process, for good, what a parser has no business with: memory, time, files, other
programs and the network.

Called first of all in the child, after its own modules are imported and before a byte of the file
is looked at. What holds even where a decoder runs a stranger's code:

    memory, processor time, written files, descriptors   limits of the kernel (setrlimit)
    files            Landlock: only the interpreter's own code, libraries and fonts can be opened,
                     and only to be read
    everything else  seccomp: some forty system calls are let through, which compute, read what is
                     open and load libraries; no sockets, programs, processes, signals to others,
                     shared maps

Python itself refuses the same by audit hooks, everywhere; that is for a clear error and no
protection. The clock on the wall is the parent's.

Landlock is in Linux since 5.13, and seccomp is for the architectures below. What is missing is
told: what the service then does is for the caller to decide.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILES_MAX = 64

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 1, 38, 22, 2
_ALLOW, _EPERM, _ENOSYS = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
_CLONE_THREAD, _MAP_SHARED = 0x00010000, 0x01
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
# System call -> its numbers on x86-64 and ARM64, None where there is none.
_ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "pread64": (17, 67), "readv": (19, 65), "lseek": (8, 62),
    "write": (1, 64), "writev": (20, 66), "close": (3, 57), "dup": (32, 23),
    "open": (2, None), "openat": (257, 56), "getdents64": (217, 61),
    "stat": (4, None), "fstat": (5, 80), "lstat": (6, None), "newfstatat": (262, 79),
    "statx": (332, 291), "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439),
    "readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17),
    "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "brk": (12, 214), "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293),
    "sched_getaffinity": (204, 123), "sched_yield": (24, 124), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "sigaltstack": (131, 132),
    "clock_gettime": (228, 113), "gettimeofday": (96, 169), "time": (201, None),
    "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "restart_syscall": (219, 128),
    "getrandom": (318, 278), "getpid": (39, 172), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "uname": (63, 160),
    "sysinfo": (99, 179), "getrusage": (98, 165), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
_MMAP, _CLONE, _CLONE3 = (9, 222), (56, 220), (435, 435)

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # on both architectures
_LANDLOCK_VERSION, _LANDLOCK_PATH_BENEATH = 1, 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # version -> how many there are; 5 and later: 16
_NETWORK_RIGHTS, _SCOPES = 0b11, 0b11  # since versions 4 and 6
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/etc/ld.so.cache",
              "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/zoneinfo")  # fmt: skip

_FORBIDDEN = ("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn",
              "os.system", "os.kill", "os.remove",
              "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.truncate",
              "shutil.", "ftplib.", "http.", "urllib.",
              "smtplib.", "webbrowser.", "pty.")  # fmt: skip


def missing() -> list[str]:
    """What this machine lacks for the whole of the confinement, each as a few words; changes
    nothing.
    """
    if sys.platform != "linux":
        return [f"Linux (this is {sys.platform})"]
    lacking = []
    if _landlock_version() < 1:
        lacking.append("Landlock (Linux 5.13 or newer, with landlock among its security modules)")
    if platform.machine() not in _ARCHITECTURES:
        lacking.append(f"a filter on system calls for {platform.machine()}")
    return lacking


def confine(memory_bytes: int, seconds: int) -> None:
    """Confine this process, with no way back. seconds: of processor time. What is `missing` is left
    out. Raises OSError.
    """
    _end_with_parent()
    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, FILES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))
    if sys.platform == "linux":
        if len(os.listdir("/proc/self/task")) > 1:
            raise OSError("a thread that already runs would stay free")
        _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "privileges cannot be given up")
        if _landlock_version() >= 1:
            _close_file_system(_code())
        if platform.machine() in _ARCHITECTURES:
            _filter_system_calls()
    sys.addaudithook(_refuse)


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def _end_with_parent() -> None:
    """Whoever waits for the answer may be killed; nobody else would end this process then."""
    if sys.platform == "linux":
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    writes = (
        event == "open"
        and not isinstance(arguments[0], int)
        and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    )
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"a parser may not do this: {event}")


# --- the file system ------------------------------------------------------------------------------


def _landlock_version() -> int:
    return _libc().syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)


def _code() -> list[str]:
    """Where modules lie that are imported only when a file needs them: codecs, formats of
    pictures.
    """
    paths = sysconfig.get_paths()
    own = str(Path(__file__).resolve().parent)
    return [own, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))]


def _close_file_system(code: Iterable[str]) -> None:
    """Let nothing be opened from now on but these directories and the system's libraries, to be
    read.
    """
    libc, version = _libc(), _landlock_version()
    rights = struct.pack(
        "=QQQ",
        (1 << _FILE_RIGHTS.get(version, 16)) - 1,
        _NETWORK_RIGHTS if version >= 4 else 0,
        _SCOPES if version >= 6 else 0,
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _check(
        libc.syscall(_LANDLOCK_CREATE, rights, ctypes.c_size_t(size), 0), "Landlock refuses"
    )
    for path in dict.fromkeys((*code, *_LIBRARIES)):
        with contextlib.suppress(FileNotFoundError):
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = _READ_FILE | (_READ_DIR if os.path.isdir(path) else 0)
            rule = struct.pack("=Qi", allowed, beneath)
            done = libc.syscall(_LANDLOCK_ADD, rules, _LANDLOCK_PATH_BENEATH, rule, 0)
            os.close(beneath)
            _check(done, f"Landlock refuses {path}")
    _check(libc.syscall(_LANDLOCK_RESTRICT, rules, 0), "Landlock refuses")
    os.close(rules)


# --- system calls ---------------------------------------------------------------------------------


def _filter_system_calls() -> None:
    """Let the calls above through; refuse all others, maps that are shared, and new processes,
    threads excepted.
    """
    architecture, place = _ARCHITECTURES[platform.machine()]
    allowed = [numbers[place] for numbers in _ALLOWED.values() if numbers[place] is not None]
    flags_of_map, flags_of_clone = _ARGUMENTS_AT + 3 * 8, _ARGUMENTS_AT  # their lower halves
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _EPERM),
        # Its flags lie in memory, where no filter sees them; the C library then uses clone.
        (_EQUAL, 0, 1, _CLONE3[place]),
        (_RETURN, 0, 0, _ENOSYS),
        (_EQUAL, 0, 4, _MMAP[place]),
        (_LOAD, 0, 0, flags_of_map),
        (_ANY_OF, 0, 1, _MAP_SHARED),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, _CLONE[place]),
        (_LOAD, 0, 0, flags_of_clone),
        (_ANY_OF, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
        *((_EQUAL, len(allowed) - at, 0, number) for at, number in enumerate(allowed)),
        (_RETURN, 0, 0, _EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(buffer))
    installed = _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0)
    _check(installed, "the filter on system calls cannot be installed")
