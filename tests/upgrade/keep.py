"""python -m tests.upgrade.keep: make the store of the present format, which later releases must be
able to open.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
from pathlib import Path

from runtime.installation import FORMAT_VERSION
from tests.upgrade.house import EMAIL, PASSWORD, UpgradeHarness

STORES = Path(__file__).parent / "stores"


def unpacked(version: int, data_dir: Path) -> dict:
    """A kept store in a directory of its own -> what was seen of it."""
    with tarfile.open(STORES / f"{version}.tar.gz") as archive:
        archive.extractall(data_dir, filter="data")
    return json.loads((data_dir / "seen.json").read_text())


def live(house: UpgradeHarness) -> None:
    """Leave a trace in every table."""
    house("auth.register", {"email": EMAIL, "password": PASSWORD, "full_name": "Ada Lovelace"})
    me = house.login()
    house("auth.api_keys.create", {"name": "kept"}, who=me, key="a cached key")
    work = house("collections.create", {"name": "work", "metadata": {"team": "blue"}}, who=me).body[
        "id"
    ]
    gone = house("collections.create", {"name": "gone"}, who=me).body["id"]
    house("memories.create", {"content": "a violin, kept under a key"}, who=me, key="kept")
    said = [{"role": "user", "content": f"The harbour has {number} cranes"} for number in range(3)]
    house("memories.create", {"messages": said, "session_id": "monday", "user_id": "bob"}, who=me)
    items = [
        {"content": f"copper meadow {number}", "tags": ["a", "b"], "importance": 0.9}
        for number in range(3)
    ]
    house(
        "memories.create_batch", {"memories": items, "collection_id": work}, who=me, key="a batch"
    )
    changed = house(
        "memories.create", {"content": "first words", "collection_id": work}, who=me
    ).body["id"]
    house(
        "memories.update",
        {"content": "violin words, rewritten", "metadata": {"n": 1}},
        who=me,
        id=changed,
    )
    house(
        "memories.create", {"content": "in a collection that goes", "collection_id": gone}, who=me
    )
    house("collections.delete", who=me, id=gone)
    house("memories.create", {"content": "a far end", "expires_at": "2999-01-01"}, who=me)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        data_dir = Path(scratch) / "data"
        house = UpgradeHarness(data_dir)
        live(house)
        house.settle()
        (data_dir / "seen.json").write_text(json.dumps(house.seen(), indent=1))
        house.shard.store.backup(Path(scratch) / "compact")
        house.close()
        shutil.rmtree(data_dir / "shards" / "0000")
        shutil.move(Path(scratch) / "compact", data_dir / "shards" / "0000")
        STORES.mkdir(exist_ok=True)
        with tarfile.open(STORES / f"{FORMAT_VERSION}.tar.gz", "w:gz") as archive:
            for path in sorted(data_dir.rglob("*")):
                if path.is_file():
                    archive.add(path, path.relative_to(data_dir).as_posix())


if __name__ == "__main__":
    main()
