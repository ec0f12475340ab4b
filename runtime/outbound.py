"""Requests to addresses that users give: nothing inside the operator's network is ever reached
through them.

Owns which addresses are allowed, and how a request gets to exactly the address that was judged. It
does not know what is sent or why. One request is one connection:

    parse    http or https, no user name, port 80, 443 or from 1024 on
    resolve  once; numbers in any spelling (0x7f000001, 2130706433, 127.1) become addresses here
    judge    every address of the name; a single blocked one refuses the request, for a name that
             mixes is an attack
    connect  to the judged address; Host header and TLS name stay those of the URL
    answer   the status and the first OUTBOUND_ANSWER_BYTES_MAX bytes; a redirect is an answer like
             any other, and not followed

So a name that resolves to something else a moment later (rebinding) changes nothing, and no proxy
of the environment is asked. The time allowed covers all of it, so that neither a slow name server
nor an answer that drips holds anyone longer.

Where the operator names a proxy, every request goes through it, and it alone resolves and judges
names; what plainly lies inside, by an address or a name of loopback, is refused here as well.

The table of blocked networks is our own: `ipaddress.is_global` passes addresses that embed a
loopback one (NAT64, 6to4). The machine's own addresses count as private whatever they are: a
request to them passes no firewall.

Each account has a share of the look-ups, so that names that nobody answers for hold up the
deliveries of whoever gave them.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import importlib
import ipaddress
import re
import socket
import ssl
import sys
import time
import weakref
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from runtime.limits import (
    OUTBOUND_ANSWER_BYTES_MAX,
    OUTBOUND_LOOKUP_THREADS_MAX,
    OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX,
    OUTBOUND_OWN_ADDRESSES_SECONDS,
)

# What a request goes through is imported with the first: a tenth of a start.
if TYPE_CHECKING:
    import httpcore

PORTS = (80, 443)
UNPRIVILEGED_PORT_MIN, PORT_MAX = 1_024, 65_535
_LOOPBACK_NAME = re.compile(r"(?:.*\.)?localhost", re.IGNORECASE)  # RFC 6761
_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}|[0-9A-Fa-f:.]{2,45}")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(word) for word in text.split())


# Where cloud platforms hand out credentials to whoever asks from inside.
METADATA = _networks(
    "169.254.169.254/32 168.63.129.16/32 100.100.100.200/32 192.0.0.192/32 fd00:ec2::/32 "
    "fd20:ce::254/128"
)
# What the operator may open, for receivers on the same machine or in the same building.
PRIVATE = _networks(
    "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 127.0.0.0/8 100.64.0.0/10 ::1/128 fc00::/7"
)
# What stays closed: this network, link-local, special purposes, benchmarks, documentation,
# multicast, reserved.
RESERVED = _networks(
    "0.0.0.0/8 169.254.0.0/16 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 "
    "198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
    # Global unicast is 2000::/3. The rest holds unspecified, mapped and translated IPv4, NAT64,
    # discard, link-local and multicast.
    " ::/3 4000::/2 8000::/1"
    # Inside it: protocol assignments with Teredo and ORCHID, documentation, 6to4.
    " 2001::/23 2001:db8::/32 2002::/16 3fff::/20"
)


class DestinationRefused(Exception):
    """The request must not be made; the message is one sentence for whoever gave the URL."""


class Unresolved(Exception):
    """The name has no address (now)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be asked for, in parts. host: ASCII, without brackets."""

    url: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class OutboundAnswer:
    """What came of a request.

    status       the HTTP status, or None without an answer
    error        why there is none, in words; None with an answer
    kind         "2xx" … "5xx", "refused", "timeout" or "failed"
    body         its first bytes
    retry_after  the Retry-After header, as it came; runtime.retry_after reads it
    """

    kind: str
    duration_ms: int
    status: int | None = None
    error: str | None = None
    body: bytes = b""
    retry_after: str | None = None


Resolver = Callable[[str, int], Awaitable[list[str]]]


def own_addresses() -> frozenset[str]:
    """The addresses of this machine's interfaces, public ones included."""
    return frozenset(
        interface.address.partition("%")[0]
        for interfaces in psutil.net_if_addrs().values()
        for interface in interfaces
        if interface.family in (socket.AF_INET, socket.AF_INET6)
    )


class Outbound:
    """The way out for one shard, used from one event loop.

    allow_private_networks  the operator's switch: loopback, private addresses and the machine's own
                            are allowed
    resolve                 (host, port) -> addresses as texts; the system's resolver by default
    tls                     whom to trust; by default the usual authorities, or SSL_CERT_FILE
    own                     the machine's addresses, asked for anew every
                            OUTBOUND_OWN_ADDRESSES_SECONDS
    proxy                   URL of an HTTP proxy that all requests go through: it is asked for http
                            addresses, and for a tunnel (CONNECT) to https ones
    """

    def __init__(
        self,
        *,
        allow_private_networks: bool = False,
        resolve: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
        own: Callable[[], frozenset[str]] = own_addresses,
        proxy: str | None = None,
    ):
        self.allow_private_networks = allow_private_networks
        self.resolve = resolve
        self._own, self._own_until = own, 0.0
        self._own_addresses: frozenset[Address] = frozenset()
        self._outcomes: Counter[str] = Counter()
        self._under_way = 0
        self._lookups = asyncio.Semaphore(OUTBOUND_LOOKUP_THREADS_MAX)
        self._shares: weakref.WeakValueDictionary[Hashable, asyncio.Semaphore] = (
            weakref.WeakValueDictionary()
        )
        self._tls = tls
        self._proxy = proxy

    def of(self, account: Hashable) -> OutboundOfAccount:
        """The way out for one account, with its share of it."""
        return OutboundOfAccount(self, account)

    async def check(self, url: str, seconds: float, account: Hashable = None) -> None:
        """Raise DestinationRefused where a request to this URL would not be made now; a name
        without an address passes, it may get one.
        """
        await _imported()
        target = parse(url)
        try:
            async with asyncio.timeout(seconds):
                await self._judged(target, account)
        except (Unresolved, TimeoutError):
            return

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float,
        account: Hashable = None,
    ) -> OutboundAnswer:
        """One POST request; -> what came of it, whatever that is. seconds: for everything
        together.
        """
        await _imported()
        import httpcore

        started = time.perf_counter()
        self._under_way += 1
        fields: dict[str, Any]
        try:
            async with asyncio.timeout(seconds):
                kind, fields = await self._post(url, headers, body, account)
        except TimeoutError:
            kind, fields = "timeout", {"error": f"No complete answer within {seconds:g} seconds."}
        except DestinationRefused as refused:
            kind, fields = "refused", {"error": str(refused)}
        except Unresolved as unresolved:
            kind, fields = "failed", {"error": str(unresolved)}
        except httpcore.ProxyError as error:
            kind, fields = "failed", {"error": f"The proxy on the way refused: {_words(error)}."}
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
            ssl.SSLError,
        ) as error:
            kind, fields = "failed", {"error": _sentence(error)}
        finally:
            self._under_way -= 1
        self._outcomes[kind] += 1
        return OutboundAnswer(kind, round((time.perf_counter() - started) * 1000), **fields)

    def stats(self) -> dict[str, int]:
        """Requests under way, made, and answered by kind; for metrics."""
        kinds = ("2xx", "3xx", "4xx", "5xx", "refused", "timeout", "failed")
        return {"under_way": self._under_way, "attempts": self._outcomes.total()} | {
            kind: self._outcomes[kind] for kind in kinds
        }

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes, account: Hashable
    ) -> tuple[str, dict]:
        target = parse(url)
        addresses = await self._judged(target, account)
        connection = await self._connection(target, addresses)
        sent = [*headers.items(), ("Connection", "close")]
        async with (
            connection,
            connection.stream("POST", target.url, headers=sent, content=body) as response,
        ):
            kept = bytearray()
            async for part in response.aiter_stream():
                kept += part
                if len(kept) >= OUTBOUND_ANSWER_BYTES_MAX:
                    break
        retry_after = next(
            (
                value.decode("latin-1")
                for name, value in response.headers
                if name.lower() == b"retry-after"
            ),
            None,
        )
        fields = {
            "status": response.status,
            "body": bytes(kept[:OUTBOUND_ANSWER_BYTES_MAX]),
            "retry_after": retry_after,
        }
        return f"{response.status // 100}xx", fields

    async def _connection(
        self, target: Target, addresses: list[str]
    ) -> httpcore.AsyncConnectionPool:
        """One that goes to the proxy where there is one, else to one of the addresses."""
        import httpcore

        from runtime.pinned_network import PinnedNetwork

        tls = await self._tls_context() if target.url.startswith("https:") else None
        if self._proxy is None:
            return httpcore.AsyncConnectionPool(
                ssl_context=tls, max_connections=1, network_backend=PinnedNetwork(addresses)
            )
        to_proxy = await self._tls_context() if self._proxy.startswith("https:") else None
        return httpcore.AsyncHTTPProxy(
            self._proxy, ssl_context=tls, proxy_ssl_context=to_proxy, max_connections=1
        )

    async def _judged(self, target: Target, account: Hashable) -> list[str]:
        """All addresses of the target's host; none where a proxy looks its name up. Raises
        DestinationRefused when one of them is blocked, Unresolved when there is none.
        """
        if not self.allow_private_networks and _LOOPBACK_NAME.fullmatch(target.host):
            raise DestinationRefused("The host is in a private or reserved network.")
        if self._proxy is not None:
            spelt = _address_spelt(target.host)
            if spelt is not None and self._is_blocked(spelt):
                raise DestinationRefused("The host is in a private or reserved network.")
            return []
        resolving = (
            self._ask_the_system(target.host, target.port, account)
            if self.resolve is None
            else self.resolve(target.host, target.port)
        )
        found = list(dict.fromkeys(await resolving))
        if not found:
            raise Unresolved("The host name has no address.")
        if any(self._is_blocked(address) for address in found):
            raise DestinationRefused("The host is in a private or reserved network.")
        return found

    def _is_blocked(self, text: str) -> bool:
        address = ipaddress.ip_address(
            text.partition("%")[0]
        )  # without the interface of a link-local one
        if self.allow_private_networks and _is_in(address, PRIVATE):
            return _is_in(address, METADATA)
        if any(_is_in(address, networks) for networks in (PRIVATE, METADATA, RESERVED)):
            return True
        return not self.allow_private_networks and address in self._machine()

    def _machine(self) -> frozenset[Address]:
        """The machine's own addresses, which come and go."""
        now = time.monotonic()
        if now >= self._own_until:
            self._own_addresses = frozenset(map(ipaddress.ip_address, self._own()))
            self._own_until = now + OUTBOUND_OWN_ADDRESSES_SECONDS
        return self._own_addresses

    async def _ask_the_system(self, host: str, port: int, account: Hashable) -> list[str]:
        """The system's resolver, on a thread that nobody waits for: a name server that never
        answers must not hold up a shutdown. The thread keeps its place, and its account's, until it
        has ended.
        """
        share = self._shares.get(account)
        if share is None:
            share = self._shares[account] = asyncio.Semaphore(
                OUTBOUND_LOOKUP_THREADS_PER_ACCOUNT_MAX
            )
        await share.acquire()
        try:
            await self._lookups.acquire()
        except BaseException:
            share.release()
            raise
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()

        def settle(addresses: list[str]) -> None:
            self._lookups.release()
            share.release()
            if not found.done():
                found.set_result(addresses)

        def look_up() -> None:
            try:
                addresses = [
                    str(entry[4][0])
                    for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                ]
            except (OSError, UnicodeError):
                addresses = []
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, addresses)

        try:
            # Thread.start() would hold the event loop until the new thread has had a processor.
            _thread.start_new_thread(look_up, ())
        except RuntimeError:  # the machine has no more threads: as if nobody had answered
            settle([])
        return await found

    async def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            from httpx import create_ssl_context

            # Once, and on a thread: it reads all certificate authorities.
            self._tls = await asyncio.to_thread(create_ssl_context)
        return self._tls


@dataclass(frozen=True, slots=True)
class OutboundOfAccount:
    """What one account may ask of an Outbound; see there."""

    outbound: Outbound
    account: Hashable

    async def check(self, url: str, seconds: float) -> None:
        await self.outbound.check(url, seconds, self.account)

    async def post(
        self, url: str, headers: Mapping[str, str], body: bytes, seconds: float
    ) -> OutboundAnswer:
        return await self.outbound.post(url, headers, body, seconds, self.account)


async def _imported() -> None:
    """Import what requests go through, with the first; on a thread, since that takes as long as
    some hundred requests.
    """
    for name in ("httpx", "httpcore", "runtime.pinned_network"):
        if name not in sys.modules:
            await asyncio.to_thread(importlib.import_module, name)


def parse(url: str) -> Target:
    """The URL's parts. Raises DestinationRefused for what is no http(s) URL, or has a user name
    or a port that may not be asked for.
    """
    from httpx import URL, InvalidURL

    try:
        parsed = URL(url)
        host = parsed.raw_host.decode("ascii")
        port = parsed.port if parsed.port is not None else 443 if parsed.scheme == "https" else 80
    except (InvalidURL, ValueError, TypeError):
        raise DestinationRefused("This is no URL.") from None
    if parsed.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        raise DestinationRefused("The URL must begin with http:// or https:// and name a host.")
    if host.endswith("."):
        raise DestinationRefused("The host must not end in a dot.")
    if parsed.userinfo:
        raise DestinationRefused("The URL must not carry a user name or password.")
    if port not in PORTS and not UNPRIVILEGED_PORT_MIN <= port <= PORT_MAX:
        raise DestinationRefused(f"The port must be 80, 443 or at least {UNPRIVILEGED_PORT_MIN}.")
    return Target(str(parsed.copy_with(fragment=None)), host, port)


def _address_spelt(host: str) -> str | None:
    """The address that a host is, in any spelling that resolvers take (127.1, 0x7f000001); None of
    a name.
    """
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return host if ":" in host else None


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _sentence(error: Exception) -> str:
    """An error of the connection, in one sentence that fits a log."""
    return f"The connection failed: {_words(error)}."


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
