"""What is stored for one record of another system, and the ledger of which field went where.

A form says of each field of its records which field of a memory it becomes (`Places`). What it does
not name goes into `metadata` under its own name, so that nothing is lost unsaid; what it names as
None has no place here, such as a vector of another model, and is counted as such.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

# Their field -> ours; None where it has no place.
Places = Mapping[str, str | None]

MEMORY_PATH = "/v1/memories/raw"
ENTITY_PATH, RELATIONSHIP_PATH = "/v1/knowledge-graph/entities", "/v1/knowledge-graph/relationships"
KINDS = {MEMORY_PATH: "memories", ENTITY_PATH: "entities", RELATIONSHIP_PATH: "relationships"}
TAGS_MAX, TAG_CHARS_MAX, NAME_CHARS_MAX = 32, 64, 255
ROLES = {
    **{role: role for role in ("user", "assistant", "system", "tool")},
    "human": "user",
    "ai": "assistant",
    "function": "tool",
}
NAMES = ("user_id", "agent_id", "run_id", "app_id", "session_id", "speaker", "title")
OURS = (
    *("content", "tags", "source", "source_type", "source_reference", "importance", "metadata"),
    *NAMES,
    *("role", "occurred_at", "expires_at", "collection_id"),
)
NEVER = "9999"  # later than any time in a file, as text
# Of seconds that a number may count since 1970; larger ones count milliseconds.
EPOCH_SECONDS_MAX = 10_000_000_000


class ImportFailed(Exception):
    """The file cannot be imported; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """One request: where it goes and its body."""

    path: str
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The Idempotency-Key: the same record has the same one, always."""
        said = json.dumps([self.path, self.body], sort_keys=True, ensure_ascii=False)
        return "import-" + hashlib.sha256(said.encode()).hexdigest()


@dataclass(slots=True)
class Ledger:
    """What became of what was read, in counts.

    places    (their field, our field or "" where it has no place) -> in how many records
    left_out  why -> how many records
    """

    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def moment(value: Any) -> str | None:
    """A time as RFC 3339 in UTC, where one can be read from it: ISO 8601, also without a zone
    (then UTC), or seconds or milliseconds since 1970; else None.
    """
    if isinstance(value, bool) or value is None:
        return None
    try:
        text = str(value).strip()
        if text.replace(".", "", 1).isdecimal() and len(text.partition(".")[0]) >= 9:
            number = float(text)
            seconds = number if number < EPOCH_SECONDS_MAX else number / 1000
            when = datetime.fromtimestamp(seconds, UTC)
        else:
            when = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def memory(
    ledger: Ledger, row: Mapping[str, Any], places: Places, fixed: Mapping[str, Any] | None = None
) -> ImportRecord | None:
    """The memory that a row becomes, entered in the ledger; None, and a count of it, where it
    has no text or has expired.

    fixed   our fields that no field of the row gives, such as the name of the system
    """
    body: dict[str, Any] = {}
    further: dict[str, Any] = {}
    went: list[tuple[str, str]] = []
    order = {name: rank for rank, name in enumerate(places)}
    for theirs in sorted(row, key=lambda name: order.get(name, len(order))):
        value = row[theirs]
        if value is None or value == "" or value == [] or value == {}:
            continue
        ours = places.get(theirs, "metadata")
        if ours is None:
            went.append((theirs, ""))
            continue
        fitting = None if ours in body or ours == "metadata" else _fitting(ours, value)
        if fitting is None:
            _keep(further, theirs, value)
            ours = "metadata"
        else:
            body[ours] = fitting
            if ours == "tags" and len(fitting) < len(_labels(value)):
                _keep(further, theirs, value)
        went.append((theirs, ours))
    if not str(body.get("content", "")).strip():
        ledger.left_out["without a text"] += 1
        return None
    if body.get("expires_at", NEVER) <= datetime.now(UTC).isoformat():
        ledger.left_out["expired"] += 1
        return None
    ledger.places.update(went)
    body = {**(fixed or {}), **body, **({"metadata": further} if further else {})}
    return ImportRecord(MEMORY_PATH, body)


def _keep(further: dict[str, Any], name: str, value: Any) -> None:
    """Into the metadata: an object named metadata is the metadata, anything else has its name."""
    if name in ("metadata", "metadata_") and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    if isinstance(value, Mapping) and name in ("metadata", "metadata_"):
        further.update(value)
    else:
        further.setdefault(name, value)


def _fitting(ours: str, value: Any) -> Any:
    """The value as our field takes it, None where it cannot."""
    if ours in ("occurred_at", "expires_at"):
        return moment(value)
    if ours == "content":
        # A table's column of texts may hold one that reads as a number.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if isinstance(value, str) or is_number else None
    if ours == "tags":
        return [each for each in _labels(value) if len(each) <= TAG_CHARS_MAX][:TAGS_MAX] or None
    if ours == "role":
        return ROLES.get(str(value).lower())
    if ours == "importance":
        return _share(value)
    if isinstance(value, Mapping | list):
        return None
    return str(value) if ours not in NAMES or len(str(value)) <= NAME_CHARS_MAX else None


def _share(value: Any) -> float | None:
    try:
        share = float(value)
    except (TypeError, ValueError):
        return None
    return share if math.isfinite(share) and 0 <= share <= 1 else None


def _labels(value: Any) -> list[str]:
    """Labels of a list, of a JSON list in a text, or of a text with commas."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = value.strip("[] ")
    if isinstance(value, str):
        value = value.replace(";", ",").split(",")
    if not isinstance(value, list | tuple):
        value = [value]
    return list(dict.fromkeys(text for each in value if (text := str(each).strip())))


def entity(ledger: Ledger, name: str, kind: str | None, attributes: Any) -> ImportRecord:
    ledger.places["node", "entity"] += 1
    body = {"name": name, "type": kind or "unknown"}
    return ImportRecord(ENTITY_PATH, body | ({"attributes": attributes} if attributes else {}))


def claim(
    ledger: Ledger,
    source: str,
    kind: str,
    target: str,
    begins: str | None = None,
    ends: str | None = None,
) -> Iterator[ImportRecord]:
    """A relationship; the service makes those of its ends that it does not know."""
    ledger.places["relation", "relationship"] += 1
    held = {name: when for name, when in (("valid_from", begins), ("valid_to", ends)) if when}
    named = kind.lower().replace(" ", "_")[:TAG_CHARS_MAX]
    yield ImportRecord(
        RELATIONSHIP_PATH, {"source": source, "target": target, "type": named, **held}
    )


def behind(given: Places, places: Places) -> Places:
    """The places that the caller has not given others."""
    return {theirs: ours for theirs, ours in places.items() if theirs not in given}


def one(record: ImportRecord | None) -> Iterator[ImportRecord]:
    if record is not None:
        yield record
