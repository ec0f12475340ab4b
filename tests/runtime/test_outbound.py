"""Requests to addresses that users give, against real sockets: which are made, to whom, and for how
long.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runtime.limits import OUTBOUND_LOOKUP_THREADS_MAX, OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX
from runtime.outbound import DestinationRefused, Outbound, OutboundAnswer, own_addresses, parse
from tests.support import ROOT
from tests.support.certificates import certificate
from tests.support.filtering_proxy import filtering_proxy
from tests.support.receivers import receiver

SECONDS = 60  # far more than anything takes
PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "8.8.8.8", "1.1.1.1"]
PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "::1",
    "fc00::1",
    "fdff::1",
]
CLOSED = [
    "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "168.63.129.16", "100.100.100.200",
    "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1",
    "2001:0:4136:e378::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::",
    "2002:808:808::", "3fff::1", "4000::1", "5f00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1",
]  # fmt: skip


def named(*addresses: str) -> Callable:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve


def is_refused(
    outbound: Outbound, url: str = "https://hooks.example.test/", seconds: float = SECONDS
) -> bool:
    try:
        asyncio.run(outbound.check(url, seconds))
    except DestinationRefused:
        return True
    return False


def post(outbound: Outbound, url: str, seconds: float = SECONDS) -> OutboundAnswer:
    return asyncio.run(outbound.post(url, {"X-Test": "1"}, b"{}", seconds))


# --- who may be asked -----------------------------------------------------------------------------


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_may_be_asked(address: str) -> None:
    assert not is_refused(Outbound(resolve=named(address)))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_the_operator_s_to_open(address: str) -> None:
    assert is_refused(Outbound(resolve=named(address)))
    assert not is_refused(Outbound(resolve=named(address), allow_private_networks=True))


@pytest.mark.parametrize("address", CLOSED)
def test_reserved_addresses_stay_closed(address: str) -> None:
    for allowed in (False, True):
        assert is_refused(Outbound(resolve=named(address), allow_private_networks=allowed))


@pytest.mark.parametrize("address", PUBLIC)
def test_the_machine_s_own_addresses_are_private(address: str) -> None:
    """They pass no firewall. An address that an interface gets later counts too."""
    has: list[str] = []
    outbound = Outbound(resolve=named(address), own=lambda: frozenset(has))
    assert not is_refused(outbound)
    has.append(address)
    assert is_refused(Outbound(resolve=named(address), own=lambda: frozenset(has)))
    assert not is_refused(
        Outbound(resolve=named(address), own=lambda: frozenset(has), allow_private_networks=True)
    )


def test_interfaces_are_known() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("127.0.0.1", 9))
        assert probe.getsockname()[0] in own_addresses()


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "x.localhost", "a.b.localhost"])
def test_names_of_loopback_are_refused_whatever_they_resolve_to(host: str) -> None:
    for addresses in ([], PUBLIC):
        assert is_refused(Outbound(resolve=named(*addresses)), f"http://{host}/")
        assert not is_refused(
            Outbound(resolve=named(*addresses), allow_private_networks=True), f"http://{host}/"
        )
    assert not is_refused(Outbound(resolve=named(*PUBLIC)), "http://notlocalhost.test/")


def test_one_blocked_address_among_good_ones_is_enough() -> None:
    assert is_refused(Outbound(resolve=named(*PUBLIC, "127.0.0.1")))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:7f00:1]",
    ],
)
def test_any_spelling_of_loopback_is_loopback(host: str) -> None:
    """By the system's own resolver."""
    assert is_refused(Outbound(), f"http://{host}:8000/")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/", "file:///etc/passwd", "example.com", "//example.com/", "http:///x",
        "http://", "", "http://a b/",
        "http://user@example.com/", "http://user:secret@example.com/",
        "http://:@example.com@127.0.0.1/", "http://example.com:22/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:port/",
        "http://%6c/", "http://a%00b/", "http://[fe80::1%25lo]/",
        "http://localhost./", "http://example.com./", "https://127.0.0.1./",
        "http://exa\tmple.com/", "http://example.com\r\nHost: inside/", "http://a\\@inside/",
    ],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(DestinationRefused):
        parse(url)


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://example.com", "example.com", 80),
        ("https://example.com/x?y#z", "example.com", 443),
        ("http://[2606::1]:8080/", "2606::1", 8080),
        ("https://exämple.com/", "xn--exmple-cua.com", 443),
    ],
)  # fmt: skip
def test_a_url_is_taken_apart_once(url: str, host: str, port: int) -> None:
    target = parse(url)
    assert (target.host, target.port) == (host, port) and "#" not in target.url


def test_a_name_that_has_no_address_passes_and_fails_when_asked() -> None:
    assert not is_refused(Outbound(resolve=named()))
    answer = post(Outbound(resolve=named()), "http://hooks.example.test/")
    assert (answer.kind, answer.error) == ("failed", "The host name has no address.")


def test_a_name_server_that_does_not_answer_costs_the_time_allowed_and_no_more() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()

    assert not is_refused(Outbound(resolve=never), seconds=0.05)
    assert post(Outbound(resolve=never), "http://hooks.example.test/", 0.05).kind == "timeout"


def test_names_that_nobody_answers_for_hold_up_their_own_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name server is a real function on real threads; it answers for `.example.test` alone,
    and only when it is let go. A place is not free again before its thread has ended.
    """
    let_go, asked = threading.Event(), []

    def look_up(host: str, port: int, **_: object) -> list[tuple]:
        asked.append(host)
        if not host.endswith(".example.test"):
            let_go.wait(SECONDS)
        return [(0, 0, 0, "", (PUBLIC[0], port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    async def both() -> None:
        outbound = Outbound()
        hanging = outbound.of("eve")
        for _ in range(2):  # the time of the first ones is over, their threads are not
            await asyncio.gather(
                *(
                    hanging.check(f"http://hang{number}.test/", 0.05)
                    for number in range(OUTBOUND_LOOKUP_THREADS_MAX)
                )
            )
            async with asyncio.timeout(SECONDS):
                while len(asked) < OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX:
                    await asyncio.sleep(0.005)
        assert len(asked) == OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX
        await outbound.of("ada").check("http://hooks.example.test/", SECONDS)
        assert asked[-1] == "hooks.example.test"
        let_go.set()
        await outbound.of("eve").check("http://mine.example.test/", SECONDS)
        assert asked[-1] == "mine.example.test"

    asyncio.run(both())


def test_a_machine_without_threads_takes_nobody_s_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def story() -> None:
        outbound, asked = Outbound(), "http://hooks.example.test/"
        with monkeypatch.context() as machine:
            machine.setattr(threading.Thread, "start", no_more)
            for _ in range(OUTBOUND_LOOKUP_THREADS_MAX + 1):
                answer = await outbound.post(asked, {}, b"", SECONDS, "ada")
                assert (answer.kind, answer.error) == ("failed", "The host name has no address.")
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(0, 0, 0, "", ("10.0.0.1",))])
        answer = await outbound.post(asked, {}, b"", SECONDS, "ada")
        assert answer.kind == "refused"

    asyncio.run(story())


# --- how they are asked ---------------------------------------------------------------------------


def test_the_judged_address_is_the_one_connected_to() -> None:
    """The name resolves once; what it would resolve to a moment later does not matter. Its own name
    stays in the Host header.
    """
    asked = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with receiver() as there:
        port = int(there.url.rpartition(":")[2].partition("/")[0])
        answer = post(
            Outbound(resolve=rebinding, allow_private_networks=True),
            f"http://hooks.example.test:{port}/hook?a=b",
        )
        assert (answer.kind, answer.status, answer.body) == ("2xx", 200, b"ok")
        assert asked == [("hooks.example.test", port)]
        (received,) = there.received
        assert (received.headers["host"], received.path) == (
            f"hooks.example.test:{port}",
            "/hook?a=b",
        )


def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiver() as proxy, receiver() as there:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert post(Outbound(allow_private_networks=True), there.url).status == 200
        assert (len(proxy.received), len(there.received)) == (0, 1)


def test_the_next_address_is_tried_when_one_refuses() -> None:
    with receiver() as there:
        outbound = Outbound(resolve=named("127.0.0.9", "127.0.0.1"), allow_private_networks=True)
        assert post(outbound, there.url.replace("127.0.0.1", "hooks.example.test")).status == 200


def test_what_nobody_answers_is_a_failure_in_words() -> None:
    answer = post(Outbound(allow_private_networks=True), "http://127.0.0.1:1024/")
    assert (answer.kind, answer.status) == ("failed", None) and answer.error.startswith(
        "The connection failed: "
    )


@contextmanager
def raw_server(
    speak: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A socket that says what it is told to each caller; -> its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            try:
                with (
                    connection
                    if tls is None
                    else tls.wrap_socket(connection, server_side=True) as talking
                ):
                    speak(talking)
            except OSError:
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(SECONDS)


def whole_request(connection: socket.socket) -> bytes:
    """All of it: what closes a connection with bytes unread resets it, answer and all."""
    received = b""
    while not received.endswith(b"\r\n\r\n{}"):
        part = connection.recv(65_536)
        if not part:
            raise ConnectionError("gone before its end")
        received += part
    return received


@pytest.mark.parametrize(
    "head",
    [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Long: "],
)
def test_an_answer_that_drips_is_cut_off(head: bytes) -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(head or b"H")
        while not stop.wait(0.01):
            connection.sendall(b"a")

    with raw_server(drip) as port:
        answer = post(Outbound(allow_private_networks=True), f"http://127.0.0.1:{port}/", 0.2)
        stop.set()
    assert (answer.kind, answer.status) == ("timeout", None)


BROKEN = [
    b"",
    b"garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000,
]


@pytest.mark.parametrize("said", BROKEN, ids=len)
def test_a_broken_answer_is_a_failure(said: bytes) -> None:
    def speak(connection: socket.socket) -> None:
        whole_request(connection)
        connection.sendall(said)

    with raw_server(speak) as port:
        answer = post(Outbound(allow_private_networks=True), f"http://127.0.0.1:{port}/")
    assert (answer.kind, answer.status) == ("failed", None)


def test_an_endless_answer_is_read_to_its_first_bytes() -> None:
    def speak(connection: socket.socket) -> None:
        whole_request(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"1000\r\n" + b"x" * 4_096 + b"\r\n")

    with raw_server(speak) as port:
        answer = post(Outbound(allow_private_networks=True), f"http://127.0.0.1:{port}/")
    assert (answer.status, answer.body) == (200, b"x" * 16_384)


def test_tls_speaks_with_the_name_and_checks_it(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "hooks.example.test")
    asked_for, heard = [], []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    tls.sni_callback = lambda connection, name, context: asked_for.append(name)

    def speak(connection: socket.socket) -> None:
        heard.append(whole_request(connection))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    def ask(host: str, trust: ssl.SSLContext | None) -> OutboundAnswer:
        outbound = Outbound(resolve=named("127.0.0.1"), allow_private_networks=True, tls=trust)
        return post(outbound, f"https://{host}:{port}/")

    with raw_server(speak, tls) as port:
        assert ask("hooks.example.test", ssl.create_default_context(cafile=str(cert))).status == 204
        assert asked_for == ["hooks.example.test"] and b"Host: hooks.example.test:" in heard[0]
        assert (
            ask("other.example.test", ssl.create_default_context(cafile=str(cert))).kind == "failed"
        ), "another's certificate"
        assert ask("hooks.example.test", None).kind == "failed", "nobody vouches for it"
    assert len(heard) == 1


# --- through a proxy of the operator's ------------------------------------------------------------


def test_a_proxy_is_asked_for_everything_and_looks_names_up() -> None:
    with receiver() as there, filtering_proxy({"hooks.example.test": there.address}) as proxy:
        outbound = Outbound(proxy=proxy.url)  # without a resolver, which knows no such name
        assert not is_refused(outbound, "http://hooks.example.test/hook")
        answer = post(outbound, "http://hooks.example.test/hook?a=b")
        assert (answer.kind, answer.status, answer.body) == ("2xx", 200, b"ok")
        (received,) = there.received
        assert (received.path, received.headers["host"]) == ("/hook?a=b", "hooks.example.test")
        inside = post(outbound, "http://inside.example.test/hook")
        assert (inside.status, inside.body) == (403, b"not allowed")
        assert proxy.asked == [("POST", "hooks.example.test"), ("POST", "inside.example.test")]
        assert len(there.received) == 1


def test_tls_goes_through_a_tunnel_of_the_proxy_and_ends_at_the_receiver(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "hooks.example.test")
    heard = []
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)

    def speak(connection: socket.socket) -> None:
        heard.append(whole_request(connection))
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with (
        raw_server(speak, tls) as port,
        filtering_proxy({"hooks.example.test": ("127.0.0.1", port)}) as proxy,
    ):
        outbound = Outbound(proxy=proxy.url, tls=ssl.create_default_context(cafile=str(cert)))
        assert post(outbound, "https://hooks.example.test/").status == 204
        assert heard[0].startswith(b"POST / HTTP/1.1\r\nHost: hooks.example.test\r\n")
        refused = post(outbound, "https://inside.example.test/")
        assert (refused.kind, refused.status) == ("failed", None)
        assert refused.error == "The proxy on the way refused: 403 Forbidden."
        assert proxy.asked == [
            ("CONNECT", "hooks.example.test"),
            ("CONNECT", "inside.example.test"),
        ]
    assert len(heard) == 1


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "0x7f000001", "10.0.0.1", "169.254.169.254", "[::1]", "x.localhost"],
)
def test_what_plainly_lies_inside_never_reaches_the_proxy(host: str) -> None:
    with filtering_proxy({}) as proxy:
        outbound = Outbound(proxy=proxy.url)
        assert is_refused(outbound, f"http://{host}:8000/")
        assert post(outbound, f"https://{host}:8000/").kind == "refused"
        assert proxy.asked == []


def test_a_proxy_that_is_not_there_is_a_failure_and_nobody_is_asked_directly() -> None:
    with receiver() as there:
        outbound = Outbound(proxy="http://127.0.0.1:1024", resolve=named("127.0.0.1"))
        answer = post(outbound, there.url.replace("127.0.0.1", "hooks.example.test"))
        assert answer.kind == "failed" and there.received == []


# --- what is counted ------------------------------------------------------------------------------


def test_outcomes_are_counted_by_their_kind() -> None:
    outbound = Outbound(allow_private_networks=True)

    async def ask() -> None:
        with receiver(200, 302, 404, 500) as there:
            for _ in range(4):
                await outbound.post(there.url, {}, b"", SECONDS)
        await outbound.post("http://169.254.169.254/", {}, b"", SECONDS)
        await outbound.post("http://127.0.0.1:1024/", {}, b"", SECONDS)

    asyncio.run(ask())
    expected = {
        "under_way": 0,
        "attempts": 6,
        "2xx": 1,
        "3xx": 1,
        "4xx": 1,
        "5xx": 1,
        "refused": 1,
        "timeout": 0,
        "failed": 1,
    }
    assert outbound.stats() == expected


IMPORTING = """
import asyncio, ssl, sys, threading
from importlib.abc import MetaPathFinder

on = {}

class Noting(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        on.setdefault(name, threading.current_thread() is threading.main_thread())

sys.meta_path.insert(0, Noting())
from runtime.outbound import Outbound

async def ask():
    outbound = Outbound(allow_private_networks=True)
    await outbound.check("http://127.0.0.1:1024/", 60)
    for _ in range(2):
        await outbound.post("https://127.0.0.1:1024/", {}, b"", 60)

def noting_authorities(load=ssl.SSLContext.load_verify_locations):
    def loaded(*arguments, **named):
        loads.append(threading.current_thread() is threading.main_thread())
        return load(*arguments, **named)
    return loaded

loads = []
ssl.SSLContext.load_verify_locations = noting_authorities()
on.clear()
asyncio.run(ask())
assert on["httpx"] is on["httpcore"] is on["runtime.pinned_network"] is False, on
assert loads == [False], loads
"""


def test_what_the_first_request_imports_and_whom_it_trusts_holds_up_nobody() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTING], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
