"""The application below /dashboard: files, the session, the passage to the API."""

from __future__ import annotations

import gzip
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import orjson

from runtime.api.mount import Answer, InProcessClient, Message, Receive, Scope, Send
from runtime.errors import (
    BadRequest,
    MethodNotAllowed,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    UnsupportedMediaType,
)

if TYPE_CHECKING:
    from runtime.settings import Settings


PREFIX = "/dashboard"
SESSION = PREFIX + "/session"
API = PREFIX + "/api"
COOKIE = "mneme_session"
# Over HTTPS: a browser takes a cookie of this name from this very host alone, and from no sibling
# of its domain, which could plant a session of its own; it has to be good for every path.
SECURE_COOKIE = "__Host-" + COOKIE
CSRF_HEADER = b"x-mneme-csrf"
# Their answers hold a token, or would leave a cookie behind that opens nothing.
UNREACHED = frozenset(("/v1/auth/login", "/v1/auth/register", "/v1/auth/logout"))

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src "
    "'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for "
    "'script'; trusted-types 'none'"
)
ANSWER_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"

FILES = Path(__file__).with_name("files")
_TYPES = {
    ".html": b"text/html",
    ".js": b"text/javascript",
    ".css": b"text/css",
    ".svg": b"image/svg+xml",
}
# Below these a view has an identifier, which may hold a dot without being a file.
_VIEWS_OF_ONE = frozenset(f"{PREFIX}/{view}" for view in ("memories", "documents", "webhooks"))
_SAFE_METHODS = ["GET", "HEAD"]
_SMALLER_AT_LEAST = 0.9  # a file that gzip leaves larger than this share of itself is sent as it is

Headers = Mapping[bytes, bytes]
Pairs = list[tuple[bytes, bytes]]


def claims(path: str, headers: Headers) -> bool:
    return path == PREFIX or path.startswith(PREFIX + "/")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, ready to be sent."""

    content: bytes
    compressed: bytes | None
    headers: tuple[tuple[bytes, bytes], ...]
    etag: bytes

    @classmethod
    def of(cls, path: Path) -> Asset:
        content = path.read_bytes()
        compressed = gzip.compress(content, mtime=0)
        etag = b'"' + hashlib.sha256(content).hexdigest()[:32].encode() + b'"'
        headers = (
            (b"content-type", _TYPES.get(path.suffix, b"text/plain") + b"; charset=utf-8"),
            (b"content-security-policy", PAGE_POLICY.encode()),
            (b"referrer-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (
                b"cache-control",
                b"no-cache",
            ),  # asked for again each time, and answered 304 unless it changed
            (b"vary", b"accept-encoding"),
            (b"etag", etag),
        )
        return cls(
            content,
            compressed if len(compressed) < _SMALLER_AT_LEAST * len(content) else None,
            headers,
            etag,
        )


class Dashboard:
    """The ASGI application. Files are read once, at the start: what is served is what is in this
    table, whatever a path says.
    """

    def __init__(self, client: InProcessClient, settings: Settings):
        self._client = client
        self._has_chat = settings.llm.base_url is not None
        self._registration = settings.auth.registration
        self._assets = {
            f"{PREFIX}/{path.relative_to(FILES).as_posix()}": Asset.of(path)
            for path in FILES.glob("**/*")
            if path.is_file()
        }
        self._page = self._assets[f"{PREFIX}/index.html"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path = dict(scope["headers"]), scope["path"]
        if path == SESSION:
            _refuse_other_sites(scope, headers)
            await self._session(scope, headers, receive, send)
        elif path.startswith(API + "/"):
            _refuse_other_sites(scope, headers)
            await self._forward(scope, headers, receive, send)
        else:
            await self._show(scope, headers, send)

    # --- pages ------------------------------------------------------------------------------------

    async def _show(self, scope: Scope, headers: Headers, send: Send) -> None:
        if scope["method"] not in _SAFE_METHODS:
            raise MethodNotAllowed(_SAFE_METHODS)
        asset = self._assets.get(scope["path"])
        if asset is None:
            above, _, last = scope["path"].rpartition("/")
            if "." in last and above not in _VIEWS_OF_ONE:
                raise NotFound("The dashboard has no such file.")
            asset = self._page
        if asset.etag in headers.get(b"if-none-match", b""):
            await _send(send, 304, b"", list(asset.headers))
            return
        content, further = asset.content, list(asset.headers)
        if asset.compressed is not None and b"gzip" in headers.get(b"accept-encoding", b""):
            content = asset.compressed
            further.append((b"content-encoding", b"gzip"))
        further.append((b"content-length", b"%d" % len(content)))
        await _send(send, 200, b"" if scope["method"] == "HEAD" else content, further)

    # --- the session ------------------------------------------------------------------------------

    async def _session(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        token = _token(scope, headers)
        if scope["method"] in _SAFE_METHODS:
            await self._tell(scope, token, send)
        elif scope["method"] == "POST":
            await self._sign_in(scope, headers, receive, send)
        elif scope["method"] == "DELETE":
            if token is not None:
                _check_csrf(headers, token)
                await self._client.call(
                    "POST", "/v1/auth/logout", within=scope, authorization=f"Bearer {token}"
                )
            await _send(send, 204, b"", [(b"set-cookie", _cookie(scope, "", 0))])
        else:
            raise MethodNotAllowed([*_SAFE_METHODS, "POST", "DELETE"])

    async def _tell(self, scope: Scope, token: str | None, send: Send) -> None:
        """Not being signed in is an answer, not an error: it is how every visit begins."""
        nobody = {"account": None, "csrf": None, "registration": self._registration}
        if token is None:
            await _send_json(send, 200, nobody)
            return
        answer = await self._client.call(
            "GET", "/v1/auth/me", within=scope, authorization=f"Bearer {token}"
        )
        if answer.status == 401:
            await _send_json(send, 200, nobody, [(b"set-cookie", _cookie(scope, "", 0))])
        elif answer.status != 200:
            await _pass_on(send, answer)
        else:
            await _send_json(send, 200, self._session_view(answer, token))

    async def _sign_in(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if (
            headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            != b"application/json"
        ):
            raise UnsupportedMediaType("Send e-mail address and password as application/json.")
        try:
            given: Any = orjson.loads(await self._client.body(scope, receive))
        except orjson.JSONDecodeError:
            raise BadRequest("The body is not JSON.") from None
        operation = "register" if isinstance(given, dict) and "full_name" in given else "login"
        agent = [(b"user-agent", headers[b"user-agent"])] if b"user-agent" in headers else []
        answer = await self._client.call(
            "POST", f"/v1/auth/{operation}", within=scope, json=given, headers=agent
        )
        if answer.status >= 400:
            await _pass_on(send, answer)
            return
        session = answer.json()
        token = session["access_token"]
        replaced = _token(scope, headers)
        if replaced is not None and _is_csrf_of(headers, replaced):
            await self._client.call(
                "POST", "/v1/auth/logout", within=scope, authorization=f"Bearer {replaced}"
            )
        me = await self._client.call(
            "GET", "/v1/auth/me", within=scope, authorization=f"Bearer {token}"
        )
        if me.status != 200:
            await _pass_on(send, me)
            return
        cookie = _cookie(scope, token, session["expires_in"])
        await _send_json(
            send,
            answer.status,
            self._session_view(me, token),
            [(b"set-cookie", cookie)],
        )

    def _session_view(self, me: Answer, token: str) -> dict[str, Any]:
        """A session as the page knows it. chat: whether the service has a model to chat with."""
        return {
            "account": me.json(),
            "csrf": csrf_of(token),
            "chat": self._has_chat,
            "registration": self._registration,
        }

    # --- the passage to the API -------------------------------------------------------------------

    async def _forward(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        # As it was sent. What is no ASCII is no address (RFC 3986), so nothing is there.
        path = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")[
            len(API) :
        ]
        if (
            not path.isascii()
            or not path.startswith("/v1/")
            or unquote(path).rstrip("/") in UNREACHED
        ):
            raise NotFound(
                "The dashboard reaches what is below /v1, and signs in and out at "
                "/dashboard/session."
            )
        token = _token(scope, headers)
        if token is None:
            raise Unauthenticated("Nobody is signed in.")
        if scope["method"] not in _SAFE_METHODS or CSRF_HEADER in headers:
            _check_csrf(headers, token)
        kept = [
            pair
            for pair in scope["headers"]
            if pair[0] not in (b"authorization", b"cookie", CSRF_HEADER)
        ]

        async def sandboxed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message["headers"],
                    (b"content-security-policy", ANSWER_POLICY.encode()),
                    (b"cross-origin-resource-policy", b"same-origin"),
                ]
            await send(message)

        await self._client.forward(
            scope,
            receive,
            sandboxed,
            path=path,
            headers=[*kept, (b"authorization", f"Bearer {token}".encode())],
        )


def csrf_of(token: str) -> str:
    """The anti-forgery value of a session: whoever has it cannot find the token, and whoever has
    neither cannot guess it.
    """
    return hmac.new(token.encode(), b"mneme dashboard csrf", hashlib.sha256).hexdigest()


def _token(scope: Scope, headers: Headers) -> str | None:
    wanted = SECURE_COOKIE if scope["scheme"] == "https" else COOKIE
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == wanted and value:
            return value
    return None


def _cookie(scope: Scope, token: str, seconds: int) -> bytes:
    attributes = f"Max-Age={seconds}; HttpOnly; SameSite=Strict"
    if scope["scheme"] == "https":
        return f"{SECURE_COOKIE}={token}; Path=/; {attributes}; Secure".encode()
    return f"{COOKIE}={token}; Path={PREFIX}; {attributes}".encode()


def _is_csrf_of(headers: Headers, token: str) -> bool:
    return hmac.compare_digest(headers.get(CSRF_HEADER, b""), csrf_of(token).encode())


def _check_csrf(headers: Headers, token: str) -> None:
    """The page finds in `details` that the session is another one than it was."""
    if _is_csrf_of(headers, token):
        return
    said = "X-Mneme-CSRF does not belong to this session. Load the page again."
    where = ["header", "X-Mneme-CSRF"]
    raise PermissionDenied(
        said, details=[{"loc": where, "msg": "Not of this session.", "type": "other_session"}]
    )


def _refuse_other_sites(scope: Scope, headers: Headers) -> None:
    """Believe the browser where it says that another site is behind a request. Raises
    PermissionDenied.
    """
    safe = scope["method"] in _SAFE_METHODS
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        foreign = site != b"same-origin" and not (
            safe and site == b"none"
        )  # none: typed, or opened from a bookmark
    else:
        origin = headers.get(b"origin")
        foreign = origin is not None and origin.partition(b"://")[2] != headers.get(b"host", b"")
    if foreign:
        raise PermissionDenied("This request comes from another site.")


async def _pass_on(send: Send, answer: Answer) -> None:
    """What the API refused, as it said it."""
    further = (
        [(b"retry-after", answer.headers["retry-after"].encode())]
        if "retry-after" in answer.headers
        else []
    )
    await _send(
        send, answer.status, answer.body, [(b"content-type", b"application/json"), *further]
    )


async def _send_json(send: Send, status: int, body: Any, headers: Pairs | None = None) -> None:
    await _send(
        send, status, orjson.dumps(body), [(b"content-type", b"application/json"), *(headers or [])]
    )


async def _send(send: Send, status: int, body: bytes, headers: Pairs) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
