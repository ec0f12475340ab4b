"""What the front door is told to do."""

from __future__ import annotations

import json
from pathlib import Path

from runtime.limits import GATEWAY_REQUESTS_MAX
from runtime.serve.run_directory import RunDirectory
from tests.support.worlds import settings


def test_the_front_door_lets_a_gateway_choose_whom_to_refuse(tmp_path: Path) -> None:
    RunDirectory(tmp_path).write_front_door(settings(), 8080, "haproxy")
    orders = json.loads((tmp_path / "front-door.json").read_text())
    assert orders["requests_max"] > GATEWAY_REQUESTS_MAX
