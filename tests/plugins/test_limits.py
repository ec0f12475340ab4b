"""The bounds of the plugins: the specification's numbers, and the relations between ours that the
code relies on.
"""

from __future__ import annotations

from importlib import import_module

from plugins.collections import METADATA_BYTES_MAX
from plugins.memories import BATCH_ITEMS_MAX, CONTENT_CHARS_MAX
from plugins.memories.limits import BULK_DELETE_MEMORIES_MAX
from plugins.search.limits import QUERY_CHARS_MAX, SEARCH_ITEMS_DEFAULT, SEARCH_ITEMS_MAX
from plugins.webhooks.limits import (
    WEBHOOK_ATTEMPTS_MAX,
    WEBHOOK_BACKOFF_SECONDS_MAX,
    WEBHOOKS_PER_TENANT_MAX,
)
from runtime.limits import (
    BODY_BYTES_MAX,
    GROUP_JOBS_AT_ONCE,
    GROUPS_JOBS_MAX,
    JOB_PREPARE_SECONDS_MAX,
)
from serve_app import Settings
from tests.support import ROOT

MODULES = (
    *("runtime.limits", "plugins.chat.completion", "plugins.chat.bounds", "plugins.usage"),
    *(f"plugins.{path.parent.name}.limits" for path in sorted(ROOT.glob("plugins/*/limits.py"))),
)
UNITS = {
    *(
        "BYTES",
        "CHARS",
        "SECONDS",
        "MS",
        "ITEMS",
        "CALLS",
        "REQUESTS",
        "JOBS",
        "KEYS",
        "ROWS",
        "SLOTS",
        "TAGS",
        "TEXTS",
        "THREADS",
    ),
    *(
        "TOKEN",
        "CREDITS",
        "TOKENS",
        "MESSAGES",
        "MEMORIES",
        "ACCESSES",
        "QUOTAS",
        "COLLECTIONS",
        "FIELDS",
        "FINDINGS",
        "NODES",
        "DEPTH",
        "OFFSET",
        "EVENTS",
        "HASHES",
    ),
    *(
        "ACCOUNTS",
        "SESSIONS",
        "PERIODS",
        "RETRIES",
        "TALLIES",
        "SPANS",
        "CORRECTIONS",
        "MENTIONS",
        "LOOKS",
        "PROCESSES",
    ),
    *(
        "QUEUE",
        "DELETE",
        "ATTEMPTS",
        "BATCHES",
        "CONNECTIONS",
        "STEPS",
        "WORDS",
        "TERMS",
        "FILES",
        "RECORDS",
        "VERSIONS",
    ),
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
    *(
        "FACTS",
        "CHUNKS",
        "CLAIMS",
        "ENTITIES",
        "ALIASES",
        "SOURCES",
        "COMPLETIONS",
        "RETRIES",
        "ONCE",
    ),
    *("VALUES", "COMPLETIONS", "FACTS", "TURNS", "HYPOTHESES", "LINES"),
    *(
        "UPLOADS",
        "PARTS",
        "BLOBS",
        "PARSERS",
        "PAGES",
        "CELLS",
        "ENTRIES",
        "RATIO",
        "CHUNKS",
        "CUES",
        "PICTURES",
        "PIXELS",
        "DOCUMENTS",
    ),
}


def test_batches_follow_the_specification():
    assert (BATCH_ITEMS_MAX, BULK_DELETE_MEMORIES_MAX) == (100, 500)


def test_what_one_request_may_carry_fits_into_a_body():
    # Four bytes are the most that a character takes in UTF-8.
    assert CONTENT_CHARS_MAX * 4 + METADATA_BYTES_MAX < BODY_BYTES_MAX
    assert QUERY_CHARS_MAX * 4 < BODY_BYTES_MAX


def test_a_search_by_default_is_within_the_largest():
    assert SEARCH_ITEMS_DEFAULT <= SEARCH_ITEMS_MAX


def test_one_account_cannot_keep_all_lanes_busy():
    assert 2 * WEBHOOKS_PER_TENANT_MAX * GROUP_JOBS_AT_ONCE <= GROUPS_JOBS_MAX


def test_webhooks_follow_the_specification():
    webhooks = Settings().webhooks
    assert (WEBHOOK_ATTEMPTS_MAX, WEBHOOK_BACKOFF_SECONDS_MAX) == (5, 3_600)
    assert (webhooks.backoff_seconds_min, webhooks.timeout_seconds) == (4, 30)
    assert webhooks.timeout_seconds < JOB_PREPARE_SECONDS_MAX


def test_every_bound_is_positive_and_says_its_unit():
    bounds = {
        f"{module}.{name}": value
        for module in MODULES
        for name, value in vars(import_module(module)).items()
        if name.isupper() and isinstance(value, int | float)
    }
    wrong = [name for name, value in bounds.items() if value <= 0]
    wrong += [name for name in bounds if not UNITS & set(name.rpartition(".")[2].split("_"))]
    assert not wrong
