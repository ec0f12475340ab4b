"""Paths to operations: a table of exact paths, and a tree of segments for the ones with parameters.

Owns what a request target means. A path that is written exactly as declared costs one dictionary
look-up; any other is split at its slashes, each segment is percent-decoded on its own (so `AC%2FDC`
is one name), and the tree is walked with literal segments before parameters: `/v1/memories/all` is
never the memory "all". The most specific path decides, and then its methods do: a method it lacks
is 405, even where a parameter route would have taken it. One trailing slash is accepted.

Invariant: nothing that could be read in two ways is routed. Empty segments, `.` and `..`, control
characters, broken percent-escapes and invalid UTF-8 are 404, however they are spelled. This module
knows nothing of headers or bodies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote_to_bytes

from runtime.errors import MethodNotAllowed, NotFound

Target = TypeVar("Target")

# Segments that are what they look like: unreserved characters, the first no dot.
_PLAIN = re.compile(rb"(?:/[\w~-][\w.~-]*)+/?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(slots=True)
class _Node(Generic[Target]):
    """One position in the tree; `methods` maps a method to its target and the names of the
    parameters on the way.
    """

    literals: dict[str, _Node[Target]] = field(default_factory=dict)
    parameter: _Node[Target] | None = None
    methods: dict[str, tuple[Target, tuple[str, ...]]] = field(default_factory=dict)


class Routes(Generic[Target]):
    """Built once from (method, path template, target); `find` is pure and fast."""

    def __init__(self, declared: Iterable[tuple[str, str, Target]]):
        self._root: _Node[Target] = _Node()
        self._exact: dict[bytes, _Node[Target]] = {}
        for method, template, target in declared:
            node, names = self._root, []
            for segment in template.split("/")[1:]:
                if segment.startswith("{"):
                    names.append(segment[1:-1])
                    node.parameter = node = node.parameter or _Node()
                else:
                    node = node.literals.setdefault(segment, _Node())
            node.methods[method] = (target, tuple(names))
            if not names:
                self._exact[template.encode()] = self._exact[template.encode() + b"/"] = node

    def find(self, method: str, raw_path: bytes) -> tuple[Target, dict[str, str]]:
        """The method and the undecoded path, without its query -> the target and its decoded
        parameters.

        A HEAD is answered by the GET of the same path. Raises NotFound and MethodNotAllowed.
        """
        values: tuple[str, ...] = ()
        node = self._exact.get(raw_path)
        if node is None:
            node, values = self._walk(_segments(raw_path))
        found = node.methods.get(method) or (node.methods.get("GET") if method == "HEAD" else None)
        if found is None:
            raise MethodNotAllowed(
                sorted({*node.methods, "HEAD"} if "GET" in node.methods else node.methods)
            )
        return found[0], dict(zip(found[1], values, strict=True))

    def _walk(self, segments: list[str]) -> tuple[_Node[Target], tuple[str, ...]]:
        found = _descend(self._root, segments, 0)
        if found is None:
            raise nothing_here()
        return found


def _descend(
    node: _Node[Target], segments: list[str], depth: int
) -> tuple[_Node[Target], tuple[str, ...]] | None:
    """The node of the remaining segments and the parameters on the way; as deep as the longest
    template at most.
    """
    if depth == len(segments):
        return (node, ()) if node.methods else None
    segment = segments[depth]
    literal = node.literals.get(segment)
    found = _descend(literal, segments, depth + 1) if literal is not None else None
    if found is None and node.parameter is not None:
        found = _descend(node.parameter, segments, depth + 1)
        if found is not None:
            return found[0], (segment, *found[1])
    return found


def nothing_here() -> NotFound:
    return NotFound(
        "There is nothing at this path. GET /openapi.json describes every path of this service."
    )


def _segments(raw_path: bytes) -> list[str]:
    """The decoded segments behind the leading slash. Raises NotFound for anything ambiguous."""
    if _PLAIN.fullmatch(raw_path):
        return raw_path.decode("ascii").strip("/").split("/")
    if not raw_path.startswith(b"/"):
        raise nothing_here()
    return [_decoded(segment) for segment in raw_path[1:].removesuffix(b"/").split(b"/")]


def _decoded(segment: bytes) -> str:
    try:
        text = unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise nothing_here() from None
    if text in ("", ".", "..") or _CONTROL.search(text) or _BROKEN_ESCAPE.search(segment):
        raise nothing_here()
    return text
