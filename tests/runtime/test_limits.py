"""The specification's numbers, and the relations between ours that the code relies on."""

from __future__ import annotations

import re

from runtime import limits
from serve_app import Settings, registry


def test_the_tiers_are_the_specification_s():
    stated = {
        name: (tier["requests_per_minute"], tier["credits"]) for name, tier in limits.TIERS.items()
    }
    assert stated == {
        "free": (60, 1_000),
        "starter": (300, 25_000),
        "pro": (1_200, 200_000),
        "scale": (2_000, 1_000_000),
        "enterprise": (3_000, -1),
    }
    assert [tier["price_cents"] for tier in limits.TIERS.values()] == [
        0,
        1_900,
        9_900,
        39_900,
        None,
    ]


def test_prices_in_words_and_in_cents_agree():
    for tier in limits.TIERS.values():
        dollars = re.match(r"\$(\d+)", tier["price"])
        assert (int(dollars[1]) * 100 if dollars else None) == tier["price_cents"]


def test_each_tier_offers_at_least_what_the_one_below_it_does():
    unlimited = float("inf")
    tiers = [
        (tier["requests_per_minute"], unlimited if tier["credits"] < 0 else tier["credits"])
        for tier in limits.TIERS.values()
    ]
    assert tiers == sorted(tiers)


def test_the_other_constants_of_the_specification():
    assert registry().caps(Settings()) == {"search": 30, "media": 20, "batch": 30}
    assert (limits.PAGE_ITEMS_DEFAULT, limits.PAGE_ITEMS_MAX) == (50, 100)
    assert limits.IDEMPOTENCY_KEY_CHARS_MAX == 255
    assert limits.REPLAY_WINDOW_SECONDS == 24 * 3600
    assert limits.WINDOW_SECONDS == 60


def test_slots_are_what_twelve_bits_can_name():
    assert limits.SLOTS == 1 << 12


def test_a_batch_fits_into_its_queue_and_into_a_group_commit():
    assert limits.BATCH_CALLS_MAX <= limits.GROUP_COMMIT_CALLS_MAX <= limits.WRITE_QUEUE_MAX
    assert limits.BATCH_CALLS_MAX <= limits.BATCHING_QUEUE_CALLS_MAX


def test_a_call_outlives_every_wait_inside_it():
    settings = Settings()
    assert settings.write.wait_for_index_seconds_max < limits.CALL_SECONDS_MAX
    assert settings.write.ready_wait_ms / 1000 < settings.write.wait_for_index_seconds_max
    assert settings.embedder.timeout_seconds < limits.CALL_SECONDS_MAX
    assert limits.BODY_READ_SECONDS_MAX < limits.CALL_SECONDS_MAX


def test_a_url_fits_into_a_head():
    assert limits.URL_BYTES_MAX < limits.HEADER_BYTES_MAX


def test_a_page_by_default_is_within_the_largest():
    assert limits.PAGE_ITEMS_DEFAULT <= limits.PAGE_ITEMS_MAX
