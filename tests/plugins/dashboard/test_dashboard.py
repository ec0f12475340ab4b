"""The dashboard's mount: its files, the session in its cookie, and the passage to the API. The
pages themselves: tests/browser.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from http.cookies import Morsel, SimpleCookie
from typing import Any

import httpx
import pytest

from plugins.dashboard.site import FILES
from tests.support.in_process import PASSWORD, InProcess, in_process

ADA = {"email": "ada@example.com", "password": PASSWORD}
NAMES = [path.relative_to(FILES).as_posix() for path in FILES.glob("**/*") if path.is_file()]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("dashboard")) as service:
        service.register("ada@example.com")
        yield service


class BrowserSession:
    """What a browser does: it keeps the cookie, and its scripts send the session's anti-forgery
    value.
    """

    def __init__(self, service: InProcess, credentials: dict[str, str] | None = None):
        self.service, self.cookie, self.csrf = service, "", ""
        if credentials is not None:
            answer = self("POST", "/dashboard/session", credentials)
            assert answer.status_code in (200, 201), answer.text
            self.cookie, self.csrf = f"mneme_session={kept(answer).value}", answer.json()["csrf"]

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        sent = {"Cookie": self.cookie, "X_Mneme_CSRF": self.csrf} | headers
        return self.service.request(
            method, path, body, **{name: value for name, value in sent.items() if value}
        )

    @property
    def token(self) -> str:
        return self.cookie.partition("=")[2]


def kept(answer: httpx.Response) -> Morsel[str]:
    return SimpleCookie(answer.headers["Set-Cookie"])["mneme_session"]


@pytest.fixture
def ada(service: InProcess) -> BrowserSession:
    return BrowserSession(service, ADA)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", NAMES)
def test_files_are_served_with_their_type_their_version_and_a_strict_policy(
    service: InProcess, path: str
) -> None:
    answer = service.request("GET", f"/dashboard/{path}", Accept_Encoding="gzip")
    types = {
        "js": "text/javascript",
        "css": "text/css",
        "html": "text/html",
        "svg": "image/svg+xml",
    }
    assert answer.status_code == 200
    assert (
        answer.headers["Content-Type"]
        == types.get(path.rpartition(".")[2], "text/plain") + "; charset=utf-8"
    )
    assert answer.content == (FILES / path).read_bytes()
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "same-origin"
    policy = answer.headers["Content-Security-Policy"]
    assert (
        "default-src 'none'" in policy
        and "unsafe" not in policy
        and "frame-ancestors 'none'" in policy
    )
    again = service.request("GET", f"/dashboard/{path}", If_None_Match=answer.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", NAMES)
def test_files_bring_everything_with_them_and_never_write_markup(path: str) -> None:
    text = (FILES / path).read_text()
    if path.endswith(".html"):
        assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\bon\w+=", text)
    if path.endswith((".js", ".css", ".html")):
        assert not re.search(
            r"""(?:src|href|url|import|from)\s*[=(]?\s*["']?(?:https?:)?//""", text
        )
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text
        )


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/memories",
        "/memories/mem_06a1kz0b8h2r4c6n8e0t2v4x6z8a1c3e",
        "/memories/a.b",
        "/webhooks/%zz",
        "/no/such/view",
    ],
)
def test_every_view_is_the_page(service: InProcess, path: str) -> None:
    answer = service.request("GET", f"/dashboard{path}")
    assert answer.status_code == 200 and answer.content == (FILES / "index.html").read_bytes()


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/../pyproject.toml",
        "/dashboard/%2e%2e/site.py",
        "/dashboard/..%2fsite.py",
        "/dashboard/pages/%2e%2e%2f%2e%2e%2fsite.py",
        "/dashboard/....//site.py",
        "/dashboard//etc/pass.wd",
        "/dashboard/app.js%00.css",
        "/dashboard/missing.js",
    ],
)
def test_no_path_leads_out_of_the_files(service: InProcess, path: str) -> None:
    assert service.request("GET", path).status_code == 404


def test_files_are_only_read(service: InProcess) -> None:
    refused = service.request("POST", "/dashboard/app.js", {})
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
    head = service.request("HEAD", "/dashboard/app.js")
    assert (head.status_code, head.content) == (200, b"")


def test_what_the_first_view_needs_is_small(service: InProcess) -> None:
    """All scripts of the shell, the sign-in form and the overview with its chart, as they
    travel.
    """
    first = [
        "theme.js",
        "app.js",
        "api.js",
        "kit.js",
        "format.js",
        "wording.js",
        "charts.js",
        "vendor/uplot/uplot.js",
    ]
    first += ["pages/index.js", "pages/sign-in.js", "pages/overview.js"]
    assert sum(len(gzip.compress((FILES / path).read_bytes())) for path in first) < 50_000


# --- the session ----------------------------------------------------------------------------------


def test_signing_up_signs_in(service: InProcess) -> None:
    visitor = BrowserSession(
        service, {"email": "new@example.com", "password": PASSWORD, "full_name": "New Person"}
    )
    assert visitor("GET", "/dashboard/session").json()["account"]["full_name"] == "New Person"


def test_the_token_is_in_a_closed_cookie_and_nowhere_else(service: InProcess) -> None:
    answer = service.request("POST", "/dashboard/session", ADA)
    cookie = kept(answer)
    assert (cookie["path"], cookie["httponly"], cookie["samesite"], cookie["secure"]) == (
        "/dashboard",
        True,
        "Strict",
        "",
    )
    assert int(cookie["max-age"]) > 0
    assert answer.json()["account"]["email"] == "ada@example.com"
    assert cookie.value not in answer.text and answer.json()["csrf"] not in cookie.value


def test_over_https_the_cookie_is_this_host_s_and_never_travels_in_the_clear(
    tmp_path: Any,
) -> None:
    with in_process(tmp_path, http__trusted_proxies=["127.0.0.1"]) as service:

        def ask(method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
            return service.request(method, path, body, X_Forwarded_Proto="https", **headers)

        answer = ask("POST", "/dashboard/session", {**ADA, "full_name": "Ada Lovelace"})
        cookies = SimpleCookie(answer.headers["Set-Cookie"])
        assert list(cookies) == ["__Host-mneme_session"]
        cookie = cookies["__Host-mneme_session"]
        # What a browser asks of a cookie of that name.
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
        mine = f"__Host-mneme_session={cookie.value}"
        session = service.register("eve@example.com")
        for planted in (f"mneme_session={session}; {mine}", f"{mine}; mneme_session={session}"):
            me = ask("GET", "/dashboard/api/v1/auth/me", Cookie=planted)
            assert me.json()["email"] == "ada@example.com"
        planted = ask("GET", "/dashboard/session", Cookie=f"mneme_session={session}")
        assert planted.json()["account"] is None
        out = ask("DELETE", "/dashboard/session", Cookie=mine, X_Mneme_CSRF=answer.json()["csrf"])
        assert out.headers["Set-Cookie"].startswith("__Host-mneme_session=; Path=/; Max-Age=0")
        assert out.headers["Strict-Transport-Security"] == "max-age=31536000"


def test_nobody_is_signed_in_at_first_or_with_a_cookie_that_is_worth_nothing(
    service: InProcess,
) -> None:
    nobody = {"account": None, "csrf": None, "registration": "open"}
    assert service.request("GET", "/dashboard/session").json() == nobody
    answer = service.request("GET", "/dashboard/session", Cookie="mneme_session=forged")
    assert answer.json() == nobody and kept(answer)["max-age"] == "0"


def test_signing_out_revokes_the_token(ada: BrowserSession) -> None:
    assert ada("DELETE", "/dashboard/session", X_Mneme_CSRF="0" * 64).status_code == 403
    answer = ada("DELETE", "/dashboard/session")
    assert answer.status_code == 204 and kept(answer)["max-age"] == "0"
    assert ada.service.request("GET", "/v1/auth/me", who=ada.token).status_code == 401
    assert ada("GET", "/dashboard/api/v1/memories").status_code == 401


def test_what_the_api_refuses_is_passed_on(service: InProcess) -> None:
    wrong = service.request("POST", "/dashboard/session", {**ADA, "password": "not the password"})
    assert wrong.status_code == 401 and "Set-Cookie" not in wrong.headers
    assert wrong.json()["error"]["message"] == "The e-mail address or the password is wrong."
    taken = service.request("POST", "/dashboard/session", {**ADA, "full_name": "Eve"})
    assert (taken.status_code, taken.json()["error"]["param"]) == (409, "email")
    assert service.request("POST", "/dashboard/session", [1]).status_code == 400
    assert (
        service.request(
            "POST", "/dashboard/session", b"{", Content_Type="application/json"
        ).status_code
        == 400
    )
    assert service.request("PUT", "/dashboard/session", {}).status_code == 405


def test_signing_in_again_ends_the_session_that_it_replaces(ada: BrowserSession) -> None:
    again = ada("POST", "/dashboard/session", ADA)
    assert again.status_code == 200 and kept(again).value != ada.token
    assert ada.service.request("GET", "/v1/auth/me", who=ada.token).status_code == 401
    # Without the value of the old one nothing is ended: any page may send a form.
    other = BrowserSession(ada.service, ADA)
    other("POST", "/dashboard/session", ADA, X_Mneme_CSRF="0" * 64)
    assert ada.service.request("GET", "/v1/auth/me", who=other.token).status_code == 200


def test_signing_in_is_throttled_like_a_login(tmp_path: Any) -> None:
    with in_process(tmp_path, auth__login_per_minute=1) as service:
        statuses = [
            service.request("POST", "/dashboard/session", ADA).status_code for _ in range(3)
        ]
        assert statuses[-1] == 429
        assert int(service.request("POST", "/dashboard/session", ADA).headers["Retry-After"]) >= 1


# --- other sites ----------------------------------------------------------------------------------

ELSEWHERE = [
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", ELSEWHERE, ids=str)
def test_other_sites_do_nothing_even_with_the_cookie(
    ada: BrowserSession, headers: dict[str, str]
) -> None:
    assert (
        ada("POST", "/dashboard/api/v1/memories/raw", {"content": "forged"}, **headers).status_code
        == 403
    )
    assert ada("GET", "/dashboard/api/v1/memories", **headers).status_code == 403
    assert ada("GET", "/dashboard/session", **headers).status_code == 403
    assert ada("POST", "/dashboard/session", ADA, **headers).status_code == 403
    assert (
        ada("GET", "/dashboard/session", Sec_Fetch_Site="same-origin").json()["account"] is not None
    )


def test_a_form_of_another_site_cannot_sign_anybody_in(service: InProcess) -> None:
    form = b'{"email": "ada@example.com", "password": "' + PASSWORD.encode() + b'"}'
    answer = service.request("POST", "/dashboard/session", form, Content_Type="text/plain")
    assert answer.status_code == 415 and "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("value", ["", "0" * 64, "x"])
def test_changes_need_the_session_s_own_anti_forgery_value(ada: BrowserSession, value: str) -> None:
    other = BrowserSession(ada.service, ADA)
    for forged in (value, other.csrf):
        for method, path in (
            ("POST", "/v1/memories/raw"),
            ("PATCH", "/v1/memories/mem_1"),
            ("DELETE", "/v1/account?confirm=erase-account"),
        ):
            assert (
                ada(
                    method, f"/dashboard/api{path}", {"content": "forged"}, X_Mneme_CSRF=forged
                ).status_code
                == 403
            )
    assert ada("GET", "/dashboard/api/v1/memories").json()["total_count"] == 0


def test_reading_under_the_value_of_another_session_is_refused(ada: BrowserSession) -> None:
    other = BrowserSession(ada.service, ADA)
    refused = ada("GET", "/dashboard/api/v1/memories", X_Mneme_CSRF=other.csrf)
    assert refused.status_code == 403
    assert refused.json()["error"]["details"][0]["type"] == "other_session"
    assert ada("GET", "/dashboard/api/v1/memories").status_code == 200
    followed = ada.service.request("GET", "/dashboard/api/v1/memories", Cookie=ada.cookie)
    assert followed.status_code == 200  # a link of the page, which sends no header


# --- the passage ----------------------------------------------------------------------------------


def test_the_passage_is_the_api_as_the_account_that_is_signed_in(ada: BrowserSession) -> None:
    made = ada(
        "POST",
        "/dashboard/api/v1/memories/raw",
        {"content": "Ada likes tea."},
        Idempotency_Key="k1",
    )
    again = ada(
        "POST",
        "/dashboard/api/v1/memories/raw",
        {"content": "Ada likes tea."},
        Idempotency_Key="k1",
    )
    assert made.status_code in (201, 202) and again.json()["id"] == made.json()["id"]
    page = ada("GET", "/dashboard/api/v1/memories?limit=1")
    assert page.json()["items"][0]["content"] == "Ada likes tea."
    assert page.headers["X-Request-ID"] and page.headers["Cache-Control"] == "no-store"
    assert ada("DELETE", f"/dashboard/api/v1/memories/{made.json()['id']}").status_code == 200


def test_what_comes_through_is_sandboxed(ada: BrowserSession) -> None:
    form = (
        b'--x\r\nContent-Disposition: form-data; name="file"; '
        b'filename="a.html"\r\n\r\n<script>alert(1)</script><p>Hello</p>\r\n--x--\r\n'
    )
    upload = ada(
        "POST",
        "/dashboard/api/v1/documents/upload",
        form,
        Content_Type="multipart/form-data; boundary=x",
    )
    assert upload.status_code == 202, upload.text
    page = ada("GET", f"/dashboard/api/v1/documents/{upload.json()['document']['id']}/content")
    assert page.status_code == 200 and b"alert(1)" in page.content
    assert page.headers["Content-Disposition"].startswith("attachment")
    assert "sandbox" in page.headers["Content-Security-Policy"]


def test_credentials_of_the_request_do_not_count(ada: BrowserSession) -> None:
    eve = ada.service.register("eve@example.com")
    assert (
        ada("GET", "/dashboard/api/v1/auth/me", Authorization=f"Bearer {eve}").json()["email"]
        == "ada@example.com"
    )
    nobody = BrowserSession(ada.service)
    assert (
        nobody("GET", "/dashboard/api/v1/auth/me", Authorization=f"Bearer {eve}").status_code == 401
    )


@pytest.mark.parametrize(
    "path",
    [
        "/v1/auth/login",
        "/v1/auth/login/",
        "/v1/auth/%6Cogin",
        "/v1/auth/register",
        "/v1/auth/logout",
        "/docs",
        "/metrics",
    ],
)
def test_what_answers_with_a_token_is_not_reached(ada: BrowserSession, path: str) -> None:
    assert ada("POST", f"/dashboard/api{path}", ADA).status_code == 404


def test_an_operator_s_routes_stay_the_operator_s(ada: BrowserSession) -> None:
    assert ada("POST", "/dashboard/api/v1/internal/accounts", {}).status_code in (401, 403)


def test_the_passage_does_not_lead_into_itself(ada: BrowserSession) -> None:
    assert ada("GET", "/dashboard/api/dashboard/session").status_code == 404
    assert ada("GET", "/dashboard/api/v1/../dashboard/session").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/v1/memories", "/v1/account/export", "/v1/auth/me", "/v1/auth/api-keys", "/v1/billing/tiers"],
)
def test_nobody_gets_through_without_a_session(service: InProcess, path: str) -> None:
    assert service.request("GET", f"/dashboard/api{path}").status_code == 401


@pytest.mark.parametrize(
    "raw_path", [b"/dashboard/api/v1/caf\xc3\xa9", b"/dashboard/api/v1/\xff", b""]
)
def test_an_address_that_is_not_ascii_leads_nowhere(ada: BrowserSession, raw_path: bytes) -> None:
    """As no client writes it; httpx would escape it. b"": the server says only what it decoded."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/dashboard/api/v1/café",
        "raw_path": raw_path,
        "query_string": b"",
        "headers": [(b"host", b"mneme.test"), (b"cookie", ada.cookie.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    ada.service.run(ada.service.application(scope, receive, send))
    assert sent[0]["status"] == 404
