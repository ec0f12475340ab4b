"""A shard that writes to a recorded disk (recorded_disk.py) and notes what it acknowledged; and
whether a directory has what was noted.

    python -m tests.support.disk_workload ROOT power            a shard whose log is shipped to a
                                                                directory below ROOT, too
    python -m tests.support.disk_workload ROOT faults NUMBER …  shards whose call of that number
                                                                fails, each in a directory of its
                                                                own; prints what each said, a line
                                                                of JSON each
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import serve_app
from runtime.inference import Models
from runtime.installation import Secrets, shard_directory, shard_place
from runtime.shard import StorageFailed, verification
from storage.replication import ObjectStore, RestoreFailed, restore
from storage.store import StoreError
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness
from tests.support.worlds import settings

SECRETS = Secrets(bytes(range(32)), bytes(range(32, 64)), "mem_op_" + "0" * 64)
WRITES, TEXT_CHARS = 12, 3_000
MAP_BYTES = 1 << 28
PLUGINS = tuple(
    plugin for plugin in serve_app.PLUGINS if plugin.name in ("accounts", "collections", "memories")
)
DATA, OBJECTS = "data", "objects"


def opened(root: Path, *, ships: bool) -> ShardHarness:
    """A shard below `root`, made there where there is none."""
    shipping = {
        "object_store__url": f"file://{root / OBJECTS}",
        "object_store__ship_interval_ms": 5,
        "durability__mode": "replicated",
    }
    # One process has many of them, those that could not be closed among them.
    sized = {"storage__map_bytes_max": MAP_BYTES}
    given = settings(data_dir=str(root / DATA), **sized, **(shipping if ships else {}))
    directory = shard_directory(given.data_dir, 0)
    return ShardHarness(directory, PLUGINS, Models(WordEmbedder()), given, SECRETS)


class Noting:
    """Writes to a shard and notes what it answers, where the disk's record has it in its place."""

    def __init__(self, harness: ShardHarness, disk: ctypes.CDLL):
        self._harness, self._disk = harness, disk
        self._made: list[str] = []
        self.statuses: list[int] = []
        self._token = ""

    def note(self, **said: str) -> None:
        self._disk.disk_note(json.dumps(said).encode())

    def work(self) -> None:
        """Raises StorageFailed."""
        while not self._token:
            answer = self._harness(
                "auth.register",
                {"email": "ada@example.com", "password": "correct horse", "full_name": "Ada"},
            )
            self.statuses.append(answer.status)
            if answer.status == 201:
                self._token = answer.body["access_token"]
                self.note(token=self._token)
        for number in range(WRITES):
            self._delete() if number % 4 == 3 else self.create(number)

    def create(self, number: int) -> None:
        content = f"Parcel {number} went to the depot." + " yonder" * (TEXT_CHARS * (number % 3))
        body = {"content": content[:TEXT_CHARS]}
        answer = self._harness("memories.create_raw", body, who=self._token)
        self.statuses.append(answer.status)
        if answer.status in (201, 202):
            self._made.append(answer.body["id"])
            self.note(made=answer.body["id"], **body)
        else:
            self.note(refused=body["content"])

    def _delete(self) -> None:
        if self._made:
            memory_id = self._made.pop(0)
            self.note(leaving=memory_id)
            answer = self._harness("memories.delete", who=self._token, id=memory_id)
            self.statuses.append(answer.status)
            if answer.status in (200, 204):
                self.note(gone=memory_id)


@dataclass
class Noted:
    """What has to be there, by the notes. unsure: memories that somebody was about to delete."""

    token: str = ""
    memories: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, notes: Iterable[str]) -> Noted:
        found = cls()
        for said in map(json.loads, notes):
            found.token = said.get("token", found.token)
            if "made" in said:
                found.memories[said["made"]] = said["content"]
            if "refused" in said:
                found.refused.add(said["refused"])
            found.unsure |= {said["leaving"]} if "leaving" in said else set()
            found.gone |= {said["gone"]} if "gone" in said else set()
        return found


def wrong(root: Path, noted: Noted) -> str:
    """What of the notes the shard below `root` does not hold; "" when it holds all."""
    try:
        harness = opened(root, ships=False)
    except (StoreError, OSError) as error:
        return f"does not open: {error}"
    try:
        if not noted.token:
            return ""
        answer = harness("memories.list", who=noted.token, query={"limit": 100})
        if answer.status != 200:
            return f"the account is gone: {answer}"
        found = {item["id"]: item["content"] for item in answer.body["items"]}
        lost = [
            memory_id
            for memory_id, content in noted.memories.items()
            if memory_id not in noted.unsure and found.get(memory_id) != content
        ]
        if lost or noted.gone & found.keys():
            return f"lost {lost}, back {sorted(noted.gone & found.keys())}"
        if noted.refused & set(found.values()):
            return "what was refused is there"
        return "".join(_findings(harness))
    finally:
        harness.close()


def wrong_when_restored(root: Path, noted: Noted) -> str:
    """The same of the shard that object storage gives back, as `root` has it."""
    objects = ObjectStore(f"file://{root / OBJECTS}")
    try:
        cluster_id = next(iter(objects.folders()), "")
        restore(
            objects.below(shard_place(cluster_id, 0)), shard_directory(root / "again" / DATA, 0)
        )
    except RestoreFailed as failed:
        return str(failed) if noted.token else ""
    return wrong(root / "again", noted)


def _findings(harness: ShardHarness) -> list[str]:
    """What verification finds."""
    environment, found = harness.shard.environment, []
    with harness.shard.store.snapshot() as snapshot:
        for account in verification.accounts(snapshot):
            found += [
                str(each)
                for each in verification.examine(snapshot, environment, account, harness.now_ms)
            ]
    return found


def tried(root: Path, disk: ctypes.CDLL, number: int, error: int) -> dict[str, Any]:
    """A shard of its own, whose call of this number fails; -> what came of it."""
    disk.disk_note(json.dumps({"trial": root.name}).encode())
    disk.disk_fail(number, error)
    harness, ended, calls = None, "", number
    statuses: list[int] = []
    for is_last in (False, True):
        try:
            harness = opened(root, ships=False)
            break
        except (StoreError, OSError) as refused:
            ended = f"{type(refused).__name__}: {refused}"
            if error != errno.ENOSPC or is_last:
                break
    if harness is not None:
        noting = Noting(harness, disk)
        try:
            noting.work()
            ended, calls = "", disk.disk_calls()
            if calls >= number:  # what failed may be a job's: the next write tells
                noting.create(WRITES)
        except StorageFailed as failed:
            ended, calls = f"StorageFailed: {failed}", number
        statuses = noting.statuses
        with contextlib.suppress(StorageFailed):  # such a process ends without
            harness.close()
    disk.disk_fail(0, 0)
    disk.disk_note(json.dumps({"over": root.name}).encode())
    return {
        "error": error,
        "number": number,
        "ended": ended,
        "statuses": statuses,
        "fired": calls >= number,
    }


def main() -> None:
    root, disk = Path(sys.argv[1]), ctypes.CDLL(None)
    if sys.argv[2] == "power":
        harness = opened(root, ships=True)
        Noting(harness, disk).work()
        harness.close()
        return
    for number in map(int, sys.argv[3:]):
        for error in (errno.EIO, errno.ENOSPC):
            trial = tried(root / f"{number}-{error}", disk, number, error)
            print(json.dumps(trial), flush=True)


if __name__ == "__main__":
    main()
