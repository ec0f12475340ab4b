"""The author's package, what `mneme plugin new` writes, and the contract."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import Field

import mneme
from mneme import last_ordinal
from mneme.testing import Harness, check_plugin, harness
from runtime.api.operation import Idempotency, Read, View, Write
from runtime.api.plugin import Plugin
from runtime.cli.plugins import files
from storage.store import Table
from tests.support import ROOT
from tests.support.commands import mneme as command
from tests.support.worlds import example_plugin


def test_every_name_of_the_package_is_there() -> None:
    assert sorted(mneme.__all__) == sorted(set(mneme.__all__))
    assert all(getattr(mneme, name) is not None for name in mneme.__all__)


def test_plugins_md_begins_with_what_the_command_writes() -> None:
    text = (ROOT / "PLUGINS.md").read_text()
    written = files("greetings")
    blocks = re.findall(r"```(?:python|toml)\n(.*?)```", text, re.DOTALL)
    module, test, pyproject = blocks[:3]
    assert module == written["mneme_plugin_greetings.py"]
    assert test == written["test_greetings.py"]
    assert pyproject == written["pyproject.toml"]
    assert len(module.splitlines()) <= 35


def test_a_new_plugin_keeps_the_contract_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "new"
    status, said, _ = command("plugin", "new", "night_owls", "--directory", home)
    assert status == 0 and "mneme_plugin_night_owls.py" in said
    assert said.endswith(f"then pip install {home}\n"), "no name that an index could have"
    monkeypatch.setattr(sys, "path", [*sys.path])
    status, said, _ = command("plugin", "check", home)
    assert (status, said) == (0, "✓ night_owls keeps the contract: 1 operations\n")
    plugin = sys.modules["mneme_plugin_night_owls"].plugin
    with Harness(tmp_path / "data", plugin) as service:
        answer = service.request("GET", "/v1/night-owls?who=Ada", who=service.register())
        assert answer.json() == {"text": "Hello, Ada."}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("new", "Night-Owls"), "is no name for a plugin"),
        (("new", "owls", "--directory", ROOT), "is not empty"),
        (("new", "search"), "is a plugin of the service itself"),
        (("new", "confidence"), "The service itself answers at /v1/confidence"),
        (("check", ROOT), "names no plugin"),
        (
            ("check", ROOT / "configs"),
            "cannot be read (No such file or directory): name the folder",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(words: tuple[object, ...], says: str) -> None:
    status, _, err = command("plugin", *words)
    assert status == 1 and says in err


def test_the_contract_is_kept_by_the_plugin_of_plugins_md() -> None:
    assert check_plugin(example_plugin()) == []


class Note(View):
    id: str


class NotedId(mneme.Body):
    id: str


class NewNote(mneme.Body):
    text: str


NOTES = Table("notes.rows", key=("n",), row=bytes)
RAISED = replace(NOTES, version=4)
NOTE_ID = "nte_01hzx3v6k8c9qj2m4n5p7r8s9t0v1w2x"


def put(ctx, body):
    ctx[NOTES].put((1,), b"x")
    return {"id": NOTE_ID}


MAKE = Write(
    name="notes.create",
    method="POST",
    path="/v1/notes",
    handler=put,
    response=Note,
    summary="Make a note",
    scope="write",
    idempotency=Idempotency.CACHED,
    example_reply={"id": NOTE_ID},
)
NOTES_PLUGIN = Plugin(
    "notes",
    id_prefixes=("nte",),
    tables=(NOTES,),
    operations=(MAKE,),
    erase=lambda ctx: {"notes": ctx[NOTES].delete_prefix()},
    export=lambda ctx: iter([("note", {"id": NOTE_ID})]),
)


def crash(ctx, *_):
    raise RuntimeError("out of order")


def read(**fields):
    base = {"name": "notes.read", "method": "GET", "path": "/v1/notes", "handler": crash}
    base |= {"summary": "Read", "response": Note, "example_reply": {"id": "x"}}
    return replace(NOTES_PLUGIN, operations=(MAKE, Read(**{**base, **fields})))


def test_what_needs_an_extra_of_the_package_names_its_line(tmp_path: Path) -> None:
    """Where only some requests need it, the others go on."""
    ink = mneme.Extra("ink", ("no_such_package",), "writing in ink", package="mneme-plugin-notes")
    one = replace(MAKE, extra=lambda body: ink if body.text == "in ink" else None, body=NewNote)
    plugin = replace(NOTES_PLUGIN, operations=(one,), extras=(ink,))
    with Harness(tmp_path / "data", plugin) as service:
        me = service.register()
        assert service.request("POST", "/v1/notes", {"text": "x"}, who=me).status_code == 200
        answer = service.request("POST", "/v1/notes", {"text": "in ink"}, who=me)
    assert answer.status_code == 501
    said = answer.json()["error"]["message"]
    assert "what writing in ink needs" in said
    assert said.endswith("pip install 'mneme-plugin-notes[ink]'")


def test_what_it_keeps_has_the_room_of_the_tier(tmp_path: Path) -> None:
    kept = mneme.Kept(
        "notes",
        "Notes of an account of the tier {tier}",
        {"free": 2, "pro": 9},
        words="notes on paper",
        way_out="Burn some",
    )

    def keep(ctx, body):
        there = len(list(ctx[NOTES].keys()))
        mneme.check_room(ctx.settings, ctx.principal.tier, kept, there)
        ctx[NOTES].put((there,), b"x")
        return {"id": NOTE_ID}

    plugin = replace(NOTES_PLUGIN, keeps=(kept,), operations=(replace(MAKE, handler=keep),))
    assert check_plugin(plugin) == []
    given = {"billing.default_tier": "free", "tiers.starter_notes": 5}
    with Harness(tmp_path / "data", plugin, settings=given) as service:
        me = service.register()
        made = [service.request("POST", "/v1/notes", who=me) for _ in range(3)]
        tiers = service.request("GET", "/v1/billing/tiers").json()["items"]
    assert [answer.status_code for answer in made] == [200, 200, 403]
    error = made[-1].json()["error"]
    assert (error["code"], error["message"]) == (
        "quota_exceeded",
        "The tier Free keeps 2 notes on paper; 2 are there, and this would add 1. Burn some, or "
        "upgrade.",
    )
    assert [tier["notes"] for tier in tiers] == [2, 5, 9, -1, -1]


@pytest.mark.parametrize(
    ("plugin", "says"),
    [
        (NOTES_PLUGIN, []),
        (
            replace(NOTES_PLUGIN, retrievers=(mneme.Retriever("near", lambda ctx, query: ()),)),
            ["retriever 'near' must be called notes.…, after the plugin"],
        ),
        (
            replace(NOTES_PLUGIN, retrievers=(mneme.Retriever("notes.near", crash),)),
            ["retriever notes.near: a search by it alone is degraded: notes.near_unavailable"],
        ),
        (replace(NOTES_PLUGIN, id_prefixes=()), ["ids that begin with nte_"]),
        (
            replace(NOTES_PLUGIN, checks=(crash, mneme.Counter("notes", last_ordinal(NOTES)))),
            ["one of its checks fails with RuntimeError", "counter notes stands at -1, but 1 is"],
        ),
        (replace(NOTES_PLUGIN, erase=None), ["must say how that is erased and exported"]),
        (replace(NOTES_PLUGIN, erase=lambda ctx: {}), ["leaves rows of table notes.rows"]),
        (replace(NOTES_PLUGIN, erase=crash), ["its erasure fails with RuntimeError"]),
        (replace(NOTES_PLUGIN, export=lambda ctx: iter(())), ["its export is empty"]),
        (replace(NOTES_PLUGIN, export=crash), ["its export fails with RuntimeError"]),
        (replace(NOTES_PLUGIN, operations=()), ["no example stores anything"]),
        (replace(NOTES_PLUGIN, requires=("owls",)), ["cannot be installed: plugin 'notes' req"]),
        (read(), ["notes.read answers its own example with 500"]),
        (
            read(handler=put, scope="none"),
            ["its scope must be", "answers its own example with 403"],
        ),
        (read(rate="notes"), ["its rate bucket 'notes'", "answers its own example with 500"]),
        (
            replace(NOTES_PLUGIN, operations=(replace(MAKE, idempotency=Idempotency.NONE),)),
            ["must be repeatable"],
        ),
        (
            replace(NOTES_PLUGIN, operations=(replace(MAKE, example_reply={"text": "x"}),)),
            ["its example_reply is not true at id"],
        ),
        (
            replace(NOTES_PLUGIN, operations=(replace(MAKE, summary="Make it."),)),
            ["without a full stop"],
        ),
        (
            replace(
                NOTES_PLUGIN, operations=(replace(MAKE, handler=lambda *_: {**put(*_), "id": 7}),)
            ),
            ["notes.create: its answer is not true at id"],
        ),
        (
            replace(
                NOTES_PLUGIN, operations=(replace(MAKE, handler=lambda *_: {**put(*_), "x": 7}),)
            ),
            ["notes.create: its answer names x, which the model does not have"],
        ),
        (
            replace(
                NOTES_PLUGIN,
                tables=(RAISED,),
                migrations={("notes.rows", 1): lambda row: row, ("notes.rows", 4): bytes},
            ),
            [
                "table notes.rows is at version 4, and no migration takes its rows from 2",
                "table notes.rows is at version 4, and no migration takes its rows from 3",
                "a migration of notes.rows begins at version 4, which no earlier release wrote",
            ],
        ),
        (
            replace(NOTES_PLUGIN, migrations={("notes.row", 1): lambda row: row}),
            ["a migration is of notes.row, which is none of its tables"],
        ),
        (
            replace(NOTES_PLUGIN, operations=(replace(MAKE, credits=-5),)),
            ["its credits must be 0 or more"],
        ),
    ],
)
def test_the_contract_tells_what_is_not_kept(plugin: Plugin, says: list[str]) -> None:
    told = check_plugin(plugin)
    assert len(told) == len(says), told
    assert all(any(what in sentence for sentence in told) for what in says), told


class Asked(mneme.Query):
    whose: str = Field(max_length=9, description="Whose.", examples=["ada's own"])


class Unasked(mneme.Query):
    whose: str = Field(description="Whose.")


def test_required_fields_of_a_query_have_examples_which_the_contract_asks_with() -> None:
    def find(ctx, body):
        assert ctx.query.whose == "ada's own"
        return {"id": NOTE_ID}

    assert check_plugin(read(handler=find, query=Asked)) == []
    (told,) = check_plugin(read(handler=find, query=Unasked))
    assert told.endswith("Unasked.whose is required, and needs an example: Field(examples=[…])")


def test_a_plugin_of_memories_is_given_one() -> None:
    def hear(ctx, event_id, kind, data, resource_id):
        ctx[NOTES].put((1,), b"x")

    given = {"requires": ("memories",), "operations": ()}
    hearing = replace(NOTES_PLUGIN, subscribe={"memory.created": hear}, **given)
    assert check_plugin(hearing) == []
    failing = replace(NOTES_PLUGIN, subscribe={"memory.created": crash}, **given)
    assert "where it is installed, storing a memory answers 500" in check_plugin(failing)


def test_a_plugin_hears_whose_memories_are_erased(tmp_path: Path) -> None:
    heard = []

    def hear(ctx, event_id, kind, data, resource_id):
        heard.append((data["collection_id"], data["scopes"]["user_id"], data["filters"]))

    plugin = Plugin("notes", requires=("memories",), subscribe={"internal.memories_cleared": hear})
    with Harness(tmp_path / "data", plugin) as service:
        me = service.register()
        path = "/v1/memories/all?confirm=delete-all-memories"
        for query in ("&user_id=ada", ""):
            assert service.request("DELETE", path + query, who=me).status_code == 200
    assert heard == [(None, "ada", {}), (None, None, {})]


KEPT_NOTES = Table("notes.ids", key=("id",), row=bytes)


@pytest.mark.parametrize("renames", [True, False])
def test_what_is_taken_in_bears_ids_of_its_account(renames: bool) -> None:
    def make(ctx, body):
        note = ctx.new_id("nte")
        ctx[KEPT_NOTES].put((note,), b"x")
        return {"id": note}

    def take_in(ctx, records, origin):
        for record in records:
            note = origin.renamed(record.id) if renames else record.id
            ctx[KEPT_NOTES].put((note,), b"x")
        return len(records)

    plugin = replace(
        NOTES_PLUGIN,
        tables=(KEPT_NOTES,),
        operations=(replace(MAKE, handler=make),),
        erase=lambda ctx: {"notes": ctx[KEPT_NOTES].delete_prefix()},
        export=lambda ctx: (("note", {"id": key[0]}) for key, _ in ctx[KEPT_NOTES].scan()),
        restore={"note": mneme.Restore(NotedId, take_in)},
    )
    told = check_plugin(plugin)
    assert [each for each in told if "origin.renamed(id)" not in each] == []
    assert len(told) == (0 if renames else 1)


def test_the_contract_tells_of_jobs_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def put_and_enqueue(ctx, body):
        ctx.enqueue("notes.fold", {})
        return put(ctx, body)

    plugin = replace(
        NOTES_PLUGIN,
        operations=(replace(MAKE, handler=put_and_enqueue),),
        jobs=(mneme.Job("notes.fold", crash),),
    )
    monkeypatch.setattr(harness, "JOBS_SECONDS_MAX", 0.5)
    assert [told for told in check_plugin(plugin) if "its jobs do not end" in told]


def test_a_module_that_ends_the_process_is_no_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "pyproject.toml").write_text(
        '[project.entry-points."mneme.plugins"]\nleaving = "mneme_plugin_leaving:plugin"\n'
    )
    (tmp_path / "mneme_plugin_leaving.py").write_text("raise SystemExit(0)\n")
    status, out, _ = command("plugin", "check", tmp_path)
    assert status == 1 and "cannot be loaded: SystemExit" in out
