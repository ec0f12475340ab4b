"""Pages of other origins: those of `http.cors_origins` may call, exactly those, and without
anything that a browser would add by itself.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from runtime.settings import Settings, SettingsError
from tests.support.note_service import AUTHORIZED, CANARY, JSON, build, through
from tests.support.served import Served

PAGE = "https://app.example"
OTHERS = [
    "https://evil.example",
    "http://app.example",
    "https://app.example:8443",
    "https://app.example.evil.example",
    "https://sub.app.example",
    "https://APP.example",
    "null",
]
ASKED = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
}


def told(answer: httpx.Response) -> dict[str, str]:
    """What the browser is told about who may read."""
    return {
        name: value for name, value in answer.headers.items() if name.startswith("access-control-")
    }


def preflight(app: Any, origin: str, path: str = "/v1/notes", **further: Any) -> httpx.Response:
    return through(app, "OPTIONS", path, headers={"Origin": origin, **ASKED}, **further)


@pytest.mark.parametrize("path", ["/v1/notes", "/v1/notes/one", "/nowhere", "/v1/think"])
def test_a_browser_is_told_before_a_page_of_the_setting_calls(path: str) -> None:
    app, shards = build(cors_origins=[PAGE, "http://localhost:5173"])
    answer = preflight(app, PAGE, path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert told(answer) == {
        "access-control-allow-origin": PAGE,
        "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "access-control-allow-headers": ASKED["Access-Control-Request-Headers"],
        "access-control-max-age": "600",
        "access-control-expose-headers": "*",
    }
    assert answer.headers["vary"] == "origin" and answer.headers["x-request-id"]
    assert shards.calls == []


@pytest.mark.parametrize(
    ("method", "path", "status", "content"),
    [
        ("GET", "/v1/notes", 200, None),
        ("POST", "/v1/notes", 201, b'{"content": "x"}'),
        ("POST", "/v1/notes", 422, b"{}"),
        ("GET", "/v1/failures/rate", 429, None),
        ("GET", "/v1/failures/crash", 500, None),
        ("GET", "/v1/health", 200, None),
        ("GET", "/nowhere", 404, None),
    ],
)
def test_the_page_may_read_every_answer(
    method: str, path: str, status: int, content: bytes | None
) -> None:
    app, _ = build(cors_origins=[PAGE])
    answer = through(app, method, path, headers={**JSON, "Origin": PAGE}, content=content)
    assert answer.status_code == status and CANARY not in answer.text
    assert told(answer) == {
        "access-control-allow-origin": PAGE,
        "access-control-expose-headers": "*",
    }
    assert answer.headers["vary"] == "origin"


def test_a_refused_credential_may_be_read_too() -> None:
    app, _ = build(cors_origins=[PAGE])
    answer = through(app, "GET", "/v1/notes", headers={"Origin": PAGE})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", OTHERS)
def test_other_pages_are_told_nothing(origin: str) -> None:
    app, _ = build(cors_origins=[PAGE])
    assert preflight(app, origin).status_code == 405
    assert told(preflight(app, origin)) == {}
    answer = through(app, "GET", "/v1/notes", headers={**AUTHORIZED, "Origin": origin})
    assert told(answer) == {} and answer.headers["vary"] == "origin"


@pytest.mark.ray
def test_browsers_are_told_by_a_service_on_ray(service_on_ray: Served) -> None:
    def asked(origin: str) -> tuple[int, str | None]:
        answer = service_on_ray.http.options("/v1/memories", headers={"Origin": origin, **ASKED})
        return answer.status_code, answer.headers.get("access-control-allow-origin")

    assert (asked(PAGE), asked(OTHERS[0])) == ((204, PAGE), (405, None))
    headers = {"Origin": PAGE, "Authorization": f"Bearer {service_on_ray.register()}"}
    answer = service_on_ray.http.get("/v1/memories", headers=headers)
    assert (answer.status_code, told(answer)["access-control-allow-origin"]) == (200, PAGE)
    assert asked(PAGE) == (204, PAGE), "the connection goes on"


def test_nobody_may_by_default() -> None:
    app, _ = build()
    assert preflight(app, PAGE).status_code == 405
    answer = through(app, "GET", "/v1/notes", headers={**AUTHORIZED, "Origin": PAGE})
    assert told(answer) == {} and "vary" not in answer.headers


def test_options_without_a_question_is_a_method_like_any_other() -> None:
    app, _ = build(cors_origins=[PAGE])
    answer = through(app, "OPTIONS", "/v1/notes", headers={"Origin": PAGE})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_preflight_in_the_clear_is_refused_where_https_is_required() -> None:
    app, _ = build(cors_origins=[PAGE], require_https=True)
    assert preflight(app, PAGE, peer="203.0.113.9").status_code == 400
    assert preflight(app, PAGE, peer="203.0.113.9", base="https://service").status_code == 204


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "https://*.app.example",
        "https://app.example/",
        "https://app.example/path",
        "https://App.example",
        "https://app.example:443",
        "http://app.example:80",
        "https://app.example:0",
        "app.example",
        "null",
        "https://",
        "https://user@app.example",
        "https://app.example\n",
    ],
)
def test_what_no_browser_would_send_is_refused_at_the_start(origin: str) -> None:
    with pytest.raises(SettingsError, match=r"http\.cors_origins .* is not valid: each is one"):
        Settings.load({"http": {"cors_origins": [PAGE, origin]}})


@pytest.mark.parametrize(
    "origin",
    ["http://localhost:5173", "https://app.example:8443", "http://[::1]:3000", "tauri://localhost"],
)
def test_what_browsers_send_is_taken(origin: str) -> None:
    given = Settings.load(environ={"MNEME_HTTP__CORS_ORIGINS": f"{PAGE},{origin}"})
    assert given.http.cors_origins == (PAGE, origin)
