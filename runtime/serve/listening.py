"""Where the service listens: its port, its certificate, and whether it answers there.

Knows sockets and files, and nothing of what runs behind them. What is in the way is found here,
before anything is started, and named in one sentence: a process of Ray that finds out later has
nobody to tell.
"""

from __future__ import annotations

import errno
import http.client
import ipaddress
import random
import socket
import ssl
import time

import psutil

from runtime.limits import SHARD_STATUS_SECONDS_MAX, START_SECONDS_MAX
from runtime.settings import Settings

HEALTH_PATH = "/v1/health"
_HEALTH_POLL_SECONDS = 0.1
# Below those that the system gives to whoever asks for any, and apart from those that Ray and Serve
# take by themselves.
FREE_PORTS = range(20_000, 30_000)


class StartError(Exception):
    """The service cannot start; the message is one sentence that names what is in the way."""


def check_http(settings: Settings) -> None:
    """Find out here what a gateway or a proxy would find out in a process of its own. Raises
    StartError.
    """
    for network in settings.http.trusted_proxies:
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError as malformed:
            raise StartError(f"http.trusted_proxies: {malformed}.") from None
    certfile, keyfile = settings.http.tls_certfile, settings.http.tls_keyfile
    if certfile is None:
        return
    try:
        # The answer to the question for a passphrase, which nobody could give later.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            certfile, keyfile, password=lambda: ""
        )
    except OSError as unusable:  # SSLError is one
        pair = f"http.tls_certfile {certfile} and http.tls_keyfile {keyfile}"
        raise StartError(
            f"{pair} are not a certificate and its key: {unusable.strerror or unusable}."
        ) from None


def free_port(host: str) -> int:
    """A TCP port that nobody has just now, and that the system gives nobody who asks for any: it is
    opened seconds later, and until then no other connection of this machine may get it.
    """
    for port in random.sample(FREE_PORTS, len(FREE_PORTS)):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            try:
                probe.bind((host, port))
            except OSError as refused:
                if refused.errno != errno.EADDRINUSE:
                    raise
                continue
        return port
    raise StartError(f"No port from {FREE_PORTS[0]} to {FREE_PORTS[-1]} of {host} is free.")


def usable_port(settings: Settings) -> int:
    """The configured port, or a free one for 0. Raises StartError when it is taken or not ours to
    open.
    """
    host, port = settings.http.host, settings.http.port
    if port == 0:
        return free_port(host)
    check_port(host, port)
    return port


def check_port(host: str, port: int) -> None:
    """Raise StartError where the port is taken, or not ours to open."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as refused:
            holder = _listener_on(port)
            why = f"in use by {holder}" if holder else f"not available: {refused.strerror}"
            raise StartError(f"Port {port} on {host} is {why}.") from None


def _listener_on(port: int) -> str | None:
    """ "process 4711 (haproxy)" for whoever listens on the port, as far as this user may know."""
    for connection in psutil.net_connections("tcp"):
        if (
            connection.status == psutil.CONN_LISTEN
            and connection.laddr
            and connection.laddr.port == port
            and connection.pid
        ):
            try:
                process = psutil.Process(connection.pid)
                stale = process.name() == "haproxy" and process.ppid() == 1
                return (
                    f"process {process.pid} "
                    f"({process.name()}{', left behind by an earlier service' if stale else ''})"
                )
            except psutil.NoSuchProcess:
                return None
    return None


def wait_until_healthy(settings: Settings, port: int) -> None:
    """Return once /v1/health answers 200. Raises StartError after START_SECONDS_MAX."""
    deadline = time.monotonic() + START_SECONDS_MAX
    host = settings.http.base_url_on(port).split("://")[1].rpartition(":")[0].strip("[]")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it asks itself
    answer = "nothing"
    while time.monotonic() < deadline:
        if settings.http.tls_certfile:
            client: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=SHARD_STATUS_SECONDS_MAX, context=context
            )
        else:
            client = http.client.HTTPConnection(host, port, timeout=SHARD_STATUS_SECONDS_MAX)
        try:
            client.request("GET", HEALTH_PATH)
            answer = str(client.getresponse().status)
            if answer == "200":
                return
        except (OSError, http.client.HTTPException) as refused:
            answer = str(refused)
        finally:
            client.close()
        time.sleep(_HEALTH_POLL_SECONDS)
    raise StartError(
        f"The service did not become healthy within {START_SECONDS_MAX} seconds; {HEALTH_PATH} "
        f"last gave {answer}."
    )
