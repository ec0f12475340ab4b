"""Room for bodies that arrive, over real sockets from several addresses of this machine: whoever
fills it keeps nobody else out.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from runtime.errors import Unavailable
from runtime.http import arriving, bodies, gateway, own_operations
from runtime.http.arriving import Arrival, Arriving
from runtime.limits import PUBLIC_BODY_BYTES_MAX
from tests.support.over_http import OverHttp, over_http

KIB = 1024
ROOM = 1024 * KIB
ATTACKER, HONEST = "127.0.0.2", "127.0.0.3"


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OverHttp]:
    monkeypatch.setattr(arriving, "BODIES_ARRIVING_BYTES_MAX", ROOM)
    with over_http(tmp_path) as service:
        yield service


def held(service: OverHttp) -> int:
    text = service.http.get("/metrics").text
    (size,) = re.findall(r"^mneme_body_bytes_arriving\{.*?\} (\S+)$", text, re.MULTILINE)
    return int(float(size))


@contextmanager
def begun(
    service: OverHttp, sizes: list[int], path: str, address: str, who: str = ""
) -> Iterator[list[socket.socket]]:
    """Connections that have sent so many bytes of a body which never ends."""
    credential = f"Authorization: Bearer {who}\r\n" if who else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"{credential}Transfer-Encoding: chunked\r\n\r\n"
    ).encode()
    port = httpx.URL(service.url).port
    with ExitStack() as open_ones:
        made = []
        for size in sizes:
            sender = socket.create_connection(("127.0.0.1", port), 20, (address, 0))
            open_ones.enter_context(sender)
            sender.sendall(head + b"%x\r\n%s\r\n" % (size, b" " * size))
            made.append(sender)
        yield made


def write(service: OverHttp, who: str, address: str, size: int = 1) -> int:
    """The status of a memory that is written from this address."""
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=service.url, transport=transport, timeout=20) as client:
        body = {"content": "harbour " * max(1, size // 8)}
        headers = {"Authorization": f"Bearer {who}"}
        return client.post("/v1/memories/raw", json=body, headers=headers).status_code


def test_idle_bodies_of_strangers_keep_nobody_out(service: OverHttp) -> None:
    """66 connections without a credential, which fill the room and then say nothing."""
    me = service.register()
    largest = PUBLIC_BODY_BYTES_MAX - 1
    full, rest = divmod(ROOM - 49, largest)
    sizes = [*[largest] * full, rest, *[1] * (65 - full)]
    with begun(service, sizes, "/v1/auth/login", ATTACKER):
        service.until(lambda: held(service) >= ROOM - 1)
        for _ in range(3):
            assert write(service, me, HONEST, 4 * KIB) in (201, 202)
        assert held(service) > 0, "they still wait, as far as there is room"
    service.until(lambda: held(service) == 0)


def test_one_account_s_bodies_keep_no_other_account_out(service: OverHttp) -> None:
    """Neither from many addresses nor from behind one that all share."""
    me, eve = service.register(), service.register("eve@example.com")
    for addresses in ([f"127.0.1.{number}" for number in range(1, 17)], [HONEST]):
        with ExitStack() as attack:
            for address in addresses:
                sizes = [ROOM // len(addresses)] if len(addresses) > 1 else [ROOM // 16] * 16
                attack.enter_context(begun(service, sizes, "/v1/memories/raw", address, eve))
            service.until(lambda: held(service) == ROOM)
            assert write(service, me, HONEST, 4 * KIB) in (201, 202)
        service.until(lambda: held(service) == 0)


def test_whoever_fills_the_room_is_refused_further_bodies(service: OverHttp) -> None:
    me = service.register()
    with begun(service, [ROOM // 4] * 4, "/v1/memories/raw", HONEST, me) as senders:
        service.until(lambda: held(service) == ROOM)
        assert write(service, me, HONEST) == 503
        senders[0].sendall(b"1\r\n \r\n")
        assert senders[0].recv(KIB).startswith(b"HTTP/1.1 503")
        service.until(lambda: held(service) == ROOM * 3 // 4)
        assert write(service, me, HONEST) in (201, 202)


def test_requests_that_wait_for_their_bodies_keep_no_other_address_out(
    service: OverHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = service.register()
    monkeypatch.setattr(gateway, "GATEWAY_REQUESTS_MAX", 20)
    with begun(service, [1] * 40, "/v1/auth/login", ATTACKER):
        service.until(lambda: held(service) >= 19)  # whoever asks for the figures takes a place
        assert write(service, me, HONEST) in (201, 202)
        assert write(service, me, HONEST) in (201, 202)


def test_nobody_gives_way_to_a_request_that_is_refused_all_the_same(
    service: OverHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = service.register()
    monkeypatch.setattr(own_operations, "METRICS_KEPT_SECONDS", 0)
    with begun(service, [1] * 10, "/v1/auth/login", ATTACKER):
        service.until(lambda: held(service) == 10)
        monkeypatch.setattr(gateway, "GATEWAY_REQUESTS_MAX", 5)
        monkeypatch.setattr(gateway, "GATEWAY_CALLS_MAX", 0)
        assert write(service, me, HONEST) == 503
        assert held(service) == 10


def test_a_body_for_strangers_is_small(service: OverHttp) -> None:
    eve = service.register()
    filling = b" " * PUBLIC_BODY_BYTES_MAX
    for path in ("/v1/auth/login", "/v1/auth/register", "/v1/account/receipts", "/mcp"):
        sent = {"Content-Type": "application/json", "Accept": "application/json"}
        assert service.http.post(path, content=filling + b"{}", headers=sent).status_code == 413
    assert write(service, eve, HONEST, PUBLIC_BODY_BYTES_MAX) in (201, 202)


def test_a_body_that_drips_is_given_up(service: OverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its pieces comes in time, and all of them too slowly."""
    monkeypatch.setattr(bodies, "BODY_SLOW_SECONDS_MAX", 0.05)
    monkeypatch.setattr(bodies, "BODY_BYTES_PER_SECOND_MIN", KIB)
    with begun(service, [10], "/v1/auth/login", ATTACKER) as (sender,):
        assert sender.recv(KIB).startswith(b"HTTP/1.1 400")


def test_the_network_of_an_ipv6_address_is_one_caller() -> None:
    room = Arriving()
    first, second, other = (
        Arrival(address, None) for address in ("2001:db8::1", "2001:db8::ffff:2", "2001:db8:1::1")
    )
    for arrival in (first, second, other):
        room.begin(arrival)
    half = arriving.BODIES_ARRIVING_BYTES_MAX // 2
    room.grow(first, half - 10)
    room.grow(second, half)
    room.grow(other, half // 2)
    assert (second.refused, other.refused, room.size) == (True, False, half - 10 + half // 2)
    room.grow(other, 10)
    with pytest.raises(Unavailable):
        room.grow(other, 2 * half)
    for arrival in (first, second, other):
        room.end(arrival)
    assert room.size == 0


def test_a_body_whose_time_is_over_may_still_give_way() -> None:
    """At the moment in which its time limit has struck, and its reader has not heard of it."""

    async def story() -> None:
        room, mine = Arriving(), Arrival(HONEST, None)
        theirs = Arrival(ATTACKER, None)

        async def read() -> None:
            async with asyncio.timeout(0) as theirs.waiting:
                await asyncio.Event().wait()

        reader = asyncio.create_task(read())
        while theirs.waiting is None or not theirs.waiting.expired():
            await asyncio.sleep(0)
        assert not reader.done()
        room.begin(theirs)
        room.begin(mine)
        room.grow(theirs, arriving.BODIES_ARRIVING_BYTES_MAX)
        room.grow(mine, 1)
        assert (theirs.refused, mine.refused, room.size) == (True, False, 1)
        with pytest.raises(TimeoutError):
            await reader

    asyncio.run(story())


def test_a_piece_that_comes_as_its_body_gives_way_takes_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its reader has the piece before it hears of that."""
    monkeypatch.setattr(arriving, "BODIES_ARRIVING_BYTES_MAX", ROOM)
    room, mine = Arriving(), Arrival(HONEST, None)
    sent = [ROOM, 1]

    async def receive() -> dict[str, object]:
        size = sent.pop(0)
        if not sent:
            room.begin(mine)
            room.grow(mine, 1)
        return {"type": "http.request", "body": b" " * size, "more_body": bool(sent)}

    with pytest.raises(Unavailable):
        asyncio.run(bodies.whole({}, receive, room, Arrival(ATTACKER, None)))
    assert room.size == 1
    room.end(mine)
    assert room.size == 0


def test_the_newest_of_those_who_send_most_bodies_gives_way() -> None:
    async def story() -> None:
        room = Arriving()
        addresses = [f"10.0.0.{number}" for number in (1, 2, 2, 1, 3)]
        arrivals = [Arrival(address, None) for address in addresses]
        for arrival in arrivals:
            room.begin(arrival)
            arrival.waiting = asyncio.Timeout(None)
            await arrival.waiting.__aenter__()
        assert not room.make_room("10.0.0.1") and not room.make_room("10.0.0.3")
        assert room.make_room("10.0.0.4")
        assert [arrival.refused for arrival in arrivals] == [False, False, False, True, False]
        assert room.make_room("10.0.0.4")
        assert [arrival.refused for arrival in arrivals] == [False, False, True, True, False]
        assert not room.make_room("10.0.0.4")

    asyncio.run(story())
