"""Both ends of the way from HAProxy to the gateway.

Ray Serve writes HAProxy's configuration and starts it. This file stands in for the binary: it
adjusts the configuration Serve wrote and then becomes HAProxy. What it changes, and why:

    bind              Serve binds replicas and front door alike to the loopback address; the front
                      door moves to the real one, with TLS where a certificate is set (Serve's
                      HAProxy mode knows no TLS)
    headers           the client's address and scheme, which only HAProxy knows, travel in two
                      headers of our own; what a client sends under these names, or to steer Serve,
                      is dropped
    X-Request-ID      made here, in the gateway's form, where the client sent none; Serve appends
                      one to the answer as well, and the gateway's, which comes first, wins
    errors            when no gateway is up, the answer is a 503 in the service's own shape, with
                      Retry-After and the headers that every answer carries. Serve has HAProxy
                      call every path unknown, 404, before it knows of a gateway, and so does
                      Serve's own proxy, which steps in when none is up: both are that 503, too
    overload          a gateway has so many requests at a time and no more. A few wait here, for a
                      moment, and those beyond are refused here. Once a gateway says that it is
                      full, all are, for a moment: it answers calls then instead of refusing them,
                      which costs it far more. Large bodies are left to the gateways to refuse
    slow clients      a request's head has a few seconds from its first byte (or from the
                      connection, for the first one) to its last, and a client that owes a body or
                      takes nothing of its answer has a minute; Serve gives both an hour, and 4,096
                      half heads would then be everybody's end. A client that has sent its request
                      owes nothing: an answer may be silent for as long as the gateway likes, and a
                      stream's tokens as far apart
    logs, statistics  one datagram per request for nobody, and two more open ports: removed
    lifetime          HAProxy is ended by the kernel when its parent, a Ray worker, ends; otherwise
                      it would outlive a crash and keep the port

Each change must find its lines as often as Serve writes them; where one does not, HAProxy is not
started, and one sentence says which: a front door that is half adjusted looks well and keeps nobody
out.

`BehindFrontProxy` is the other end: it puts the address and the scheme where an ASGI application
looks for them. Where there is no HAProxy, or one that somebody else configured, `BehindServeProxy`
takes its place and believes nobody.

Runs as a script without site-packages (python -SE haproxy.py CONFIGURATION.json
haproxy-arguments …), in milliseconds; so it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PEER_HEADER = b"x-mneme-peer"
SCHEME_HEADER = b"x-mneme-scheme"
REQUEST_ID_HEADER = b"x-request-id"
VERSION_HEADER = "x-service-version"  # of every answer of a gateway
WATCHED_PATHS = ("/v1/health", "/metrics")  # never refused for want of room
BODY_REFUSED_BYTES_MAX = (
    32 * 1024
)  # HAProxy leaves what it has not read, which breaks the connection; a gateway reads to the end

_PR_SET_PDEATHSIG = 1
_LEAVING_SECONDS = 5.0
_WATCHED = f"{{ path {' '.join(WATCHED_PATHS)} }}"
_LOGGING = re.compile(
    r"^ +(?:log |log-format|option httplog|option log-health-checks).*\n", re.MULTILINE
)
_FRONTEND = re.compile(r"^(frontend http_frontend\n +bind ).*\n", re.MULTILINE)
_BACKEND = re.compile(r"^ +http-reuse always\n", re.MULTILINE)
_GATEWAY = re.compile(r"^( +server (?!.* backup$).*)$", re.MULTILINE)
_ERROR_FILE = re.compile(r"^( +errorfile (?:502|503|504) ).*$", re.MULTILINE)
_NO_PATHS = re.compile(
    r"^(backend default_backend\n +http-request return status )404 .*$", re.MULTILINE
)
_UNUSED_SECTIONS = re.compile(
    r"^(?:frontend prometheus|listen stats)\n(?:[ \t].*\n|\n)*", re.MULTILINE
)
# How often the above must be found depends on how many gateways there are and on whether they are
# known yet.
_BACKENDS = re.compile(r"^backend (?!default_backend$)", re.MULTILINE)
_SERVERS = re.compile(r"^[ \t]*server(?:-template)?[ \t](?!.*\bbackup\b)", re.MULTILINE)
_LOGGING_COUNT = 4  # beside one a backend


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """What the adjusted HAProxy does: the real binary, where it listens, its certificate (one PEM
    file) and what it answers itself.

    error_page      a file with a whole HTTP response, for when no gateway is up
    full_page       a file with a JSON body in HAProxy's log format, for when every gateway is full
    complaint       a file to write why there is no front door
    headers         of every answer that does not have them, beside X-Request-ID
    requests_max    at a gateway at a time
    waiting_max     requests that wait for a gateway
    wait_seconds    is how long each may
    refusing_ms     after a gateway's refusal
    overloaded      name of the header of every refusal for want of room, here and in the gateway
    retry_seconds   until a refused client should come back
    head_seconds    for the whole head of a request
    client_seconds  without a byte from a client that owes some, or taken by one that is owed some
    serve           whose configuration it is, for who has to read that it cannot be adjusted: Ray
                    with its version
    starting        the Unix socket of what answers on the address until HAProxy does
    """

    binary: str
    host: str
    port: int
    certificate: str | None
    error_page: str
    full_page: str
    complaint: str
    headers: dict[str, str]
    requests_max: int
    waiting_max: int
    wait_seconds: int
    refusing_ms: int
    overloaded: str
    retry_seconds: int
    head_seconds: int
    client_seconds: int
    serve: str
    starting: str = ""

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"


class Unadjustable(Exception):
    """Serve's configuration does not look as this file expects; the message is one sentence."""


def adjusted(configuration: str, door: FrontDoor) -> str:
    """Serve's configuration for HAProxy -> ours. Raises Unadjustable."""
    backends = len(_BACKENDS.findall(configuration))
    front_end = "".join(
        f"    {line}\n" for line in (_bind(door), *_patience(door), *_rules(door))
    ).removeprefix("    bind ")
    when_long = (
        f"    timeout queue {door.wait_seconds}s\n    {_refusal(door)} {{ queue ge "
        f"{door.waiting_max} }}\n"
    )
    changes = (
        ("sections of statistics", _UNUSED_SECTIONS, lambda match: "", 2),
        ("lines about logs", _LOGGING, lambda match: "", _LOGGING_COUNT + backends),
        ("error files", _ERROR_FILE, lambda match: match[1] + door.error_page, 3),
        (
            "answers of its own",
            _NO_PATHS,
            lambda match: f"{match[1]}503 errorfile {door.error_page}",
            1,
        ),
        (
            "back ends that reuse connections",
            _BACKEND,
            lambda match: match[0] + when_long,
            backends,
        ),
        (
            "gateways",
            _GATEWAY,
            lambda match: f"{match[1]} maxconn {door.requests_max}",
            len(_SERVERS.findall(configuration)),
        ),
        ("front ends with their address", _FRONTEND, lambda match: match[1] + front_end, 1),
    )
    for what, pattern, by, expected in changes:
        configuration, found = pattern.subn(by, configuration)
        if found != expected:
            raise Unadjustable(
                f"The HAProxy configuration of Ray Serve ({door.serve}) has {found} {what} where "
                f"{expected} were expected: "
                "install the version of Ray that this release names."
            )
    return configuration


def _bind(door: FrontDoor) -> str:
    bind = f"bind {'*' if door.host in ('', '0.0.0.0') else door.host}:{door.port}"
    return (
        f"{bind} ssl crt {door.certificate} ssl-min-ver TLSv1.2 alpn h2,http/1.1"
        if door.certificate
        else bind
    )


def _patience(door: FrontDoor) -> list[str]:
    """Lines of time-outs for the front end, where they count whatever Serve writes among its
    defaults.
    """
    return [
        f"timeout http-request {door.head_seconds}s",
        f"timeout client {door.client_seconds}s",
        # a browser connects ahead of time; it would show the 408 as the answer to what it asks
        # later
        "option http-ignore-probes",
    ]


def _refusal(door: FrontDoor) -> str:
    """The rule that refuses what may be refused for want of room, up to the condition that there is
    none.
    """
    marks = f"hdr Retry-After {door.retry_seconds} hdr {door.overloaded} 1"
    large = f"{{ req.hdr_val(content-length) gt {BODY_REFUSED_BYTES_MAX} }}"
    refusable = f"!{_WATCHED} !{large} !{{ req.hdr(transfer-encoding) -m found }}"
    return (
        f"http-request return status 503 content-type application/json lf-file {door.full_page} "
        f"{marks} if {refusable}"
    )


def _rules(door: FrontDoor) -> list[str]:
    return [
        f"http-request set-header {PEER_HEADER.decode()} %[src]",
        f"http-request set-header {SCHEME_HEADER.decode()} {door.scheme}",
        "http-request del-header x-request-timeout-seconds",
        "http-request set-header x-request-disconnect-disabled ?1",
        "http-request set-header x-request-id req_%[uuid,regsub(-,,g)] unless { "
        "req.hdr(x-request-id) -m found }",
        "http-request set-var(txn.request_id) req.hdr(x-request-id)",
        f"http-request set-priority-class int(-1) if {_WATCHED}",
        f"{_refusal(door)} {{ date(0,ms),sub(proc.full_until) lt 0 }}",
        f"http-response set-var(proc.full_until) date({door.refusing_ms},ms) if {{ "
        f"res.hdr({door.overloaded}) -m found }}",
        f"http-response return status 503 errorfile {door.error_page} if {{ status 404 }} !{{ "
        f"res.hdr({VERSION_HEADER}) -m found }}",
        "http-response del-header server",
        "http-response set-header x-request-id %[res.fhdr(x-request-id,1)] if { "
        "res.fhdr_cnt(x-request-id) gt 1 }",
        "http-after-response set-header x-request-id %[var(txn.request_id)] unless { "
        "res.hdr(x-request-id) -m found }",
        *(
            f"http-after-response set-header {name} {value} unless {{ res.hdr({name}) -m found }}"
            for name, value in door.headers.items()
        ),
    ]


def become_haproxy(door: FrontDoor, arguments: list[str]) -> None:
    """Adjust the configuration named after -f and replace this process by HAProxy. Does not return.

    Where it cannot be adjusted this process ends, and the reason stands in door.complaint for the
    service, which Serve would not tell.
    """
    path = Path(arguments[arguments.index("-f") + 1])
    try:
        path.write_text(adjusted(path.read_text(), door))
    except Unadjustable as why:
        Path(door.complaint).write_text(str(why))
        sys.exit(str(why))
    _take_the_address(door.starting)
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked to watch it
        sys.exit(1)
    os.execv(door.binary, [door.binary, *arguments])


def _take_the_address(starting: str) -> None:
    """Have what answers during a start leave the address, and return when it has, if it is there:
    the first HAProxy of a service finds it, later ones do not.
    """
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(_LEAVING_SECONDS)
        asking.connect(starting)
        asking.recv(1)


class BehindFrontProxy:
    """An ASGI application as HAProxy's neighbour sees it: scope["client"] and scope["scheme"] are
    the client's own.
    """

    def __init__(self, inner: Callable[..., Awaitable[None]]):
        self._inner = inner

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]
    ) -> None:
        if scope["type"] == "http":
            headers = []
            for header in scope["headers"]:
                if header[0] == PEER_HEADER:
                    scope["client"] = (header[1].decode("ascii"), 0)
                elif header[0] == SCHEME_HEADER:
                    scope["scheme"] = header[1].decode("ascii")
                else:
                    headers.append(header)
            scope["headers"] = headers
        await self._inner(scope, receive, send)


class BehindServeProxy:
    """An ASGI application as the neighbour of Ray Serve's own proxy, which tells address and scheme
    truly by itself.

    What a client sends under the names of our headers means nothing and is dropped. X-Request-ID is
    Serve's business here: it makes one where the client sent none, shows it to the application and
    adds it to the answer; a second one is left out.
    """

    def __init__(self, inner: Callable[..., Awaitable[None]]):
        self._inner = inner

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]
    ) -> None:
        async def send_without_request_id(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    header for header in message["headers"] if header[0] != REQUEST_ID_HEADER
                ]
            await send(message)

        if scope["type"] == "http":
            scope["headers"] = [
                header
                for header in scope["headers"]
                if header[0] not in (PEER_HEADER, SCHEME_HEADER)
            ]
        await self._inner(scope, receive, send_without_request_id)


def neighbour(
    application: Callable[..., Awaitable[None]], front_door: bool
) -> BehindFrontProxy | BehindServeProxy:
    """The application behind the proxy that is there."""
    return (BehindFrontProxy if front_door else BehindServeProxy)(application)


if __name__ == "__main__":
    become_haproxy(FrontDoor(**json.loads(Path(sys.argv[1]).read_text())), sys.argv[2:])
