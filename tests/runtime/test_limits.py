"""The specification's numbers, and the relations between ours that the code relies on."""

from __future__ import annotations

import re

from runtime import limits
from runtime.settings import Settings

UNITS = {
    *("BYTES", "CHARS", "SECONDS", "MS", "ITEMS", "CALLS", "REQUESTS", "JOBS", "KEYS", "ROWS", "SLOTS", "TAGS", "TEXTS", "THREADS"),
    *("TOKENS", "MESSAGES", "MEMORIES", "COLLECTIONS", "FIELDS", "FINDINGS", "NODES", "DEPTH", "OFFSET", "EVENTS", "HASHES"),
    *("ACCOUNTS", "PERIODS", "RETRIES", "TALLIES"),
    *("CHANNEL", "QUEUE", "DELETE", "ATTEMPTS", "BATCHES", "CONNECTIONS", "STEPS", "WORDS", "TERMS", "FILES", "RECORDS", "VERSIONS"),
    *("WEBHOOKS", "DELIVERIES", "ADDRESSES", "SCOPES", "ANNOUNCEMENTS", "SHARE"),
    *(
        "FACETS",
        "BOOSTS",
        "WEIGHT",
        "RESULTS",
        "PASSAGES",
        "VECTORS",
        "DECISIONS",
        "CANDIDATES",
        "OBSERVATIONS",
        "ACTIONS",
        "GUARDRAILS",
        "DRAWS",
        "DAYS",
        "QUERIES",
        "VERSIONS",
    ),
    *("FACTS", "CHUNKS", "CLAIMS", "ENTITIES", "ALIASES", "SOURCES", "COMPLETIONS", "RETRIES", "ONCE"),
    *("VALUES", "COMPLETIONS", "FACTS", "TURNS", "HYPOTHESES", "LINES"),
    *("UPLOADS", "PARTS", "BLOBS", "PARSERS", "PAGES", "CELLS", "ENTRIES", "RATIO", "CHUNKS", "CUES", "PICTURES", "PIXELS", "DOCUMENTS"),
}


def test_the_tiers_are_the_specification_s():
    stated = {name: (tier["requests_per_minute"], tier["credits"]) for name, tier in limits.TIERS.items()}
    assert stated == {
        "free": (60, 1_000),
        "starter": (300, 25_000),
        "pro": (1_200, 200_000),
        "scale": (2_000, 1_000_000),
        "enterprise": (3_000, -1),
    }
    assert [tier["price_cents"] for tier in limits.TIERS.values()] == [0, 1_900, 9_900, 39_900, None]


def test_prices_in_words_and_in_cents_agree():
    for tier in limits.TIERS.values():
        dollars = re.match(r"\$(\d+)", tier["price"])
        assert (int(dollars[1]) * 100 if dollars else None) == tier["price_cents"]


def test_each_tier_offers_at_least_what_the_one_below_it_does():
    unlimited = float("inf")
    tiers = [(tier["requests_per_minute"], unlimited if tier["credits"] < 0 else tier["credits"]) for tier in limits.TIERS.values()]
    assert tiers == sorted(tiers)


def test_the_other_constants_of_the_specification():
    assert limits.ENDPOINT_CAPS == {"search": 30, "media": 20, "batch": 30}
    assert (limits.BATCH_ITEMS_MAX, limits.BULK_DELETE_MEMORIES_MAX) == (100, 500)
    assert (limits.PAGE_ITEMS_DEFAULT, limits.PAGE_ITEMS_MAX) == (50, 100)
    assert limits.IDEMPOTENCY_KEY_CHARS_MAX == 255
    assert limits.REPLAY_WINDOW_SECONDS == 24 * 3600
    assert limits.WINDOW_SECONDS == 60


def test_slots_are_what_twelve_bits_can_name():
    assert limits.SLOTS == 1 << 12


def test_what_one_request_may_carry_fits_into_a_body():
    # Four bytes are the most that a character takes in UTF-8.
    assert limits.CONTENT_CHARS_MAX * 4 + limits.METADATA_BYTES_MAX < limits.BODY_BYTES_MAX
    assert limits.QUERY_CHARS_MAX * 4 < limits.BODY_BYTES_MAX
    assert limits.URL_BYTES_MAX < limits.HEADER_BYTES_MAX


def test_defaults_lie_within_their_maxima():
    assert limits.SEARCH_ITEMS_DEFAULT <= limits.SEARCH_ITEMS_MAX <= limits.CANDIDATES_PER_CHANNEL_MAX
    assert limits.PAGE_ITEMS_DEFAULT <= limits.PAGE_ITEMS_MAX


def test_a_lane_batch_fits_into_its_queue_and_into_a_group_commit():
    assert limits.LANE_CALLS_MAX <= limits.GROUP_COMMIT_CALLS_MAX <= limits.WRITE_QUEUE_MAX
    assert limits.LANE_CALLS_MAX <= limits.LANE_QUEUE_MAX


def test_one_account_cannot_keep_all_lanes_busy():
    assert 2 * limits.WEBHOOKS_PER_TENANT_MAX * limits.LANE_JOBS_AT_ONCE <= limits.LANES_JOBS_MAX


def test_webhooks_follow_the_specification():
    webhooks = Settings().webhooks
    assert (limits.WEBHOOK_ATTEMPTS_MAX, limits.WEBHOOK_BACKOFF_SECONDS_MAX) == (5, 3_600)
    assert (webhooks.backoff_seconds_min, webhooks.timeout_seconds) == (4, 30)
    assert webhooks.timeout_seconds < limits.JOB_PREPARE_SECONDS_MAX


def test_a_call_outlives_every_wait_inside_it():
    settings = Settings()
    assert settings.write.wait_for_index_seconds_max < limits.CALL_SECONDS_MAX
    assert settings.write.ready_wait_ms / 1000 < settings.write.wait_for_index_seconds_max
    assert settings.embedder.timeout_seconds < limits.CALL_SECONDS_MAX
    assert limits.BODY_READ_SECONDS_MAX < limits.CALL_SECONDS_MAX


def test_every_bound_is_positive_and_says_its_unit():
    bounds = {name: value for name, value in vars(limits).items() if name.isupper() and isinstance(value, int | float)}
    for name, value in bounds.items():
        assert value > 0, name
        assert UNITS & set(name.split("_")), f"{name} does not say what it counts"
