"""Webhooks take the events that a plugin of another package declares, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mneme import Event, Idempotency, Plugin, View, Write
from mneme.testing import Harness
from plugins.webhooks.store import EVENT_KINDS
from tests.support.receivers import receiver


class Told(View):
    id: str


SAVED, SWEPT = Event("bookmark.saved", Told), Event("internal.swept", Told)


def save(ctx: Any, body: None) -> dict[str, str]:
    ctx.emit(SAVED, {"id": "one"}, "one")
    return {"id": "one"}


BOOKMARKS = Plugin(
    "bookmarks",
    events=(SAVED, SWEPT),
    operations=(
        Write(
            name="bookmarks.save",
            method="POST",
            path="/v1/bookmarks",
            handler=save,
            response=Told,
            summary="Save",
            scope="write",
            idempotency=Idempotency.CACHED,
        ),
    ),
)
LOCAL = {"webhooks.allow_private_networks": True}


def test_they_are_delivered_and_shown(tmp_path: Path) -> None:
    with Harness(tmp_path, BOOKMARKS, settings=LOCAL) as service, receiver() as there:
        me = service.register()
        wanted = {"url": there.url, "events": ["bookmark.saved", "memory.created"]}
        made = service.request("POST", "/v1/webhooks", wanted, who=me)
        assert made.status_code == 201, made.text
        service.request("POST", "/v1/bookmarks", who=me)
        service.until(lambda: there.kinds() == ["bookmark.saved"])
        path = f"/v1/webhooks/{made.json()['id']}"
        shown = service.request("GET", f"{path}/deliveries", who=me).json()["items"]
        assert [each["event_type"] for each in shown] == ["bookmark.saved"]
        replaced = service.request("PUT", path, {**wanted, "description": "mine"}, who=me)
        assert replaced.json()["events"] == wanted["events"]


@pytest.mark.parametrize("kind", ["bookmark.gone", "internal.swept"])
def test_what_nobody_declares_and_what_stays_inside_is_refused(tmp_path: Path, kind: str) -> None:
    with Harness(tmp_path, BOOKMARKS, settings=LOCAL) as service:
        me = service.register()
        wanted = {"url": "http://127.0.0.1:1/", "events": ["memory.created", kind]}
        answer = service.request("POST", "/v1/webhooks", wanted, who=me)
        assert answer.status_code == 422
        (finding,) = answer.json()["error"]["details"]
        assert finding["loc"] == ["body", "events", 1]
        assert finding["msg"].endswith("'billing.resumed' or 'bookmark.saved'")


def test_the_document_has_them_among_the_kinds(tmp_path: Path) -> None:
    with Harness(tmp_path, BOOKMARKS) as service:
        schemas = service.request("GET", "/openapi.json").json()["components"]["schemas"]
    for model in ("NewWebhook", "WebhookReplacement", "Webhook"):
        kinds = schemas[model]["properties"]["events"]["items"]["enum"]
        assert kinds == [*EVENT_KINDS, "bookmark.saved"]
    assert schemas["Delivery"]["properties"]["event_type"]["enum"][-1] == "bookmark.saved"
