"""Figures about the graph, kept up with every change instead of counted when somebody asks.

Counts are rows; the largest degree is the last row of a histogram. Components are kept exactly:
each entity carries the label of its component. A new link joins two components by giving the
smaller one the label of the larger, so an entity is relabelled at most log n times while a graph
grows. A link that goes is looked at from both ends in turns: the side that is seen whole first
without meeting the other is a component of its own, and it is the smaller one of the two.

    graph_figures     (figure, value)      -> FigureRow
    graph_nodes       (entity,)            -> NodeRow
    graph_links       (entity, other one)  -> count of standing claims between them, 4 bytes
    graph_components  (label, entity)      -> b""

Figures: entities, relationships, entity_type, relationship_type, degree, conflicts, components,
component_size, changed_at; and asked_for, which is counted where an account may have too many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from runtime.api.context import ReadContext, WriteContext
from runtime.timestamps import iso
from storage.store import Table

ASKED_FOR = "asked_for"


class NodeRow(msgspec.Struct, array_like=True):
    degree: int
    label: int


class FigureRow(msgspec.Struct):
    """of: the type that is counted, "" for none."""

    count: int
    of: str = ""


FIGURES: Table[FigureRow] = Table(
    "graph_figures", key=("figure", "value"), row=FigureRow, doc="counts of the graph"
)
NODES: Table[NodeRow] = Table(
    "graph_nodes", key=("entity",), row=NodeRow, doc="degree and component of an entity"
)
LINKS: Table[bytes] = Table(
    "graph_links",
    key=("entity", "other"),
    row=bytes,
    doc="standing claims between two entities, 4 bytes",
)
COMPONENTS: Table[bytes] = Table(
    "graph_components", key=("label", "entity"), row=bytes, doc="entities by component"
)
TABLES: tuple[Table, ...] = (FIGURES, NODES, LINKS, COMPONENTS)


def entity_came(ctx: WriteContext, entity: int, kind: str) -> None:
    _add(ctx, "entities", "", 1)
    _add(ctx, "entity_type", kind, 1)
    _add(ctx, "components", "", 1)
    label = ctx.next_ordinal("graph_components")
    _add(ctx, "component_size", label, 1)
    ctx[NODES].put((entity,), NodeRow(0, label))
    ctx[COMPONENTS].put((label, entity), b"")


def entity_went(ctx: WriteContext, entity: int, kind: str) -> None:
    """An entity without claims is removed."""
    _add(ctx, "entities", "", -1)
    _add(ctx, "entity_type", kind, -1)
    node = ctx[NODES].row(entity)
    ctx[COMPONENTS].delete(node.label, entity)
    _add(ctx, "component_size", node.label, -1)
    _add(ctx, "components", "", -1)
    ctx[NODES].delete(entity)


def entity_counts(ctx: WriteContext, kind: str, by: int) -> None:
    """A node of the graph becomes an entity (1), or is none any more (-1)."""
    _add(ctx, "entities", "", by)
    _add(ctx, "entity_type", kind, by)


def asked_for(ctx: ReadContext) -> int | None:
    """How many entities were made through the API, once that was counted (`asked_for_counted`)."""
    row = ctx[FIGURES].get(ASKED_FOR, "")
    return None if row is None else row.count


def asked_for_counted(ctx: WriteContext, count: int) -> None:
    ctx[FIGURES].put((ASKED_FOR, ""), FigureRow(count))


def asked_for_changed(ctx: WriteContext, by: int) -> None:
    """Count so many more entities that were made through the API; noted where they were counted."""
    count = asked_for(ctx)
    if count is not None:
        asked_for_counted(ctx, count + by)


def entity_retyped(ctx: WriteContext, before: str, after: str) -> None:
    _add(ctx, "entity_type", before, -1)
    _add(ctx, "entity_type", after, 1)


def claim_came(ctx: WriteContext, source: int, target: int, kind: str) -> None:
    _add(ctx, "relationships", "", 1)
    _add(ctx, "relationship_type", kind, 1)
    for end in {source, target}:
        _degree(ctx, end, 1)
    if source == target:
        return
    links = _links(ctx, source, target)
    _set_links(ctx, source, target, links + 1)
    if not links:
        _join(ctx, source, target)


def claim_went(ctx: WriteContext, source: int, target: int, kind: str) -> None:
    _add(ctx, "relationships", "", -1)
    _add(ctx, "relationship_type", kind, -1)
    for end in {source, target}:
        _degree(ctx, end, -1)
    if source == target:
        return
    links = _links(ctx, source, target) - 1
    _set_links(ctx, source, target, links)
    if not links:
        _part(ctx, source, target)


def conflicts_changed(ctx: WriteContext, by: int) -> None:
    _add(ctx, "conflicts", "", by)


def figures(ctx: ReadContext) -> dict[str, Any]:
    """Make the view of the graph's statistics."""
    entities, relationships = figure(ctx, "entities"), figure(ctx, "relationships")
    last = next(ctx[FIGURES].keys("degree", reverse=True, limit=1), None)
    changed = figure(ctx, "changed_at")
    return {
        "entities": entities,
        "relationships": relationships,
        "entities_by_type": _by_value(ctx, "entity_type"),
        "relationships_by_type": _by_value(ctx, "relationship_type"),
        "contradictions": figure(ctx, "conflicts"),
        "average_degree": round(2 * relationships / entities, 4) if entities else 0.0,
        "max_degree": last[1] if last is not None else 0,
        "components": figure(ctx, "components"),
        "updated_at": iso(changed) if changed else None,
    }


def figure(ctx: ReadContext, name: str, value: str | int = "") -> int:
    row = ctx[FIGURES].get(name, _stored(ctx, value))
    return 0 if row is None else row.count


def _by_value(ctx: ReadContext, name: str) -> dict[str, int]:
    return {row.of: row.count for _, row in ctx[FIGURES].scan(name)}


def _stored(ctx: ReadContext, value: str | int) -> str | int | bytes:
    """A type in a key is a digest."""
    return ctx.digest("figure", value) if value and isinstance(value, str) else value


def _add(ctx: WriteContext, name: str, value: str | int, by: int) -> None:
    """Change a count; one that reaches 0 has no row. Every change is also the last one."""
    key = (name, _stored(ctx, value))
    count = figure(ctx, name, value) + by
    if count:
        ctx[FIGURES].put(key, FigureRow(count, value if isinstance(value, str) else ""))
    else:
        ctx[FIGURES].delete(*key)
    ctx[FIGURES].put(("changed_at", ""), FigureRow(ctx.now))


def _degree(ctx: WriteContext, entity: int, by: int) -> None:
    node = ctx[NODES].row(entity)
    if node.degree:
        _add(ctx, "degree", node.degree, -1)
    node.degree += by
    if node.degree:
        _add(ctx, "degree", node.degree, 1)
    ctx[NODES].put((entity,), node)


def _links(ctx: ReadContext, one: int, other: int) -> int:
    raw = ctx[LINKS].get(one, other)
    return 0 if raw is None else int.from_bytes(raw, "big")


def _set_links(ctx: WriteContext, one: int, other: int, count: int) -> None:
    for key in ((one, other), (other, one)):
        if count:
            ctx[LINKS].put(key, count.to_bytes(4, "big"))
        else:
            ctx[LINKS].delete(*key)


def _join(ctx: WriteContext, one: int, other: int) -> None:
    labels = [ctx[NODES].row(entity).label for entity in (one, other)]
    if labels[0] == labels[1]:
        return
    small, large = sorted(labels, key=lambda label: figure(ctx, "component_size", label))
    _relabel(ctx, [key[1] for key in ctx[COMPONENTS].keys(small)], small, large)
    _add(ctx, "components", "", -1)


def _part(ctx: WriteContext, one: int, other: int) -> None:
    alone = _smaller_side(ctx, one, other)
    if alone is None:
        return
    _relabel(ctx, alone, ctx[NODES].row(one).label, ctx.next_ordinal("graph_components"))
    _add(ctx, "components", "", 1)


def _smaller_side(ctx: ReadContext, one: int, other: int) -> set[int] | None:
    """The side that is seen whole first, when no path joins the two; None when one does."""
    seen = ({one}, {other})
    walks = [_walk(ctx, entity, seen[side]) for side, entity in enumerate((one, other))]
    while True:
        for side in (0, 1):
            entity = next(walks[side], None)
            if entity is None:
                return seen[side]
            if entity in seen[1 - side]:
                return None


def _walk(ctx: ReadContext, start: int, seen: set[int]) -> Iterator[int]:
    """Every entity that can be reached from `start`, which is in `seen`, once."""
    front = [start]
    while front:
        following = []
        for entity in front:
            for _, neighbour in ctx[LINKS].keys(entity):
                if neighbour not in seen:
                    seen.add(neighbour)
                    following.append(neighbour)
                    yield neighbour
        front = following


def _relabel(ctx: WriteContext, entities: Any, before: int, after: int) -> None:
    for entity in entities:
        ctx[COMPONENTS].delete(before, entity)
        ctx[COMPONENTS].put((after, entity), b"")
        node = ctx[NODES].row(entity)
        node.label = after
        ctx[NODES].put((entity,), node)
    _add(ctx, "component_size", before, -len(entities))
    _add(ctx, "component_size", after, len(entities))
