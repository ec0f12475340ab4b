"""What tests of memories ask of a shard harness beyond its operations: headers, and what the store
holds.
"""

from __future__ import annotations

from typing import Any

from plugins.memories import MEMORY_FIELDS, MEMORY_TEXT, MEMORY_VECTORS, readable
from plugins.memories.rows import (
    MEMORIES,
    MEMORIES_HIDDEN,
    MEMORY_FEATURES,
    MEMORY_HISTORY,
    MEMORY_IDS,
)
from runtime.api.context import ReadContext
from runtime.api.operation import Call
from runtime.api.outbox import OUTBOX
from runtime.http.credentials import read_authorization
from runtime.shard import auth
from tests.support.shard_harness import Answer, ShardHarness


def call(
    harness: ShardHarness, operation: str, body: Any, headers: dict[str, Any], **how: Any
) -> Answer:
    """An operation with `prefer` or `if_match` set on its Call."""
    made = harness.form(operation, body, **how)
    assert isinstance(made, Call)
    for name, value in headers.items():
        setattr(made, name, value)
    return harness.together([made])[0]


def inside(harness: ShardHarness, token: str) -> tuple[Any, ReadContext]:
    """(snapshot to close, context) of the token's tenant, now."""
    credential, slot = read_authorization(f"Bearer {token}", harness.secrets, harness.now_ms)
    snapshot = harness.shard.store.snapshot()
    principal, scope = auth.resolve(snapshot, slot, credential, harness.now_ms, harness.secrets)
    made = Call(
        operation="test",
        slot=slot,
        now_ms=harness.now_ms,
        seed=b"",
        request_id="test",
        credential=credential,
    )
    return snapshot, ReadContext(snapshot, scope, made, harness.shard.environment, principal)


def found(harness: ShardHarness, token: str, word: str) -> list[int]:
    """Ordinals that the lexical index gives for a word."""
    snapshot, ctx = inside(harness, token)
    with snapshot:
        return sorted(
            int(ordinal) for ordinal in ctx.index(MEMORY_TEXT).search([word], 10, readable(ctx))[0]
        )


def events(harness: ShardHarness, token: str) -> list[str]:
    """Kinds of all events, in order."""
    snapshot, ctx = inside(harness, token)
    with snapshot:
        return [row.kind for _, row in ctx[OUTBOX].scan() if row.kind.startswith("memory.")]


def ids(harness: ShardHarness, token: str, **query: Any) -> list[str]:
    return [
        item["content"] for item in harness("memories.list", who=token, query=query).body["items"]
    ]


def checked(harness: ShardHarness, operation: str, answer: Answer) -> Any:
    """The body, after it was held against the operation's declared response."""
    declared = harness.registry.operations[operation]
    assert answer.status in declared.statuses, answer
    parsed = declared.response.model_validate(answer.body, strict=True)
    assert parsed.model_dump(exclude_unset=True) == answer.body
    return answer.body


def nothing_left(harness: ShardHarness, token: str) -> None:
    snapshot, ctx = inside(harness, token)
    with snapshot:
        tables = [
            MEMORIES,
            MEMORY_IDS,
            MEMORY_FEATURES.records,
            MEMORY_HISTORY,
            MEMORIES_HIDDEN,
            *MEMORY_FIELDS.tables,
            MEMORY_TEXT.postings,
        ]
        assert {table.name: ctx[table].count() for table in tables} == {
            table.name: 0 for table in tables
        }
        assert ctx.index(MEMORY_VECTORS).count("words/32") == 0
