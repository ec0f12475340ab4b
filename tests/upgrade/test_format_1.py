"""A store of format 1, in which nothing was encrypted: it opens, answers as before, and what lay
open in it lies open no more.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import serve_app
from runtime.inference import Models
from runtime.installation import FORMAT_VERSION, Layout, Secrets
from runtime.shard import CORE_INDEXES, CORE_MIGRATIONS, CORE_TABLES
from storage.store import Identity, Store, StoreTooNew, environment
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import ShardHarness
from tests.upgrade.make_store import CONTENT, NAMES, SECRET_BYTES, TAGS, USER

KEPT = Path(__file__).with_name("format-1.tar.gz")
KEY = "mem_sk_0b5fc773dee54a1df3c496ba0e919921039f29fe18bc6c49e85a0f067d797fda"
OPEN_TEXTS = [
    *CONTENT,
    *TAGS,
    *NAMES,
    USER,
    "Ada Lovelace",
    "ada@example.com",
    "A trip.",
    "$argon2id$",
    "flowerpot",
]


class OldShardHarness(ShardHarness):
    """A shard harness that opens the kept store instead of making one."""

    def open(self, *, create: bool) -> None:
        self.secrets = Secrets(*SECRET_BYTES)
        super().open(create=False)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    with tarfile.open(KEPT) as archive:
        archive.extractall(tmp_path / "store", filter="data")
    return tmp_path / "store"


@pytest.fixture
def harness(kept: Path) -> Iterator[OldShardHarness]:
    assert open_texts_in(kept) == [text for text in OPEN_TEXTS if text != "flowerpot"] + [
        "flowerpot"
    ]
    harness = OldShardHarness(kept, serve_app.PLUGINS, Models(WordEmbedder()))
    yield harness
    harness.close()


def open_texts_in(directory: Path) -> list[str]:
    found = b"\0".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    return [text for text in OPEN_TEXTS if text.encode() in found]


def test_it_answers_as_before(harness: OldShardHarness) -> None:
    def listed(**query: object) -> list[str]:
        return [
            item["content"] for item in harness("memories.list", who=KEY, query=query).body["items"]
        ]

    assert listed() == CONTENT[::-1]
    assert listed(tag=TAGS[0]) == listed(tag=TAGS[1]) == listed(user_id=USER) == CONTENT[:1]
    assert listed(session_id="s1") == CONTENT[1::-1]
    found = harness("search.search", {"query": "Where is the spare key of Ada?"}, who=KEY).body[
        "results"
    ]
    assert found[0]["content"] == CONTENT[0] and found[0]["metadata"] == {"n": 1}
    history = harness("memories.history", who=KEY, id=found[0]["id"]).body["items"]
    assert [(version["version"], version["importance"]) for version in history] == [
        (1, 0.5),
        (2, 0.9),
    ]
    names = harness("collections.list", who=KEY, query={"name_prefix": "trav"}).body["items"]
    assert [item["name"] for item in names] == [NAMES[1], NAMES[0]]
    assert [
        item["name"]
        for item in harness("collections.list", who=KEY, query={"name": NAMES[0]}).body["items"]
    ] == [NAMES[0]]
    assert (
        harness("auth.login", {"email": "ada@example.com", "password": "correct horse"}).status
        == 200
    )


def test_filters_that_it_did_not_have_find_what_was_there(harness: OldShardHarness) -> None:
    def found(filters: dict) -> list[str]:
        return [
            hit["content"]
            for hit in harness("search.search", {"query": "key", "filters": filters}, who=KEY).body[
                "results"
            ]
        ]

    assert found({"metadata.n": 1}) == found({"importance": {"gt": 0.8}}) == CONTENT[:1]
    assert found({"metadata.n": 2}) == []


def test_it_goes_on_where_it_was(harness: OldShardHarness) -> None:
    added = harness(
        "memories.create", {"content": "The boat has a new sail.", "tags": TAGS[:1]}, who=KEY
    )
    assert added.status == 201
    assert len(harness("memories.list", who=KEY, query={"tag": TAGS[0]}).body["items"]) == 2
    assert (
        harness("memories.delete_all", who=KEY, query={"confirm": "delete-all-memories"}).body[
            "deleted"
        ]
        == 4
    )


def test_what_lay_open_lies_open_no_more(harness: OldShardHarness, kept: Path) -> None:
    assert open_texts_in(kept) == []
    assert not (kept / ".rewritten").exists()


def test_it_is_rewritten_once(harness: OldShardHarness, kept: Path) -> None:
    before = (kept / "data.mdb").stat().st_ino
    harness.reopen()
    assert (kept / "data.mdb").stat().st_ino == before


def test_an_interrupted_rewriting_is_made_up_for(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are sealed and the copy is still due when the process ends: the next start begins
    with it.
    """
    registry_tables = [*serve_app.registry().tables.values()]
    identity = Identity("", 0, 1, 4096, FORMAT_VERSION)
    opening = {
        "identity": identity,
        "create": False,
        "service_key": SECRET_BYTES[0],
        "migrations": CORE_MIGRATIONS,
    }
    with monkeypatch.context() as patch:
        patch.setattr(
            environment, "copy_data", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(KeyboardInterrupt):
            Store.open(kept, registry_tables, **opening)
    assert open_texts_in(kept), "the test has nothing to make up for"
    Store.open(kept, registry_tables, **opening).close()
    assert open_texts_in(kept) == []


def test_the_release_before_refuses_it(harness: OldShardHarness, kept: Path) -> None:
    harness.run(harness.shard.close())
    tables = [*CORE_TABLES, *(table for index in CORE_INDEXES for table in index.tables)]
    identity = Identity("", 0, 1, 4096, FORMAT_VERSION)
    Store.open(kept, tables, identity=identity, create=False, service_key=SECRET_BYTES[0]).close()
    with pytest.raises(StoreTooNew, match=f"has format {FORMAT_VERSION}; this release knows 1"):
        Store.open(kept, tables, identity=Identity("", 0, 1, 4096, 1), create=False)
    harness.open(create=False)


def test_a_data_directory_of_format_1_is_taken_over(tmp_path: Path) -> None:
    Layout("c" * 32, 1, format_version=1, complete=True).save(tmp_path)
    assert Layout.load_or_create(tmp_path, 1).identity(0).format_version == FORMAT_VERSION
    assert Layout.load(tmp_path).format_version == FORMAT_VERSION
