"""The data directory: decided once, held by one service, never silently made anew."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runtime.installation import Layout, LayoutError, held


def test_the_number_of_shards_is_decided_once(tmp_path: Path) -> None:
    first = Layout.load_or_create(tmp_path, 3)
    assert Layout.load_or_create(tmp_path, 5) == first


def test_stores_are_created_until_the_layout_is_complete(tmp_path: Path) -> None:
    layout = Layout.load_or_create(tmp_path, 1)
    assert not layout.complete
    assert layout.completed(tmp_path).complete
    assert Layout.load(tmp_path).complete
    assert layout.identity(0).cluster_id == layout.cluster_id


def test_a_lost_or_damaged_layout_is_named(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="holds no data"):
        Layout.load(tmp_path)
    (tmp_path / "shards").mkdir()
    with pytest.raises(LayoutError, match=r"layout.json is missing"):
        Layout.load_or_create(tmp_path, 1)
    (tmp_path / "layout.json").write_text("{")
    with pytest.raises(LayoutError, match="damaged"):
        Layout.load_or_create(tmp_path, 1)


def test_one_service_holds_a_directory(tmp_path: Path) -> None:
    other = (
        "from pathlib import Path; from runtime.installation.layout import held\nwith "
        f"held(Path({str(tmp_path)!r})): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", other], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LayoutError, match=f"in use by process {process.pid}"), held(tmp_path):
            pass
        process.kill()
    with held(tmp_path):
        pass
