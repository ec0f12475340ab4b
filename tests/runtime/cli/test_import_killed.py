"""An import whose process is killed goes on where it was, and stores nothing twice; nor do two at
once.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from runtime.cli.import_memories import PROGRESS_SUFFIX, RECORDS_PER_STEP
from tests.support.served import MNEME, Served
from tests.support.tiny_service import eventually


@pytest.mark.slow
def test_a_killed_import_goes_on(service: Served, tmp_path: Path) -> None:
    total = 2 * RECORDS_PER_STEP + 50
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(json.dumps({"content": f"Crate number {n}."}) for n in range(total)))
    token = service.register()
    command = [MNEME, "import", str(path), "--base-url", service.url, "--api-key", token]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as begun:
        progress = path.with_name(path.name + PROGRESS_SUFFIX)
        assert eventually(lambda: progress.exists() or begun.poll() is not None)
        begun.kill()
    done = json.loads(progress.read_text())["done"]
    assert 0 < done < total
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{total} of {total} records are stored" in ended.stdout
    told = service.http.get("/v1/memories?limit=1", headers={"Authorization": f"Bearer {token}"})
    assert told.json()["total_count"] == total
    assert not progress.exists()


@pytest.mark.slow
def test_imports_of_one_file_at_once_all_end_and_store_it_once(
    service: Served, tmp_path: Path
) -> None:
    total = 6 * RECORDS_PER_STEP
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(json.dumps({"content": f"Barrel number {n}."}) for n in range(total)))
    token = service.register()
    command = [MNEME, "import", str(path), "--base-url", service.url, "--api-key", token]
    begun = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ended = [(each.communicate()[1], each.returncode) for each in begun]
    assert [status for _, status in ended] == [0] * 4, ended
    told = service.http.get("/v1/memories?limit=1", headers={"Authorization": f"Bearer {token}"})
    assert told.json()["total_count"] == total
    assert list(tmp_path.iterdir()) == [path]
