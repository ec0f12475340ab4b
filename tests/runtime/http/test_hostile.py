"""What no well-behaved client sends, over raw sockets to a real service.

Whatever arrives is answered with a 4xx, or the connection is closed where HTTP leaves nothing to
answer; never with a 5xx, and never with silence beyond a bound. Afterwards the service answers the
next request as if nothing had been.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

import serve_app
from runtime.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, URL_BYTES_MAX
from tests.support.served import Served

ANSWER_SECONDS_MAX = 60
BODY = b'{"content": "x"}'
CHUNK = b"%x\r\n%s\r\n" % (len(BODY), BODY)
CHUNKED = CHUNK + b"0\r\n\r\n"
READABLE = [
    operation for operation in serve_app.registry().operations.values() if operation.method == "GET"
]
PAGES = ["/v1/health", "/metrics", "/openapi.json", "/docs"]


class Wire:
    """One service, and the credential of an account there."""

    def __init__(self, service: Served):
        self.service = service
        address = urlsplit(service.url)
        self._address = (address.hostname, address.port)
        self.token = service.register().encode()

    def head(self, request_line: bytes, *lines: bytes) -> bytes:
        """A request's head that asks for the connection to be closed after its answer."""
        known = (b"Host: x", b"Authorization: Bearer " + self.token, b"Connection: close")
        return b"\r\n".join((request_line, *known, *lines)) + b"\r\n\r\n"

    def post(self, *lines: bytes) -> bytes:
        return self.head(b"POST /v1/memories HTTP/1.1", b"Content-Type: application/json", *lines)

    def connect(self) -> socket.socket:
        return socket.create_connection(self._address, ANSWER_SECONDS_MAX)

    def ask(self, *pieces: bytes, leaves: bool = False) -> tuple[list[int], bytes]:
        """Send the pieces and read until the service closes the connection -> (statuses of the
        answers, everything that came).

        leaves  close our side after the last piece
        """
        with self.connect() as connection:
            came = b""
            try:
                for piece in pieces:
                    connection.sendall(piece)
                if leaves:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has answered already and closed; the answer is still there to be read
            try:
                while data := connection.recv(65_536):
                    came += data
            except ConnectionResetError:
                pass
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", came)], came


@pytest.fixture(scope="module")
def wire(service: Served) -> Iterator[Wire]:
    yield Wire(service)
    assert "Traceback" not in service.errors, service.errors


@pytest.fixture(autouse=True)
def unharmed(wire: Wire) -> Iterator[None]:
    """After each test the service answers an ordinary request at once."""
    yield
    assert wire.ask(wire.head(b"GET /v1/memories HTTP/1.1"))[0] == [200]


# --- heads ----------------------------------------------------------------------------------------

REQUEST_LINES = {
    "no such version": (b"GET /v1/memories HTTP/1.9", {400}),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0", {400}),
    "no target": (b"GET  HTTP/1.1", {400}),
    "a target without its slash": (b"GET v1/memories HTTP/1.1", {400, 404}),
    "a target of two words": (b"GET /v1/mem ories HTTP/1.1", {400}),
    "bytes beyond ASCII": (b"GET /v1/memories/\xff\xfe HTTP/1.1", {400, 404}),
    "a method nobody knows": (b"FROBNICATE /v1/memories HTTP/1.1", {400, 405}),
    "a method in small letters": (b"get /v1/memories HTTP/1.1", {400, 405}),
    "TRACE": (b"TRACE /v1/memories HTTP/1.1", {405}),
    "OPTIONS": (b"OPTIONS /v1/memories HTTP/1.1", {405}),
    "OPTIONS of everything": (b"OPTIONS * HTTP/1.1", {400, 404}),
    "CONNECT": (b"CONNECT mneme.test:443 HTTP/1.1", {400, 404, 405}),
    "PROPFIND": (b"PROPFIND /v1/memories HTTP/1.1", {405}),
    "an address over the limit": (
        b"GET /v1/memories?cursor=" + b"a" * URL_BYTES_MAX + b" HTTP/1.1",
        {414},
    ),
}


@pytest.mark.parametrize("name", REQUEST_LINES)
def test_request_lines(wire: Wire, name: str) -> None:
    line, expected = REQUEST_LINES[name]
    statuses, _ = wire.ask(wire.head(line))
    assert len(statuses) == 1 and statuses[0] in expected, statuses


HEADERS = {
    "a second credential": (b"Authorization: Bearer x", {400}),
    "a second host": (b"Host: y", {400}),
    "a name with a space": (b"X A: b", {400}),
    "no name": (b": b", {400}),
    "no colon": (b"XA", {400}),
    "a folded line": (b"X-A: b\r\n c", {400}),
    "a lone line break": (b"X-A: b\rc", {400}),
    "a NUL": (b"X-A: b\0c", {400}),
    "2,000 headers": (
        b"\r\n".join(b"X-%d: yyyyyyyyyyyy" % number for number in range(2_000)),
        {431},
    ),
    "one header over the limit": (b"X-A: " + b"a" * HEADER_BYTES_MAX, {431}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers(wire: Wire, name: str) -> None:
    line, expected = HEADERS[name]
    statuses, _ = wire.ask(wire.head(b"GET /v1/memories HTTP/1.1", line))
    assert len(statuses) == 1 and statuses[0] in expected, statuses


def test_headers_that_are_odd_and_harmless(wire: Wire) -> None:
    many = [b"X-%d: y" % number for number in range(1_000)]
    assert wire.ask(wire.head(b"GET /v1/memories HTTP/1.1", *many))[0] == [200]
    strange = (b"X-Request-ID: \xff\xfe", b"Prefer: \xff", b"X-Forwarded-For: \xff")
    statuses, came = wire.ask(wire.head(b"GET /v1/memories HTTP/1.1", *strange))
    assert statuses == [200] and b"\xff" not in came


def test_a_credential_of_strange_bytes_is_no_credential(wire: Wire) -> None:
    asked = (
        b"GET /v1/memories HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "
        b"\xff\xfe\r\n\r\n"
    )
    assert wire.ask(asked)[0] == [401]


def test_older_http_needs_no_host_and_newer_does(wire: Wire) -> None:
    credential = b"Authorization: Bearer " + wire.token + b"\r\nConnection: close\r\n\r\n"
    assert wire.ask(b"GET /v1/memories HTTP/1.0\r\n" + credential)[0] == [200]
    assert wire.ask(b"GET /v1/memories HTTP/1.1\r\n" + credential)[0] == [400]


def test_the_host_of_an_absolute_target_is_of_no_account(wire: Wire) -> None:
    assert wire.ask(wire.head(b"GET http://elsewhere.example/v1/memories HTTP/1.1"))[0] == [200]
    assert wire.ask(wire.head(b"GET http://elsewhere.example/v1/../metrics HTTP/1.1"))[0] == [404]


@pytest.mark.parametrize(
    "noise",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
        bytes(range(256)),
        b"\xff" * 10_000,
    ],
    ids=["TLS", "every byte", "one byte"],
)
def test_what_is_no_http_at_all(wire: Wire, noise: bytes) -> None:
    assert wire.ask(noise)[0] == [400]


@pytest.mark.parametrize(
    "path",
    [
        "//v1/memories",
        "/v1//memories",
        "/v1/../v1/memories",
        "/v1/%2e%2e/v1/memories",
        "/v1/memories/%2e",
        "/v1/memories/..%2fall",
        "/v1/memories/%252e%252e",
        "/v1/memories/%c0%ae%c0%ae",
        "/v1/memories/%00",
        "/v1/memories%00",
        "/v1/memories;x=1",
        "/v1/memories/..;/memories",
        "/v1/memories%0d%0aX-A:%20b",
        "/v1\\memories",
        "/V1/memories",
        "/v1/memories/%zz",
    ],
)
def test_a_path_means_what_it_says_or_nothing(wire: Wire, path: str) -> None:
    assert wire.ask(wire.head(f"GET {path} HTTP/1.1".encode()))[0] == [404]


@pytest.mark.parametrize(
    "path",
    [*PAGES, *(path for operation in READABLE for path in (operation.path, *operation.aliases))],
)
def test_head_is_get_without_its_body(wire: Wire, path: str) -> None:
    target = re.sub(r"{\w+}", "default", path).encode()
    (got,), _ = wire.ask(wire.head(b"GET " + target + b" HTTP/1.1"))
    (status,), came = wire.ask(wire.head(b"HEAD " + target + b" HTTP/1.1"))
    head, _, body = came.partition(b"\r\n\r\n")
    assert (status, body) == (got, b"") and status < 500
    streamed = path == "/v1/account/export"  # nobody knows its length before it is over
    assert (
        bool(re.search(rb"^content-length: [1-9]", head, re.MULTILINE | re.IGNORECASE))
        is not streamed
    )


@pytest.mark.parametrize(
    "start", [b"GET /v1/memories HTTP/1.1\r\nHost: x\r\nX-A: ", b"GET /v1/memories?cursor="]
)
def test_a_head_without_end_is_refused_while_it_comes(wire: Wire, start: bytes) -> None:
    """The answer is lost where the system resets a connection that still had something to read."""
    assert wire.ask(start, *[b"a" * 2**16] * 100)[0] in ([431], [])


def test_what_is_no_request_is_answered_as_every_request(wire: Wire) -> None:
    _, came = wire.ask(b"nonsense\r\n\r\n")
    head, _, body = came.partition(b"\r\n\r\n")
    for name in (b"X-Request-ID", b"X-Process-Time", b"X-Service-Version", b"X-Service-Build"):
        assert re.search(rb"^%s: \S" % name, head, re.MULTILINE | re.IGNORECASE)
    assert json.loads(body)["error"]["code"] == "invalid_request"


# --- bodies ---------------------------------------------------------------------------------------

LENGTHS = {
    "huge": ((b"Content-Length: 99999999999",), b"x", {413}),
    "beyond all numbers": ((b"Content-Length: " + b"9" * 30,), b"x", {400, 413}),
    "below zero": ((b"Content-Length: -5",), BODY, {400}),
    "with a sign": ((b"Content-Length: +16",), BODY, {400}),
    "a word": ((b"Content-Length: many",), BODY, {400}),
    "two that differ": ((b"Content-Length: 16", b"Content-Length: 3"), BODY, {400}),
    "two in one": ((b"Content-Length: 16, 16",), BODY, {400}),
    "before chunks": ((b"Content-Length: 16", b"Transfer-Encoding: chunked"), CHUNKED, {400}),
    "after chunks": ((b"Transfer-Encoding: chunked", b"Content-Length: 4"), CHUNKED, {400}),
    "chunks with a space": ((b"Transfer-Encoding : chunked",), CHUNKED, {400}),
    "nearly chunks": ((b"Transfer-Encoding: xchunked",), CHUNKED, {400}),
    "chunks and more": ((b"Transfer-Encoding: chunked, identity",), CHUNKED, {400}),
    "squeezed chunks": ((b"Transfer-Encoding: gzip, chunked",), CHUNKED, {400}),
    "a chunk without a size": ((b"Transfer-Encoding: chunked",), b"zz\r\n" + BODY, {400}),
    "a chunk beyond all numbers": (
        (b"Transfer-Encoding: chunked",),
        b"f" * 17 + b"\r\nx",
        {400, 413},
    ),
    "a chunk longer than it says": (
        (b"Transfer-Encoding: chunked",),
        b"2\r\n" + BODY + b"\r\n0\r\n\r\n",
        {400},
    ),
    "announced and too large": ((b"Expect: 100-continue", b"Content-Length: 99999999"), b"", {413}),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths(wire: Wire, name: str) -> None:
    """Two readers who could disagree about where a body ends are what request smuggling needs."""
    lines, body, expected = LENGTHS[name]
    statuses, _ = wire.ask(wire.post(*lines) + body)
    assert len(statuses) == 1 and statuses[0] in expected, statuses


def test_chunks_over_the_limit(wire: Wire) -> None:
    mebibyte = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    statuses, _ = wire.ask(
        wire.post(b"Transfer-Encoding: chunked"), *[mebibyte] * (BODY_BYTES_MAX // 2**20 + 1)
    )
    assert statuses == [413]


@pytest.mark.parametrize(
    ("line", "body"),
    [
        (b"Transfer-Encoding: chunked", CHUNK),
        (b"Transfer-Encoding: chunked", CHUNK[:9]),
        (b"Content-Length: 50", BODY),
    ],
)
def test_a_body_that_breaks_off_changes_nothing(wire: Wire, line: bytes, body: bytes) -> None:
    before = wire.ask(wire.head(b"GET /v1/memories HTTP/1.1"))[1].rpartition(b"\r\n\r\n")[2]
    assert wire.ask(wire.post(line), body, leaves=True) == ([], b"")
    assert wire.ask(wire.head(b"GET /v1/memories HTTP/1.1"))[1].rpartition(b"\r\n\r\n")[2] == before


def test_a_body_that_drips_keeps_nobody_waiting(wire: Wire) -> None:
    """One byte at a time; meanwhile others are served, and the body counts once it is whole."""
    with wire.connect() as connection:
        connection.sendall(wire.post(b"Content-Length: %d" % len(BODY)))
        for byte in BODY:
            connection.sendall(bytes([byte]))
            assert wire.ask(wire.head(b"GET /v1/health HTTP/1.1"))[0] == [200]
        assert connection.recv(65_536).startswith(b"HTTP/1.1 20")


def test_a_client_may_ask_whether_to_continue(wire: Wire) -> None:
    assert wire.ask(wire.post(b"Expect: 100-continue", b"Content-Length: %d" % len(BODY)) + BODY)[
        0
    ] in ([100, 201], [100, 202])


HUGE = BODY_BYTES_MAX - 1_000
BODIES = {
    "brackets without end": b"[" * HUGE,
    "nested in an object": b'{"content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number of ten million digits": b'{"content": "x", "importance": ' + b"9" * HUGE + b"}",
    "a text of ten million letters": b'{"content": "' + b"a" * HUGE + b'"}',
    "a million names": b'{"content": "x", "metadata": {'
    + b",".join(b'"%d":1' % number for number in range(900_000))
    + b"}}",
    "one name a hundred thousand times": b"{" + b'"content": "x", ' * 100_000 + b'"content": 1}',
    "escapes of half a character": b'{"content": "' + b"\\ud800" * 1_000 + b'"}',
    "NUL and nothing else": bytes(100_000),
    "two documents": BODY + BODY,
    "UTF-16": '{"content": "x"}'.encode("utf-16"),
    "white space": b" " * HUGE,
    "no number": b'{"content": "x", "importance": NaN}',
    "more than all numbers": b'{"content": "x", "importance": 1e999999}',
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_cost_more_than_they_say(wire: Wire, name: str) -> None:
    statuses, _ = wire.ask(wire.post(b"Content-Length: %d" % len(BODIES[name])), BODIES[name])
    assert len(statuses) == 1 and statuses[0] in (400, 413, 422), statuses


def test_a_body_is_read_as_it_is_sent_and_never_unpacked(wire: Wire) -> None:
    squeezed = gzip.compress(BODY)
    statuses, _ = wire.ask(
        wire.post(b"Content-Encoding: gzip", b"Content-Length: %d" % len(squeezed)), squeezed
    )
    assert len(statuses) == 1 and statuses[0] in (400, 415)


LONG = b"x" * (HEADER_BYTES_MAX // 2)
LONG_HEADERS = {
    "a key": (b"Idempotency-Key: " + LONG, {400}),
    "a request id": (b"X-Request-ID: " + LONG, {201, 202}),
    "a cookie": (b"Cookie: " + LONG, {201, 202}),
    "preferences": (
        b"Prefer: " + b", ".join(b"wait=%d" % number for number in range(1_500)),
        {201, 202},
    ),
    "a chain of proxies": (b"X-Forwarded-For: " + b", ".join([b"10.0.0.1"] * 1_500), {201, 202}),
    "versions": (b"If-Match: " + b", ".join([b'"1"'] * 3_000), {201, 202}),
}


@pytest.mark.parametrize("name", LONG_HEADERS)
def test_long_headers_within_the_limit(wire: Wire, name: str) -> None:
    line, expected = LONG_HEADERS[name]
    statuses, came = wire.ask(wire.post(line, b"Content-Length: %d" % len(BODY)), BODY)
    assert len(statuses) == 1 and statuses[0] in expected, statuses
    assert LONG[:200] not in came, "nothing of it comes back"


# --- connections ----------------------------------------------------------------------------------


def test_slow_clients_take_nobodys_place(wire: Wire) -> None:
    """Hundreds who never finish a head, a body, or reading an answer; others are served
    meanwhile.
    """
    slow = []
    try:
        for number in range(300):
            slow.append(wire.connect())
            begun = (
                b"GET /v1/memories HTTP/1.1\r\nHost: x\r\nX-A: ",
                wire.post(b"Content-Length: 1000") + b'{"content": "',
                wire.head(b"GET /openapi.json HTTP/1.1"),
            )
            slow[-1].sendall(begun[number % 3])
        for _ in range(5):
            assert wire.ask(wire.head(b"GET /v1/memories HTTP/1.1"))[0] == [200]
            assert wire.ask(wire.post(b"Content-Length: %d" % len(BODY)), BODY)[0][0] in (201, 202)
    finally:
        for connection in slow:
            connection.close()


def test_requests_in_a_row_are_answered_in_order(wire: Wire) -> None:
    row = [
        b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n",
    ] * 10
    assert wire.ask(b"".join(row) + wire.head(b"GET /v1/memories HTTP/1.1"))[0] == [
        200,
        404,
    ] * 10 + [200]


def test_the_body_of_a_refused_request_is_no_request(wire: Wire) -> None:
    smuggled = b"DELETE /v1/memories/all?confirm=delete-all-memories HTTP/1.1\r\nHost: x\r\n\r\n"
    refused = b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (
        len(smuggled),
        smuggled,
    )
    assert wire.ask(refused + wire.head(b"GET /v1/health HTTP/1.1"))[0] == [404, 200]


def test_a_body_that_is_no_utf_8_or_compressed_is_told_so(wire: Wire) -> None:
    body = gzip.compress(b'{"content": "compressed"}')
    length = b"Content-Length: %d" % len(body)
    statuses, came = wire.ask(wire.post(length, b"Content-Encoding: gzip") + body)
    assert statuses == [400] and b'"param":"Content-Encoding"' in came, came
    statuses, came = wire.ask(wire.post(b"Content-Length: 16") + b'{"content": "\xff"}')
    assert statuses == [400] and b"not valid UTF-8" in came, came
    plain = b'{"content": "as it is"}'
    lines = (b"Content-Length: %d" % len(plain), b"Content-Encoding: identity")
    assert wire.ask(wire.post(*lines) + plain)[0] == [201]


def test_other_protocols_are_not_spoken(wire: Wire) -> None:
    upgrade = wire.head(b"GET /v1/memories HTTP/1.1").replace(
        b"Connection: close", b"Connection: Upgrade\r\nUpgrade: %s\r\n%s"
    )
    socket_key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    statuses, came = wire.ask(upgrade % (b"websocket", socket_key))
    assert statuses == [400]
    assert b"x-request-id: req_" in came and b'"param":"Upgrade"' in came, came
