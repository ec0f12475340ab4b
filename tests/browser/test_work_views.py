"""Webhooks from their making to a replayed dead letter, background jobs, and outcome policies."""

from __future__ import annotations

import random
from datetime import datetime

import httpx
import pytest

from tests.browser.person import NARROW, Person
from tests.support.receivers import receiver
from tests.support.served import Served

HOSTILE = "<img src=x onerror=window.harmed=1>"
REFUSED = 503


@pytest.fixture
def api(ada: Person, service: Served) -> httpx.Client:
    """The API as the account of `ada`."""
    return httpx.Client(
        base_url=service.url, headers={"Authorization": f"Bearer {ada.token}"}, timeout=60
    )


def settled(ada: Person, api: httpx.Client, status: str, count: int) -> None:
    """Wait until the only webhook has so many deliveries of this status."""
    (webhook,) = api.get("/v1/webhooks").json()["items"]
    found = f"/v1/webhooks/{webhook['id']}/deliveries"
    ada.until(
        lambda: api.get(found, params={"status": status}).json()["total_count"] == count,
        lambda: api.get(found).text,
    )


def test_a_webhook_from_its_making_to_its_end(ada: Person) -> None:
    with receiver() as ours:
        ada.open("/webhooks")
        ada.see("No webhooks yet")
        ada.press("New webhook")
        ada.fill("Address", "http://")
        ada.press("Create webhook")
        assert ada.all("dialog .problem:not([hidden])")
        ada.fill("Address", ours.url)
        ada.fill("What it is for", HOSTILE)
        ada.press("Create webhook")
        ada.see("it is shown this once")
        secret = ada.all("dialog .secret code")[0].text
        assert secret.startswith("whsec_")
        ada.press("I have copied it")
        ada.see(ours.url, HOSTILE, "memory.deleted", "No deliveries")
        assert secret not in ada.browser.page_source and ada.path.startswith("/webhooks/whk_")

        ada.press("Send a test")
        ada.see("1 delivery", "delivered")
        assert ours.kinds() == ["memory.created"]
        ada.press("Disable")
        ada.see("disabled", "Disabled by its owner.")
        ada.press("Enable")
        ada.see("active")
        ada.press("Edit")
        ada.fill("What it is for", "the chat application")
        ada.press("search.completed")
        ada.press("Save")
        ada.see("the chat application", "search.completed")
        ada.press("Rotate secret")
        ada.press("Rotate")
        ada.see("The new signing secret")
        assert ada.all("dialog .secret code")[0].text not in ("", secret)
        ada.press("I have copied it")

        ada.open("/webhooks")
        ada.see("1 webhook", "the chat application")
        ada.press(ours.url)
        ada.press("Delete")
        ada.see("Delete this webhook?")
        ada.press("Delete")
        ada.see("The webhook is deleted.", "No webhooks yet")


def test_a_dead_letter_is_read_and_replayed(ada: Person, api: httpx.Client) -> None:
    with receiver(*[REFUSED] * 15, body=HOSTILE.encode()) as ours:
        api.post(
            "/v1/webhooks", json={"url": ours.url, "events": ["memory.created"]}
        ).raise_for_status()
        for number in range(3):
            api.post(
                "/v1/memories", json={"content": f"Note {number} {HOSTILE}"}
            ).raise_for_status()
        settled(ada, api, "failed", 3)
        assert len(ours.received) == 15

        ada.open("/webhooks?view=dead-letters")
        ada.see("3 dead letters")
        ada.press("memory.created")
        ada.see("dead letter", "Attempts", "503", "The receiver answered 503.", "Note 2")
        ada.press("Answer")
        ada.see(HOSTILE)
        assert ada.browser.execute_script(
            "return [window.harmed ?? null, document.querySelectorAll('img[src=x]').length]"
        ) == [None, 0]
        ada.press("Replay")
        ada.see("It is sent again.", "2 dead letters")
        settled(ada, api, "delivered", 1)
        assert ours.received[15].event["idempotency_key"] in {
            one.event["idempotency_key"] for one in ours.received[:15]
        }

        ada.press("Choose the memory.created")
        ada.press("Replay the chosen ones")
        ada.see("1 delivery is sent again.", "1 dead letter")
        today = datetime.now().strftime("%Y-%m-%dT00:00")
        ada.browser.execute_script(
            "document.getElementById('replay-since').value = arguments[0]", today
        )
        ada.press("Replay the range")
        ada.see("Every dead letter of events")
        ada.press("Replay")
        ada.see("No dead letters")
        settled(ada, api, "delivered", 3)
        assert len(ours.received) == 18


def test_jobs_say_what_they_did_and_why_they_failed(ada: Person, api: httpx.Client) -> None:
    ada.open("/jobs")
    ada.see("No jobs in the last week")
    text = {"content": "I moved to Lisbon in March 2024. <b>Bold.</b>", "user_id": "ada"}
    api.post("/v1/memories/process", json=text, headers={"Prefer": "wait=30"}).raise_for_status()
    damaged = {"file": ("damaged.pdf", b"%PDF-1.4 and then nothing", "application/pdf")}
    job = api.post("/v1/documents/upload", files=damaged).json()["job_id"]
    ada.until(
        lambda: api.get(f"/v1/memories/jobs/{job}").json()["status"] == "failed",
        lambda: api.get(f"/v1/memories/jobs/{job}").text,
    )

    ada.press("Refresh")
    ada.see(
        "2 jobs",
        "Document",
        "failed",
        "damaged: The file is not a readable PDF",
        "Ingestion",
        "completed",
        "2 memories created",
    )
    ada.press("Ingestion")
    ada.see("What it learned", "ADD", "I moved to Lisbon in March 2024")
    ada.press("Undo")
    ada.see("Undo this ingestion?")
    ada.press("Undo")
    ada.see("2 memories deleted, 0 restored.")
    ada.fill("Status", "failed")
    ada.see("1 job")
    assert ada.path == "/jobs?status=failed" and "Ingestion" not in ada.text
    ada.open(f"/jobs?job={job}")
    ada.see("Why it failed", "damaged: The file is not a readable PDF")


def test_a_policy_is_found_drawn_and_judged(ada: Person, api: httpx.Client) -> None:
    ada.open("/policies")
    ada.see("No policies yet")
    chance = random.Random(1)
    even = {"refund": 0.5, "voucher": 0.5}
    for _ in range(60):
        chosen = chance.choice(list(even))
        new = {
            "policy_key": "support.complaint", "mode": "observe", "chosen_action_key": chosen,
            "behavior_probabilities": even, "candidates": [{"action_key": key} for key in even],
        }  # fmt: skip
        decision = api.post("/v1/learning/decisions", json=new).json()["decision_id"]
        api.post(
            f"/v1/learning/decisions/{decision}/outcomes", json={"success": chosen == "refund"}
        ).raise_for_status()
    ada.browser.refresh()
    ada.see("support.complaint", "1 policy", "60")
    ada.press("support.complaint")
    ada.see(
        "Most likely the best", "refund", "with a probability of 100%", "0% have no outcome yet"
    )
    (first, *_) = (row.get_attribute("aria-label") for row in ada.all(".posterior svg"))
    insights = api.get("/v1/learning/policies/support.complaint/insights").json()["actions"]
    refund = next(action for action in insights if action["action_key"] == "refund")
    low, high = refund["posterior"]["credible_interval_90"]
    assert first.startswith(
        f"refund: mean {refund['posterior']['mean']:.3f}, with 90 % probability between {low:.3f} "
        f"and {high:.3f}"
    )
    assert all(path.get_attribute("d") for path in ada.all(".posterior path"))
    ada.fill("Change to", "refund")
    ada.fill("Instead of", "voucher")
    ada.press("Evaluate")
    ada.see("sufficient", "The evidence suffices: the target is better.", "60")
    ada.look_through(NARROW, "dark")
    assert ada.overflowing == []
    ada.open("/policy?key=never.seen")
    ada.see("Not found")
    ada.complaints()  # the browser tells of the 404 too
