"""Importing a file: what is understood, that twice is once, and that an interrupted import goes
on.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.cli import export_memories, main
from runtime.cli import import_memories as importer
from runtime.cli.client import CallFailed, Client
from runtime.cli.export_memories import FORMATS
from runtime.cli.export_memories import run as export
from runtime.cli.import_memories import places_given, run, send
from runtime.cli.moving_in import MEMORY_PATH, ImportFailed, ImportRecord, Ledger, open_source
from tests.support.in_process import InProcess, in_process

FILES: dict[str, tuple[str, list[str]]] = {
    "mneme": (
        '{"content": "One.", "tags": ["a"]}\n"Two."\n'
        '{"kind": "memory", "record": {"content": "Three.", "id": "mem_1"}}',
        ["One.", "Two.", "Three."],
    ),
    "mem0": (
        '{"results": [{"id": "x", "memory": "Likes tea.", "user_id": "ada", "created_at": '
        '"2024-07-01T10:00:00-07:00"}]}',
        ["Likes tea."],
    ),
    "zep": (
        '{"messages": [{"role": "user", "content": "Hello.", "created_at": '
        '"2024-01-01T00:00:00Z"}], "facts": [{"fact": "Ada lives '
        'in Oslo."}]}',
        ["Hello.", "Ada lives in Oslo."],
    ),
    "letta": (
        '[{"text": "A passage.", "created_at": "2024-01-01T00:00:00Z", "agent_id": "agent-1"}]',
        ["A passage."],
    ),
    "mcp": (
        '{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["plays '
        'chess"]}\n'
        '{"type": "entity", "name": "Acme", "entityType": "company", "observations": []}\n'
        '{"type": "relation", "from": "Ada", "to": "Acme", "relationType": "works_at"}',
        ["Ada: plays chess"],
    ),
}


class Through(Client):
    """A client whose requests go to a service in this process; it may be cut off after some of
    them.
    """

    def __init__(self, service: InProcess, token: str):
        super().__init__("http://mneme.test", token)
        self.service, self.token, self.left = service, token, 10_000

    def call(self, method: str, path: str, body: Any = None, headers: Any = None) -> dict[str, Any]:
        if not self.left:
            raise CallFailed("cut off", 401)
        self.left -= 1
        further = {name.replace("-", "_"): value for name, value in (headers or {}).items()}
        answer = self.service.request(method, path, body, who=self.token, **further)
        if answer.is_success:
            return answer.json()
        raise CallFailed(answer.text, answer.status_code)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Through]:
    monkeypatch.setattr(
        importer, "REQUESTS_AT_ONCE", 1
    )  # the service of a test takes one request at a time
    with (
        in_process(tmp_path / "data") as running,
        Through(running, running.register("ada@example.com")) as client,
    ):
        yield client


def stored(client: Through) -> list[dict[str, Any]]:
    return client.call("GET", "/v1/memories?limit=100")["items"]


@pytest.mark.parametrize("form", FILES)
def test_files_are_told_by_their_shape(tmp_path: Path, service: Through, form: str) -> None:
    text, contents = FILES[form]
    path = tmp_path / "file.json"
    path.write_text(text)
    source = open_source(path)
    assert source.form == form
    report = run(service, path, source, {"user_id": "someone"}, False, io.StringIO())
    assert (report.sent, report.refused) == (report.total, 0)
    memories = stored(service)
    assert sorted(memory["content"] for memory in memories) == sorted(contents)
    if form == "mem0":
        assert (memories[0]["user_id"], memories[0]["occurred_at"]) == (
            "ada",
            "2024-07-01T17:00:00.000Z",
        )
    if form == "mcp":
        claims = service.call("POST", "/v1/knowledge-graph/query", {"entity": "Ada"})[
            "relationships"
        ]
        assert [(claim["type"], claim["target"]["name"]) for claim in claims] == [
            ("works_at", "Acme")
        ]


def test_twice_is_once_even_when_the_file_grew(tmp_path: Path, service: Through) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(json.dumps({"content": f"Number {n}"}) for n in range(5)))
    run(service, path, open_source(path), {}, False, io.StringIO())
    path.write_text("\n".join(json.dumps({"content": f"Number {n}"}) for n in (9, 0, 1, 2, 3, 4)))
    run(service, path, open_source(path), {}, False, io.StringIO())
    assert len(stored(service)) == 6


def test_an_interrupted_import_goes_on(
    tmp_path: Path, service: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "RECORDS_PER_STEP", 2)
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(json.dumps({"content": f"Number {n}"}) for n in range(7)))
    service.left = 5
    with pytest.raises(CallFailed, match="cut off"):
        run(service, path, open_source(path), {}, False, io.StringIO())
    service.left = 10_000
    out = io.StringIO()
    report = run(service, path, open_source(path), {}, False, out)
    assert (report.skipped, report.sent) == (4, 3) and out.getvalue().endswith("7 of 7 (100%)\n")
    assert len(stored(service)) == 7
    assert [found.name for found in tmp_path.iterdir()] in (
        ["data", "file.jsonl"],
        ["file.jsonl", "data"],
    )


def test_what_the_service_refuses_is_counted_and_what_passes_is_waited_for(
    tmp_path: Path, service: Through
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(
        '{"content": "Fine."}\n{"content": "x", "metadata": {"y": "%s"}}' % ("z" * 20_000)
    )
    report = run(service, path, open_source(path), {}, False, io.StringIO())
    assert (report.sent, report.refused) == (1, 1)
    assert len(report.refusals) == 1 and "record 2: " in report.refusals[0]

    answers = [429, 503, 0]

    class Busy:
        def call(self, *_: Any) -> dict[str, Any]:
            if answers:
                raise CallFailed("busy", answers.pop(0))
            return {}

    pauses: list[float] = []
    assert send(Busy(), ImportRecord("/v1/memories/raw", {"content": "x"}), pauses.append) is None
    assert pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("text", ["{", "nonsense", '{"type": "entity"}'])
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(ImportFailed, match=r"file\.json"):
        list(open_source(path).records(Ledger()))


def test_a_file_that_changed_before_the_place_starts_over(
    tmp_path: Path, service: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "RECORDS_PER_STEP", 2)
    path = tmp_path / "file.jsonl"
    path.write_text("\n".join(json.dumps({"content": f"Number {n}"}) for n in range(5)))
    service.left = 3
    with pytest.raises(CallFailed, match="cut off"):
        run(service, path, open_source(path), {}, False, io.StringIO())
    service.left = 10_000
    path.write_text("\n".join(json.dumps({"content": f"Number {n}"}) for n in (7, *range(5))))
    report = run(service, path, open_source(path), {}, False, io.StringIO())
    assert (report.skipped, report.sent) == (0, 6) and len(stored(service)) == 6


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_exported_is_imported_elsewhere(
    tmp_path: Path, service: Through, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_memories, "ROW_GROUP_MEMORIES", 50)
    path, elsewhere = tmp_path / "file.jsonl", tmp_path / f"exported.{form}"
    said = {"content": "Tea, \u00e9\n😀.", "user_id": "ada", "tags": ["a", "b c"], "role": "user"}
    said |= {"occurred_at": "2025-01-01T10:00:00.125+02:00", "importance": 0.25}
    nested = {"page": {"n": 1, "of": [1.5, None, "x"]}}
    path.write_text(
        "\n".join(json.dumps({**said, "metadata": {**nested, "n": n}}) for n in range(120))
    )
    run(service, path, open_source(path), {}, False, io.StringIO())
    assert export(service, elsewhere, form, {"user_id": "ada"}, io.StringIO()) == 120
    none = tmp_path / f"none.{form}"
    assert export(service, none, form, {"user_id": "ben"}, io.StringIO()) == 0
    assert list(open_source(none).records(Ledger())) == []
    other = Through(service.service, service.service.register("ben@example.com"))
    report = run(other, elsewhere, open_source(elsewhere), {}, False, io.StringIO())
    assert (report.sent, report.refused) == (120, 0)

    def told(account: Through) -> list[str]:
        """Every field that the account did not give itself."""
        export(account, tmp_path / "told.jsonl", "jsonl", {}, io.StringIO())
        ours = ("id", "collection_id", "created_at", "updated_at")
        lines = map(json.loads, (tmp_path / "told.jsonl").read_text().splitlines())
        return sorted(str({k: v for k, v in line.items() if k not in ours}) for line in lines)

    assert told(other) == told(service) and len(told(other)) == 120
    assert "'page': {'n': 1, 'of': [1.5, None, 'x']}" in told(other)[0]
    assert "2025-01-01T08:00:00.125Z" in told(other)[0]


def test_an_export_that_is_refused_or_interrupted_leaves_nothing(
    tmp_path: Path, service: Through
) -> None:
    for form in FORMATS:
        with pytest.raises(CallFailed):
            export(service, tmp_path / "none", form, {"collection_id": "col_x"}, io.StringIO())
    service.call("POST", MEMORY_PATH, {"content": "Tea."})

    class Interrupted(io.StringIO):
        def write(self, shown: str) -> int:
            raise KeyboardInterrupt

    for form in FORMATS:
        with pytest.raises(KeyboardInterrupt):
            export(service, tmp_path / "none", form, {}, Interrupted())
    assert list(tmp_path.glob("none*")) == []


def test_an_export_leaves_a_link_a_link(tmp_path: Path, service: Through) -> None:
    there, link = tmp_path / "there.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(there)
    there.write_text("old\n")
    assert export(service, link, "jsonl", {}, io.StringIO()) == 0
    assert link.is_symlink() and there.read_text() == ""


def test_nothing_but_a_file_is_exported_to_or_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        assert main(["export", str(path), "--api-key", "x"]) == 1
        assert "is there, and is no file" in capsys.readouterr().err
    assert main(["import", str(tmp_path / "pipe"), "--dry-run"]) == 1
    assert "is neither a file nor a folder" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"content": "a"}\n' + "[" * 100_000,
        '{"a":' * 100_000,
        "[" + "9" * 5000 + "]",
        '[{"content": ' + "[" * 100_000,
    ],
    ids=["array", "lines", "object", "digits", "element"],
)
def test_what_is_nested_too_deeply_is_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text)
    with pytest.raises(ImportFailed, match=r"is neither JSON nor JSON Lines: .* at line"):
        list(open_source(path).records(Ledger()))


def test_of_an_accounts_export_memories_and_what_was_entered_into_the_graph_come(
    tmp_path: Path, service: Through
) -> None:
    graph = "/v1/knowledge-graph"
    service.call("POST", f"{graph}/entities", {"name": "Ada", "type": "person"})
    job = {"source": "Ada", "type": "works_at", "confidence": 0.0, "functional": False}
    for target, begins in (("Acme", "2019-01-01"), ("Globex", "2021-01-01")):
        body = {**job, "target": target, "valid_from": begins, "recorded_at": "2022-02-02"}
        service.call("POST", f"{graph}/relationships", body)
    memory = service.call("POST", MEMORY_PATH, {"content": "Ben likes tea."})["id"]
    read = {"source": "Ben", "type": "likes", "target": "tea", "source_memory_id": memory}
    service.call("POST", f"{graph}/relationships", read)
    path = tmp_path / "account.jsonl"
    exported = service.service.request("GET", "/v1/account/export", who=service.token).content
    lines = exported.splitlines(keepends=True)
    unknown = b'{"kind": "badge", "record": {"id": "bdg_1", "asked_for": true}}\n'
    path.write_bytes(b"".join([*lines[:-1], unknown, lines[-1]]))
    other = Through(service.service, service.service.register("ben@example.com"))
    said: list[str] = []
    report = run(other, path, open_source(path), {}, False, io.StringIO(), said.append)
    assert (report.sent, report.refused) == (7, 0)
    assert "3 entities, 1 memories, 3 relationships" in said[0]
    assert "of the kind relationship" not in said[0] and "1 of the kind badge" in said[0]

    def claims(account: Through) -> list[dict[str, Any]]:
        own = ("id", "source", "target")
        found = account.call("GET", f"{graph}/timeline/Ada")["items"]
        return [
            {"to": each["target"]["name"], **{k: v for k, v in each.items() if k not in own}}
            for each in found
        ]

    assert claims(other) == claims(service) and len(claims(other)) == 2


def test_with_infer_the_text_is_learned_from(tmp_path: Path, service: Through) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(
        '{"content": "I live in Oslo and the weather is what it is.", "user_id": "ada"}'
    )
    run(service, path, open_source(path), {}, True, io.StringIO())
    assert (
        service.call("POST", "/v1/knowledge-graph/query", {"entity": "ada"})["relationships"][0][
            "target"
        ]["name"]
        == "Oslo"
    )


def test_a_mapped_field_that_no_record_has_is_told_before_anything_is_sent(
    tmp_path: Path, service: Through
) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("note,who\nThe boat is red.,ada\n")
    before = service.call("GET", "/v1/memories")["total_count"]
    for pairs in (["content=note", "user_id=whoo"], ["content=nocol"]):
        source = open_source(path, given=places_given(pairs))
        with pytest.raises(ImportFailed, match=pairs[-1].partition("=")[2]):
            run(service, path, source, {}, False, io.StringIO())
    assert service.call("GET", "/v1/memories")["total_count"] == before
    source = open_source(path, given=places_given(["content=note", "user_id=who"]))
    assert run(service, path, source, {}, False, io.StringIO()).sent == 1
