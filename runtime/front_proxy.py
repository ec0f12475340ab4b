"""Both ends of the way from HAProxy to the gateway.

Ray Serve writes HAProxy's configuration and starts it. This file stands in for the binary: it adjusts the configuration Serve
wrote and then becomes HAProxy. What it changes, and why:

    bind              Serve binds replicas and front door alike to the loopback address; the front door moves to the real one,
                      with TLS where a certificate is set (Serve's HAProxy mode knows no TLS)
    headers           the client's address and scheme, which only HAProxy knows, travel in two headers of our own; what a
                      client sends under these names, or to steer Serve, is dropped
    X-Request-ID      made here, in the gateway's form, where the client sent none; Serve appends one to the answer as well, and
                      the gateway's, which comes first, wins
    errors            when no gateway is up, the answer is a 503 in the service's own shape, with Retry-After and the headers
                      that every answer carries
    overload          a gateway has so many requests at a time and no more. A few wait here, for a moment, and those beyond are
                      refused here. Once a gateway says that it is full, all are, for a moment: it answers calls then
                      instead of refusing them, which costs it far more. Large bodies are left to the gateways to refuse
    logs, statistics  one datagram per request for nobody, and two more open ports: removed
    lifetime          HAProxy is ended by the kernel when its parent, a Ray worker, ends; otherwise it would outlive a crash
                      and keep the port

`BehindFrontProxy` is the other end: it puts the address and the scheme where an ASGI application looks for them. Where there is
no HAProxy, or one that somebody else configured, `BehindServeProxy` takes its place and believes nobody.

Runs as a script without site-packages (python -SE front_proxy.py CONFIGURATION.json haproxy-arguments …), in milliseconds; so
it imports the standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PEER_HEADER = b"x-mneme-peer"
SCHEME_HEADER = b"x-mneme-scheme"
REQUEST_ID_HEADER = b"x-request-id"
OVERLOADED_HEADER = "X-Overloaded"  # of every refusal for want of room, here and in the gateway
WATCHED_PATHS = ("/v1/health", "/metrics")  # never refused for want of room
BODY_REFUSED_BYTES_MAX = 32 * 1024  # HAProxy leaves what it has not read, which breaks the connection; a gateway reads to the end

_PR_SET_PDEATHSIG = 1
_LOGGING = re.compile(r"^ +(?:log |log-format|option httplog|option log-health-checks).*\n", re.MULTILINE)
_FRONTEND = re.compile(r"^(frontend http_frontend\n +bind ).*\n", re.MULTILINE)
_DEFAULTS = re.compile(r"^defaults\n", re.MULTILINE)
_BACKEND = re.compile(r"^ +http-reuse always\n", re.MULTILINE)
_GATEWAY = re.compile(r"^( +server (?!.* backup$).*)$", re.MULTILINE)
_ERROR_FILE = re.compile(r"^( +errorfile (?:502|503|504) ).*$", re.MULTILINE)
_UNUSED_SECTIONS = re.compile(r"^(?:frontend prometheus|listen stats)\n(?:[ \t].*\n|\n)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """What the adjusted HAProxy does: the real binary, where it listens, its certificate (one PEM file) and what it answers itself.

    error_page      a file with a whole HTTP response, for when no gateway is up
    full_page       a file with a JSON body in HAProxy's log format, for when every gateway is full
    headers         of every answer that does not have them, beside X-Request-ID
    requests_max    at a gateway at a time
    waiting_max     requests that wait for a gateway
    wait_seconds    is how long each may
    refusing_ms     after a gateway's refusal
    retry_seconds   until a refused client should come back
    """

    binary: str
    host: str
    port: int
    certificate: str | None
    error_page: str
    full_page: str
    headers: dict[str, str]
    requests_max: int
    waiting_max: int
    wait_seconds: int
    refusing_ms: int
    retry_seconds: int

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @property
    def scheme(self) -> str:
        return "https" if self.certificate else "http"


def adjusted(configuration: str, door: FrontDoor) -> str:
    """Serve's configuration for HAProxy -> ours. Raises ValueError when Serve's no longer looks as this file expects."""
    bind = f"{'*' if door.host in ('', '0.0.0.0') else door.host}:{door.port}"
    if door.certificate:
        bind += f" ssl crt {door.certificate} ssl-min-ver TLSv1.2 alpn h2,http/1.1"
    marks = f"hdr Retry-After {door.retry_seconds} hdr {OVERLOADED_HEADER} 1"
    refusal = f"http-request return status 503 content-type application/json lf-file {door.full_page} {marks}"
    watched = f"{{ path {' '.join(WATCHED_PATHS)} }}"
    large = f"{{ req.hdr_val(content-length) gt {BODY_REFUSED_BYTES_MAX} }}"
    refusable = f"!{watched} !{large} !{{ req.hdr(transfer-encoding) -m found }}"
    rules = [
        f"http-request set-header {PEER_HEADER.decode()} %[src]",
        f"http-request set-header {SCHEME_HEADER.decode()} {door.scheme}",
        "http-request del-header x-request-timeout-seconds",
        "http-request set-header x-request-disconnect-disabled ?1",
        "http-request set-header x-request-id req_%[uuid,regsub(-,,g)] unless { req.hdr(x-request-id) -m found }",
        "http-request set-var(txn.request_id) req.hdr(x-request-id)",
        f"http-request set-priority-class int(-1) if {watched}",
        f"{refusal} if {refusable} {{ date(0,ms),sub(proc.full_until) lt 0 }}",
        f"http-response set-var(proc.full_until) date({door.refusing_ms},ms) if {{ res.hdr({OVERLOADED_HEADER}) -m found }}",
        "http-response del-header server",
        "http-response set-header x-request-id %[res.fhdr(x-request-id,1)] if { res.fhdr_cnt(x-request-id) gt 1 }",
        "http-after-response set-header x-request-id %[var(txn.request_id)] unless { res.hdr(x-request-id) -m found }",
        *(f"http-after-response set-header {name} {value} unless {{ res.hdr({name}) -m found }}" for name, value in door.headers.items()),
    ]
    when_long = f"    {refusal} if {refusable} {{ queue ge {door.waiting_max} }}\n"
    text = _UNUSED_SECTIONS.sub("", _LOGGING.sub("", configuration))
    text = _ERROR_FILE.sub(lambda match: match[1] + door.error_page, text)
    text = _DEFAULTS.sub(lambda match: f"{match[0]}    timeout queue {door.wait_seconds}s\n", text)
    text = _BACKEND.sub(lambda match: match[0] + when_long, text)
    text = _GATEWAY.sub(lambda match: f"{match[1]} maxconn {door.requests_max}", text)
    text, found = _FRONTEND.subn(lambda match: match[1] + bind + "\n" + "".join(f"    {rule}\n" for rule in rules), text)
    if found != 1:
        raise ValueError("Ray Serve's HAProxy configuration has no front end where one was expected")
    return text


def become_haproxy(door: FrontDoor, arguments: list[str]) -> None:
    """Adjust the configuration named after -f and replace this process by HAProxy. Does not return."""
    path = Path(arguments[arguments.index("-f") + 1])
    path.write_text(adjusted(path.read_text(), door))
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked to watch it
        sys.exit(1)
    os.execv(door.binary, [door.binary, *arguments])


class BehindFrontProxy:
    """An ASGI application as HAProxy's neighbour sees it: scope["client"] and scope["scheme"] are the client's own."""

    def __init__(self, inner: Callable[..., Awaitable[None]]):
        self._inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
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
    """An ASGI application as the neighbour of Ray Serve's own proxy, which tells address and scheme truly by itself.

    What a client sends under the names of our headers means nothing and is dropped. X-Request-ID is Serve's business here: it
    makes one where the client sent none, shows it to the application and adds it to the answer; a second one is left out.
    """

    def __init__(self, inner: Callable[..., Awaitable[None]]):
        self._inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        async def send_without_request_id(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [header for header in message["headers"] if header[0] != REQUEST_ID_HEADER]
            await send(message)

        if scope["type"] == "http":
            scope["headers"] = [header for header in scope["headers"] if header[0] not in (PEER_HEADER, SCHEME_HEADER)]
        await self._inner(scope, receive, send_without_request_id)


def neighbour(application: Callable[..., Awaitable[None]], front_door: bool) -> BehindFrontProxy | BehindServeProxy:
    """The application behind the proxy that is there."""
    return (BehindFrontProxy if front_door else BehindServeProxy)(application)


if __name__ == "__main__":
    become_haproxy(FrontDoor(**json.loads(Path(sys.argv[1]).read_text())), sys.argv[2:])
