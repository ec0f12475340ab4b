"""Sends spans to a collector by OTLP over HTTP. Where it is, what it is shown, how long it may take
and by which certificates it is known, the standard variables of OpenTelemetry say; what begins
OTEL_EXPORTER_OTLP_TRACES_ goes before what begins OTEL_EXPORTER_OTLP_.

A collector that is busy or away is asked again within the time that it may take in all, and what
it has not taken by then is lost. That is logged once, until it takes something again.
"""

from __future__ import annotations

import email.utils
import gzip
import logging
import random
import ssl
import threading
import time
import zlib

import httpx
from opentelemetry.util.re import parse_env_headers

from runtime.limits import TRACES_ATTEMPTS_MAX, TRACES_TRIED_SECONDS
from runtime.tracing.variables import number, variable

log = logging.getLogger("mneme.tracing")

_HERE = "http://localhost:4318"
_PATH = "/v1/traces"
_SECONDS = 10.0
_BUSY = (429, 502, 503, 504)
_COMPRESSED = {"gzip": gzip.compress, "deflate": zlib.compress}


class Collector:
    """The one that the variables name."""

    def __init__(self) -> None:
        self._url = _url()
        self._seconds = number(
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"), _SECONDS
        )
        compression = _told("COMPRESSION").lower()
        self._compress = _COMPRESSED.get(compression)
        headers = {"content-type": "application/x-protobuf"}
        if self._compress is not None:
            headers["content-encoding"] = compression
        headers |= parse_env_headers(_told("HEADERS"), liberal=True)
        self._client = httpx.Client(headers=headers, verify=_certificates())
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
                left = max(deadline - time.monotonic(), 0.001)
                answer = self._client.post(self._url, content=content, timeout=left)
            except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
                # A connection that was kept may have ended: the second attempt is at once.
                why, wait = _no_answer(error), wait if attempt else 0
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                return _no_answer(error)
            else:
                if answer.is_success:
                    return ""
                why = f"answers {answer.status_code}"
                if answer.status_code not in _BUSY:
                    return why
                asked = _asked_to_wait(answer.headers.get("retry-after", ""))
                wait = wait if asked is None else asked
            if time.monotonic() + wait >= deadline or self._ended.wait(wait):
                return why
        return why


def _no_answer(error: Exception) -> str:
    return f"does not answer ({type(error).__name__})"


def _url() -> str:
    of_all = variable("OTEL_EXPORTER_OTLP_ENDPOINT") or _HERE
    return variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or of_all.removesuffix("/") + _PATH


def _told(name: str) -> str:
    of_traces = variable(f"OTEL_EXPORTER_OTLP_TRACES_{name}")
    return of_traces or variable(f"OTEL_EXPORTER_OTLP_{name}")


def _certificates() -> ssl.SSLContext | bool:
    """What httpx knows the collector by, and shows it."""
    authorities, own, key = _told("CERTIFICATE"), _told("CLIENT_CERTIFICATE"), _told("CLIENT_KEY")
    if not (authorities or own):
        return True
    known = ssl.create_default_context(cafile=authorities or None)
    if own:
        known.load_cert_chain(own, key or None)
    return known


def _asked_to_wait(retry_after: str) -> float | None:
    """Seconds until a time, or as many as are named; None where it is neither."""
    if retry_after.isdecimal():
        return float(retry_after)
    try:
        return max(email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time(), 0)
    except ValueError:
        return None
