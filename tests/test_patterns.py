"""No regular expression of the tree takes time out of proportion to what it reads."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import regex

from plugins.ingestion.rules import SENTENCE_CHARS_MAX
from plugins.ingestion.rules.patterns import Language, Pattern, Rule
from tests.support.pumping import LENGTH, Probed, slow

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent
TREES = ("storage", "runtime", "plugins")
IN_ALL_OF_IT = frozenset(["search", "finditer", "findall", "sub", "subn", "split"])
ANCHORED = ("match", "fullmatch")

# How three patterns of the tree once read: the first doubles its time with each comment, the others
# square theirs.
ONCE = (
    Probed.of(
        "a page's head",
        re.compile(rb"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S),
        "match",
    ),
    Probed.of("the end of a sentence", re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s|[。！？।؟]|\n)\s*")),
    Probed.of(
        "a sentence",
        re.compile(r"[^\s].*?(?:[.!?…。！？]+[\"'”’)\]]*(?=\s|$)|(?=\n)|$)", re.DOTALL),
    ),
)


def test_the_check_notices_slow_patterns() -> None:
    harmless = Probed.of("words", re.compile(r"\w+\s*"))
    assert set(slow([*ONCE, harmless])) == {one.name for one in ONCE}


def test_every_pattern_takes_time_in_proportion_to_what_it_reads() -> None:
    probed = _patterns_of_the_tree()
    assert len(probed) > 100
    assert slow(probed) == {}


def _patterns_of_the_tree() -> list[Probed]:
    """Each pattern that a module holds, or gives to a function of `re` as a constant."""
    methods: dict[tuple[Path | None, str], set[str]] = {}  # by file where the name is private
    found: dict[tuple[Any, ...], Probed] = {}
    sources = {
        path: ast.parse(path.read_text())
        for tree in TREES
        for path in sorted((ROOT / tree).rglob("*.py"))
    }
    for path, tree in sources.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                methods.setdefault(_asked_at(path, owner), set()).add(node.attr)
    for path, tree in sources.items():
        if path.stem == "__main__":
            continue
        module = importlib.import_module(
            ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        )
        held = [
            *_held(module),
            *((f"{module.__name__}:{line}", pattern, LENGTH) for line, pattern in _inline(tree)),
        ]
        for name, pattern, length in held:
            known = methods.get(_asked_at(path, name.rsplit(".", 1)[-1]), set())
            anchored = not known & IN_ALL_OF_IT and [
                method for method in ANCHORED if method in known
            ]
            one = Probed.of(name, pattern, anchored[0] if anchored else "finditer", length)
            found.setdefault((one.source, one.flags, one.method, one.length), one)
    return list(found.values())


def _asked_at(path: Path, name: str) -> tuple[Path | None, str]:
    """Where a name's methods are noted: two files may each have a private name of their own."""
    return (path if name.startswith("_") else None), name


def _held(module: ModuleType) -> Iterator[tuple[str, Any, int]]:
    seen: set[int] = set()
    for name, value in vars(module).items():
        if not name.startswith("__"):
            yield from _within(f"{module.__name__}.{name}", value, LENGTH, seen)


def _within(name: str, value: Any, length: int, seen: set[int]) -> Iterator[tuple[str, Any, int]]:
    """(name, pattern, the longest string it sees) of each pattern in a value."""
    if isinstance(value, re.Pattern | regex.Pattern):
        yield name, value, length
        return
    if isinstance(value, str | bytes | type) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Language | Rule):
        length = SENTENCE_CHARS_MAX  # the rules engine holds these against one clause
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        parts = [*value.items(), *((key, key) for key in value)]
    elif isinstance(value, tuple | list | AbstractSet):
        parts = list(enumerate(value))
    elif dataclasses.is_dataclass(value):
        parts = [
            (field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)
        ]
        parts += [("compiled", value.compiled)] if isinstance(value, Pattern) else []
    for key, part in parts:
        yield from _within(
            f"{name}[{key!r}]" if not dataclasses.is_dataclass(value) else f"{name}.{key}",
            part,
            length,
            seen,
        )


def _inline(tree: ast.Module) -> Iterator[tuple[int, re.Pattern[Any]]]:
    """(line, pattern) of calls such as re.split("…", text)."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=asked),
                args=[ast.Constant(value=source), *_],
            ):
                if asked in {*IN_ALL_OF_IT, *ANCHORED}:
                    yield node.lineno, re.compile(source)
