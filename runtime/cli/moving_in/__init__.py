"""What other memory systems keep, read as records of this one.

`open_source` says what a file or folder is, by its shape or by the name that the caller gives, and
reads it as often as it is asked to, record by record, without holding it. Nothing here speaks to a
service, and nothing is written; whoever sends the records is import_memories.

    records         what is stored for one record, and the ledger of which field went where
    forms, zep      what the records of each system look like
    json_files      JSON and JSON Lines
    tables          CSV, Parquet, and dumps of PostgreSQL
    databases       SQLite files of Chroma, of a local Qdrant, of mem0 and of LangGraph
    archives        ZIP files of Hindsight
    inert           pickles, without running anything of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.cli.moving_in import archives, databases, forms, json_files, tables
from runtime.cli.moving_in.records import (
    KINDS,
    MEMORY_PATH,
    OURS,
    ImportFailed,
    ImportRecord,
    Ledger,
    Places,
    behind,
)

__all__ = [
    "FORMS",
    "KINDS",
    "MEMORY_PATH",
    "OURS",
    "ImportFailed",
    "ImportRecord",
    "Ledger",
    "Source",
    "open_source",
]

FORMS = (*forms.READERS, "csv", "parquet", "chroma", "qdrant", "langgraph")
HEAD_BYTES = 4096
ARCHIVE = "hindsight archive"
CSV_SUFFIXES = (".csv", ".tsv")
# What wrote it, where its shape has another name.
WROTE = {
    "history": "mem0",
    ARCHIVE: "hindsight",
    "langgraph_csv": "langgraph",
    "langgraph_dump": "langgraph",
}
LANGGRAPH_COLUMNS = {"prefix", "key", "value"}
# Times that a store itself wrote stand behind those of the value.
STORED: Places = {
    **forms.ORDINARY,
    "stored_at": "occurred_at",
    "updated_at": "metadata",
    "expires_at": "expires_at",
}


@dataclass(frozen=True)
class Source:
    """A file or folder that can be read as records, again and again.

    form     one of FORMS
    records  reads it from its beginning, entering in a ledger what became of its fields; raises
             ImportFailed
    mapped   fields of theirs that the caller has named
    """

    form: str
    records: Callable[[Ledger], Iterator[ImportRecord]]
    mapped: tuple[str, ...] = ()


def open_source(
    path: Path, form: str | None = None, given: Places | None = None, only: Sequence[str] = ()
) -> Source:
    """What is at the path.

    form   one of FORMS, None to tell it by its shape
    given  field of theirs -> field of ours, for what a form does not know or takes otherwise
    only   of a store with several collections, the names of those to read

    Raises ImportFailed, FileNotFoundError.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is no file or folder {path}.")
    if not (path.is_file() or path.is_dir()):
        raise ImportFailed(f"{path} is neither a file nor a folder; a file is read twice")
    shape, path = _shape(path, form)
    given, chosen = given or {}, tuple(only)
    if chosen and shape not in ("chroma", "qdrant", ARCHIVE):
        raise ImportFailed(f"{path} has no collections of which some could be chosen")

    def records(ledger: Ledger) -> Iterator[ImportRecord]:
        try:
            yield from _records(path, shape, ledger, given, chosen)
        except (KeyError, TypeError, AttributeError, ValueError) as odd:
            raise ImportFailed(
                f"{path} does not look like a file of the format {form or shape}: "
                f"{type(odd).__name__} {odd}"
            ) from None

    return Source(form or WROTE.get(shape, shape), records, tuple(given))


def _records(
    path: Path, shape: str, ledger: Ledger, given: Places, only: tuple[str, ...]
) -> Iterator[ImportRecord]:
    if shape in forms.READERS:
        yield from forms.READERS[shape](ledger, json_files.values(path), given)
    elif shape == ARCHIVE:
        yield from forms.hindsight(ledger, archives.hindsight(path, only, ledger), given)
    elif shape == "history":
        yield from forms.mem0(ledger, databases.history(path, ledger), given)
    elif shape == "csv":
        yield from forms.rows(ledger, tables.of_csv(path), given)
    elif shape == "parquet":
        yield from forms.READERS["mneme"](ledger, tables.of_parquet(path), given)
    elif shape == "chroma":
        yield from _of_vectors(ledger, databases.chroma(path, only), given, "chroma")
    elif shape == "qdrant":
        files = [path]
        if path.is_dir():
            files = databases.qdrant_collections(path, only, ledger)
        yield from _of_vectors(ledger, databases.qdrant(files), given, "qdrant")
    else:
        items = {
            "langgraph": databases.langgraph,
            "langgraph_csv": tables.of_csv,
            "langgraph_dump": lambda dump: tables.of_dump(dump, "store"),
        }[shape](path)
        rows = databases.of_namespaces(items, given)
        yield from forms.rows(ledger, rows, {**given, **behind(given, STORED)}, "langgraph")


def _of_vectors(
    ledger: Ledger, rows: Iterator[dict], given: Places, system: str
) -> Iterator[ImportRecord]:
    """Memories of a vector store's rows, some of which may be mem0's."""
    ordinary = {**given, **behind(given, STORED)}
    for row in rows:
        if "data" in row and "hash" in row:
            yield from forms.mem0(ledger, [row], {**given, "stored_at": None})
        else:
            yield from forms.rows(ledger, [row], ordinary, system)


def _shape(path: Path, form: str | None) -> tuple[str, Path]:
    """How it is read, and the file that is. Raises ImportFailed."""
    if path.is_dir():
        for file in (databases.CHROMA_FILE, databases.HISTORY_FILE):
            if (path / file).is_file():
                return databases.shape_of(path / file) or "", path / file
        if any(path.glob(f"collection/*/{databases.QDRANT_FILE}")):
            return "qdrant", path
        raise ImportFailed(
            f"{path} is a folder without {databases.CHROMA_FILE} (Chroma), "
            f"collection/*/{databases.QDRANT_FILE} (a local Qdrant) or {databases.HISTORY_FILE} "
            "(mem0); name the file to import"
        )
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(databases.HEAD):
        if shape := databases.shape_of(path):
            return shape, path
        raise ImportFailed(
            f"{path} is an SQLite database without the tables of Chroma, Qdrant, mem0 or LangGraph"
        )
    if head.startswith(archives.HEAD):
        if archives.is_hindsight(path):
            return ARCHIVE, path
        raise ImportFailed(f"{path} is a ZIP archive, and none of Hindsight's; unpack it")
    if head.startswith(tables.PARQUET_HEAD):
        return "parquet", path
    if head.startswith(b"PGDMP"):
        raise ImportFailed(
            f"{path} is a dump in PostgreSQL's own format; write it anew with pg_dump "
            "--format=plain --table=store"
        )
    text = head.decode("utf-8-sig", "replace").lstrip("- \n")
    if text.startswith("PostgreSQL database dump") or tables.COPY.match(text):
        return "langgraph_dump", path
    if form == "csv" or (form in (None, "langgraph") and path.suffix.lower() in CSV_SUFFIXES):
        header = next(tables.of_csv(path), {})
        return "langgraph_csv" if {*header} >= LANGGRAPH_COLUMNS else "csv", path
    if form is None:
        return forms.form_of(next(json_files.values(path), None)), path
    if form not in forms.READERS:
        raise ImportFailed(f"{path} is no file of the format {form}")
    return form, path
