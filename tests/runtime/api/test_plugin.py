"""The registry refuses what cannot work, in a sentence that names it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from plugins import collections, memories
from runtime.api.figures import figures
from runtime.api.operation import (
    Event,
    Flow,
    Idempotency,
    Operation,
    Read,
    Upload,
    View,
    Write,
)
from runtime.api.plugin import (
    CORE_ID_PREFIXES,
    CatchUp,
    Job,
    Plugin,
    Registry,
    RegistryError,
    Restore,
    Retriever,
    RetryStrategy,
)
from runtime.api.tiers import NO_OFFER, Feature
from runtime.api.tools import Tool
from runtime.extras import Extra
from runtime.settings import Kept, Section
from serve_app import PLUGINS
from storage.indexes import BitmapIndex
from storage.store import Table
from tests.support import ROOT
from tests.support.worlds import example_plugin, shard_harness


def operation(kind: type[Operation] = Read, **fields) -> Operation:
    base = {"name": "a.get", "method": "GET", "path": "/v1/a", "handler": print}
    return kind(**{**base, "summary": "", "response": None, **fields})


OTHER = operation(name="b.get", path="/v1/b")
SAME_ROUTE = operation(name="b.other")


def test_plugins_come_after_what_they_require() -> None:
    registry = Registry.build(
        [Plugin("c", requires=("b",)), Plugin("b", requires=("a",)), Plugin("a")]
    )
    assert [plugin.name for plugin in registry.plugins] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ([Plugin("a", requires=("b",))], "requires 'b'"),
        ([Plugin("a", requires=("b",)), Plugin("b", requires=("a",))], "a → b → a"),
        ([Plugin("a"), Plugin("a")], "plugin 'a' is declared twice"),
        (
            [Plugin("a", operations=(operation(), operation(path="/v1/b")))],
            "operation 'a.get' is declared twice",
        ),
        (
            [
                Plugin(
                    "a", operations=(operation(path="/v1/{x}"), operation(name="b", path="/v1/{y}"))
                )
            ],
            "share the route GET",
        ),
        (
            [
                Plugin(
                    "a",
                    operations=(
                        operation(kind=Write, method="POST", idempotency=Idempotency.CANONICAL),
                    ),
                )
            ],
            "must say how its resource",
        ),
        (
            [Plugin("a", operations=(operation(kind=Write, method="POST", scope="public"),))],
            "must say which slot",
        ),
        ([Plugin("a", subscribe={"x.y": print})], "subscribes to 'x.y'"),
        ([Plugin("a", index_entries={"x": print})], "has entries for index 'x'"),
        (
            [Plugin(name, restore={"note": Restore(View, print)}) for name in "ab"],
            "takes in records of kind 'note'",
        ),
        (
            [Plugin("a", operations=(operation(),)), Plugin("b", replaces=(operation(),))],
            "replaces 'a.get', which no plugin it requires",
        ),
        ([Plugin("a", replaces=(operation(),))], "replaces 'a.get', which no plugin it requires"),
        (
            [Plugin("a", events=(Event("x.y", View), Event("x.y", View)))],
            "event 'x.y' is declared twice",
        ),
        (
            [
                Plugin("a", operations=(operation(),), tools=(Tool("look", "a.get", "Look."),)),
                Plugin("b", operations=(OTHER,), tools=(Tool("look", "b.get", "Look."),)),
            ],
            "tool 'look' is declared twice",
        ),
        (
            [
                Plugin("a", operations=(operation(),)),
                Plugin("b", tools=(Tool("look", "a.get", "Look."),)),
            ],
            "tool 'look' of plugin 'b' calls 'a.get', which is no operation of that plugin",
        ),
        (
            [Plugin(name, settings={"marks": Section}) for name in "ab"],
            "plugin 'b' declares the settings section 'marks', as does plugin 'a'",
        ),
        (
            [Plugin("a", settings={"http": Section})],
            "plugin 'a' declares the settings section 'http', as does the core",
        ),
        (
            [Plugin(name, offer=lambda settings: NO_OFFER) for name in "ab"],
            "plugins 'a' and 'b' both say what is offered",
        ),
        (
            [Plugin(name, outbound_proxy=lambda settings: None) for name in "ab"],
            "plugins 'a' and 'b' both say which proxy requests go through",
        ),
        (
            [Plugin(name, features={"sharing": Feature("Sharing", "pro")}) for name in "ab"],
            "plugins 'a' and 'b' both declare the feature 'sharing'",
        ),
        (
            [Plugin("a", operations=(operation(feature="sharing"),))],
            "operation 'a.get' is of the feature 'sharing', which no plugin declares",
        ),
        (
            [Plugin(name, rates={"import": lambda settings: 7}) for name in "ab"],
            "plugins 'a' and 'b' both declare the rate 'import'",
        ),
        (
            [Plugin(name, tables=(Table("notes", key=("n",), row=bytes),)) for name in "ab"],
            "table 'notes' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [
                Plugin("a", tables=(Table("notes.bitmaps", key=("n",), row=bytes),)),
                Plugin("b", indexes=(BitmapIndex("notes", fields=("live",)),)),
            ],
            "of index 'notes' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [Plugin("a", operations=(operation(),)), Plugin("b", operations=(SAME_ROUTE,))],
            "operations 'a.get' and 'b.other' share the route GET /v1/a, by plugin 'a' and "
            "plugin 'b'",
        ),
        (
            [Plugin(name, events=(Event("x.y", View),)) for name in "ab"],
            "event 'x.y' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [Plugin(name, id_prefixes=("bmk",)) for name in "ab"],
            "id prefix 'bmk' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [Plugin("a", id_prefixes=("job",))],
            "id prefix 'job' is declared twice, by the core and plugin 'a'",
        ),
        ([Plugin("a", id_prefixes=("Bm",))], "a prefix is three small letters"),
        (
            [Plugin(name, retrievers=(Retriever("near", print),)) for name in "ab"],
            "retriever 'near' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [Plugin("a", operations=(operation(extra=Extra("x", ("nothing",), "")),))],
            "operation 'a.get' needs the extra 'x', which plugin 'a' does not declare",
        ),
        (
            [Plugin(name, models={"m": print}) for name in "ab"],
            "plugins 'a' and 'b' both declare the model 'm'",
        ),
        (
            [Plugin(name, keeps=(Kept("marks", "Marks", {}),)) for name in "ab"],
            "room for 'marks' is declared twice, by plugin 'a' and plugin 'b'",
        ),
        (
            [Plugin("a", keeps=(Kept("credits", "Credits", {}),))],
            "plugin 'a' keeps 'credits'; the name must be",
        ),
        (
            [Plugin("a", keeps=(Kept("Loud marks", "Marks", {}),))],
            "plugin 'a' keeps 'Loud marks'; the name must be",
        ),
        (
            [Plugin("a", keeps=(Kept("marks", "Marks", {"gold": 1}),))],
            "what room for 'marks' the tier 'gold' has; the tiers are free, starter",
        ),
    ],
)
def test_inconsistent_sets_are_refused(plugins: list[Plugin], says: str) -> None:
    with pytest.raises(RegistryError, match=says.replace(".", r"\.").replace("(", r"\(")):
        Registry.build(plugins)


def test_an_operation_is_given_a_fuller_form_by_a_plugin_above() -> None:
    fuller = operation(summary="more")
    registry = Registry.build(
        [Plugin("b", requires=("a",), replaces=(fuller,)), Plugin("a", operations=(operation(),))]
    )
    assert registry.operations["a.get"] is fuller and len(registry.operations) == 1
    twice = [Plugin(name, requires=("a",), replaces=(fuller,)) for name in ("b", "c")]
    with pytest.raises(RegistryError, match=r"replacement 'a\.get' is declared twice"):
        Registry.build([Plugin("a", operations=(operation(),)), *twice])


def test_tables_of_indexes_are_tables_of_the_registry() -> None:
    registry = Registry.build([example_plugin()])
    assert {table.name for table in registry.indexes["bookmarks.labels"].tables} <= set(
        registry.tables
    )
    with pytest.raises(TypeError):
        registry.operations["new"] = operation()


def test_retries_wait_longer_each_time_up_to_a_bound() -> None:
    retry = RetryStrategy(base_ms=100, factor=2, max_ms=1_000, jitter=0.1)
    assert [retry.wait_ms(n, 0.0) for n in (1, 2, 3, 4, 5, 50)] == [
        100,
        200,
        400,
        800,
        1_000,
        1_000,
    ]
    assert retry.wait_ms(1, 0.99) in range(100, 111)


def test_tools_come_with_their_operations_in_the_order_of_their_places() -> None:
    plugins = [
        Plugin("a", operations=(operation(),), tools=(Tool("last", "a.get", "Look.", place=2),)),
        Plugin("b", operations=(OTHER,), tools=(Tool("first", "b.get", "Look.", place=1),)),
    ]
    tools = Registry.build(plugins).tools
    assert [(tool.name, called.name) for tool, called in tools] == [
        ("first", "b.get"),
        ("last", "a.get"),
    ]


def test_figures_of_all_plugins_are_added_up(tmp_path: Path) -> None:
    asked = operation(name="d.ask", scope="read", handler=lambda ctx, body: dict(figures(ctx)))
    plugins = [
        Plugin("a", figures=lambda ctx: {"notes": 2, "bytes": 10}),
        Plugin("b", figures=lambda ctx: {"bytes": 5}),
        Plugin("c"),
        Plugin("d", operations=(asked,)),
    ]
    with shard_harness(tmp_path, *plugins) as harness:
        assert harness("d.ask", who=harness.register()).body == {"notes": 2, "bytes": 15}


def test_jobs_of_any_plugin_are_shown_where_they_say(tmp_path: Path) -> None:
    """Cleanups among the account's receipts, listed ones among the jobs of its memories."""
    names = ["a.sweep", "a.work", "a.quiet"]

    def begin(ctx, body):
        return {name: ctx.enqueue(name, {}) for name in names}

    def erased(ctx, payload):
        return {"erased": {"notes": 3}}

    jobs = (Job("a.sweep", erased, cleanup=True), Job("a.work", erased, listed=True))
    begun = operation(Write, name="a.begin", method="POST", scope="write", handler=begin)
    plugin = Plugin("a", jobs=(*jobs, Job("a.quiet", erased)), operations=(begun,))
    with shard_harness(tmp_path, collections.plugin, memories.plugin, plugin) as harness:
        me = harness.register()
        ids = harness("a.begin", who=me).body
        harness.settle()
        (receipt,) = harness("account.receipts", who=me).body["items"]
        assert (receipt["job_id"], receipt["cause"]) == (ids["a.sweep"], "a.sweep")
        assert [(each["store"], each["count"]) for each in receipt["receipts"]] == [("notes", 3)]
        (listed,) = harness("memories.jobs.list", who=me).body["items"]
        assert (listed["job_id"], listed["kind"]) == (ids["a.work"], "a.work")
        assert harness("memories.jobs.get", who=me, job_id=ids["a.quiet"]).status == 404


@pytest.mark.parametrize(
    "declared",
    [
        *(Plugin, Operation, Read, Write, Flow, Upload, Job, RetryStrategy, CatchUp),
        *(Retriever, Tool, Restore, Kept),
    ],
)
def test_what_can_be_declared_is_documented(declared: type) -> None:
    """Each field has its row under its type, and each row its field; what all operations have is
    told once.
    """
    text = (ROOT / "PLUGINS.md").read_text()
    (section,) = re.findall(
        rf"^### {declared.__name__}\n(.*?)(?=^#|\Z)", text, re.DOTALL | re.MULTILINE
    )
    rows = re.findall(r"^\| `(\w+)` \| .{4,} \|$", section, re.MULTILINE)
    of_all = {each.name for each in fields(Operation)} if declared is not Operation else set()
    own = [
        each.name
        for each in fields(declared)
        if not issubclass(declared, Operation) or each.name not in of_all
    ]
    assert sorted(rows) == sorted(own)


def test_the_ids_of_a_plugin_begin_with_what_it_declares() -> None:
    """Of each file of plugins/: it makes ids with prefixes of its own plugin, or of the core."""
    declared = {plugin.name: {*plugin.id_prefixes, *CORE_ID_PREFIXES} for plugin in PLUGINS}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        name = path.relative_to(ROOT / "plugins").parts[0].removesuffix(".py")
        made = set(re.findall(r'(?:new_id|make_id)\(\s*"([a-z]+)"', path.read_text()))
        assert made <= declared.get(name, set()), (path, made)
