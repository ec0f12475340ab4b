"""Machines of a network that this process has for itself, on one Linux machine: a network namespace
each, and lines between them that can be cut.

    network.enter()                  this process gets network namespaces of its own; as a user who
                                     is not root, in a user namespace too
    with Network("hbc") as network:  a bridge, and a namespace for each name
        network.inside("b")          what a command line begins with to run there
        network.cut("b", "c")        what b sends to c is lost in silence, until it is mended; so
                                     neither hears the other, as connections need both directions
        network.mend()               all lines

Nothing outside changes: the namespaces, and whatever is cut in them, end with this process. A line
is cut by a neighbour entry with an address that nobody has, so packets leave and never arrive; no
connection is reset, as with a cable that was pulled.

Needs `ip` (iproute2), and `unshare` and `nsenter` (util-linux).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psutil

HUB, STORE = "10.77.0.1", "10.77.0.2"  # of this process: for clients, and for the object store
_FIRST = 10  # the last number of the first machine's address
_NOBODY = "02:00:00:00:ff:fe"
_ENTERED = "NETWORK_OF_ITS_OWN"
_UNSHARE = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
_STEP_SECONDS = 0.02
_END_SECONDS_MAX = 10


def enter() -> None:
    """Start this program anew in namespaces of its own, once."""
    if os.environ.pop(_ENTERED, None):
        return
    os.environ[_ENTERED] = "1"
    os.execvp("unshare", [*_UNSHARE, sys.executable, *sys.argv])


def is_possible() -> bool:
    """Whether this machine has the programs, and lets this user have networks."""
    if not all(shutil.which(program) for program in ("ip", "nsenter", "unshare")):
        return False
    bridge = ["ip", "link", "add", "hub", "type", "bridge"]
    return subprocess.run([*_UNSHARE, *bridge], capture_output=True, check=False).returncode == 0


class Network:
    """A machine for each one-letter name; `close` ends what runs on them."""

    def __init__(self, names: str):
        self.addresses = {
            name: HUB.rpartition(".")[0] + f".{number}" for number, name in enumerate(names, _FIRST)
        }
        self._cut: list[tuple[str, str]] = []
        self._holders: dict[str, subprocess.Popen[bytes]] = {}
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", "hub", "type", "bridge")
        for address in (HUB, STORE):
            _run("ip", "address", "add", f"{address}/24", "dev", "hub")
        _run("ip", "link", "set", "hub", "up")
        for name in names:
            self._add(name)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, name: str) -> None:
        holder = subprocess.Popen(["unshare", "-n", "sleep", "infinity"])
        self._holders[name] = holder
        while _network_of(holder.pid) in (_network_of(os.getpid()), ""):
            time.sleep(_STEP_SECONDS)
        _run(
            "ip", "link", "add", f"to-{name}", "type", "veth",
            "peer", "name", "eth0", "netns", str(holder.pid),
        )  # fmt: skip
        _run("ip", "link", "set", f"to-{name}", "master", "hub", "up")
        self._ip(name, "link", "set", "lo", "up")
        self._ip(name, "address", "add", f"{self.addresses[name]}/24", "dev", "eth0")
        self._ip(name, "link", "set", "eth0", "up")

    def inside(self, name: str) -> list[str]:
        """What the command line of a program on that machine begins with."""
        return ["nsenter", f"--net=/proc/{self._holders[name].pid}/ns/net"]

    def _ip(self, name: str, *arguments: str) -> None:
        _run(*self.inside(name), "ip", *arguments)

    def cut(self, name: str, other: str) -> None:
        """Cut the line from a machine to another one, or to an address."""
        address = self.addresses.get(other, other)
        self._ip(
            name, "neighbour", "replace", address, "lladdr", _NOBODY, "dev", "eth0",
            "nud", "permanent",
        )  # fmt: skip
        self._cut.append((name, address))

    def mend(self) -> None:
        """Every line is whole again."""
        for name, address in self._cut:
            self._ip(name, "neighbour", "delete", address, "dev", "eth0")
        self._cut = []

    def processes(self, name: str) -> list[psutil.Process]:
        """Everything that runs on the machine."""
        here, holder = _network_of(self._holders[name].pid), self._holders[name].pid
        return [
            process
            for process in psutil.process_iter()
            if process.pid != holder and _network_of(process.pid) == here
        ]

    def close(self) -> None:
        for name, holder in self._holders.items():
            left = self.processes(name)
            for process in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(left, timeout=_END_SECONDS_MAX)
            holder.kill()
            holder.wait()
        _run("ip", "link", "delete", "hub")


def _network_of(pid: int) -> str:
    """What tells a network namespace from others; "" for a process that has ended."""
    try:
        return os.readlink(Path("/proc") / str(pid) / "ns" / "net")
    except OSError:
        return ""


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
