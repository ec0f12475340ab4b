"""The run directory: where Ray and HAProxy keep their sockets, configuration and logs while a
service runs.

It has a short name, since Unix sockets allow 107 bytes of path, and one that depends on the data
directory alone. Every process that could outlive the service (Ray's daemons, HAProxy) carries it in
its command line. So a later start on the same data directory recognises what was left behind,
whatever killed the service before, and never mistakes another service's process for its own: it
ends processes by their ids, found by that name.
"""

from __future__ import annotations

import csv
import hashlib
import os
import secrets
import shlex
import shutil
import signal
import socket
import stat
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import psutil

from runtime.errors import OVERLOADED_HEADER
from runtime.limits import (
    FRONT_DOOR_CLIENT_SECONDS_MAX,
    FRONT_DOOR_REFUSING_MS,
    FRONT_DOOR_REQUESTS_WAITING_MAX,
    FRONT_DOOR_WAIT_SECONDS_MAX,
    GATEWAY_CONNECTIONS_MAX,
    HEAD_READ_SECONDS_MAX,
    LISTENERS_CLOSE_SECONDS_MAX,
    PROCESS_END_SECONDS_MAX,
    RETRY_AFTER_SECONDS,
)
from runtime.release import service_build, service_version
from runtime.serve import haproxy as front_proxy
from runtime.serve.haproxy import FrontDoor
from runtime.serve.unavailable import unavailable_body, unavailable_response
from runtime.settings import Settings

# HAProxy allows its socket 97 characters, of which Serve takes 68 for the node's id and a file
# name, and "/mneme-…" takes 17.
_PARENT_CHARS_MAX = 12
_ANSWER_SECONDS_MAX = 1.0
_DAEMONS = ("raylet", "gcs_server", "haproxy")
_REQUEST_ID = "%[var(txn.request_id),json(utf8s)]"  # filled in by HAProxy


class RunDirectoryError(Exception):
    """The run directory cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    path: Path

    @classmethod
    def of(cls, data_dir: Path) -> RunDirectory:
        """The run directory of this data directory and this user. Nothing is made yet."""
        digest = hashlib.sha256(
            b"%d:%s" % (os.getuid(), os.fsencode(data_dir.resolve()))
        ).hexdigest()[:10]
        parent = tempfile.gettempdir()
        return cls(Path(parent if len(parent) <= _PARENT_CHARS_MAX else "/tmp") / f"mneme-{digest}")

    @property
    def stand_in(self) -> Path:
        """The executable Ray Serve takes for HAProxy."""
        return self.path / "haproxy-with-front-door"

    @property
    def starting(self) -> Path:
        """Where HAProxy's stand-in tells what answers during the start to leave the address."""
        return self.path / "starting.sock"

    @property
    def complaint(self) -> Path:
        """Where HAProxy's stand-in writes why there is no front door."""
        return self.path / "no-front-door"

    def no_front_door(self) -> str | None:
        """Why HAProxy could not be made the front door, if it could not."""
        return self.complaint.read_text() if self.complaint.exists() else None

    @property
    def questions(self) -> Path:
        """HAProxy's socket for questions about itself, which Serve puts into a folder a node."""
        return self.path / "admin.sock"

    def knows_gateways(self) -> bool:
        """Whether HAProxy sends requests to a gateway: until it has one Serve's own proxy takes
        them there, ten times as slowly.
        """
        try:
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(_ANSWER_SECONDS_MAX)
                asking.connect(str(next(self.path.glob(f"*/{self.questions.name}"))))
                asking.sendall(b"show stat -1 4 -1\n")  # its servers, in lines of CSV
                said = b"".join(iter(partial(asking.recv, 65_536), b""))
        except (OSError, StopIteration):
            return False
        servers = csv.DictReader(said.decode().removeprefix("# ").splitlines())
        return any(each["act"] == "1" and each["status"].startswith("UP") for each in servers)

    @property
    def token(self) -> Path:
        """The secret that processes of this run's Ray show each other."""
        return self.path / "ray-token"

    def make(self) -> None:
        """Make it, empty but for the token, readable by this user only. Raises RunDirectoryError
        when somebody else got there first.
        """
        if self.path.is_symlink() or (
            self.path.exists() and self.path.stat().st_uid != os.getuid()
        ):
            raise RunDirectoryError(f"{self.path} belongs to somebody else.")
        self.remove()
        self.path.mkdir(mode=0o700)
        self.token.write_text(secrets.token_hex(32))

    def write_front_door(self, settings: Settings, port: int, haproxy: str) -> None:
        """Write HAProxy's stand-in, what it is to do, the certificate, and what it answers when no
        gateway is up or has room.
        """
        certificate = None
        if settings.http.tls_certfile and settings.http.tls_keyfile:
            certificate = self.path / "certificate.pem"
            descriptor = os.open(certificate, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(
                    settings.http.tls_certfile.read_bytes().rstrip()
                    + b"\n"
                    + settings.http.tls_keyfile.read_bytes()
                )
        error_page, full_page = self.path / "503.http", self.path / "full.json"
        error_page.write_bytes(unavailable_response())
        full_page.write_bytes(
            unavailable_body(
                "More requests are under way than the service can answer soon. Retry in a moment.",
                _REQUEST_ID,
            )
        )
        orders = self.path / "front-door.json"
        FrontDoor(
            binary=haproxy,
            host=settings.http.host,
            port=port,
            certificate=certificate and str(certificate),
            error_page=str(error_page),
            full_page=str(full_page),
            complaint=str(self.complaint),
            headers={
                "X-Process-Time": "0.000000",
                "X-Service-Version": service_version(),
                "X-Service-Build": service_build(),
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
                **_strict_transport(settings, certificate is not None),
            },
            requests_max=GATEWAY_CONNECTIONS_MAX,
            waiting_max=FRONT_DOOR_REQUESTS_WAITING_MAX,
            wait_seconds=FRONT_DOOR_WAIT_SECONDS_MAX,
            refusing_ms=FRONT_DOOR_REFUSING_MS,
            overloaded=OVERLOADED_HEADER,
            retry_seconds=RETRY_AFTER_SECONDS,
            head_seconds=HEAD_READ_SECONDS_MAX,
            client_seconds=FRONT_DOOR_CLIENT_SECONDS_MAX,
            serve=f"Ray {version('ray')}",
            starting=str(self.starting),
        ).save(orders)
        # -S -E -P: no site-packages, no environment, and no modules of ours in the way of the
        # standard library's.
        command = shlex.join([sys.executable, "-SEP", front_proxy.__file__, str(orders)])
        self.stand_in.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.stand_in.chmod(self.stand_in.stat().st_mode | stat.S_IXUSR)

    def close_front_door(self) -> None:
        """Ask HAProxy to stop listening and to finish the requests it carries; return when it has,
        or when it takes too long.
        """
        doors = []
        for process in self.processes():
            try:
                if process.name() == "haproxy":
                    process.send_signal(signal.SIGUSR1)
                    doors.append(process)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(doors, timeout=LISTENERS_CLOSE_SECONDS_MAX)

    def processes(self) -> list[psutil.Process]:
        """Ray's daemons and HAProxy of this run directory, whoever started them, with everything
        below them.
        """
        found: dict[int, psutil.Process] = {}
        mine = os.getpid()
        for process in psutil.process_iter(["pid", "cmdline", "uids"]):
            command = process.info["cmdline"] or []
            if (
                process.pid == mine
                or process.info["uids"] is None
                or process.info["uids"].real != os.getuid()
            ):
                continue
            program = os.path.basename(command[0]) if command else ""
            daemon = program in _DAEMONS or (
                program.startswith("python") and any("/ray/" in part for part in command[1:4])
            )
            if daemon and any(str(self.path) in part for part in command):
                try:
                    found |= {
                        each.pid: each for each in (process, *process.children(recursive=True))
                    }
                except psutil.NoSuchProcess:
                    continue
        found.pop(mine, None)
        return list(found.values())

    def remove(self) -> None:
        """Remove it, once all its processes have ended."""
        shutil.rmtree(self.path, ignore_errors=True)

    def end_processes(self) -> int:
        """End every process of this run directory and every child of this process; -> how many
        there were.
        """
        leftovers = {
            process.pid: process
            for process in (*self.processes(), *psutil.Process().children(recursive=True))
        }
        for process in leftovers.values():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(list(leftovers.values()), timeout=PROCESS_END_SECONDS_MAX)
        return len(leftovers)


def _strict_transport(settings: Settings, encrypted: bool) -> dict[str, str]:
    """What a client that came over HTTPS is told; it has to disregard it where it came in the
    clear.
    """
    seconds = settings.http.hsts_seconds
    return {"Strict-Transport-Security": f"max-age={seconds}"} if encrypted and seconds else {}
