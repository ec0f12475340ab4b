from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins import accounts, collections, memories, memory_tools, search
from plugins.memories import CONTENT_CHARS_MAX
from plugins.memories.limits import MEMORIES_SWEPT_PER_STEP
from plugins.memories.rows import MEMORIES
from plugins.memory_tools import files as memory_files
from plugins.memory_tools import limits
from plugins.memory_tools.paths import directories_of, read_path
from runtime.errors import ApiError
from runtime.inference import Models
from runtime.shard import verification
from serve_app import Settings
from tests.support.embedding import WordEmbedder
from tests.support.shard_harness import CHEAP, Answer, ShardHarness

PLUGINS = (
    accounts.plugin,
    collections.plugin,
    memories.plugin,
    memory_tools.plugin,
    search.plugin,
)
NOTES = "/memories/notes.md"


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def harness(tmp_path: Path, embedder: WordEmbedder) -> Iterator[ShardHarness]:
    harness = ShardHarness(
        tmp_path,
        PLUGINS,
        Models(embedder),
        Settings.load({**CHEAP, "write": {"ready_wait_ms": 10_000}}),
    )
    yield harness
    harness.close()


class Agent:
    """Uses the memory tool of one account, in the tree that `apart` names."""

    def __init__(self, harness: ShardHarness, email: str = "ada@example.com"):
        self.harness, self.token = harness, harness.register(email)
        self.apart: dict[str, str] = {}

    def ask(self, command: str, key: str | None = None, **given: Any) -> Answer:
        return self.harness(
            "memory_files.execute",
            {"command": command, **self.apart, **given},
            who=self.token,
            key=key,
        )

    def __call__(self, command: str, **given: Any) -> str:
        """What a command that must succeed tells."""
        answer = self.ask(command, **given)
        assert answer.status in (200, 201), answer
        return answer.body["output"]

    def refused(self, command: str, **given: Any) -> tuple[int, str]:
        """(status, message) of a command that must fail."""
        answer = self.ask(command, **given)
        assert answer.status >= 400, answer
        return answer.status, answer.body["message"]

    def invalid(self, **given: Any) -> str:
        """What is wrong with a body that is refused before anything is looked at."""
        with pytest.raises(ApiError) as refusal:
            memory_files.MemoryCommand.model_validate(given)
        assert refusal.value.status == 422
        return f"{refusal.value.param}: {refusal.value.details[0]['msg']}"

    def paths(self) -> list[str]:
        """Everything in the root's listing."""
        return [line.partition("\t")[2] for line in self("view", path="/memories").splitlines()[2:]]

    def memories(self) -> list[dict[str, Any]]:
        return self.harness("memories.list", who=self.token).body["items"]


@pytest.fixture
def agent(harness: ShardHarness) -> Agent:
    return Agent(harness)


# --- the texts agents know ------------------------------------------------------------------------


def test_a_file_is_made_and_read(agent: Agent) -> None:
    assert (
        agent("create", path=NOTES, file_text="one\ntwo\nthree\n")
        == f"File created successfully at: {NOTES}"
    )
    head = f"Here's the content of {NOTES} with line numbers:\n"
    assert agent("view", path=NOTES) == head + "     1\tone\n     2\ttwo\n     3\tthree\n     4\t"
    assert agent("view", path=NOTES, view_range=[2, 3]) == head + "     2\ttwo\n     3\tthree"
    assert agent("view", path=NOTES, view_range=[3, -1]) == head + "     3\tthree\n     4\t"
    assert agent("view", path=NOTES, view_range=[3, 99]) == head + "     3\tthree\n     4\t"
    for wrong in ([0, 1], [5, 6], [3, 2], [-1, 2]):
        status, message = agent.refused("view", path=NOTES, view_range=wrong)
        assert status == 422 and message.endswith(
            "Invalid `view_range` parameter. It should be within the range of lines of the file: "
            "[1, 4]"
        )
    assert agent.refused("create", path=NOTES, file_text="again") == (
        409,
        f"File {NOTES} already exists",
    )
    missing = "/memories/none.md"
    assert agent.refused("view", path=missing) == (
        404,
        f"The path {missing} does not exist. Please provide a valid path.",
    )


def test_a_directory_lists_two_levels_with_sizes(agent: Agent) -> None:
    head = (
        "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and "
        "node_modules:\n"
    )
    assert agent("view", path="/memories") == head.format("/memories") + "0B\t/memories"
    for path, size in (
        ("b.md", 3),
        ("a/x.md", 1536),
        ("a/deep/er/y.md", 5),
        ("a.md", 1),
        ("a/.hidden", 2),
        ("node_modules/z.js", 4),
    ):
        agent("create", path=f"/memories/{path}", file_text="x" * size)
    assert agent("view", path="/memories/") == head.format("/memories") + "\n".join(
        [
            "1.5K\t/memories",
            "1.5K\t/memories/a/",
            "5B\t/memories/a/deep/",
            "1.5K\t/memories/a/x.md",
            "1B\t/memories/a.md",
            "3B\t/memories/b.md",
        ]
    )
    assert agent("view", path="/memories/a/deep") == head.format("/memories/a/deep") + "\n".join(
        ["5B\t/memories/a/deep", "5B\t/memories/a/deep/er/", "5B\t/memories/a/deep/er/y.md"]
    )
    assert agent("view", path="/memories/a/.hidden").endswith("     1\txx")
    assert memory_files.size_text(2 * 1024**2) == "2M"


def test_a_text_is_replaced_where_it_occurs_once(agent: Agent) -> None:
    agent("create", path=NOTES, file_text="one\ntwo\nthree\nfour\nfive\ntwo and a half\n")
    told = agent("str_replace", path=NOTES, old_str="three", new_str="3\n3b")
    assert told == (
        "The memory file has been edited. Here is the snippet showing the change (with line "
        "numbers):\n"
        "     1\tone\n     2\ttwo\n     3\t3\n     4\t3b\n     5\tfour"
    )
    assert agent.refused("str_replace", path=NOTES, old_str="two", new_str="2") == (
        409,
        "No replacement was performed. Multiple occurrences of old_str `two` in lines: 2, 7. "
        "Please ensure it is unique",
    )
    status, message = agent.refused("str_replace", path=NOTES, old_str="x" * 1000, new_str="2")
    assert (
        status == 409
        and message.startswith("No replacement was performed, old_str `xxx")
        and len(message) < 400
    )
    assert agent("str_replace", path=NOTES, old_str="\nfour\nfive") and "four" not in agent(
        "view", path=NOTES
    )
    assert agent.refused("str_replace", path="/memories", old_str="a") == (
        400,
        "The path /memories is not a file.",
    )
    assert agent.refused("str_replace", path="/memories/x", old_str="a")[0] == 404
    everything = agent.harness(
        "memories.get", who=agent.token, id=agent.ask("view", path=NOTES).body["memory_id"]
    ).body["content"]
    assert agent.refused("str_replace", path=NOTES, old_str=everything) == (
        422,
        "The request is not valid at body.new_str: would leave the file empty; delete it instead",
    )


def test_lines_are_inserted(agent: Agent) -> None:
    agent("create", path=NOTES, file_text="one\ntwo\n")
    assert (
        agent("insert", path=NOTES, insert_line=0, insert_text="zero\n")
        == f"The file {NOTES} has been edited."
    )
    agent("insert", path=NOTES, insert_line=3, insert_text="three\nfour")
    agent("insert", path=NOTES, insert_line=1, insert_text="")
    (memory,) = agent.memories()
    assert memory["content"] == "zero\n\none\ntwo\nthree\nfour\n"
    for line in (-1, 7):
        status, message = agent.refused("insert", path=NOTES, insert_line=line, insert_text="x")
        assert status == 422 and message.endswith(
            "It should be within the range of lines of the file: [0, 6]"
        )
    status, message = agent.refused(
        "insert", path=NOTES, insert_line=0, insert_text="x" * CONTENT_CHARS_MAX
    )
    assert status == 422 and "longer than 100,000 characters" in message


def test_files_and_directories_are_deleted(agent: Agent) -> None:
    for name in ("a/one.md", "a/b/two.md", "ab.md"):
        agent("create", path=f"/memories/{name}", file_text=name)
    assert agent.refused("delete", path="/memories/none") == (
        404,
        "The path /memories/none does not exist",
    )
    assert agent.refused("delete", path="/memories") == (
        400,
        "Cannot delete the /memories directory itself",
    )
    assert agent("delete", path="/memories/a/one.md") == "Successfully deleted /memories/a/one.md"
    assert agent("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert agent.paths() == ["/memories/ab.md"]
    assert [memory["title"] for memory in agent.memories()] == ["ab.md"]
    assert agent.harness("collections.get_default", who=agent.token).body["memory_count"] == 1


def test_a_large_directory_goes_at_once_and_is_swept(agent: Agent) -> None:
    for number in range(MEMORIES_SWEPT_PER_STEP + 20):
        agent("create", path=f"/memories/d/{number}.md", file_text=f"note {number}")
    agent("delete", path="/memories/d")
    assert agent.paths() == [] and agent.memories() == []
    agent.harness.settle()
    scope = agent.harness.scope_of(agent.token)
    with agent.harness.shard.store.snapshot() as snapshot:
        assert snapshot.bind(MEMORIES, scope).count() == 0


def test_a_rename_moves_everything_or_nothing(agent: Agent) -> None:
    for name in ("a/one.md", "a/b/two.md", "ab.md", "c/three.md"):
        agent("create", path=f"/memories/{name}", file_text=f"text of {name}")
    assert (
        agent("rename", old_path="/memories/a", new_path="/memories/z/a")
        == "Successfully renamed /memories/a to /memories/z/a"
    )
    assert agent.paths() == [
        "/memories/ab.md",
        "/memories/c/",
        "/memories/c/three.md",
        "/memories/z/",
        "/memories/z/a/",
    ]
    assert "text of a/b/two.md" in agent("view", path="/memories/z/a/b/two.md")
    moved = agent.ask("rename", old_path="/memories/ab.md", new_path="/memories/c/four.md").body
    assert moved["path"] == "/memories/c/four.md" and moved["version"] == 2
    memory = agent.harness("memories.get", who=agent.token, id=moved["memory_id"]).body
    assert (memory["title"], memory["metadata"]) == ("four.md", {"path": "/memories/c/four.md"})
    assert agent.refused("view", path="/memories/ab.md")[0] == 404
    for path in ("/memories/c", "/memories/c/three.md", "/memories"):
        assert agent.refused("rename", old_path="/memories/z", new_path=path) == (
            409,
            f"The destination {path} already exists",
        )
    assert agent.refused("rename", old_path="/memories/z", new_path="/memories/z/y")[0] == 400
    assert agent.refused("rename", old_path="/memories", new_path="/memories/y") == (
        400,
        "Cannot rename the /memories directory itself",
    )
    assert agent.refused("rename", old_path="/memories/x", new_path="/memories/y") == (
        404,
        "The path /memories/x does not exist",
    )
    assert (
        agent.refused("rename", old_path="/memories/z", new_path="/memories/c/three.md/z")[0] == 409
    )
    deep = "/memories" + "/d" * (limits.MEMORY_PATH_DEPTH_MAX - 2)
    before = agent.paths()
    status, message = agent.refused("rename", old_path="/memories/z", new_path=deep)
    assert status == 422 and "at most 16 levels deep" in message
    assert agent.paths() == before, "one of its files was too deep, so none was moved"


def test_a_name_is_a_file_or_a_directory(agent: Agent) -> None:
    agent("create", path="/memories/a/one.md", file_text="one")
    assert agent.refused("create", path="/memories/a", file_text="x") == (
        409,
        "File /memories/a already exists",
    )
    assert agent.refused("create", path="/memories", file_text="x") == (
        409,
        "File /memories already exists",
    )
    message = "The path /memories/a/one.md is a file, so nothing can be below it."
    assert agent.refused("create", path="/memories/a/one.md/two.md", file_text="x") == (
        409,
        message,
    )


# --- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "", "notes.md", "memories/notes.md", "/memoriesx", "/etc/passwd", "/", "//memories/a",
        "/Memories/a", "/memories/..",
        "/memories/../etc/passwd", "/memories/a/../../b", "/memories/./a", "/memories/a/..",
        "/memories/.. /a", "/memories/%2e%2e/a",
        "/memories/%2E./a", "/memories/a%2fb", "/memories/a%5cb", "/memories/%252e%252e/a",
        "/memories/a%00", "/memories/a\0b",
        "/memories/..\\..\\a", "\\memories\\a", "/memories/a\nb", "/memories/a\u2028b",
        "/memories/a\u202eb", "/memories/\uff0e\uff0e/a",
        "/memories/\u2025/a", "/memories/a\uff0f..\uff0fb", "/memories/a\uff3cb", "/memories/ /a",
        "/memories/\u200b/a",
        "/memories/" + "a" * 256, "/memories" + "/a" * 16, "/memories" + "/aaaaaaaaa" * 110,
        "file:///memories/a", "/memories/\ud800",
    ],
)  # fmt: skip
def test_a_path_that_is_no_name_in_the_tree_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"^must "):
        read_path(path)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("/memories", "/memories"), ("/memories/", "/memories"),
        ("/memories//a///b/", "/memories/a/b"), ("/memories/a b.md", None),
        ("/memories/100%.md", None), ("/memories/...", None), ("/memories/a..b", None),
        ("/memories/.hidden", None),
        ("/memories/日本語.md", None), ("/memories" + "/a" * 15, None),
    ],
)  # fmt: skip
def test_a_path_has_one_form(path: str, read: str | None) -> None:
    assert read_path(path) == (read or path)
    form = read_path(path)
    assert directories_of(form) == [form[:at] for at, sign in enumerate(form) if sign == "/" and at]


def test_what_a_command_needs_is_asked_for(agent: Agent) -> None:
    assert agent.invalid(command="create", path=NOTES) == "body.file_text: is required"
    assert (
        agent.invalid(command="insert", path=NOTES, insert_line=1)
        == "body.insert_text: is required"
    )
    assert agent.invalid(command="rename", old_path=NOTES) == "body.new_path: is required"
    wrong = agent.invalid(command="rename", old_path=NOTES, new_path="/tmp/x")
    assert wrong == "body.new_path: must begin with /memories, such as /memories/notes.md"


# --- files are memories ---------------------------------------------------------------------------


def test_searches_find_files(agent: Agent) -> None:
    agent("create", path="/memories/keys.md", file_text="The spare key is under the flowerpot.")
    agent(
        "create",
        path="/memories/long.md",
        file_text="Nothing in here. " * 400 + "Bread is baked on Mondays.",
    )
    agent.harness.settle()
    found = agent.harness(
        "search.search", {"query": "Where is the spare key?"}, who=agent.token
    ).body["results"]
    assert found[0]["metadata"] == {"path": "/memories/keys.md"}
    only = {"source_type": "memory_file", "source_reference": "/memories/long.md"}
    found = agent.harness(
        "search.search", {"query": "When is bread baked?", "filters": only}, who=agent.token
    ).body["results"]
    assert [result["metadata"]["path"] for result in found] == ["/memories/long.md"]


def test_a_memory_s_end_is_its_file_s(agent: Agent) -> None:
    made = agent.ask("create", path=NOTES, file_text="first")
    assert (made.status, made.body["searchable"]) == (201, True) and made.headers["ETag"] == '"1"'
    agent.harness(
        "memories.update",
        {"content": "changed from outside"},
        who=agent.token,
        id=made.body["memory_id"],
    )
    assert "changed from outside" in agent("view", path=NOTES)
    agent("str_replace", path=NOTES, old_str="outside", new_str="here")
    history = agent.harness("memories.history", who=agent.token, id=made.body["memory_id"]).body[
        "items"
    ]
    assert [item["reason"] for item in history] == ["create", None, "str_replace"]
    agent.harness("memories.delete", who=agent.token, id=made.body["memory_id"])
    assert agent.paths() == []


def test_an_import_brings_the_tree_along(harness: ShardHarness) -> None:
    agent, mover = Agent(harness), Agent(harness, "mover@example.com")
    for name in ("a/one.md", "a/two.md", "three.md"):
        agent("create", path=f"/memories/{name}", file_text=name)
    agent("rename", old_path="/memories/a", new_path="/memories/b")
    records = harness("account.export_part", who=agent.token).body["records"]
    harness("account.import_part", {"records": records}, who=mover.token)
    assert (
        mover.paths()
        == agent.paths()
        == ["/memories/b/", "/memories/b/one.md", "/memories/b/two.md", "/memories/three.md"]
    )
    mover("delete", path="/memories/b")
    assert mover.paths() == ["/memories/three.md"] and len(agent.paths()) == 4


def test_trees_are_apart_by_user_agent_and_collection(harness: ShardHarness) -> None:
    agent = Agent(harness)
    work = harness("collections.create", {"name": "work"}, who=agent.token).body["id"]
    trees = [
        {},
        {"user_id": "ada"},
        {"agent_id": "ada"},
        {"user_id": "ada", "agent_id": "ada"},
        {"user_id": "bob"},
        {"collection_id": work},
    ]
    for number, apart in enumerate(trees):
        agent.apart = apart
        agent("create", path=f"/memories/{number}.md", file_text="x")
    for number, apart in enumerate(trees):
        agent.apart = apart
        assert agent.paths() == [f"/memories/{number}.md"]
    agent("create", path="/memories/d/e.md", file_text="of work")
    agent("rename", old_path="/memories/d", new_path="/memories/f")
    agent("delete", path="/memories/f")
    assert len(agent.memories()) == len(trees)
    harness("collections.delete", who=agent.token, id=work)
    assert agent.refused("view", path="/memories")[0] == 404


def test_a_command_that_changes_nothing_makes_no_version(agent: Agent) -> None:
    agent("create", path=NOTES, file_text="same")
    assert agent.ask("str_replace", path=NOTES, old_str="same", new_str="same").body["version"] == 1


def test_a_late_index_is_told_and_made_later(agent: Agent, embedder: WordEmbedder) -> None:
    embedder.down = True
    answer = agent.ask("create", path=NOTES, file_text="The spare key is under the flowerpot.")
    assert (answer.status, answer.body["searchable"]) == (202, False)
    assert (
        answer.headers["Location"] == answer.body["status_url"] and "Retry-After" in answer.headers
    )
    embedder.down = False
    agent.harness.until(lambda: agent.memories()[0]["searchable"])


def test_an_edit_that_overtakes_another_is_not_lost(agent: Agent) -> None:
    """Both are prepared on the same text; the second finds the first one's and its index is made
    anew.
    """
    agent("create", path=NOTES, file_text="one\ntwo\n")
    edits = [
        {"command": "insert", "path": NOTES, "insert_line": 2, "insert_text": text}
        for text in ("apple", "pear")
    ]
    answers = agent.harness.together(
        [agent.harness.form("memory_files.execute", edit, who=agent.token) for edit in edits]
    )
    assert sorted(answer.status for answer in answers) == [200, 202]
    agent.harness.settle()
    (memory,) = agent.memories()
    assert (
        sorted(memory["content"].splitlines()) == ["apple", "one", "pear", "two"]
        and memory["searchable"]
    )


NAMES = (
    "/memories/a",
    "/memories/b.md",
    "/memories/a/c.md",
    "/memories/a/d/e.md",
    "/memories/a/d/f.md",
    "/memories/g/h.md",
)


def model_of(
    files: dict[str, str], command: str, path: str, text: str, other: str
) -> dict[str, str] | None:
    """What a tree of files is after a command; None where the command must be refused."""

    def is_there(name: str) -> bool:
        return any(known == name or known.startswith(name + "/") for known in files)

    def is_free(name: str) -> bool:
        return not is_there(name) and not any(name.startswith(known + "/") for known in files)

    if command == "create":
        return {**files, path: text} if is_free(path) else None
    if command == "insert":
        return {**files, path: f"{text}\n{files[path]}"} if path in files else None
    if not is_there(path):
        return None
    moved = {
        name: text for name, text in files.items() if name == path or name.startswith(path + "/")
    }
    kept = {name: text for name, text in files.items() if name not in moved}
    if command == "delete":
        return kept
    if not is_free(other) or other.startswith(path + "/"):
        return None
    return kept | {other + name.removeprefix(path): text for name, text in moved.items()}


def test_a_tree_is_what_its_commands_made_it(agent: Agent) -> None:
    """Two hundred commands at random against a plain dictionary; then the store agrees with
    itself.
    """
    chance, files, refused = random.Random(7), {}, 0
    for number in range(200):
        command = chance.choice(("create", "create", "insert", "delete", "rename"))
        path, other = chance.choice(NAMES), chance.choice(NAMES)
        given = {"old_path": path, "new_path": other} if command == "rename" else {"path": path}
        given |= {
            "create": {"file_text": f"text {number}"},
            "insert": {"insert_line": 0, "insert_text": f"text {number}"},
        }.get(command, {})
        after = model_of(files, command, path, f"text {number}", other)
        answer = agent.ask(command, **given)
        assert (answer.status < 300) == (after is not None), (command, given, files, answer)
        refused += after is None
        files = files if after is None else after
    assert 40 < refused < 160 and files
    assert {memory["source_reference"]: memory["content"] for memory in agent.memories()} == files
    shard = agent.harness.shard
    with shard.store.snapshot() as snapshot:
        for account in verification.accounts(snapshot):
            assert (
                list(
                    verification.examine(snapshot, shard.environment, account, agent.harness.now_ms)
                )
                == []
            )


# --- the frame ------------------------------------------------------------------------------------


def test_a_key_repeats_the_answer_and_a_failure_releases_it(agent: Agent) -> None:
    assert agent.ask("delete", path=NOTES, key="k").status == 404
    agent("create", path=NOTES, file_text="x")
    first = agent.ask("delete", path=NOTES, key="k")
    again = agent.ask("delete", path=NOTES, key="k")
    assert (
        first.status == again.status == 200
        and again.body == first.body
        and again.headers["X-Idempotent-Replay"] == "true"
    )


def test_a_key_that_reads_may_view_and_no_more(agent: Agent) -> None:
    agent("create", path=NOTES, file_text="x")
    agent.token = agent.harness(
        "auth.api_keys.create", {"name": "reader", "scopes": ["read"]}, who=agent.token
    ).body["key"]
    assert agent.paths() == [NOTES]
    for command in (
        {"command": "create", "path": "/memories/b", "file_text": "x"},
        {"command": "str_replace", "path": NOTES, "old_str": "x"},
        {"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": NOTES},
        {"command": "rename", "old_path": NOTES, "new_path": "/memories/b"},
    ):  # fmt: skip
        assert agent.refused(**command) == (403, "This API key lacks the scope 'write'.")


def test_a_tree_holds_so_many_files(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_files, "MEMORY_FILES_MAX", 2)
    for number in range(2):
        agent("create", path=f"/memories/{number}.md", file_text="x")
    status, message = agent.refused("create", path="/memories/2.md", file_text="x")
    assert status == 409 and message.startswith("There are 2 files")
    agent("delete", path="/memories/0.md")
    agent("create", path="/memories/2.md", file_text="x")


def test_other_accounts_are_out_of_reach(harness: ShardHarness) -> None:
    agent = Agent(harness)
    agent("create", path=NOTES, file_text="Ada's")
    stranger = harness.register("eve@example.com")
    collection = harness("collections.get_default", who=agent.token).body["id"]
    asked = {"command": "view", "path": NOTES}
    assert harness("memory_files.execute", asked, who=stranger).status == 404
    assert (
        harness("memory_files.execute", {**asked, "collection_id": collection}, who=stranger).status
        == 403
    )
