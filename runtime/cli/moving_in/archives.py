"""Archives in which other systems hand out what they keep, read where they lie.

    hindsight   the ZIP of a bank: a file for each document with its facts, observations, mental
                models, and a manifest that counts what else there is

An entry is read as a stream, and is held whole only where it is a single JSON object.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runtime.cli.moving_in import json_files
from runtime.cli.moving_in.records import ImportFailed, Ledger

HEAD = b"PK\x03\x04"
MANIFEST, OBSERVATIONS, MODELS = "manifest.json", "observations.json", "mental_models.json"
SECTIONS = ("facts", "observations", "mental_models", "chunks")
TAKEN = SECTIONS[:3]  # unless some are named: chunks are the texts that the facts were taken from
NOT_TAKEN = {
    "directive_count": "directives",
    "webhook_count": "webhooks",
    "attachment_count": "attachments",
    "invalidated_memory_count": "invalidated ones",
    "knowledge_page_count": "places in the tree of pages, whose texts are mental models",
}
_DOCUMENT = re.compile(r"documents/\d+\.json")


def is_hindsight(path: Path) -> bool:
    """Whether the file is such an archive. Raises ImportFailed where it is no archive at all."""
    with _opened(path) as archive:
        return MANIFEST in archive.namelist() and "source_bank_id" in _manifest(path, archive)


def hindsight(path: Path, only: tuple[str, ...], ledger: Ledger) -> Iterator[Mapping[str, Any]]:
    """What forms.hindsight reads: documents with their facts or chunks, and rows.

    only   of SECTIONS, those to read; TAKEN where none is named

    Raises ImportFailed.
    """
    if unknown := {*only} - {*SECTIONS}:
        raise ImportFailed(
            f"{path} has no section {', '.join(sorted(unknown))}; an archive of Hindsight has "
            f"{', '.join(SECTIONS)}"
        )
    wanted = only or TAKEN
    with _opened(path) as archive:
        manifest = _manifest(path, archive)
        bank = {"bank_id": manifest["source_bank_id"]}
        for count, what in NOT_TAKEN.items():
            if manifest.get(count):
                ledger.left_out[what] += manifest[count]
        for entry in sorted(filter(_DOCUMENT.fullmatch, archive.namelist())):
            for document in _values(path, archive, entry):
                if "chunks" not in wanted:
                    ledger.left_out["texts that facts were taken from (--only chunks)"] += len(
                        document.get("chunks") or ()
                    )
                kept = [part for part in ("facts", "chunks") if part in wanted]
                yield (
                    {part: document.get(part) or () for part in kept}
                    | bank
                    | {"document_id": document["id"]}
                )
        for section, entry in (("observations", OBSERVATIONS), ("mental_models", MODELS)):
            if section in wanted and entry in archive.namelist():
                for row in _values(path, archive, entry):
                    kind = {"fact_type": "observation"} if section == "observations" else {}
                    yield {**bank, **kind, **row}


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as broken:
        raise ImportFailed(f"{path} cannot be read as a ZIP archive: {broken}") from None


def _manifest(path: Path, archive: zipfile.ZipFile) -> Mapping[str, Any]:
    manifest = next(_values(path, archive, MANIFEST), None)
    return manifest if isinstance(manifest, dict) else {}


def _values(path: Path, archive: zipfile.ZipFile, entry: str) -> Iterator[Any]:
    """The values of an entry. Raises ImportFailed."""
    try:
        size = archive.getinfo(entry).file_size
        with archive.open(entry) as file, io.TextIOWrapper(file, encoding="utf-8-sig") as text:
            yield from json_files.values_of(text, path / entry, size)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError) as broken:
        raise ImportFailed(f"{entry} of {path} cannot be read: {broken}") from None
