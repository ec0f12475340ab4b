"""Sends spans to a collector by OTLP over HTTP. Where it is, what it is shown, how long it may take
and by which certificates it is known, the standard variables of OpenTelemetry say; what begins
OTEL_EXPORTER_OTLP_TRACES_ goes before what begins OTEL_EXPORTER_OTLP_. HTTP_PROXY, HTTPS_PROXY and
NO_PROXY are heeded, too.

A collector that is busy or away is asked again within the time that it may take in all, and what
it has not taken by then is lost. That is logged once, until it takes something again.

A message is posted by httpcore, since httpx above it takes as much processor time again.
"""

from __future__ import annotations

import base64
import gzip
import logging
import random
import ssl
import threading
import time
import zlib
from urllib.parse import unquote_to_bytes
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
from opentelemetry.util.re import parse_env_headers

from runtime.limits import TRACES_ATTEMPTS_MAX, TRACES_TRIED_SECONDS
from runtime.retry_after import seconds_asked
from runtime.tracing.variables import number, variable

log = logging.getLogger("mneme.tracing")

_HERE = "http://localhost:4318"
_PATH = "/v1/traces"
_SECONDS = 10.0
_BUSY = (429, 502, 503, 504)
_COMPRESSED = {"gzip": gzip.compress, "deflate": zlib.compress}


class CannotSend(Exception):
    """The variables ask for what cannot be done; the message is one sentence."""


class Collector:
    """The one that the variables name. Raises CannotSend."""

    def __init__(self) -> None:
        url = _url()
        self._url = _for_httpcore(url)
        self._seconds = number(
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"), _SECONDS
        )
        compression = _setting("COMPRESSION").lower()
        self._compress = _COMPRESSED.get(compression)
        headers = {"content-type": "application/x-protobuf"}
        if self._compress is not None:
            headers["content-encoding"] = compression
        if url.userinfo:
            credentials = base64.b64encode(unquote_to_bytes(url.userinfo)).decode()
            headers["authorization"] = f"Basic {credentials}"
        headers |= parse_env_headers(_setting("HEADERS"), liberal=True)
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._client = _client(url)
        self._ended = threading.Event()
        self._is_away = False

    def take(self, message: bytes) -> None:
        """Send a message. Blocks for as long as a collector may take in all."""
        why = self._refusal(message if self._compress is None else self._compress(message))
        if why and not self._is_away:
            log.warning("spans are lost: their collector %s", why)
        self._is_away = bool(why)

    def close(self) -> None:
        """Try nothing again from now on."""
        self._ended.set()

    def _refusal(self, content: bytes) -> str:
        """Why it was not taken; "" where it was."""
        deadline, why = time.monotonic() + self._seconds, ""
        for attempt in range(TRACES_ATTEMPTS_MAX):
            wait = TRACES_TRIED_SECONDS * 2**attempt * random.uniform(0.8, 1.2)
            try:
                answer = self._posted(content, max(deadline - time.monotonic(), 0.001))
            except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
                # A connection that was kept may have ended: the second attempt is at once.
                why, wait = _no_answer(error), wait if attempt else 0
            except (
                httpcore.TimeoutException,
                httpcore.ProtocolError,
                httpcore.ProxyError,
            ) as error:
                return _no_answer(error)
            else:
                if 200 <= answer.status < 300:
                    return ""
                why = f"answers {answer.status}"
                if answer.status not in _BUSY:
                    return why
                asked = seconds_asked(httpx.Headers(answer.headers).get("retry-after"))
                wait = wait if asked is None else asked
            if time.monotonic() + wait >= deadline or self._ended.wait(wait):
                return why
        return why

    def _posted(self, content: bytes, seconds: float) -> httpcore.Response:
        """Post a message. seconds: how long connecting, sending and waiting may take, each."""
        bounds = dict.fromkeys(("connect", "write", "read", "pool"), seconds)
        return self._client.request(
            "POST",
            self._url,
            headers=self._headers,
            content=content,
            extensions={"timeout": bounds},
        )


def _no_answer(error: Exception) -> str:
    return f"does not answer ({str(error) or type(error).__name__})"


def _url() -> httpx.URL:
    of_traces = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    of_all = variable("OTEL_EXPORTER_OTLP_ENDPOINT") or _HERE
    try:
        url = httpx.URL(of_traces or of_all.removesuffix("/") + _PATH)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        name = f"OTEL_EXPORTER_OTLP_{'TRACES_' if of_traces else ''}ENDPOINT"
        raise CannotSend(f"{name} is no URL that begins with http:// or https://.")
    return url


def _for_httpcore(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _client(url: httpx.URL) -> httpcore.ConnectionPool:
    """What keeps a connection to this URL: through a proxy where the environment names one."""
    known, proxies = _certificates(), getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.netloc.decode()):
        return httpcore.ConnectionPool(ssl_context=known)
    try:
        between = httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}")
        if between.url.scheme not in ("http", "https"):
            raise ValueError
    except (ValueError, httpx.InvalidURL):
        raise CannotSend("The proxy that the environment names is none of HTTP.") from None
    return httpcore.HTTPProxy(
        _for_httpcore(between.url), proxy_auth=between.raw_auth, ssl_context=known
    )


def _setting(name: str) -> str:
    of_traces = variable(f"OTEL_EXPORTER_OTLP_TRACES_{name}")
    return of_traces or variable(f"OTEL_EXPORTER_OTLP_{name}")


def _certificates() -> ssl.SSLContext:
    """What the collector is known by, and what it is shown."""
    authorities, own, key = (
        _setting("CERTIFICATE"),
        _setting("CLIENT_CERTIFICATE"),
        _setting("CLIENT_KEY"),
    )
    what = f"OTEL_EXPORTER_OTLP_CERTIFICATE ({authorities!r}) is no file of certificates"
    try:
        if authorities:
            known = ssl.create_default_context(cafile=authorities)
        else:
            known = httpx.create_ssl_context()
        if own:
            what = (
                f"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE ({own!r}) and …_KEY ({key!r}) are no pair"
            )
            # The answer to the question for a passphrase, which nobody could give.
            known.load_cert_chain(own, key or None, password=lambda: "")
    except OSError as unusable:  # SSLError is one
        raise CannotSend(f"{what}: {unusable.strerror or unusable}.") from None
    return known
