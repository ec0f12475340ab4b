"""The disaster recovery drill, as OPERATIONS.md has it: a killed service, an empty machine, and the
operator's commands.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.support.clocks import next_millisecond
from tests.support.commands import admin
from tests.support.served import Served, refusal, served

pytestmark = pytest.mark.slow


def created(service: Served, token: str, text: str) -> None:
    answer = httpx.post(
        f"{service.url}/v1/memories",
        json={"content": text},
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code in (201, 202), answer.text


def contents(service: Served, token: str) -> set[str]:
    answer = httpx.get(
        f"{service.url}/v1/memories",
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )
    return {item["content"] for item in answer.json()["items"]}


def _refuses_what_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each in a copy of the object store, with a sentence, and leaves nothing behind."""
    damages: dict[str, Callable[[Path], object]] = {
        "layout.json is damaged: Expecting": lambda cluster: (cluster / "layout.json").write_bytes(
            b"{"
        ),
        "layout.json is damaged: its shards is 0": lambda cluster: _altered(cluster, shards=0),
        "layout.json is damaged: its shards is '1'": lambda cluster: _altered(cluster, shards="1"),
        "layout.json is damaged: it is that of": lambda cluster: _altered(
            cluster, cluster_id="0" * 32
        ),
        "epochs/000000000001 in": lambda cluster: [
            path.write_bytes(b"{") for path in cluster.rglob("epochs/*")
        ],
        "placement is empty": lambda cluster: _moved(cluster / "layout.json"),
        "holds no snapshot": lambda cluster: [
            path.write_bytes(path.read_bytes()[:10]) for path in cluster.rglob("manifest.json")
        ],
    }
    for sentence, damage in damages.items():
        copy, fresh = tmp_path / "copy", tmp_path / "fresh"
        shutil.copytree(tmp_path / "objects", copy)
        shutil.copytree(tmp_path / "data" / "secrets", fresh / "secrets")
        (layout,) = copy.glob("*/layout.json")
        damage(layout.parent)
        before = {path for path in copy.rglob("epochs/*")}
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("MNEME_OBJECT_STORE__URL", f"file://{copy}")
            status, _, said = admin("restore", fresh, "--take-over")
        assert status == 1 and sentence in said and "Traceback" not in said, said
        assert {path.name for path in fresh.iterdir()} <= {"secrets", "serve.lock"}
        if "epochs" in sentence:
            assert sentence in refusal(tmp_path / "data", **{"object_store.url": f"file://{copy}"})
        assert {path for path in copy.rglob("epochs/*")} == before, "the shard is still its owner's"
        shutil.rmtree(copy)
        shutil.rmtree(fresh)


def _altered(cluster: Path, **fields: object) -> None:
    layout = cluster / "layout.json"
    layout.write_text(json.dumps({**json.loads(layout.read_bytes()), **fields}))


def _moved(layout: Path) -> None:
    _altered(layout.parent, moved=True)
    shutil.rmtree(layout.parent / "placement", ignore_errors=True)


def test_the_drill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_OBJECT_STORE__URL", f"file://{tmp_path}/objects")
    options = {
        "durability__mode": "replicated",
        "durability__wait_seconds_max": 30,
        "cluster__lease_seconds": 8,  # which the restore waits for
    }
    with served(tmp_path / "data", **options) as service:
        token = service.register()
        for number in range(3):
            created(service, token, f"Fact {number} about tea.")
        moment = datetime.fromtimestamp(next_millisecond() / 1000, UTC)
        next_millisecond()
        created(service, token, "A fact of later.")
        service.kill()
    for name in ("then", "now"):
        shutil.copytree(tmp_path / "data" / "secrets", tmp_path / name / "secrets")
    _refuses_what_is_damaged(tmp_path, monkeypatch)
    (layout,) = (tmp_path / "objects").glob("*/layout.json")
    _altered(layout.parent, slots=17)
    status, _, said = admin("restore", tmp_path / "then")
    assert status == 1 and "layout.json is damaged: " in said and "slots is 4096" in said, said
    _altered(layout.parent, slots=4096)
    early = admin("restore", tmp_path / "then", "--at", "2020-01-01T00:00:00Z")
    assert early[0] == 1 and re.search(r"was made at \d{4}-\d\d-\d\dT[\d:.]+Z", early[2]), early
    status, told, said = admin("restore", tmp_path / "then", "--at", moment.isoformat())
    assert status == 0 and "for looking at" in told, said
    assert admin("verify", tmp_path / "then")[0] == 0
    assert "Restore the shard" in refusal(tmp_path / "then")
    status, told, said = admin("restore", tmp_path / "now", "--take-over")
    assert status == 0, said
    assert admin("verify", tmp_path / "now")[0] == 0
    with served(tmp_path / "now") as service:
        assert contents(service, token) == {
            "A fact of later.",
            *(f"Fact {number} about tea." for number in range(3)),
        }
        assert service.stop() == 0
    assert "Restore the shard" in refusal(tmp_path / "data")  # the lost machine comes back
    assert admin("restore", tmp_path / "now")[0] == 1  # never over data
    status, _, said = admin("restore", tmp_path / "early", "--at", "2020-01-01T00:00:00Z")
    assert status == 1 and "secret" in said
