"""The commands' way to a running service: one call, one decoded answer, one sentence when it fails.

Owns where a local service is found and how its errors read on a terminal. Knows no endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from runtime.limits import CALL_SECONDS_MAX, UPLOAD_SECONDS_MAX
from runtime.settings import Settings

if TYPE_CHECKING:  # else by the commands that call a service: a tenth of the start of one
    import httpx

_LOOPBACK = re.compile(r"localhost|127(\.\d+){3}|::1")


class CallFailed(Exception):
    """The service refused, failed or was not there; the message is one sentence. status: HTTP
    status, 0 without an answer.

    retry_after: seconds that the service asks to wait.
    """

    def __init__(self, message: str, status: int = 0, retry_after: float | None = None):
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class NobodyAnswers(CallFailed):
    """Nothing listens at the address."""


class Client:
    """Calls to one service with one credential. Use it as a context manager.

    base_url  such as http://127.0.0.1:8000
    token     an API key, an access token or the operator token; empty for public operations
    """

    def __init__(self, base_url: str, token: str = ""):
        import httpx

        self.base_url = base_url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # On loopback nothing leaves the machine: no proxy may see it, and no certificate is
            # issued for such an address.
            remote = not is_loopback(self.base_url)
            self._http = httpx.Client(
                base_url=self.base_url,
                headers=headers,
                verify=remote,
                trust_env=remote,
                timeout=CALL_SECONDS_MAX,
            )
        except UnicodeEncodeError:
            raise CallFailed("The key holds a character that no API key has.") from None
        except (httpx.InvalidURL, ValueError) as error:
            raise CallFailed(f"{base_url} is not the address of a service: {error}.") from None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: tuple[int, ...] = (),
    ) -> dict[str, Any]:
        """The decoded body of a success, or of one of the statuses in `accept`; {} when it has
        none. Raises CallFailed.
        """
        answer = self._answer(method, path, json=body, headers=headers)
        if answer.status_code in accept:
            return dict(answer.json())
        return content_of(method, path, answer, self.base_url)

    def text(self, path: str) -> str:
        """The text that a GET is answered with. Raises CallFailed."""
        answer = self._answer("GET", path)
        if not answer.is_success:
            content_of("GET", path, answer, self.base_url)
        return answer.text

    def upload(
        self, path: str, filename: str, file: BinaryIO, fields: Mapping[str, str], key: str
    ) -> dict[str, Any]:
        """POST a form with a file in it, streamed, under an Idempotency-Key. Raises CallFailed."""
        headers = {"Idempotency-Key": key}
        answer = self._answer(
            "POST",
            path,
            files={"file": (filename, file)},
            data=dict(fields),
            headers=headers,
            timeout=UPLOAD_SECONDS_MAX,
        )
        return content_of("POST", path, answer, self.base_url)

    def _answer(self, method: str, path: str, **sent: Any) -> httpx.Response:
        import httpx

        try:
            return self._http.request(method, path, **sent)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise NobodyAnswers(
                f"No service answers at {self.base_url}; start one with `mneme serve`."
            ) from None
        except httpx.HTTPError as error:
            raise CallFailed(
                f"{method} {self.base_url}{path} failed: "
                f"{str(error).rstrip('.') or type(error).__name__}."
            ) from None


def content_of(method: str, path: str, answer: httpx.Response, base_url: str) -> dict[str, Any]:
    """The decoded body of a success, {} when it has none. Raises CallFailed."""
    try:
        content = answer.json() if answer.content else {}
    except ValueError:
        raise CallFailed(
            f"{base_url} answers, but not like this service: {path} did not give JSON.",
            answer.status_code,
        ) from None
    if answer.is_success and isinstance(content, dict):
        return content
    error = content.get("error") if isinstance(content, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    retry_after = answer.headers.get("Retry-After", "")
    raise CallFailed(
        f"{method} {path} was refused with {answer.status_code}: {message or 'no reason given.'}",
        answer.status_code,
        float(retry_after) if retry_after.isdecimal() else None,
    )


def is_loopback(url: str) -> bool:
    """Whether the address is on this machine. Raises httpx.InvalidURL."""
    import httpx

    return _LOOPBACK.fullmatch(httpx.URL(url).host) is not None


def local_base_url(settings: Settings) -> str:
    """Where a service with these settings is reached from this machine."""
    return settings.http.base_url
