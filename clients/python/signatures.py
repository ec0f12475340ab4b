"""Arguments as a signature and a docstring; generate.py writes them down."""

from __future__ import annotations

import keyword
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from schemas import Json

DOC_COLUMNS = 92
OVERLAPS = "# type: ignore[overload-overlap]"


@dataclass(frozen=True)
class Argument:
    name: str
    annotation: str
    about: str
    default: str | None = None
    by_position: bool = False

    @property
    def python(self) -> str:
        return self.name + "_" if keyword.iskeyword(self.name) else self.name

    def declared(self) -> str:
        return f"{self.python}: {self.annotation}" + (
            f" = {self.default}" if self.default is not None else ""
        )


def docstring(paragraphs: list[str], arguments: list[Argument], indent: int) -> str:
    """A docstring with a table of arguments under its paragraphs."""
    space, columns = " " * indent, DOC_COLUMNS - indent
    blocks = [
        textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)
        for text in paragraphs
        if text
    ]
    told = [a for a in arguments if a.about]
    width = max((len(a.python) for a in told), default=0)
    rows = [
        textwrap.fill(
            f"{a.python:{width}}  {a.about}",
            columns,
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for a in told
    ]
    blocks += ["\n".join(rows)] if rows else []
    text = "\n\n".join(blocks).replace("\\", "\\\\").replace('"""', "'''")
    return textwrap.indent(
        f'"""{text}' + ('\n"""' if "\n" in text else '"""'), space, lambda line: bool(line.strip())
    )


def signature(arguments: list[Argument]) -> str:
    """All that stands in the parentheses of a method."""
    positional = [a.declared() for a in arguments if a.by_position]
    named = [
        f"**{a.name.lstrip('*')}: {a.annotation}" if a.name.startswith("*") else a.declared()
        for a in arguments
        if not a.by_position
    ]
    return ", ".join(["self", *positional, "*", *named])


def overloads(
    arguments: list[Argument], returns: str, narrower: Json, define: str
) -> Iterator[str]:
    """The narrower signature of a method, and its own, which takes whatever is not known to be
    narrow.
    """
    changed = narrower["arguments"]
    narrow = [
        replace(a, annotation=changed[a.name][0], default=changed[a.name][1])
        if a.name in changed
        else a
        for a in arguments
        if a.name not in narrower["without"]
    ]
    yield "    @overload"
    yield f"{define}(  {OVERLAPS}\n{signature(narrow)}) -> {narrower['returns']}: ..."
    yield "    @overload"
    yield f"{define}({signature(arguments)}) -> {returns}: ..."


def starred_last(arguments: list[Argument]) -> list[Argument]:
    return [Argument(a.name.lstrip("*"), a.annotation, a.about) for a in arguments]
