"""A store of an older format opens, as a whole or not at all, and says what it said; a newer one is
refused with a sentence.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import serve_app
from plugins.graph.rows import READING, ReadingRow
from plugins.memories import MEMORY_FIELDS
from runtime.api import jobs
from runtime.installation import FORMAT_VERSION, Layout, LayoutError, Secrets, shard_directory
from runtime.shard import CORE_MIGRATIONS
from storage.store import Identity, Store, StoreMismatch, StoreTooNew, figures
from tests.support.served import refusal
from tests.upgrade.house import UpgradeHarness
from tests.upgrade.keep import STORES, unpacked

COUNTED = {"access_count", "last_accessed_at"}
KEPT = sorted(int(path.name.split(".")[0]) for path in STORES.glob("*.tar.gz"))


def format_of(data_dir: Path) -> int:
    return figures(shard_directory(data_dir, 0)).identity.format_version


def shown_then(now: Any, then: Any) -> Any:
    """What is seen now, without the fields that replies have got since, and without what looking
    counts.
    """
    if isinstance(then, dict) and isinstance(now, dict):
        return {
            name: then[name] if name in COUNTED else shown_then(value, then[name])
            for name, value in now.items()
            if name in then
        }
    if isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        return [shown_then(one, other) for one, other in zip(now, then, strict=True)]
    return now


def test_a_store_of_every_format_so_far_is_kept() -> None:
    assert list(range(1, FORMAT_VERSION + 1)) == KEPT


@pytest.mark.parametrize("version", KEPT)
def test_a_kept_store_opens_and_says_what_it_said(version: int, tmp_path: Path) -> None:
    seen = unpacked(version, tmp_path)
    for _ in range(2):
        house = UpgradeHarness(tmp_path)
        house.settle()
        said, wrong = house.seen(), house.findings()
        house.close()
        assert (shown_then(said, seen), wrong) == (seen, [])
        assert Layout.load(tmp_path).format_version == format_of(tmp_path) == FORMAT_VERSION


@pytest.mark.parametrize("version", KEPT)
def test_memories_of_an_older_store_are_read_for_their_mentions(
    version: int, tmp_path: Path
) -> None:
    unpacked(version, tmp_path)
    house = UpgradeHarness(tmp_path)
    scope = house.scope_of(house.login())

    def reading() -> ReadingRow | None:
        with house.shard.store.snapshot() as snapshot:
            return snapshot.bind(READING, scope).get()

    house.until(lambda: (state := reading()) is not None and not state.waits)
    with house.shard.store.snapshot() as snapshot:
        newest = max(MEMORY_FIELDS.bind(snapshot, scope).of("live", 1))
    assert reading() == ReadingRow(read=newest + 1)
    house.close()


def test_a_store_of_every_kind_of_record_is_exported_as_it_was(tmp_path: Path) -> None:
    """The store was written, and exported, by the release before files moved to their packages."""
    with tarfile.open(Path(__file__).with_name("exported.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    house = UpgradeHarness(tmp_path)
    now, wrong = house.exported(), house.findings()
    house.close()
    then = json.loads((tmp_path / "exported.json").read_text())

    def kept(records: list[dict]) -> list[dict]:
        """In the order of their kinds, which come in that of the plugins that need one another. To
        look is counted, and begins a session.
        """
        passed_over = ("usage_day", "usage_month", "session", "mention")  # not exported then
        return sorted(
            (each for each in records if each["kind"] not in passed_over), key=itemgetter("kind")
        )

    assert (shown_then(kept(now), kept(then)), wrong) == (kept(then), [])


# --- the next format, made up ---------------------------------------------------------------------

NEXT_JOBS = replace(jobs.JOBS, version=jobs.JOBS.version + 1)


def migrate(data_dir: Path, step: Callable[[dict], dict]) -> None:
    """Open the store as a release would whose format and jobs are one further."""
    directory = data_dir / "shards/0000"
    identity = replace(figures(directory).identity, format_version=FORMAT_VERSION + 1)
    migrations = {(NEXT_JOBS.name, jobs.JOBS.version): step}
    service_key = Secrets.load(data_dir / "secrets", create=False).service
    Store.open(
        directory,
        (NEXT_JOBS,),
        identity=identity,
        create=False,
        migrations=migrations,
        service_key=service_key,
    ).close()


def test_a_store_becomes_one_of_the_next_format_and_stays_it(tmp_path: Path) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    rewritten = []
    migrate(tmp_path, lambda row: rewritten.append(row["id"]) or row)
    assert rewritten and format_of(tmp_path) == FORMAT_VERSION + 1
    rewritten.clear()
    migrate(tmp_path, lambda row: rewritten.append(row["id"]) or row)
    assert not rewritten


def test_an_upgrade_that_breaks_off_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    seen = unpacked(FORMAT_VERSION, tmp_path)
    rewritten = []

    def step(row: dict) -> dict:
        if rewritten:
            raise KeyError("the power goes")
        rewritten.append(row["id"])
        return {**row, "error": "half an upgrade"}

    with pytest.raises(StoreMismatch, match="the power goes"):
        migrate(tmp_path, step)
    assert format_of(tmp_path) == FORMAT_VERSION
    house = UpgradeHarness(tmp_path)
    said, wrong = house.seen(), house.findings()
    house.close()
    assert (shown_then(said, seen), wrong) == (seen, [])


def test_derived_rows_that_cannot_be_made_again_leave_the_store_as_it_was(tmp_path: Path) -> None:
    seen = unpacked(1, tmp_path)
    directory = tmp_path / "shards/0000"
    identity = replace(figures(directory).identity, format_version=FORMAT_VERSION)
    service_key = Secrets.load(tmp_path / "secrets", create=False).service

    def fails(transaction: Any, scope: Any) -> None:
        raise KeyError("the power goes")

    tables = serve_app.registry().tables.values()
    rebuild = {MEMORY_FIELDS.tables[0].name: fails}
    with pytest.raises(KeyError):
        Store.open(
            directory,
            tables,
            identity=identity,
            create=False,
            migrations=CORE_MIGRATIONS,
            rebuild=rebuild,
            service_key=service_key,
        )
    assert format_of(tmp_path) == 1
    house = UpgradeHarness(tmp_path)
    said, wrong = house.seen(), house.findings()
    house.close()
    assert (shown_then(said, seen), wrong) == (seen, [])


def test_a_reader_leaves_an_older_store_alone(tmp_path: Path) -> None:
    unpacked(1, tmp_path)
    before = (tmp_path / "shards/0000/data.mdb").read_bytes()
    identity = replace(figures(tmp_path / "shards/0000").identity, format_version=FORMAT_VERSION)
    service_key = Secrets.load(tmp_path / "secrets", create=False).service
    with pytest.raises(StoreMismatch, match="of an older release"):
        Store.open_to_read(tmp_path / "shards/0000", (), identity=identity, service_key=service_key)
    assert (tmp_path / "shards/0000/data.mdb").read_bytes() == before


# --- from the future ------------------------------------------------------------------------------


def test_a_newer_store_is_refused_with_a_sentence(tmp_path: Path) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    identity = figures(tmp_path / "shards/0000").identity
    newer = Identity(**{**vars(identity), "format_version": FORMAT_VERSION + 1})
    Store.open(tmp_path / "shards/0000", (), identity=newer, create=False).close()
    with pytest.raises(StoreTooNew):
        UpgradeHarness(tmp_path)
    said = refusal(tmp_path)
    assert f"has format {FORMAT_VERSION + 1}; this release knows {FORMAT_VERSION}" in said
    assert "Install the release that wrote it, or restore a backup" in said


def test_a_newer_layout_is_refused_with_a_sentence(tmp_path: Path) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    told = json.loads((tmp_path / "layout.json").read_text())
    (tmp_path / "layout.json").write_text(
        json.dumps({**told, "format_version": FORMAT_VERSION + 1})
    )
    with pytest.raises(LayoutError, match="newer version"):
        Layout.load(tmp_path)
    said = refusal(tmp_path)
    assert f"newer version of this service (format {FORMAT_VERSION + 1})" in said
    assert "Install the release that wrote it, or restore a backup" in said
