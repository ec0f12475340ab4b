"""A store of format N opens in a release of format N + 1, as a whole or not at all; a newer one is refused with a sentence."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from runtime import layout, shard
from runtime.layout import FORMAT_UPGRADES, FORMAT_VERSION, Layout, LayoutError, shard_directory
from runtime.outbox import OUTBOX
from storage.directory import StoreMismatch, StoreTooNew
from storage.environment import figures
from storage.table import Identity, Store, Transaction
from tests.served import refusal
from tests.upgrade.house import House
from tests.upgrade.keep import STORES

KEPT = sorted(int(path.name.split(".")[0]) for path in STORES.glob("*.tar.gz"))


def unpacked(version: int, data_dir: Path) -> dict:
    """A kept store in a directory of its own -> what was seen of it."""
    with tarfile.open(STORES / f"{version}.tar.gz") as archive:
        archive.extractall(data_dir, filter="data")
    return json.loads((data_dir / "seen.json").read_text())


def format_of(data_dir: Path) -> int:
    return figures(shard_directory(data_dir, 0)).identity.format_version


def test_a_store_of_every_format_so_far_is_kept_and_a_way_leads_from_each() -> None:
    assert list(range(1, FORMAT_VERSION + 1)) == KEPT
    assert sorted(FORMAT_UPGRADES) == list(range(1, FORMAT_VERSION))


@pytest.mark.parametrize("version", KEPT)
def test_a_kept_store_opens_and_says_what_it_said(version: int, tmp_path: Path) -> None:
    seen = unpacked(version, tmp_path)
    house = House(tmp_path)
    said, wrong = house.seen(), house.findings()
    house.close()
    assert (said, wrong) == (seen, [])
    assert Layout.load(tmp_path).format_version == format_of(tmp_path) == FORMAT_VERSION


# --- the next format, made up -----------------------------------------------------------------------------------------


def forget_events(transaction: Transaction) -> None:
    """A change of format as good as any: the outbox begins anew."""
    for scope in list(transaction.scopes()):
        transaction.bind(OUTBOX, scope).delete_prefix()


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> int:
    """This release, were its format one further."""
    following = FORMAT_VERSION + 1
    monkeypatch.setattr(layout, "FORMAT_VERSION", following)
    monkeypatch.setattr(shard, "FORMAT_UPGRADES", {**FORMAT_UPGRADES, FORMAT_VERSION: forget_events})
    return following


def events(house: House) -> int:
    with house.shard.store.snapshot() as snapshot:
        return sum(snapshot.bind(OUTBOX, scope).count() for scope in snapshot.scopes())


def test_a_store_becomes_one_of_the_next_format_and_stays_it(tmp_path: Path, next_format: int) -> None:
    seen = unpacked(FORMAT_VERSION, tmp_path)
    for _ in range(2):
        house = House(tmp_path)
        assert house.seen() == seen and house.findings() == []
        assert events(house) == 0
        house.close()
        assert Layout.load(tmp_path).format_version == format_of(tmp_path) == next_format


def test_an_upgrade_that_breaks_off_leaves_the_store_as_it_was(tmp_path: Path, next_format: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = unpacked(FORMAT_VERSION, tmp_path)

    def break_off(transaction: Transaction) -> None:
        forget_events(transaction)
        raise KeyError("the power goes")

    with monkeypatch.context() as broken:
        broken.setattr(shard, "FORMAT_UPGRADES", {**FORMAT_UPGRADES, FORMAT_VERSION: break_off})
        with pytest.raises(KeyError):
            House(tmp_path)
    assert Layout.load(tmp_path).format_version == format_of(tmp_path) == FORMAT_VERSION
    house = House(tmp_path)
    said = house.seen()
    house.close()
    assert said == seen and format_of(tmp_path) == next_format


def test_a_store_without_a_way_to_this_release_is_refused_and_left_alone(
    tmp_path: Path, next_format: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    before = (tmp_path / "shards/0000/data.mdb").read_bytes()
    monkeypatch.setattr(shard, "FORMAT_UPGRADES", {})
    with pytest.raises(StoreMismatch, match=f"has format {FORMAT_VERSION}"):
        House(tmp_path)
    assert (tmp_path / "shards/0000/data.mdb").read_bytes() == before


# --- from the future --------------------------------------------------------------------------------------------------


def test_a_newer_store_is_refused_with_a_sentence(tmp_path: Path) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    identity = figures(tmp_path / "shards/0000").identity
    newer = Identity(**{**vars(identity), "format_version": FORMAT_VERSION + 1})
    steps = {FORMAT_VERSION: lambda transaction: None}
    Store.open(tmp_path / "shards/0000", (), identity=newer, create=False, upgrades=steps).close()
    with pytest.raises(StoreTooNew):
        House(tmp_path)
    assert f"has format {FORMAT_VERSION + 1}; this release knows {FORMAT_VERSION}" in refusal(tmp_path)


def test_a_newer_layout_is_refused_with_a_sentence(tmp_path: Path) -> None:
    unpacked(FORMAT_VERSION, tmp_path)
    told = json.loads((tmp_path / "layout.json").read_text())
    (tmp_path / "layout.json").write_text(json.dumps({**told, "format_version": FORMAT_VERSION + 1}))
    with pytest.raises(LayoutError, match="newer version"):
        Layout.load(tmp_path)
    assert f"newer version of this service (format {FORMAT_VERSION + 1})" in refusal(tmp_path)
