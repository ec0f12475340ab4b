"""The registry refuses what cannot work, in a sentence that names it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtime.operation import Event, Idempotency, Kind, Operation, View
from runtime.plugin import Plugin, Registry, RegistryError, Restore, RetryStrategy
from tests.worlds import example_plugin


def operation(**fields) -> Operation:
    base = Operation(name="a.get", method="GET", path="/v1/a", kind=Kind.READ, handler=print, summary="", spec="", response=None)
    return replace(base, **fields)


def test_plugins_come_after_what_they_require() -> None:
    registry = Registry.build([Plugin("c", requires=("b",)), Plugin("b", requires=("a",)), Plugin("a")])
    assert [plugin.name for plugin in registry.plugins] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ([Plugin("a", requires=("b",))], "requires 'b'"),
        ([Plugin("a", requires=("b",)), Plugin("b", requires=("a",))], "a → b → a"),
        ([Plugin("a"), Plugin("a")], "plugin 'a' is declared twice"),
        ([Plugin("a", operations=(operation(), operation(path="/v1/b")))], "operation 'a.get' is declared twice"),
        ([Plugin("a", operations=(operation(path="/v1/{x}"), operation(name="b", path="/v1/{y}")))], "share the route GET"),
        ([Plugin("a", operations=(operation(idempotency=Idempotency.CACHED),))], "can have no idempotency"),
        (
            [Plugin("a", operations=(operation(kind=Kind.WRITE, method="POST", idempotency=Idempotency.CANONICAL),))],
            "must say how its resource",
        ),
        ([Plugin("a", operations=(operation(kind=Kind.WRITE, method="POST", scope="public"),))], "must say which slot"),
        ([Plugin("a", subscribe={"x.y": print})], "subscribes to 'x.y'"),
        ([Plugin(name, restore={"note": Restore(View, print)}) for name in "ab"], "takes in records of kind 'note'"),
        ([Plugin("a", operations=(operation(),)), Plugin("b", replaces=(operation(),))], "replaces 'a.get', which no plugin it requires"),
        ([Plugin("a", replaces=(operation(),))], "replaces 'a.get', which no plugin it requires"),
        ([Plugin("a", events=(Event("x.y", View), Event("x.y", View)))], "event 'x.y' is declared twice"),
    ],
)
def test_inconsistent_sets_are_refused(plugins: list[Plugin], says: str) -> None:
    with pytest.raises(RegistryError, match=says.replace(".", r"\.").replace("(", r"\(")):
        Registry.build(plugins)


def test_an_operation_is_given_a_fuller_form_by_a_plugin_above() -> None:
    fuller = operation(summary="more")
    registry = Registry.build([Plugin("b", requires=("a",), replaces=(fuller,)), Plugin("a", operations=(operation(),))])
    assert registry.operations["a.get"] is fuller and len(registry.operations) == 1
    twice = [Plugin(name, requires=("a",), replaces=(fuller,)) for name in ("b", "c")]
    with pytest.raises(RegistryError, match=r"replacement 'a\.get' is declared twice"):
        Registry.build([Plugin("a", operations=(operation(),)), *twice])


def test_tables_of_indexes_are_tables_of_the_registry() -> None:
    registry = Registry.build([example_plugin()])
    assert {table.name for table in registry.indexes["bookmark_labels"].tables} <= set(registry.tables)
    with pytest.raises(TypeError):
        registry.operations["new"] = operation()


def test_retries_wait_longer_each_time_up_to_a_bound() -> None:
    retry = RetryStrategy(base_ms=100, factor=2, max_ms=1_000, jitter=0.1)
    assert [retry.wait_ms(n, 0.0) for n in (1, 2, 3, 4, 5, 50)] == [100, 200, 400, 800, 1_000, 1_000]
    assert retry.wait_ms(1, 0.99) in range(100, 111)
