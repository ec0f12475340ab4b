"""Each check sees what it is for, on real files, locks and sockets."""

from __future__ import annotations

import os
import resource
import socket
from pathlib import Path

import pytest

from runtime import doctor
from runtime.layout import held
from runtime.settings import Settings


def settings(tmp_path: Path, *overrides: str) -> Settings:
    return Settings.load(overrides=["engine=local", f"data_dir={tmp_path / 'data'}", *overrides])


def test_a_sound_installation_has_nothing_wrong(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    findings = list(doctor.examine(settings(tmp_path, f"http.port={port}")))
    assert [str(finding) for finding in findings if finding.verdict == "wrong"] == []
    assert not (tmp_path / "data").exists()


def test_a_finding_shows_its_mark_and_what_to_do():
    assert str(doctor.Finding("ok", "all well")) == "✓ all well"
    assert str(doctor.Finding("wrong", "broken", "mend it")) == "✗ broken\n    → mend it"
    assert str(doctor.Finding("advice", "slow", "hurry")) == "! slow\n    → hurry"


def test_weights_that_are_missing_or_others_are_wrong(tmp_path):
    own = settings(tmp_path, f"embedder.model_path={tmp_path}")
    missing = doctor.weights(own)
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    other = doctor.weights(own)
    assert (missing.verdict, other.verdict) == ("wrong", "wrong")
    assert "No such file" in missing.what and "has SHA-256" in other.what
    assert "mneme models fetch" in other.remedy


def test_weights_are_not_asked_for_when_an_endpoint_embeds(tmp_path):
    remote = settings(tmp_path, "embedder.backend=openai", "embedder.base_url=http://x/v1", "embedder.model=m")
    assert doctor.weights(remote) == doctor.Finding("ok", "weights are not needed: http://x/v1 embeds with m")


def test_a_data_directory_below_a_file_is_wrong(tmp_path):
    (tmp_path / "file").write_text("")
    finding = doctor.data_directory(Settings.load(overrides=[f"data_dir={tmp_path / 'file' / 'data'}"]))
    assert finding.verdict == "wrong" and "cannot be written" in finding.what


def test_the_holder_of_the_data_directory_is_named(tmp_path):
    asked = settings(tmp_path)
    assert doctor.holder(asked).what == "data directory is in use by nobody"
    with held(asked.data_dir):
        assert doctor.holder(asked).what == f"data directory is in use by process {os.getpid()}"
    assert doctor.holder(asked).what == "data directory is in use by nobody"


def test_a_port_held_by_a_stranger_is_wrong(tmp_path):
    with socket.socket() as stranger:  # bound, never listening: whoever asks is refused at once
        stranger.bind(("127.0.0.1", 0))
        finding = doctor.port(settings(tmp_path, f"http.port={stranger.getsockname()[1]}"))
    assert finding.verdict == "wrong" and "Address already in use" in finding.what


def test_an_address_of_another_machine_is_wrong(tmp_path):
    assert doctor.port(settings(tmp_path, "http.host=192.0.2.1", "http.port=18999")).verdict == "wrong"


@pytest.fixture
def open_files_at_most():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_few_open_files_are_worth_advice(tmp_path, open_files_at_most):
    open_files_at_most(256)
    assert doctor.open_files(settings(tmp_path)).verdict == "advice"
