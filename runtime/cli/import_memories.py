"""`mneme import`: memories of other systems, through the public API of a running service.

A file is read twice: once to say what maps to what, before anything is stored, and once to store
it. Every record is one request under an Idempotency-Key made from the record, so sending it twice
stores it once, whoever interrupted the first time and whatever was added to the file since. How far
an import came is kept beside the file, with a digest of what was sent until then; a second run goes
on from there, and a file that changed before that place starts over, which costs time and
duplicates nothing. No more than RECORDS_PER_STEP records are held at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, TextIO

from runtime.cli.client import CallFailed, Client
from runtime.cli.moving_in import (
    KINDS,
    MEMORY_PATH,
    OURS,
    ImportFailed,
    ImportRecord,
    Ledger,
    Source,
)
from runtime.cli.progress import ProgressBar

REQUESTS_AT_ONCE = 8
ATTEMPTS_MAX = 8
WAIT_SECONDS_MAX = 30.0
RECORDS_PER_STEP = 200
PROGRESS_SUFFIX = ".import-progress"
REFUSALS_TOLD_MAX = 5
NOTHING_DONE = {"done": 0, "refused": 0, "digest": ""}


@dataclass(slots=True)
class Report:
    """What became of the records; `skipped` and `refused_before` are those of an earlier run.

    refusals  the first ones of this run, with their places, counted from 1
    """

    total: int = 0
    sent: int = 0
    skipped: int = 0
    refused: int = 0
    refused_before: int = 0
    refusals: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Survey:
    """What is in a source: how many records of each kind, the ledger of their fields, and the
    digest of the first `done`, None where there are not so many.
    """

    kinds: Counter[str]
    ledger: Ledger
    digest: str | None

    @property
    def total(self) -> int:
        return self.kinds.total()


def places_given(pairs: list[str]) -> dict[str, str | None]:
    """--map's OURS=THEIRS, as field of theirs -> field of ours. Raises ImportFailed."""
    given: dict[str, str | None] = {}
    for pair in pairs:
        ours, equals, theirs = pair.partition("=")
        if not equals or not theirs or ours not in (*OURS, ""):
            raise ImportFailed(
                f"--map {pair} is not FIELD=THEIRS, with a field of a memory: {', '.join(OURS)}; "
                "an empty FIELD leaves theirs out"
            )
        given[theirs] = ours or None
    return given


def survey(source: Source, shared: dict[str, Any], infer: bool, done: int = 0) -> Survey:
    """Read a source and store nothing. Raises ImportFailed, also where no record has a field that
    was mapped: it is misspelt, and what it was meant to give would be missing everywhere.
    """
    kinds: Counter[str] = Counter()
    ledger, digest, reached = Ledger(), hashlib.sha256(), None if done else ""
    for number, record in enumerate(_sendable(source, ledger, shared, infer), 1):
        kinds[KINDS.get(record.path, "memories")] += 1
        if number <= done:
            digest.update(record.key.encode())
            if number == done:
                reached = digest.hexdigest()
    met = {theirs for theirs, _ in ledger.places}
    missing = sorted(name for name in source.mapped if name not in met)
    if missing:
        raise ImportFailed(
            f"--map names {', '.join(missing)}, which no record with a text has; the fields are "
            f"{', '.join(sorted(met)) or 'not known, since none has a text'}"
        )
    return Survey(kinds, ledger, reached)


def described(path: Path, form: str, found: Survey) -> str:
    """The lines that say what maps to what, and what has no place."""
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.kinds.items()))
    lines = [f"{path}: {form}, {counts or 'no records'}"]
    width = max((len(theirs) for theirs, _ in found.ledger.places), default=0)
    for (theirs, ours), count in sorted(found.ledger.places.items(), key=_by_field):
        goes = "has no place" if not ours else f"-> {ours}"
        if ours == "metadata" and not theirs.startswith("metadata"):
            goes = f"-> metadata.{theirs}"
        lines.append(f"  {theirs:<{width}}  {goes:<28} {count:>9,}")
    lines += [f"  left out: {count:,} {why}" for why, count in found.ledger.left_out.items()]
    return "\n".join(lines)


def _by_field(item: tuple[tuple[str, str], int]) -> tuple[bool, bool, str]:
    (theirs, ours), _ = item
    return not ours, ours == "metadata", theirs


def run(
    client: Client,
    path: Path,
    source: Source,
    shared: dict[str, Any],
    infer: bool,
    out: TextIO,
    say: Callable[[str], None] = lambda _: None,
) -> Report:
    """Send every record; `shared` fields fill in what a memory does not say itself.

    say  is told what maps to what before the first record is sent

    Raises ImportFailed, and CallFailed when the service is not there.
    """
    state = path.with_name(path.name + PROGRESS_SUFFIX)
    saved = _saved(state, client.base_url)
    found = survey(source, shared, infer, saved["done"])
    say(described(path, source.form, found))
    if found.digest != saved["digest"]:
        saved = dict(NOTHING_DONE)
    done = saved["done"]
    report = Report(total=found.total, skipped=done, refused_before=saved["refused"])
    records, digest = _sendable(source, Ledger(), shared, infer), hashlib.sha256()
    for record in islice(records, done):
        digest.update(record.key.encode())
    bar = ProgressBar(out, found.total)
    with ThreadPoolExecutor(REQUESTS_AT_ONCE, "mneme-import") as pool:
        while step := list(islice(records, RECORDS_PER_STEP)):
            # What a relationship joins is there before it: one kind after the other.
            for _, alike in groupby(step, key=lambda record: record.path):
                for refusal in pool.map(lambda record: send(client, record), list(alike)):
                    done += 1
                    report.sent += refusal is None
                    if refusal is not None:
                        report.refused += 1
                        report.refusals.append(f"record {done}: {refusal}")
                        del report.refusals[REFUSALS_TOLD_MAX:]
            for record in step:
                digest.update(record.key.encode())
            progress = {"service": client.base_url, "digest": digest.hexdigest(), "done": done}
            _save(state, progress | {"refused": report.refused + report.refused_before})
            bar.show(done)
    bar.end()
    state.unlink(missing_ok=True)
    return report


def send(
    client: Client, record: ImportRecord, pause: Callable[[float], None] = time.sleep
) -> str | None:
    """Send one record until it is answered; -> why it was refused, or None. Raises CallFailed when
    the service stays away.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            client.call("POST", record.path, record.body, {"Idempotency-Key": record.key})
            return None
        except CallFailed as failed:
            passing = failed.status in (0, 408, 429) or failed.status >= 500
            if not passing and failed.status not in (401, 403):
                return str(failed)
            if not passing or attempt == ATTEMPTS_MAX:
                raise
            pause(min(WAIT_SECONDS_MAX, 0.25 * 2**attempt))
    raise AssertionError("the last attempt returns or raises")


def _sendable(
    source: Source, ledger: Ledger, shared: dict[str, Any], infer: bool
) -> Iterator[ImportRecord]:
    """The records: a memory with the shared fields it lacks; with `infer`, what can be learned from
    it is stored instead.
    """
    for record in source.records(ledger):
        if record.path == MEMORY_PATH:
            body = {**shared, **record.body}
            record = ImportRecord("/v1/memories", {**body, "infer": True}) if infer else (
                ImportRecord(record.path, body)
            )  # fmt: skip
        yield record


def _saved(state: Path, service: str) -> dict[str, Any]:
    """How far an earlier run came with this service."""
    try:
        saved = json.loads(state.read_text())
        if saved["service"] == service and int(saved["done"]) > 0:
            counts = {name: int(saved[name]) for name in ("done", "refused")}
            return {**counts, "digest": str(saved["digest"])}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return dict(NOTHING_DONE)


def _save(state: Path, progress: dict[str, Any]) -> None:
    """Written beside and renamed, so that an interrupted write leaves the last one; under a name
    that another import of the same file does not use.
    """
    beside = state.with_name(f"{state.name}.{os.getpid()}")
    beside.write_text(json.dumps(progress))
    os.replace(beside, state)
