"""Each command line of `mneme` in the documents is one that it takes, and each setting is one that
there is: in blocks that run, in those that cannot run here, and in the middle of a sentence.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

import pytest
import yaml

import serve_app
from runtime.cli import parser
from runtime.settings import known_settings
from serve_app import Settings
from tests.support import ROOT
from tests.support.pages import DOCUMENTS, Block, blocks, named, prose

FILLERS = ("1", "2026-01-31T12:00:00Z")  # what a name or a path can be, and a number or a time
PARSER = parser()
COMMANDS = ROOT / "docs/commands.md"
# Variables that are no settings: of the command line, of the client, and of one machine.
VARIABLES = {"MNEME_CONFIG", "MNEME_API_KEY", "MNEME_BASE_URL", "MNEME_NODE_DATA_DIR"}
# top level of a block of YAML that is not for the service -> whose it is
OF_OTHERS = {"scrape_configs": "Prometheus'"}
# What looks like a setting, and is an operation, an event, a job, a field or a file.
NO_SETTINGS = {
    *serve_app.registry().events,
    *serve_app.registry().jobs,
    *serve_app.registry().operations,
    *("plugins.memories", "secrets.env", "storage.limits", "webhooks.ts"),
    "tiers.free_bookmarks",  # of an example's plugin
}
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.DOTALL)
_WANTED = re.compile(
    r"are required: (?P<names>.*)|expected .*one argument|"
    rf"invalid choice: '(?:{'|'.join(FILLERS)})' (?P<choices>.*)"
)
_CODE = re.compile(r"`([^`]+)`")
_FOLDERS = ("configs/", "examples/", "clients/")


def lines(block: Block) -> Iterator[str]:
    """Each command line of a block, of a session what was typed."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        text = "\n".join(re.findall(r"^\$ (.*)$", text, re.MULTILINE))
    pending = ""
    for line in text.splitlines():
        pending = f"{pending}\n{line}" if pending else line
        try:
            shlex.split(pending, comments=True)
        except ValueError:
            continue  # a quotation that goes on
        yield pending
        pending = ""


def commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a line of the shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    command: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set(";&|()<>"):
            if command:
                yield command
            command = [] if set(word) <= set(";&|()") else [">"]
        else:
            command.append(word)


def given(words: list[str]) -> list[str]:
    """What `mneme` is given by a command; [] where it is another program's."""
    while words and _ASSIGNED.fullmatch(words[0]):
        words = words[1:]
    if words[:2] == ["kubectl", "exec"]:
        words = words[words.index("--") + 1 :]
    if words[:2] == ["make", "run"]:
        further = " ".join(words[2:]).removeprefix("ARGS=")
        return ["serve", "--demo-account", *shlex.split(further)]
    return words[1:] if words and Path(words[0]).name == "mneme" else []


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says against its arguments; "" when it takes them."""
    try:
        PARSER.parse_args(words)
    except SystemExit:
        return capsys.readouterr().err.strip().rpartition("error: ")[2]
    return ""


def refusal_of_part(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """As refusal, of a command of which some is left to the reader: what it asks for is added, as
    one filler or the other.
    """
    said = ""
    for filler in FILLERS:
        tried, said = words, refusal(words, capsys)
        while wanted := _WANTED.search(said):
            if wanted["choices"]:
                tried = [choices(said)[0] if word == filler else word for word in tried]
            else:
                names = (wanted["names"] or filler).split(", ")
                added = [[name, filler] if name.startswith("-") else [filler] for name in names]
                tried = [*tried, *chain(*added)]
            said = refusal(tried, capsys)
        if not said:
            return ""
    return said


def choices(said: str) -> list[str]:
    return said.partition("choose from ")[2].rstrip(")").replace("'", "").split(", ")


def load(sources: dict[str, str], path: Path | None = None) -> Settings:
    return Settings.load(path or ROOT / "configs/test.yaml", [], sources)


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_the_command_takes_what_is_typed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for block in blocks(path):
        if block.language not in ("bash", "console"):
            continue
        for line in lines(block):
            for words in commands(line):
                typed = given(words)
                said = refusal(typed, capsys) if typed else ""
                assert said == "", f"{line}: {said}"
                for word in words:
                    if word.startswith(_FOLDERS) and "*" not in word and word.endswith(".yaml"):
                        assert (ROOT / word).exists(), line
                for setting in (b for a, b in pairwise(typed) if a == "--set"):
                    assert setting.partition("=")[0] in known_settings(Settings), line


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_the_command_knows_what_a_sentence_says_of_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for span in _CODE.findall(prose(path)):
        if re.match(r"(?:\.venv/bin/)?mneme [a-z-]|make run ", span):
            words = next(commands(" ".join(span.replace("…", "").split())))
            said = refusal_of_part(given(words), capsys)
            assert said == "", f"{span}: {said}"


def test_the_list_of_commands_has_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    (listing,) = [one.text for one in blocks(COMMANDS) if ".venv/bin/mneme serve " in one.text]
    listed = re.findall(r"^\.venv/bin/mneme (.+?)   *[^ ]", listing, re.MULTILINE)
    assert len(listed) == len(listing.splitlines())
    for line in listed:
        said = refusal_of_part(shlex.split(line), capsys)
        assert said == "", f"{line}: {said}"
    assert {line.split()[0] for line in listed} == set(choices(refusal(["?"], capsys)))


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_no_command_hides_in_a_block_for_reading(path: Path) -> None:
    for block in blocks(path):
        if block.language == "text" and path != COMMANDS:
            typed = re.search(
                r"^(\.venv/bin/|\$ |(mneme|pip|make|curl|kubectl|docker) [a-z-]).*",
                block.text,
                re.M,
            )
            assert typed is None, typed


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_blocks_of_data_are_such_data_and_settings_in_them_exist(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks(path):
        if block.language == "json":
            for server in json.loads(block.text)["mcpServers"].values():
                if Path(server.get("command", "")).name == "mneme":
                    assert refusal(server["args"], capsys) == ""
        if block.language == "yaml" and not OF_OTHERS.keys() & yaml.safe_load(block.text):
            (tmp_path / "settings.yaml").write_text(block.text)
            load({}, tmp_path / "settings.yaml")


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_settings_that_are_named_exist(path: Path) -> None:
    text, known = path.read_text(encoding="utf-8"), set(known_settings(Settings))
    for name in set(re.findall(r"\bMNEME_[A-Z_]+[A-Z]\b", text)) - VARIABLES:
        dotted = name.removeprefix("MNEME_").lower().replace("__", ".")
        assert dotted in known or dotted.startswith("bookmarks."), name
    if path.name in ("CHANGELOG.md", "DATA.md"):  # what was, and tables
        return
    sections = {name.partition(".")[0] for name in known if "." in name}
    for span in _CODE.findall(prose(path)):
        if (said := re.match(r"([a-z_]+)\.[a-z_.]*[a-z](?=$|[:=])", span)) and said[1] in sections:
            assert said[0] in known | NO_SETTINGS, span
