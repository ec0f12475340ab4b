"""What a Ray of the service's own stands on, and how its end is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psutil
import pytest

from runtime.serve.own_ray import OwnRay
from runtime.serve.run_directory import RunDirectory
from runtime.settings import Settings


@pytest.mark.parametrize("is_waited_for", [False, True])
def test_a_pillar_that_ended_is_named_whoever_waited_for_it(
    tmp_path: Path, is_waited_for: bool
) -> None:
    """Of a process that was waited for nothing is left, its name neither."""
    room = OwnRay(Settings.load(None, {"http.port": 0}), RunDirectory.of(tmp_path))
    with subprocess.Popen(["sleep", "600"]) as pillar:
        room.pillars = {psutil.Process(pillar.pid): "raylet"}
        assert room.broken() is None
        pillar.kill()
        if is_waited_for:
            pillar.wait()
        while (told := room.broken()) is None:
            continue
        assert told == f"raylet, process {pillar.pid}, has ended"
