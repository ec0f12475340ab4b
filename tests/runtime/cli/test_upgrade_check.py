"""`mneme upgrade-check` says what a start would do to the data, and does nothing to it; a start
without the model says what to run.
"""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from runtime import inference
from runtime.cli import main, weights
from runtime.cli.weights import WeightsMissing
from runtime.installation import FORMAT_VERSION
from runtime.settings import Settings
from tests.support.served import Served
from tests.upgrade.keep import STORES


def digest(directory: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in directory.rglob("data.mdb")}


def unpacked(version: int, directory: Path) -> Path:
    with tarfile.open(STORES / f"{version}.tar.gz") as archive:
        archive.extractall(directory, filter="data")
    return directory


def test_a_store_of_an_older_release_is_said_to_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir = unpacked(FORMAT_VERSION - 1, tmp_path)
    before = digest(data_dir)
    assert main(["upgrade-check", "--data-dir", str(data_dir), "--port", "9"]) == 0
    said = capsys.readouterr().out
    assert "an older release wrote it" in said and "mneme admin backup DIR" in said
    assert "mind what is marked !" in said
    assert digest(data_dir) == before and before


def test_a_newer_release_s_data_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir = unpacked(FORMAT_VERSION, tmp_path)
    layout = data_dir / "layout.json"
    written = json.loads(layout.read_text())
    layout.write_text(json.dumps({**written, "format_version": FORMAT_VERSION + 1}))
    assert main(["upgrade-check", "--data-dir", str(data_dir), "--port", "9"]) == 1
    assert "Do not start this release" in capsys.readouterr().out


def test_a_running_service_s_stores_are_read_beside_it(
    service: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    where = ["--data-dir", str(service.data_dir), "--host", host, "--port", port]
    assert main(["upgrade-check", *where]) == 0
    said = capsys.readouterr().out
    assert "the installed release" in said and "nothing changes" in said


def test_a_start_without_the_model_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise inference.ModelUnusable("not installed")

    assert not weights.needed(Settings())
    monkeypatch.setattr(inference, "packaged_files", missing)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))  # no terminal: nobody is asked
    assert weights.needed(Settings())
    with pytest.raises(WeightsMissing, match="mneme models fetch"):
        weights.offered(Settings(), asked=False)
    other = Settings.load(overrides={"embedder.model_path": "/models/own"})
    weights.offered(other, asked=False)
