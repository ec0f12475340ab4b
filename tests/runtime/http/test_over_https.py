"""Behind proxies and over HTTPS: who the caller is, what is refused in the clear, and what whoever
came over HTTPS is told.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.note_service import AUTHORIZED, build, through

STRICT = "strict-transport-security"


@pytest.mark.parametrize(
    ("peer", "base", "headers", "accepted"),
    [
        ("203.0.113.9", "https://service", {}, True),
        ("203.0.113.9", "http://service", {}, False),
        ("127.0.0.1", "http://service", {}, False),
        ("203.0.113.9", "http://service", {"X-Forwarded-Proto": "https"}, False),
        ("10.1.2.3", "http://service", {"X-Forwarded-Proto": "https"}, True),
        ("::ffff:10.1.2.3", "http://service", {"X-Forwarded-Proto": "https"}, True),
        ("10.1.2.3", "http://service", {"X-Forwarded-Proto": "https, http"}, False),
        ("10.1.2.3", "https://service", {"X-Forwarded-Proto": "http"}, False),
        ("10.1.2.3", "http://service", {}, False),
        ("not an address", "http://service", {"X-Forwarded-Proto": "https"}, False),
    ],
)
def test_https_is_required_where_the_settings_say_so(peer, base, headers, accepted):
    app, _ = build(require_https=True, trusted_proxies=["10.0.0.0/8"])
    answer = through(
        app, "GET", "/v1/notes", peer=peer, base=base, headers={**AUTHORIZED, **headers}
    )
    assert answer.status_code == (200 if accepted else 400)


def test_health_stays_reachable_from_loopback():
    app, _ = build(require_https=True)
    assert through(app, "GET", "/v1/health").status_code == 200
    assert through(app, "GET", "/v1/health", peer="::1").status_code == 200
    assert through(app, "GET", "/v1/health", peer="203.0.113.9").status_code == 400


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "1.1.1.1", "203.0.113.9"),
        ("10.1.2.3", "1.1.1.1", "1.1.1.1"),
        ("10.1.2.3", "6.6.6.6, 1.1.1.1, 10.9.9.9", "1.1.1.1"),
        ("10.1.2.3", "", "10.1.2.3"),
        ("10.1.2.3", "x" * 500, "x" * 64),
    ],
)
def test_the_caller_is_the_last_address_that_is_no_trusted_proxy(peer, forwarded, client):
    app, shards = build(trusted_proxies=["10.0.0.0/8"])
    through(
        app, "GET", "/v1/notes", peer=peer, headers={**AUTHORIZED, "X-Forwarded-For": forwarded}
    )
    assert shards.calls[-1].client == client


@pytest.mark.parametrize("path", ["/v1/notes", "/docs", "/nowhere"])
@pytest.mark.parametrize(
    ("peer", "base", "headers", "told"),
    [
        ("203.0.113.9", "https://service", {}, True),
        ("10.1.2.3", "http://service", {"X-Forwarded-Proto": "https"}, True),
        ("203.0.113.9", "http://service", {}, False),
        ("203.0.113.9", "http://service", {"X-Forwarded-Proto": "https"}, False),
        ("10.1.2.3", "https://service", {"X-Forwarded-Proto": "http"}, False),
    ],
)
def test_whoever_is_answered_over_https_is_told_to_stay_there(
    path: str, peer: str, base: str, headers: dict[str, str], told: bool
) -> None:
    app, _ = build(trusted_proxies=["10.0.0.0/8"])
    answer = through(app, "GET", path, peer=peer, base=base, headers={**AUTHORIZED, **headers})
    assert answer.headers.get(STRICT) == ("max-age=31536000" if told else None)


def test_for_how_long_is_a_setting() -> None:
    def told(**http: Any) -> str | None:
        app, _ = build(**http)
        return through(app, "GET", "/v1/health", base="https://service").headers.get(STRICT)

    assert (told(hsts_seconds=600), told(hsts_seconds=0)) == ("max-age=600", None)


@pytest.mark.parametrize(
    ("headers", "advised"), [(AUTHORIZED, True), ({"Authorization": "Bearer x"}, True), ({}, False)]
)
def test_a_credential_that_came_in_the_clear_is_to_be_revoked(
    headers: dict[str, str], advised: bool
) -> None:
    app, shards = build(require_https=True)
    answer = through(app, "GET", "/v1/notes", peer="203.0.113.9", headers=headers)
    message = answer.json()["error"]["message"]
    assert message.startswith("This service answers over HTTPS only.")
    assert ("revoke it" in message) == advised
    assert shards.calls == [], "it is not looked up for whoever listens"
