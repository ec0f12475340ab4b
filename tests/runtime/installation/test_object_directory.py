"""An object store in a directory: made once, and missed when it is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.installation import Layout, check_object_store, remember_object_store
from storage.replication import ObjectStore, ObjectStoreFailed
from tests.support.worlds import settings


def test_a_directory_is_made_once_and_missed_when_its_disk_is_gone(tmp_path: Path) -> None:
    objects, data = tmp_path / "objects", tmp_path / "data"
    data.mkdir()
    Layout.load_or_create(data, 1)
    given = settings(data_dir=str(data), object_store__url=f"file://{objects}")
    check_object_store(given)
    assert objects.is_dir()
    objects.rmdir()
    check_object_store(given)  # nothing was stored there
    assert ObjectStore(f"file://{objects}").put_new("a/1", b"1")
    remember_object_store(given)
    check_object_store(given)
    objects.rename(tmp_path / "away")
    with pytest.raises(ObjectStoreFailed, match="no such directory"):
        check_object_store(given)
    assert not objects.exists()
    objects.mkdir()
    with pytest.raises(ObjectStoreFailed, match="is empty, and this installation has stored"):
        check_object_store(given)
    objects.rmdir()
    check_object_store(settings(data_dir=str(data), object_store__url=f"file://{tmp_path}/another"))
    (tmp_path / "away").rename(objects)
    check_object_store(given)


def test_a_url_that_means_nothing_is_told_before_anything_starts(tmp_path: Path) -> None:
    given = settings(data_dir=str(tmp_path), object_store__url="s3://[nowhere")
    with pytest.raises(ObjectStoreFailed, match=r"s3://\[nowhere cannot be used"):
        check_object_store(given)
    check_object_store(settings(data_dir=str(tmp_path)))
