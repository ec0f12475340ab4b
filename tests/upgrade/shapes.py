"""python -m tests.upgrade.shapes: write down the shape of each table's rows (shapes.tsv), which
holds for as long as the table's version does.

A table that is new, or whose version was raised, gets its line. A row that changed under the
version that it had is refused: an earlier release would open the store, and drop what it does not
know of when it writes the row again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import serve_app
from storage.store import Table, shape_of

KEPT = Path(__file__).with_name("shapes.tsv")
Shapes = Mapping[str, tuple[int, str]]  # table -> its version, and what its rows look like in it


def kept() -> Shapes:
    lines = (line.split("\t") for line in KEPT.read_text().splitlines())
    return {name: (int(version), shape) for name, version, shape in lines}


def declared(tables: Iterable[Table[Any]]) -> Shapes:
    return {table.name: (table.version, shape_of(table)) for table in tables}


def changed(before: Shapes, now: Shapes) -> list[str]:
    """Tables whose rows look otherwise, although their version is the same, or lower."""
    return sorted(
        name
        for name in before.keys() & now.keys()
        if now[name] != before[name] and now[name][0] <= before[name][0]
    )


if __name__ == "__main__":
    now = declared(serve_app.registry().tables.values())
    if refused := changed(kept() if KEPT.exists() else {}, now):
        sys.exit(f"Raise the version of {', '.join(refused)}, with a migration.")
    KEPT.write_text("".join(f"{name}\t{n}\t{shape}\n" for name, (n, shape) in sorted(now.items())))
