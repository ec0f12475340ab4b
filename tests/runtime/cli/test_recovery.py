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

from runtime.installation import Layout
from tests.support import ROOT
from tests.support.clocks import next_millisecond
from tests.support.commands import admin, mneme
from tests.support.s3 import s3_that_hides
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


def test_the_newest_segments_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a copy of the object store; then where the prefix is another one."""
    url = f"file://{tmp_path}/objects"
    monkeypatch.setenv("MNEME_OBJECT_STORE__URL", url)
    options = {"durability__mode": "replicated", "durability__wait_seconds_max": 30}
    with served(tmp_path / "data", **options) as service:
        token = service.register()
        for number in range(3):
            created(service, token, f"Fact {number} about tea.")
        assert service.stop() == 0
    assert admin("verify", tmp_path / "data")[0] == 0
    (folder,) = (tmp_path / "objects").glob("*/shards/0000/segments/000000000001")
    for path in sorted(folder.iterdir())[-2:]:
        path.unlink()
    here = ("--config", ROOT / "configs/test.yaml", "--data-dir", tmp_path / "data", "--port", 0)

    status, told, _ = admin("verify", tmp_path / "data")
    assert status == 1 and "2 segments are missing" in told, told
    status, told, _ = mneme("doctor", *here)
    assert status == 1 and "✗ log of shard 0: 2 segments are missing" in told, told
    shutil.copytree(tmp_path / "data" / "secrets", tmp_path / "new" / "secrets")
    for how, told in (
        (["--take-over"], "so the shard is not taken over"),
        ([], "although the log was stored up to segment"),
    ):
        status, _, said = admin("restore", tmp_path / "new", *how)
        assert status == 1 and told in said, said
        assert {path.name for path in (tmp_path / "new").iterdir()} <= {"secrets", "serve.lock"}
    until_then = re.search(r"--at ([^)]*)", said)
    assert until_then is not None
    status, told, said = admin("restore", tmp_path / "new", "--at", until_then[1])
    assert status == 0 and "for looking at" in told, said
    elsewhere = {"object_store.url": f"file://{tmp_path}/anew"}
    with served(tmp_path / "new", **options, **elsewhere) as service:
        assert contents(service, token) <= {f"Fact {number} about tea." for number in range(3)}
        created(service, token, "It goes on from there.")
        assert service.stop() == 0

    with served(tmp_path / "data", **options) as service:  # its own directory has it all
        created(service, token, "Fact 3 about tea.")
        assert service.stop() == 0
    assert admin("verify", tmp_path / "data")[0] == 0
    status, told, _ = mneme("doctor", *here)
    assert "✓ log: a restore would find what every shard has stored" in told, told
    shutil.copytree(tmp_path / "data" / "secrets", tmp_path / "whole" / "secrets")
    status, _, said = admin("restore", tmp_path / "whole", "--take-over")
    assert status == 0, said
    with served(tmp_path / "whole") as service:
        assert contents(service, token) == {f"Fact {number} about tea." for number in range(4)}
        assert service.stop() == 0

    (tmp_path / "objects/elsewhere").mkdir()
    monkeypatch.setenv("MNEME_OBJECT_STORE__URL", f"{url}/elsewhere")
    status, told, _ = admin("verify", tmp_path / "whole")
    assert status == 1 and "lists nothing below" in told and "its credentials may list" in told


def test_an_object_store_that_lists_nothing_is_not_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_that_hides() as (url, hides):
        monkeypatch.setenv("MNEME_OBJECT_STORE__URL", url)
        with served(tmp_path / "data", durability__mode="replicated") as service:
            created(service, service.register(), "A fact about tea.")
            assert service.stop() == 0
        assert admin("verify", tmp_path / "data")[0] == 0
        cluster = Layout.load(tmp_path / "data").cluster_id
        shutil.copytree(tmp_path / "data" / "secrets", tmp_path / "new" / "secrets")
        hides.set()
        for named, told in (
            ((), "check the prefix in object_store.url, and that its credentials may list"),
            (("--cluster", cluster), f"lists nothing below {cluster}, although it has its layout"),
        ):
            for how in ((), ("--take-over",)):
                status, _, said = admin("restore", tmp_path / "new", *named, *how)
                assert status == 1 and told in said, said
        status, said, _ = admin("verify", tmp_path / "data")
        assert status == 1 and "lists nothing below" in said, said
        here = ("--config", ROOT / "configs/test.yaml", "--data-dir", tmp_path / "data")
        status, said, _ = mneme("doctor", *here, "--port", 0)
        assert status == 1 and f"✗ log of shard 0: {url} lists nothing below" in said, said
        hides.clear()
        status, _, said = admin("restore", tmp_path / "new")
        assert status == 0, said
