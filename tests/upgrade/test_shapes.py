"""No row changes under a version that stores have already."""

from __future__ import annotations

import msgspec

import serve_app
from storage.store import Table, shape_of
from tests.upgrade.shapes import changed, declared, kept


class Part(msgspec.Struct):
    text: str


class LongerPart(msgspec.Struct):
    text: str
    at: int = 0


class Row(msgspec.Struct):
    parts: list[Part]
    count: int = 0


def test_every_table_has_the_rows_that_its_version_had() -> None:
    now = declared(serve_app.registry().tables.values())
    assert changed(kept(), now) == [], "raise their versions, with migrations"
    assert now == kept(), "python -m tests.upgrade.shapes writes the new ones down"


def test_a_field_that_is_added_without_a_new_version_is_found() -> None:
    class Longer(msgspec.Struct):
        parts: list[Part]
        count: int = 0
        role: str | None = None

    class Deeper(msgspec.Struct):
        parts: list[LongerPart]
        count: int = 0

    class Other(msgspec.Struct):
        parts: list[Part]
        count: int = 1

    before = Table("rows", key=("id",), row=Row)
    for row in (Longer, Deeper, Other):
        after = Table("rows", key=("id",), row=row)
        assert changed(declared([before]), declared([after])) == ["rows"]
        raised = Table("rows", key=("id",), row=row, version=2)
        assert changed(declared([before]), declared([raised])) == []
    for after in (
        Table("rows", key=("id", "n"), row=Row),
        Table("rows", key=("id",), row=Row, sealed=False),
        Table("rows", key=("id",), row=Row, stamped=True),
    ):
        assert changed(declared([before]), declared([after])) == ["rows"]


def test_what_its_class_and_its_fields_are_called_in_python_is_no_part_of_a_row() -> None:
    class Renamed(msgspec.Struct):
        pieces: list[Part] = msgspec.field(name="parts")
        count: int = 0

    before, after = (Table("rows", key=("id",), row=row) for row in (Row, Renamed))
    assert shape_of(before) == shape_of(after)
