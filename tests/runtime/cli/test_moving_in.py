"""What other memory systems keep: each read as memories with their times, users and labels, and
nothing lost unsaid.

other_systems.tar.gz holds stores that qdrant-client 1.20, chromadb 1.5 and
langgraph-checkpoint-sqlite 3.1 have written, with payloads as mem0 2.2 makes them, and what a
running Hindsight 1.1 gave of one bank: its archive, its list of memories, and a recall.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from runtime.cli import main
from runtime.cli.moving_in import ImportFailed, Ledger, open_source

STORES = Path(__file__).with_name("other_systems.tar.gz")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    with tarfile.open(STORES) as kept:
        kept.extractall(directory, filter="data")
    return directory


def bodies(path: Path, ledger: Ledger | None = None, **given: Any) -> list[dict[str, Any]]:
    source = open_source(path, **given)
    return [record.body for record in source.records(ledger or Ledger())]


def written(tmp_path: Path, name: str, content: Any) -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_local_qdrant_of_mem0(stores: Path) -> None:
    ledger = Ledger()
    found = bodies(stores / "qdrant", ledger)
    # The latest copy of a point counts, and mem0's own collections hold no memories.
    assert [body["content"] for body in found] == [
        "Ben owns two espresso machines.",
        "Ada flies to Lisbon in June.",
    ]
    assert found[1] == {
        "content": "Ada flies to Lisbon in June.",
        "source": "mem0",
        "source_reference": "00000000-0000-0000-0000-000000000001",
        "user_id": "ada",
        "role": "user",
        "occurred_at": "2025-03-01T10:00:00.000Z",
        "metadata": {"updated_at": "2025-03-01T11:00:00+00:00", "channel": "chat"},
    }
    assert ledger.places["hash", ""] == 2
    assert sum(count for why, count in ledger.left_out.items() if "mem0's own" in why) == 2
    assert [body["content"] for body in bodies(stores / "qdrant", only=["mem0_entities"])] == (
        ["Lisbon"]
    )
    with pytest.raises(ImportFailed, match=r"no collection nowhere; it has mem0, mem0_entities"):
        bodies(stores / "qdrant", only=["nowhere"])


def test_a_persistent_chroma(stores: Path) -> None:
    found = {body["source_reference"]: body for body in bodies(stores / "chroma")}
    assert {name: body["content"] for name, body in found.items()} == {
        "b": "Clay arrives in June.",  # updated; what was deleted is gone
        "d": "The workshop closes at six.",
        "m1": "Likes rye bread.",  # mem0's, whose text stands in the metadata
    }
    assert found["b"]["metadata"] == {"page": 4, "collection": "notes"}
    assert (found["m1"]["source"], found["m1"]["user_id"]) == ("mem0", "mei")
    assert found["m1"]["occurred_at"] == "2025-01-01T00:00:00.000Z"
    assert len(bodies(stores / "chroma" / "chroma.sqlite3", only=["notes"])) == 2


def test_lists_in_chroma_s_metadata(stores: Path) -> None:
    first, second = bodies(stores / "chroma_lists")
    assert (first["tags"], second["tags"]) == (["a", "b"], ["d", "e"])  # as they were updated
    assert first["metadata"] == {"ns": [1, 2], "bs": [True, False], "fs": [0.5, 1.5], "s": "x"}


LANGGRAPH = {
    "memories.ada/diet": "Ada eats no nuts.",
    "memories.ada/seat": "Ada prefers a window seat.",
    "profiles.ben/facts": 'city: Porto\npets: ["Pepper"]',
}


def test_a_store_of_langgraph_its_dump_and_its_csv(stores: Path, tmp_path: Path) -> None:
    found = bodies(stores / "langgraph.sqlite", given={"namespace.1": "user_id"})
    assert {body["source_reference"]: body["content"] for body in found} == LANGGRAPH
    assert [body["user_id"] for body in found] == ["ada", "ada", "ben"]
    assert found[1]["tags"] == ["travel"] and found[1]["metadata"]["confidence"] == 0.9
    dump = written(
        tmp_path,
        "store.sql",
        "--\n-- PostgreSQL database dump\n--\n\nCOPY public.store_vectors (prefix) FROM stdin;\n"
        "x\n\\.\nCOPY public.store (prefix, key, value, created_at, expires_at) FROM stdin;\n"
        'memories.ada\tdiet\t{"text": "No nuts,\\\\nnever.", "n": 1}\t'
        "2025-05-01 12:00:00.5+02\t\\N\n\\.\n\nALTER TABLE x;\n",
    )
    assert bodies(dump) == [
        {
            "content": "No nuts,\nnever.",
            "source": "langgraph",
            "source_reference": "memories.ada/diet",
            "occurred_at": "2025-05-01T10:00:00.500Z",
            "metadata": {"namespace": "memories.ada", "n": 1},
        }
    ]
    rows = written(
        tmp_path, "store.csv", 'prefix,key,value\nmemories.ada,diet,"{""text"": ""No nuts.""}"\n'
    )
    assert [body["content"] for body in bodies(rows)] == ["No nuts."]


def test_the_history_of_mem0(tmp_path: Path) -> None:
    (tmp_path / "mem0").mkdir()
    with sqlite3.connect(tmp_path / "mem0" / "history.db") as database:
        database.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, "
            "new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, "
            "is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        for number, (name, old, new, event, deleted) in enumerate(
            (
                ("m1", None, "Lives in Lisbon.", "ADD", 0),
                ("m2", None, "Owns a kiln.", "ADD", 0),
                ("m1", "Lives in Lisbon.", "Lives in Oslo.", "UPDATE", 0),
                ("m2", "Owns a kiln.", None, "DELETE", 1),
            )
        ):
            day = f"2025-02-0{number + 1}T09:00:00+00:00"
            row = (str(number), name, old, new, event, day, day, deleted, "Ada", "user")
            database.execute(f"INSERT INTO history VALUES ({', '.join('?' * len(row))})", row)
    ledger = Ledger()
    assert bodies(tmp_path / "mem0", ledger) == [
        {
            "content": "Lives in Oslo.",
            "source": "mem0",
            "source_reference": "m1",
            "speaker": "Ada",
            "role": "user",
            "occurred_at": "2025-02-01T09:00:00.000Z",
        }
    ]
    assert ledger.left_out == {"deleted ones": 1}


def test_mem0_s_export(tmp_path: Path) -> None:
    item = {
        **{"id": "x", "memory": "Likes tea.", "user_id": "ada", "hash": "h", "score": 0.4},
        **{"created_at": "2024-07-01T10:00:00-07:00", "categories": ["food"]},
        **{"metadata": {"channel": "chat"}, "updated_at": None, "expiration_date": None},
    }
    over = {**item, "id": "y", "expiration_date": "2024-08-01"}
    relation = {"source": "ada", "relationship": "likes", "target": "tea"}
    ledger = Ledger()
    path = written(tmp_path, "m.json", {"results": [item, over], "relations": [relation]})
    assert bodies(path, ledger) == [
        {
            **{"content": "Likes tea.", "source": "mem0", "source_reference": "x"},
            **{"user_id": "ada", "tags": ["food"], "occurred_at": "2024-07-01T17:00:00.000Z"},
            "metadata": {"channel": "chat"},
        },
        {"source": "ada", "type": "likes", "target": "tea"},
    ]
    assert ledger.left_out == {"expired": 1}


def test_a_memory_of_mem0_is_there_on_its_last_day(tmp_path: Path) -> None:
    """As mem0 has it, which knows days only."""
    today = datetime.now(UTC).date().isoformat()
    items = [{"memory": "Tea.", "expiration_date": day} for day in (today, "2999-12-30", "soon")]
    found = bodies(written(tmp_path, "m.json", {"results": items}))
    assert [body.get("expires_at") for body in found][1:] == ["2999-12-31T00:00:00.000Z", None]
    assert len(found) == 3 and found[0]["expires_at"] > datetime.now(UTC).isoformat()


def test_zep_s_threads_and_graph(tmp_path: Path) -> None:
    said = {"uuid": "m", "role": "user", "name": "Ada", "content": "Hello.", "processed": True}
    thread = {"thread_id": "t", "user_id": "u", "messages": [{**said, "created_at": "2025-01-02"}]}
    fact = {"uuid": "f", "name": "LIVES_IN", "source_node_uuid": "1", "target_node_uuid": "2"}
    nodes = [{"uuid": "1", "name": "Ada", "labels": ["Entity", "Person"], "summary": "A potter."}]
    graph = {
        "nodes": [*nodes, {"uuid": "2", "name": "Oslo"}],
        "edges": [
            {**fact, "fact": "Ada lives in Oslo.", "valid_at": "2025-02-01"},
            {**fact, "fact": "She lived there.", "valid_at": "2024-01-01", "invalid_at": "2025"},
            {"fact": "Ada lived in Rome.", "expired_at": "2025-02-01"},
        ],
    }
    graph["edges"][1]["invalid_at"] = "2025-01-01"
    ledger = Ledger()
    found = bodies(written(tmp_path, "zep.jsonl", "\n".join(map(json.dumps, (thread, graph)))))
    assert found[0] == {
        **{"content": "Hello.", "source": "zep", "source_reference": "m", "speaker": "Ada"},
        **{"role": "user", "session_id": "t", "user_id": "u"},
        "occurred_at": "2025-01-02T00:00:00.000Z",
        "metadata": {"role": "user"},
    }
    held = {"source": "Ada", "target": "Oslo", "type": "lives_in"}
    assert found[1:] == [
        {"name": "Ada", "type": "Person"},
        {
            **{"content": "A potter.", "source": "zep", "title": "Ada"},
            "source_reference": "1",
        },
        {"name": "Oslo", "type": "unknown"},
        {**held, "valid_from": "2025-02-01T00:00:00.000Z"},
        {
            **{"content": "Ada lives in Oslo.", "source": "zep", "source_reference": "f"},
            "occurred_at": "2025-02-01T00:00:00.000Z",
        },
        {
            **held,
            "valid_from": "2024-01-01T00:00:00.000Z",
            "valid_to": "2025-01-01T00:00:00.000Z",
        },
    ]
    bodies(written(tmp_path, "graph.json", graph), ledger)
    assert sum(ledger.left_out.values()) == 2


def test_letta_s_passages_and_agent_files(tmp_path: Path) -> None:
    passage = {
        "id": "passage-1",
        "text": "A passage.",
        "created_at": "2024-01-01T00:00:00Z",
        "tags": ["a"],
    }
    assert bodies(written(tmp_path, "p.json", [{**passage, "embedding": [0.1]}])) == [
        {
            **{"content": "A passage.", "source": "letta", "source_reference": "passage-1"},
            **{"tags": ["a"], "occurred_at": "2024-01-01T00:00:00.000Z"},
        }
    ]
    sent = {"function": {"name": "send_message", "arguments": '{"message": "Hi Ada!"}'}}
    packed = {"type": "user_message", "message": "I am Ada.", "time": "2025-01-01T10:00:00Z"}
    text = [{"type": "text", "text": json.dumps(packed)}]
    agent = {
        "id": "agent-0",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "You are …"}]},
            {"role": "user", "content": text, "created_at": "2025-01-01T10:00:01Z"},
            {"role": "user", "content": '{"type": "heartbeat"}'},
            {"role": "assistant", "content": None, "tool_calls": [sent]},
            {"role": "tool", "content": "ok"},
        ],
    }
    ledger = Ledger()
    blocks = [{"id": "block-0", "label": "human", "value": "Name: Ada", "limit": 5000}]
    found = bodies(written(tmp_path, "a.af", {"agents": [agent], "blocks": blocks}), ledger)
    assert [(body["content"], body.get("role"), body.get("title")) for body in found] == [
        ("I am Ada.", "user", None),
        ("Hi Ada!", "assistant", None),
        ("Name: Ada", None, "human"),
    ]
    assert found[0]["agent_id"] == "agent-0"
    assert found[0]["occurred_at"] == "2025-01-01T10:00:01.000Z"
    assert sum(ledger.left_out.values()) == 3


def test_a_bank_of_hindsight(stores: Path, tmp_path: Path) -> None:
    ledger = Ledger()
    archive = stores / "hindsight.zip"
    assert open_source(archive).form == "hindsight"
    *facts, observation, model = bodies(archive, ledger, given={"bank_id": "user_id"})
    assert facts[:2] == [{"name": name, "type": "unknown"} for name in ("Ben", "Porto")]
    assert facts[3] == {
        "content": "Ben booked a farmhouse near Porto for the offsite.",
        "source": "hindsight",
        "source_reference": "d08bea35-0986-4c64-a959-a1acf2f848d6",
        "user_id": "ada",
        "tags": ["team", "travel"],
        "occurred_at": "2026-09-21T00:00:00.000Z",
        "metadata": {
            **{"channel": "chat", "context": "planning the offsite", "fact_type": "world"},
            **{"document_id": "chat-2026-05-08", "entities": ["Ben", "Porto"]},
            **{"event_date": "2026-09-21T00:00:00Z", "mentioned_at": "2026-05-08T09:30:00Z"},
            **{"occurred_end": "2026-09-25T00:00:00Z", "created_at": "2026-05-08T09:31:00Z"},
        },
    }
    assert observation["metadata"]["fact_type"] == "observation"
    assert (model["title"], model["content"]) == ("Travel of the team", "mock response\n")
    assert ledger.left_out == {
        "directives": 1,
        "texts that facts were taken from (--only chunks)": 2,
    }
    assert ledger.places["causal_relations", ""] == 1
    chunks = bodies(archive, only=["chunks"])
    assert [(body["content"], body["metadata"]["document_id"]) for body in chunks] == [
        ("Ben: The offsite is a farmhouse near Porto. Mei: I am vegetarian.", "chat-2026-05-08"),
        ("I recommended the early train.", "notes"),
    ]
    with pytest.raises(ImportFailed, match="no section graph"):
        bodies(archive, only=["graph"])

    # The same facts, as its API lists them, where one may have been found to be wrong.
    listed = json.loads((stores / "hindsight_list.json").read_text())
    told = {body["content"]: body for body in bodies(stores / "hindsight_list.json")[3:]}
    assert {*told} == {body["content"] for body in (*facts, observation) if "content" in body}
    diet = told["Mei is vegetarian."]
    assert (diet["occurred_at"], diet["metadata"]["entities"]) == (
        "2026-05-08T09:30:00.000Z",
        "Mei",
    )
    listed["items"][2]["state"] = "invalidated"
    pages = "\n".join(
        json.dumps({**listed, "items": part}) for part in (listed["items"][:1], listed["items"][1:])
    )
    ledger = Ledger()
    found = bodies(written(tmp_path, "pages.jsonl", pages), ledger)
    assert "Mei is vegetarian." not in [body.get("content") for body in found]
    assert ledger.left_out == {"invalidated ones": 1}
    assert bodies(stores / "hindsight_recall.json")[1]["content"] == "Mei is vegetarian."


def test_an_archive_that_is_none_is_said(tmp_path: Path, stores: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("notes.txt", "Clay.")
    with pytest.raises(ImportFailed, match="none of Hindsight's"):
        open_source(tmp_path / "other.zip")
    whole = (stores / "hindsight.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ImportFailed, match="as a ZIP archive"):
        open_source(tmp_path / "cut.zip")
    (tmp_path / "worn.zip").write_bytes(whole[:60] + bytes(64) + whole[124:])
    with pytest.raises(ImportFailed, match=r"documents/000000\.json"):
        bodies(tmp_path / "worn.zip")


def test_tables_of_parquet(tmp_path: Path) -> None:
    when = datetime(2025, 5, 1, 12, tzinfo=UTC)
    column = {
        "text": ["No nuts.", "Tea."],
        "when": [when, None],
        "embedding": [[0.5, 0.5], None],
        "share": [float("nan"), 0.5],
        "of": [{"page": 4, "days": [when.date()]}, None],
    }
    parquet.write_table(pyarrow.table(column), tmp_path / "notes.parquet")
    ledger = Ledger()
    path = tmp_path / "notes.parquet"
    assert open_source(path).form == "parquet"
    assert bodies(path, ledger, given={"when": "occurred_at"}) == [
        {
            **{"content": "No nuts.", "occurred_at": "2025-05-01T12:00:00.000Z"},
            "metadata": {"of": {"page": 4, "days": ["2025-05-01"]}},
        },
        {"content": "Tea.", "metadata": {"share": 0.5}},
    ]
    assert ledger.places["embedding", ""] == 1
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ImportFailed, match="as Parquet"):
        bodies(path)


def test_tables_and_lines_of_anybody(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        "notes.csv",
        'text;when;who;labels;colour\n"Red; not blue\nat all";2024-01-02 10:00;ada;a, b;red\n',
    )
    given = {"when": "occurred_at", "who": "user_id", "colour": None}
    ledger = Ledger()
    assert bodies(table, ledger, given=given) == [
        {
            **{"content": "Red; not blue\nat all", "user_id": "ada", "tags": ["a", "b"]},
            "occurred_at": "2024-01-02T10:00:00.000Z",
        }
    ]
    assert ledger.places["colour", ""] == 1
    assert bodies(table)[0]["metadata"] == {
        "when": "2024-01-02 10:00",
        "who": "ada",
        "colour": "red",
    }
    line = {"content": "Kept.", "timestamp": 1714557600000, "importance": 7, "user_id": "x" * 300}
    assert bodies(written(tmp_path, "notes.jsonl", json.dumps(line))) == [
        {
            **{"content": "Kept.", "occurred_at": "2024-05-01T10:00:00.000Z"},
            "metadata": {"importance": 7, "user_id": "x" * 300},  # what a field does not take
        }
    ]


def test_a_line_with_a_text_is_nobody_s_but_its_author_s(tmp_path: Path) -> None:
    line = {"text": "No nuts.", "user_id": "ada", "id": "7", "embedding": [0.5]}
    assert bodies(written(tmp_path, "plain.jsonl", json.dumps(line))) == [
        {"content": "No nuts.", "user_id": "ada", "source_reference": "7"}
    ]


def test_a_text_that_reads_as_a_number_is_a_text(tmp_path: Path) -> None:
    lines = '{"content": 4712}\n{"content": 2.50}\n{"content": true}\n'
    ledger = Ledger()
    found = bodies(written(tmp_path, "codes.jsonl", lines), ledger)
    assert [body["content"] for body in found] == ["4712", "2.5"]
    assert ledger.left_out == {"without a text": 1}


def test_a_long_array_is_read_element_by_element(tmp_path: Path) -> None:
    texts = [f"Number {n} " + "é\\" * (n % 700) for n in range(3000)]
    path = written(tmp_path, "long.json", json.dumps(texts, indent=1, ensure_ascii=False))
    assert [body["content"] for body in bodies(path)] == texts
    assert bodies(written(tmp_path, "none.json", "[ ]")) == []
    for broken, line in (('["a",\n', "value at line 2"), ('["a"\n"b"]', "2"), ('["a"]\nx', "2")):
        with pytest.raises(ImportFailed, match=line):
            bodies(written(tmp_path, "broken.json", broken))


class Malice:
    """What would run a command when a pickle is loaded as pickles are."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> Any:
        return (Path.touch, (self.mark,))


def test_a_pickle_of_a_strangers_store_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with sqlite3.connect(tmp_path / "storage.sqlite") as database:
        database.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        row = ("a", pickle.dumps(Malice(mark)))
        database.execute("INSERT INTO points VALUES (?, ?)", row)
    with pytest.raises(ImportFailed, match="no point"):
        bodies(tmp_path / "storage.sqlite")
    assert not mark.exists()


def test_checkpoints_of_langgraph_are_told_from_its_store(stores: Path) -> None:
    with pytest.raises(ImportFailed, match="checkpoints, which are states of a graph"):
        open_source(stores / "langgraph_checkpoints.sqlite")


def test_what_is_nothing_of_the_kind_is_said(tmp_path: Path) -> None:
    with pytest.raises(ImportFailed, match="folder without"):
        open_source(tmp_path)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x (y)").connection.close()
    with pytest.raises(ImportFailed, match="without the tables"):
        open_source(tmp_path / "other.db")
    (tmp_path / "d.dump").write_bytes(b"PGDMP\x01\x0e")
    with pytest.raises(ImportFailed, match="--format=plain"):
        open_source(tmp_path / "d.dump")


EVERYTHING = {
    "qdrant": "qdrant",
    "chroma": "chroma",
    "langgraph.sqlite": "langgraph",
    "hindsight.zip": "hindsight",
    "hindsight_list.json": "hindsight",
    "mem0.json": "mem0",
    "zep.json": "zep",
    "letta.af": "letta",
    "mcp.jsonl": "mcp",
    "notes.csv": "csv",
    "notes.parquet": "parquet",
    "memories.jsonl": "mneme",
}
TEXTS = {
    "mem0.json": '{"results": [{"id": "x", "memory": "Likes tea."}]}',
    "zep.json": '{"messages": [{"role": "user", "content": "Hello."}], "edges": []}',
    "letta.af": '{"agents": [], "blocks": [{"label": "human", "value": "Name: Ada"}]}',
    "mcp.jsonl": '{"type": "entity", "name": "Ada", "observations": ["plays chess"]}',
    "notes.csv": "text,author\nNo nuts.,ada\n",
    "memories.jsonl": '{"content": "Tea."}\n"Coffee."\n',
}


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_source_runs_dry_and_reads_the_same_again(
    stores: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted import goes on by this."""
    path = stores / name
    if not path.exists():
        path = written(tmp_path, name, TEXTS.get(name, ""))
    if name == "notes.parquet":
        parquet.write_table(pyarrow.table({"text": ["No nuts.", "Tea."]}), path)
    assert main(["import", str(path), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert f"{path}: {EVERYTHING[name]}, " in told and "-> content" in told
    source = open_source(path)
    first, second = ([record.key for record in source.records(Ledger())] for _ in range(2))
    assert first == second and first


def test_a_dry_run_needs_no_service(
    stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(stores / "qdrant"), "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "qdrant, 2 memories" in told and "has no place" in told and "Nothing was stored" in told
    assert main(["import", str(stores / "qdrant"), "--dry-run", "--map", "nonsense=x"]) == 1
    assert "--map nonsense=x" in capsys.readouterr().err
