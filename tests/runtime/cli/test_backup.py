"""Backup, restore and verification, as an operator uses them: the commands against a real service,
stopped, running and writing.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.memories.rows import MEMORY_IDS
from runtime.cli import backup
from runtime.installation import Layout, LayoutError
from storage.store import Store, StoreError, copy_data
from tests.support import ROOT
from tests.support.commands import admin, mneme
from tests.support.crashes import Books, write_until
from tests.support.served import MNEME, Served, refusal, served

COMMAND_SECONDS_MAX = 120


def backed_up(data_dir: Path, copy: Path) -> subprocess.CompletedProcess:
    """`mneme admin backup`, in a process of its own beside the service's."""
    command = [
        MNEME,
        "admin",
        "backup",
        str(copy),
        "--config",
        str(ROOT / "configs/test.yaml"),
        "--data-dir",
        str(data_dir),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, cwd=ROOT, check=False
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, Books]]:
    """A data directory, a backup of it that was taken while sixteen writers wrote, and the books of
    what was written by its end.
    """
    root = tmp_path_factory.mktemp("backup")
    with served(root / "data") as service:
        books = Books(service.url, service.register(), 7)
        write_until(books, 30, lambda: None)
        known = dict(books.memories)
        taken: list[subprocess.CompletedProcess] = []
        taking = threading.Thread(
            target=lambda: taken.append(backed_up(root / "data", root / "copy"))
        )
        asyncio.run(books.write(_while_running(taking)))
        taking.join()
        assert taken[0].returncode == 0 and "rows of 1 shards" in taken[0].stdout, taken[0].stderr
        assert admin("verify", root / "data", service=service)[0] == 0, (
            "a store can be verified beside its service"
        )
        assert service.stop() == 0
    (root / "known").write_text(json.dumps(known))
    yield root / "data", root / "copy", books


def _while_running(thread: threading.Thread):
    thread.start()
    return thread.is_alive


def test_a_hot_backup_is_a_state_the_service_was_in(kept, tmp_path: Path) -> None:
    data_dir, copy, books = kept
    status, told, said = admin("restore", tmp_path / "data", copy)
    assert status == 0 and "every checksum and count agrees" in told, said
    status, told, _ = admin("verify", tmp_path / "data")
    assert status == 0 and "0 findings" in told
    with served(tmp_path / "data") as service:
        items = _everything(service, books.token)
    before = json.loads((data_dir.parent / "known").read_text())
    touched = {*before} - {*books.memories} | {
        id for id in before if books.memories.get(id) != before[id]
    }
    assert {*before} - touched <= {*items}, (
        "what was there before the backup began, and was left alone, is in it"
    )
    assert {items[id] for id in items if id in before and id not in touched} == {
        before[id] for id in before if id not in touched
    }


def _everything(service: Served, token: str) -> dict[str, str]:
    found, cursor = {}, ""
    while cursor is not None:
        page = service.http.get(
            f"/v1/memories?limit=100&cursor={cursor}", headers={"Authorization": f"Bearer {token}"}
        ).json()
        found |= {item["id"]: item["content"] for item in page["items"]}
        cursor = page["next_cursor"]
    return found


def test_neither_command_writes_over_anything(kept, tmp_path: Path) -> None:
    data_dir, copy, _ = kept
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("mine")
    for command, target, source in (
        ("backup", data_dir, tmp_path / "taken"),
        ("restore", tmp_path / "taken", copy),
    ):
        status, _, said = admin(command, target, source)
        assert status == 1 and "is not empty" in said and said.count("\n") == 1
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["mine"]
    assert admin("restore", data_dir, copy)[0] == 1
    with pytest.raises(backup.BackupError, match="lies inside"):
        backup.back_up(data_dir, data_dir / "backups" / "one", 0)


def test_a_backup_that_was_killed_is_no_backup_and_begins_anew(kept, tmp_path: Path) -> None:
    """It is killed while it waits for a pipe, which it takes for one of the files."""
    shutil.copytree(kept[0], tmp_path / "data")
    copy, pipe = tmp_path / "copy", tmp_path / "data/pipe"
    os.mkfifo(pipe)
    given = ("--config", ROOT / "configs/test.yaml", "--data-dir", tmp_path / "data")
    with subprocess.Popen([MNEME, "admin", "backup", copy, *given]) as killed:
        first = os.open(pipe, os.O_WRONLY)  # returns when somebody reads
        os.mkfifo(tmp_path / "other")
        (tmp_path / "other").replace(pipe)
        os.close(first)
        second = os.open(pipe, os.O_WRONLY)  # on its second way through the files
        status, _, said = admin("backup", tmp_path / "data", copy)
        killed.kill()
    os.close(second)
    assert status == 1 and "a backup is being written there" in said, said
    pipe.unlink()
    assert (copy / "shards/0000/data.mdb").exists(), "it has come far"
    status, _, said = admin("restore", tmp_path / "restored", copy)
    assert status == 1 and "an unfinished one" in said and not (tmp_path / "restored").exists()
    (copy / "shards/0000/left").write_text("of an account that is erased by now")
    status, told, said = admin("backup", tmp_path / "data", copy)
    assert status == 0 and "rows of 1 shards" in told, said
    assert not (copy / "shards/0000/left").exists()
    assert admin("restore", tmp_path / "restored", copy)[0] == 0
    status, _, said = admin("backup", tmp_path / "data", copy)
    assert status == 1 and "is not empty" in said, "it is whole by now"


def test_a_full_disk_is_told_of_and_nothing_is_left_there(kept, tmp_path: Path) -> None:
    """The limit on the size of files stands for the disk: what is larger fails like on a full one,
    however far the copy has come.
    """
    data_dir, copy, _ = kept

    def on_a_small_disk(size: int, command: str, *arguments: object) -> str:
        done = subprocess.run(
            [MNEME, *command.split(), *map(str, arguments), "--config", ROOT / "configs/test.yaml"],
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
            cwd=ROOT,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
            check=False,
        )
        assert done.returncode == 1 and "Traceback" not in done.stderr, done
        return done.stdout + done.stderr

    for size in (64, 4_096):
        for command, source, target in (
            ("admin backup", data_dir, tmp_path / "copy"),
            ("admin restore", copy, tmp_path / "data"),
        ):
            given = (
                (target, "--data-dir", source)
                if "backup" in command
                else (source, "--data-dir", target)
            )
            said = on_a_small_disk(size, command, *given)
            assert f"the disk of {target} is full" in said and "Free some space" in said, said
            assert {path.name for path in target.iterdir()} <= {"serve.lock"}
    assert admin("restore", tmp_path / "data", copy)[0] == 0  # once there is room
    said = on_a_small_disk(0, "doctor", "--data-dir", data_dir)
    assert "free some space" in said.split(f"{data_dir} cannot be written")[1].splitlines()[1]
    said = on_a_small_disk(0, "serve", "--engine", "local", "--port", 0, "--data-dir", data_dir)
    assert f"{data_dir} cannot be used: " in said


def test_doctor_says_what_a_start_would_refuse(kept, tmp_path: Path) -> None:
    """A key ring that is gone, a layout that is gone, as where a restore was broken off."""
    data_dir, _, _ = kept
    for name, told in (
        ("shards/0000/keys.ring", "restore a backup"),
        ("layout.json", "where a restore into this directory was broken off, remove it"),
    ):
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        shutil.copytree(data_dir, tmp_path / "data")
        (tmp_path / "data" / name).unlink()
        here = ("--config", ROOT / "configs/test.yaml", "--data-dir", tmp_path / "data")
        status, said, _ = mneme("doctor", *here, "--port", 0)
        lines = said.splitlines()
        (found,) = [number for number, line in enumerate(lines) if f"{name} is missing" in line]
        assert status == 1 and lines[found].startswith("✗") and told in lines[found + 1], said
        assert f"{name} is missing" in refusal(tmp_path / "data")


@pytest.mark.parametrize("left", ["nothing", "zeros", "its head", "all but the last", "its keys"])
def test_doctor_says_that_a_key_ring_was_cut_off(kept, tmp_path: Path, left: str) -> None:
    shutil.copytree(kept[0], tmp_path / "data")
    ring = tmp_path / "data/shards/0000/keys.ring"
    whole = ring.read_bytes()
    records = [whole[at : at + 64] for at in range(0, len(whole), 64)]
    content = {
        "nothing": b"",
        "zeros": bytes(128),
        "its head": whole[:64],
        "all but the last": whole[:-64],
        "its keys": b"".join(record for record in records if record[:1] != b"E"),
    }[left]
    ring.write_bytes(content)
    here = ("--config", ROOT / "configs/test.yaml", "--data-dir", tmp_path / "data")
    status, said, _ = mneme("doctor", *here, "--port", 0)
    lines = said.splitlines()
    (found,) = [number for number, line in enumerate(lines) if f"{ring} " in line]
    assert status == 1 and lines[found].startswith("✗"), said
    assert "restore a backup" in lines[found + 1], said
    if not any(content):
        assert f"{ring} is empty" in lines[found]
        assert f"{ring} is empty" in refusal(tmp_path / "data")
        assert ring.read_bytes() == content, "a start makes no new one in its place"


def test_a_damaged_backup_is_refused_before_anything_is_written(kept, tmp_path: Path) -> None:
    _, copy, _ = kept

    def refused(hurt) -> str:
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(copy, tmp_path / "copy")
        hurt(tmp_path / "copy")
        with pytest.raises(backup.BackupError) as refusal:
            backup.restore(tmp_path / "copy", tmp_path / "data")
        assert not (tmp_path / "data").exists()
        return str(refusal.value)

    def flip(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    store = "shards/0000/data.mdb"
    assert "checksum" in refused(lambda at: flip(at / store))
    assert "checksum" in refused(lambda at: os.truncate(at / store, 4096))
    assert "missing" in refused(lambda at: (at / "secrets/pepper").unlink())
    assert "no backup" in refused(lambda at: (at / "manifest.json").unlink())
    assert "checksum" in refused(
        lambda at: _edit(at, lambda told: told["stores"][0].update(rows=1))
    )
    assert "newer version" in refused(lambda at: _edit(at, lambda told: told.update(format=99)))
    assert "no part of a backup" in refused(
        lambda at: _forge(at, lambda told: told.files.__setitem__(0, _outside(told.files[0])))
    )
    assert "the manifest says" in _miscounted(copy, tmp_path)


def _edit(at: Path, change) -> None:
    told = json.loads((at / "manifest.json").read_text())
    change(told)
    (at / "manifest.json").write_text(json.dumps(told))


def _forge(at: Path, change) -> None:
    """An edit whose checksum fits."""
    manifest = backup.load_manifest(at)
    change(manifest)
    manifest.sha256 = manifest.digest()
    (at / "manifest.json").write_bytes(backup.msgspec.json.encode(manifest))


def _outside(file: backup.CopiedFile) -> backup.CopiedFile:
    return backup.CopiedFile("../elsewhere", file.size, file.sha256)


def _miscounted(copy: Path, tmp_path: Path) -> str:
    shutil.copytree(copy, tmp_path / "miscounted")
    _forge(tmp_path / "miscounted", lambda told: setattr(told.stores[0], "rows", 3))
    with pytest.raises(backup.BackupError) as refusal:
        backup.restore(tmp_path / "miscounted", tmp_path / "short")
    assert not (tmp_path / "short" / "layout.json").exists(), (
        "no service takes it for a data directory"
    )
    return str(refusal.value)


def test_files_beside_a_store_are_there_whichever_way_they_changed(
    kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the rows are copied, one file goes, one comes, one grows and one is written over in
    place.
    """
    shutil.copytree(kept[0], tmp_path / "data")
    beside = tmp_path / "data/shards/0000/blobs"
    beside.mkdir()
    for name in ("stays", "goes", "grows", "changes"):
        (beside / name).write_text(name)
        os.utime(beside / name, (1_700_000_000, 1_700_000_000))

    def while_copying(*arguments) -> None:
        copy_data(*arguments)
        (beside / "goes").unlink()
        (beside / "comes").write_text("comes")
        with (beside / "grows").open("a") as file:
            file.write(", and more")
        with (beside / "changes").open("r+") as file:
            file.write("CHANGES")

    monkeypatch.setattr(backup, "copy_data", while_copying)
    manifest = backup.back_up(tmp_path / "data", tmp_path / "copy", 0)
    found = {
        path.name: path.read_text() for path in (tmp_path / "copy/shards/0000/blobs").iterdir()
    }
    assert found == {
        "stays": "stays",
        "goes": "goes",
        "comes": "comes",
        "grows": "grows, and more",
        "changes": "CHANGES",
    }
    assert backup.restore(tmp_path / "copy", tmp_path / "again").files == manifest.files


def test_a_failed_backup_leaves_its_directory_empty(kept, tmp_path: Path) -> None:
    data_dir, _, _ = kept
    shutil.copytree(data_dir, tmp_path / "data")
    os.truncate(tmp_path / "data/shards/0000/data.mdb", 20_000)
    with pytest.raises(StoreError):
        backup.back_up(tmp_path / "data", tmp_path / "copy", 0)
    assert list((tmp_path / "copy").iterdir()) == []
    with pytest.raises(LayoutError):
        backup.back_up(tmp_path / "nowhere", tmp_path / "copy", 0)


def test_secrets_in_a_backup_are_for_their_owner_alone(kept) -> None:
    _, copy, _ = kept
    assert {path.stat().st_mode & 0o077 for path in copy.rglob("*")} == {0}
    assert (
        (copy / "secrets/service").exists()
        and not (copy / "serve.lock").exists()
        and not (copy / "logs").exists()
    )


def _hurt(data_dir: Path) -> None:
    """Take a few ids away from a store that nobody serves."""
    import serve_app

    layout = Layout.load(data_dir)
    store = Store.open(
        data_dir / "shards/0000",
        serve_app.registry().tables.values(),
        identity=layout.identity(0),
        create=False,
    )

    def work(transaction) -> None:
        for scope in list(transaction.scopes()):
            if scope.tenant:
                rows = transaction.bind(MEMORY_IDS, scope)
                for key in list(rows.keys(limit=3)):
                    rows.delete(*key)

    store.write(work)
    store.close()


def test_verify_finds_and_repairs_a_stopped_store(kept, tmp_path: Path) -> None:
    shutil.copytree(kept[0], tmp_path / "data")
    _hurt(tmp_path / "data")
    status, told, _ = admin("verify", tmp_path / "data")
    assert status == 1 and "memory_ids" in told and "can be repaired" in told
    status, told, _ = admin("verify", tmp_path / "data", "--repair")
    assert status == 0 and "3 repaired, 0 left" in told
    assert "0 findings" in admin("verify", tmp_path / "data")[1]


def test_a_repair_of_a_running_service_goes_through_it(kept, tmp_path: Path) -> None:
    data_dir, _, books = kept
    shutil.copytree(data_dir, tmp_path / "data")
    _hurt(tmp_path / "data")
    with served(tmp_path / "data") as service:
        status, told, said = admin("verify", tmp_path / "data", "--repair", service=service)
        assert status == 0 and "3 repaired, 0 left" in told, (told, said)
        books.url = service.url
        asyncio.run(books.audit())
