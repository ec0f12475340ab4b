"""A disk that keeps of what was not synced what it likes.

recorded_disk.cpp, loaded before all other libraries into a process, records what that process does
to files below a directory. `Disk` does it again, call by call, and says at any point what a power
failure might leave there:

    a file       what was written before its last fsync that succeeded (or through O_DSYNC), and of
                 what came after it any writes, each whole or any of its sectors
    a name       what a directory's last fsync found; of what came after it any changes, a rename as
                 a whole

A file's fsync does not keep its name, and one that failed keeps nothing, then or later.
"""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".cpp")
SECTOR_BYTES = 512
CREATE, WRITE, RESIZE, SYNC, RENAME, LINK, UNLINK, MKDIR, NOTE = range(9)

_HEAD = struct.Struct("<BBBIIIQq")


class Call(NamedTuple):
    """One call, as recorded_disk.cpp has it; a note has its text for a path."""

    kind: int
    failed: bool
    synced: bool
    path: str
    other: str
    file: int
    at: int
    content: bytes


def library(directory: Path) -> Path:
    """Compile recorded_disk.cpp."""
    found = directory / "recorded-disk.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", found, SOURCE, "-ldl"]
    subprocess.run(command, check=True)
    return found


def environment(
    library: Path, root: Path, log: Path, *, has_unnamed: bool = True
) -> dict[str, str]:
    """What a process is to be started with whose files below `root` are recorded in `log`.
    has_unnamed: whether it can have files there without a name.
    """
    found = {"LD_PRELOAD": str(library), "DISK_ROOT": str(root), "DISK_LOG": str(log)}
    return found if has_unnamed else found | {"DISK_NAMES_ALL": "1"}


def recorded(log: Path) -> Iterator[Call]:
    raw = log.read_bytes()
    at = 0
    while at < len(raw):
        kind, failed, synced, path, other, size, file, offset = _HEAD.unpack_from(raw, at)
        at += _HEAD.size
        first, second = raw[at : at + path], raw[at + path : at + path + other]
        at += path + other
        names = os.fsdecode(first), os.fsdecode(second)
        content = raw[at : at + size]
        yield Call(kind, bool(failed), bool(synced), *names, file, offset, content)
        at += size


class Trial(NamedTuple):
    """A stretch of a record, from the note {"trial": name} to {"over": name}."""

    name: str
    calls: list[Call]
    notes: list[str]

    @classmethod
    def among(cls, calls: Iterable[Call]) -> Iterator[Trial]:
        trial = cls("", [], [])
        for call in calls:
            said = json.loads(call.path) if call.kind == NOTE else {}
            if "trial" in said:
                trial = cls(str(said["trial"]), [], [])
            elif "over" in said:
                yield trial
            else:
                trial.calls.append(call)
                trial.notes.extend([call.path] if said else [])


@dataclass(eq=False)
class _File:
    """durable: what no power failure takes; since: calls after that, None for one that resized."""

    durable: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for at, content in self.since:
            _apply(self.durable, at, content)
        self.since.clear()

    def left(self, chance: random.Random, share: float) -> bytes:
        found = bytearray(self.durable)
        for at, content in self.since:
            if chance.random() < share:
                _apply(found, at, content)
            elif content is not None and 0 < share < 1:
                for start in range(0, len(content), SECTOR_BYTES):
                    if chance.random() < share:
                        _apply(found, at + start, content[start : start + SECTOR_BYTES])
        return bytes(found)


@dataclass(eq=False)
class _Folder:
    """What names lead to, now, and as it was when the folder was last synced."""

    now: dict[str, _File | _Folder] = field(default_factory=dict)
    durable: dict[str, _File | _Folder] = field(default_factory=dict)


_Edit = tuple[_Folder, str, "_File | _Folder | None"]


class Disk:
    """What is below `root`, where nothing was at first. notes: what the process noted, so far."""

    def __init__(self, root: Path):
        self._root, self._prefix = _Folder(), f"{root}/"
        self._inodes: dict[int, _File | _Folder] = {root.stat().st_ino: self._root}
        self._changes: list[list[_Edit]] = []  # of names, not synced yet; each whole or not at all
        self.notes: list[str] = []

    def do(self, call: Call) -> None:
        if call.kind == NOTE:
            self.notes.append(call.path)
        elif call.kind in (WRITE, RESIZE, SYNC):
            found = self._inodes.get(call.file)
            if isinstance(found, _Folder):
                self._sync_names(found)
            elif found is not None:
                self._do_to_file(found, call)
        else:
            self._do_to_names(call)

    def _do_to_file(self, file: _File, call: Call) -> None:
        if call.kind == SYNC and call.failed:
            # What the system had of it counts as written from then on, and may be anywhere.
            lost = random.Random(len(file.since))
            file.durable = bytearray(file.left(lost, 0.5))
            file.since.clear()
        elif call.kind == SYNC:
            file.sync()
        elif call.kind == RESIZE and not call.failed:
            file.since.append((call.at, None))
        elif call.synced and not call.failed:
            _apply(file.durable, call.at, call.content)
        elif not call.failed:
            file.since.append((call.at, call.content))

    def _do_to_names(self, call: Call) -> None:
        if call.kind in (CREATE, MKDIR):
            made = self._inodes[call.file] = _File() if call.kind == CREATE else _Folder()
            if call.path:  # else it is a file without a name
                self._change([(*self._placed(call.path), made)])
        elif call.kind == UNLINK:
            self._change([(*self._placed(call.path), None)])
        elif call.kind == LINK:
            self._change([(*self._placed(call.other), self._inodes[call.file])])
        else:
            folder, name = self._placed(call.path)
            self._change([(*self._placed(call.other), folder.now[name]), (folder, name, None)])

    def _placed(self, path: str) -> tuple[_Folder, str]:
        *folders, name = path.removeprefix(self._prefix).split("/")
        found = self._root
        for each in folders:
            found = found.now[each]
            assert isinstance(found, _Folder)
        return found, name

    def _change(self, edits: list[_Edit]) -> None:
        for folder, name, node in edits:
            _edit(folder.now, name, node)
        self._changes.append(edits)

    def _sync_names(self, synced: _Folder) -> None:
        """Keep what changed in a folder, and what that was part of."""
        left = []
        for edits in self._changes:
            if any(folder is synced for folder, _, _ in edits):
                for folder, name, node in edits:
                    _edit(folder.durable, name, node)
            else:
                left.append(edits)
        self._changes = left

    def fail_power(self, target: Path, chance: random.Random, share: float) -> None:
        """Write to a new directory what is there after a power failure at this moment. share: of
        what was not synced, how much is there all the same.
        """
        names: dict[int, dict[str, _File | _Folder]] = {}
        for edits in self._changes:
            if chance.random() < share:
                for folder, name, node in edits:
                    _edit(names.setdefault(id(folder), dict(folder.durable)), name, node)
        self._write(self._root, target, names, chance, share)

    def _write(
        self,
        folder: _Folder,
        target: Path,
        names: dict[int, dict[str, _File | _Folder]],
        chance: random.Random,
        share: float,
    ) -> None:
        target.mkdir()
        for name, node in names.get(id(folder), folder.durable).items():
            if isinstance(node, _Folder):
                self._write(node, target / name, names, chance, share)
            else:
                (target / name).write_bytes(node.left(chance, share))


def _edit(names: dict[str, _File | _Folder], name: str, node: _File | _Folder | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _apply(content: bytearray, at: int, written: bytes | None) -> None:
    """Write at a place, or (None) make the content so long."""
    end = at if written is None else at + len(written)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if written is None:
        del content[at:]
    else:
        content[at:end] = written
