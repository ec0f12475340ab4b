"""The knowledge graph: entities and claims on two clocks, what contradicts, what vanishes with its
sources, and the figures.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.graph.limits import ENDS_PER_CLAIM_ITEMS_MAX
from plugins.graph.rows import RELATIONSHIPS
from runtime.timestamps import iso
from tests.support.graph_harness import GraphHarness


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GraphHarness]:
    world = GraphHarness(tmp_path)
    yield world
    world.close()


# --- entities -------------------------------------------------------------------------------------


def test_an_entity_is_one_whatever_its_name_is_written_like(world: GraphHarness) -> None:
    first = world(
        "graph.entities.create",
        {"name": "Ada  Lovelace", "type": "person", "attributes": {"born": 1815}},
    )
    again = world(
        "graph.entities.create",
        {
            "name": "ADA\u00a0lovelace",
            "type": "person",
            "aliases": ["Countess"],
            "attributes": {"x": 1},
        },
    )
    assert (first.status, again.status) == (201, 200)
    assert again.body["id"] == first.body["id"] and again.body["name"] == "Ada  Lovelace"
    assert again.body["aliases"] == ["Countess"] and again.body["attributes"] == {
        "born": 1815,
        "x": 1,
    }
    assert again.body["primary"]["sequence"] > first.body["primary"]["sequence"]
    by_alias = world("graph.entities.get", entity_name="countess")
    assert by_alias.body["entity"]["id"] == first.body["id"]
    assert (
        world("graph.entities.get", entity_name=first.body["id"]).body["entity"]["normalized_name"]
        == "ada lovelace"
    )


def test_the_same_name_may_be_two_things(world: GraphHarness) -> None:
    person = world("graph.entities.create", {"name": "Paris", "type": "person"}).body["id"]
    place = world("graph.entities.create", {"name": "Paris", "type": "place"}).body["id"]
    assert person != place
    assert (
        world("graph.entities.list", query={"entity_type": "place"}).body["items"][0]["id"] == place
    )
    assert world("graph.entities.list", query={"name_prefix": "PAR"}).body["total_count"] == 2
    assert world("graph.entities.list", query={"name_prefix": "Z"}).body["items"] == []


@pytest.mark.parametrize("in_body", [True, False])
def test_a_relationship_to_delete_is_named_once(world: GraphHarness, in_body: bool) -> None:
    one, other = (
        {"relationship_id": world.relate("Ada", "knows", name)["id"]} for name in ("Bo", "Cy")
    )
    delete = "graph.relationships.delete"
    for body, query, kind in (({}, None, "missing"), (one, other, "value_error")):
        refused = world(delete, body, query=query)
        assert (refused.status, refused.body["details"][0]["type"]) == (422, kind)
        assert refused.body["details"][0]["loc"] == ["body", "relationship_id"]
    body, query = (one, None) if in_body else ({}, one)
    assert world(delete, body, query=query).body == {"id": one["relationship_id"], "deleted": True}
    assert world(delete, other, query=other).status == 200


def test_deleting_an_entity_takes_its_relationships(world: GraphHarness) -> None:
    made = world.relate("Ada", "knows", "Charles")
    assert [entity["name"] for entity in made["created_entities"]] == ["Ada", "Charles"]
    assert world("graph.entities.delete", entity_name="ada").body == {
        "id": made["source"]["id"],
        "deleted": True,
    }
    assert world("graph.entities.delete", entity_name="ada").status == 404
    assert world("graph.relationships.delete", {"relationship_id": made["id"]}).status == 404
    assert world("graph.entities.get", entity_name="Charles").body["relationships"] == []


# --- claims on two clocks -------------------------------------------------------------------------


def test_a_name_that_several_go_by_deletes_none_of_them(world: GraphHarness) -> None:
    city, planet = (
        world("graph.entities.create", {"name": "Mercury", "type": kind}).body["id"]
        for kind in ("city", "planet")
    )
    alias = {"name": "Hermes", "type": "god", "aliases": ["mercury"]}
    god = world("graph.entities.create", alias).body["id"]
    refused = world("graph.entities.delete", entity_name="mercury")
    assert refused.status == 409
    assert all(each in refused.body["message"] for each in (city, planet, god))
    for each in (city, planet):
        assert world("graph.entities.delete", entity_name=each).body["id"] == each
    assert world("graph.entities.delete", entity_name="mercury").body["id"] == god
    assert world("graph.entities.delete", entity_name="mercury").status == 404


def test_the_same_relationship_again_is_the_same(world: GraphHarness) -> None:
    first = world(
        "graph.relationships.create",
        {"source": "Ada", "type": "knows", "target": "Charles", "attributes": {"a": 1}},
    )
    again = world(
        "graph.relationships.create",
        {"source": "ada", "type": "knows", "target": "CHARLES", "attributes": {"b": 2}},
    )
    assert (first.status, again.status) == (201, 200)
    assert again.body["id"] == first.body["id"] and again.body["attributes"] == {"a": 1, "b": 2}
    other = world(
        "graph.relationships.create",
        {"source": "Ada", "type": "knows", "target": "Charles", "valid_from": "2020-01-01"},
    )
    assert other.status == 201 and other.body["id"] != first.body["id"]


def test_both_clocks_are_asked(world: GraphHarness) -> None:
    before = iso(world.harness.now_ms)
    world.relate("Ada", "lives_in", "Lisbon", valid_from="2020-01-01")
    between = iso(world.harness.now_ms)
    world.relate("Ada", "lives_in", "Oslo", valid_from="2023-05-01", close_previous=True)
    assert world.targets("Ada") == ["Oslo"]
    assert world.targets("Ada", valid_at="2023-04-15") == ["Lisbon"]
    assert world.targets("Ada", timestamp="2019-01-01") == []
    assert world.targets("Ada", known_at=before) == []
    # Before we heard of the move, she lived in Lisbon, and still did in June.
    assert world.targets("Ada", known_at=between, valid_at="2023-06-01") == ["Lisbon"]
    assert world.targets("Ada", between=["2023-04-01", "2023-06-01"]) == ["Lisbon", "Oslo"]
    assert world.targets("Ada", between=["2023-05-01", "2023-06-01"]) == ["Oslo"], (
        "an end is exclusive"
    )


def test_a_timeline_runs_in_order_and_in_pages(world: GraphHarness) -> None:
    for year, town in ((2020, "Oslo"), (2010, "Lisbon"), (2015, "Porto")):
        world.relate(
            "Ada", "lives_in", town, valid_from=f"{year}-01-01", valid_to=f"{year + 5}-01-01"
        )
    world.relate("Ada", "knows", "Charles")
    names, cursor = [], None
    while True:
        page = world(
            "graph.timeline",
            query={"limit": 2, "cursor": cursor} if cursor else {"limit": 2},
            entity_name="Ada",
        ).body
        names += [item["target"]["name"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == ["Charles", "Lisbon", "Porto", "Oslo"] and page["total_count"] == 4
    assert (
        world("graph.timeline", query={"relation_type": "knows"}, entity_name="Ada").body[
            "total_count"
        ]
        == 1
    )


def test_questions_go_as_deep_as_they_say(world: GraphHarness) -> None:
    for source, target in (("a", "b"), ("b", "c"), ("c", "d"), ("x", "y")):
        world.relate(source, "next_to", target)
    assert world.targets("a") == ["b"]
    assert world.targets("a", depth=2) == ["b", "c"]
    assert world.targets("d", depth=3) == ["b", "c", "d"], "ways lead in both directions"
    assert world.targets("a", depth=3, target="c") == ["b", "c"]
    assert world.targets("a", depth=1, target="c") == []
    assert (
        world("graph.query", {"relation_type": "next_to", "limit": 2}).body["relationships"][0][
            "source"
        ]["name"]
        == "x"
    )
    assert world("graph.query", {"entity": "nobody"}).status == 404


# --- contradictions -------------------------------------------------------------------------------


def test_ways_between_two_leave_dead_ends_out(world: GraphHarness) -> None:
    for source, target in (("Ada", "Bob"), ("Ada", "Cy"), ("Cy", "Bob"), ("Ada", "Dee")):
        world.relate(source, "knows", target)
    world.relate("Dee", "knows", "Eve")
    asked = {"entity": "Ada", "target": "Bob", "depth": 5}
    found = world("graph.query", asked).body["relationships"]
    assert {(each["source"]["name"], each["target"]["name"]) for each in found} == {
        ("Ada", "Bob"),
        ("Ada", "Cy"),
        ("Cy", "Bob"),
    }


def test_contradictions_of_a_collection_are_those_of_its_entities_too(world: GraphHarness) -> None:
    work = world("collections.create", {"name": "work"}).body["id"]
    world("graph.entities.create", {"name": "Ada", "collection_id": work})
    for place in ("Lisbon", "Oslo"):
        world.relate("Ada", "lives_in", place)
        world.relate("Bob", "lives_in", place)
    found = world("graph.contradictions", query={"collection_id": work}).body
    assert found["total_count"] == 1 and "Ada" in str(found["items"])


def test_functional_claims_that_overlap_contradict_each_other(world: GraphHarness) -> None:
    memory = world.remember("Ada lives in Oslo, I am sure.")
    world.relate("Ada", "lives_in", "Lisbon", valid_from="2020-01-01")
    world.relate("Ada", "lives_in", "Oslo", valid_from="2023-05-01", source_memory_id=memory)
    world.relate("Ada", "knows", "Charles")
    world.relate("Ada", "knows", "Mary")
    found = world("graph.contradictions").body
    assert found["total_count"] == 1 == world.stats()["contradictions"]
    (item,) = found["items"]
    assert (item["subject"], item["predicate"]) == ("Ada", "lives_in")
    assert [claim["value"] for claim in item["claims"]] == ["Lisbon", "Oslo"]
    assert (
        item["claims"][1]["quote"] == "Ada lives in Oslo, I am sure."
        and item["claims"][1]["memory_id"] == memory
    )
    assert item["overlap"] == {"from": "2023-05-01T00:00:00.000Z", "to": None}
    assert item["resolution"]["kept"] == item["claims"][1]["relationship_id"]
    assert world("graph.contradictions", query={"entity": "Charles"}).body["items"] == []
    assert world("graph.contradictions", query={"memory_id": memory}).body["total_count"] == 1


def test_a_contradiction_ends_with_one_of_its_sides(world: GraphHarness) -> None:
    lisbon = world.relate("Ada", "lives_in", "Lisbon")
    world.relate("Ada", "lives_in", "Oslo")
    assert world.stats()["contradictions"] == 1
    world("graph.relationships.delete", query={"relationship_id": lisbon["id"]}, body={})
    assert world.stats()["contradictions"] == 0
    world.relate("Ada", "favourite", "blue", functional=True)
    world.relate(
        "Ada", "favourite", "red", functional=True, close_previous=True, valid_from="2024-01-01"
    )
    assert world("graph.contradictions").body["total_count"] == 0


def test_what_follows_without_a_beginning_begins_now(world: GraphHarness) -> None:
    world.relate("Ada", "lives_in", "Lisbon")
    oslo = world.relate("Ada", "lives_in", "Oslo", close_previous=True)
    assert oslo["valid_from"] is not None and world("graph.contradictions").body["items"] == []
    assert world.relate("Ada", "lives_in", "Oslo", close_previous=True)["id"] == oslo["id"]
    back = world.relate("Ada", "lives_in", "Lisbon", close_previous=True)
    assert back["closed"] == [oslo["id"]] and world.targets("Ada") == ["Lisbon"]
    again = world.relate("Ada", "lives_in", "Lisbon", close_previous=True)
    assert (again["id"], again["closed"]) == (back["id"], [])
    assert world("graph.contradictions").body["items"] == []


def test_what_was_ended_by_what_a_memory_says_is_open_again_once_that_is_gone(
    world: GraphHarness,
) -> None:
    world.relate("Ada", "lives_in", "Lisbon")
    said = world.remember("Ada has moved.")
    moved = {"valid_from": "2025-01-01", "source_memory_id": said, "close_previous": True}
    world.relate("Ada", "lives_in", "Oslo", **moved)
    assert world.targets("Ada") == ["Oslo"]
    world("memories.update", {"content": "Ada has moved to Oslo.", "wait_for_index": True}, id=said)
    assert world.targets("Ada") == ["Oslo"], "what was entered is not read from the text"
    world("memories.delete", id=said)
    assert world.targets("Ada") == ["Lisbon"]
    (lisbon,) = world("graph.timeline", entity_name="Ada").body["items"]
    assert lisbon["valid_to"] is None


def test_what_follows_and_is_over_has_no_beginning_after_its_end(world: GraphHarness) -> None:
    world.relate("Ada", "lives_in", "Lisbon")
    over = world.relate("Ada", "lives_in", "Oslo", close_previous=True, valid_to="2020-01-01")
    assert over["valid_from"] is None


def test_what_may_be_several_at_a_time_ends_nothing(world: GraphHarness) -> None:
    world.relate("Ada", "likes", "tea", functional=False)
    coffee = world.relate("Ada", "likes", "coffee", functional=False, close_previous=True)
    assert coffee["closed"] == [] and world.targets("Ada") == ["coffee", "tea"]


def test_a_claim_remembers_the_ends_it_was_given_last(world: GraphHarness) -> None:
    said = {"source": "Ada", "type": "lives_in", "target": "Oslo"}
    for day in range(3):
        for year in range(1, 400):
            body = {**said, "valid_to": f"{2000 + day}-01-01T00:00:00.{year:03d}Z"}
            assert world("graph.relationships.create", body).status in (200, 201)
    body = world("graph.relationships.create", said).body
    assert body["valid_to"] == "2002-01-01T00:00:00.399Z"
    with world.harness.shard.store.snapshot() as snapshot:
        claims = snapshot.bind(RELATIONSHIPS, world.harness.scope_of(world.me))
        (row,) = [row for _, row in claims.scan()]
    assert len(row.ends) == ENDS_PER_CLAIM_ITEMS_MAX


def test_what_grows_too_large_by_merging_is_refused(world: GraphHarness) -> None:
    large = {"name": "Ada", "attributes": {"first": "x" * 9_000}}
    assert world("graph.entities.create", large).status == 201
    refused = world("graph.entities.create", {**large, "attributes": {"second": "x" * 9_000}})
    assert (refused.status, refused.body["details"][0]["loc"]) == (422, ["body", "attributes"])
    told = {"source": "Ada", "type": "knows", "target": "Mary", "attributes": large["attributes"]}
    assert world("graph.relationships.create", told).status == 201
    told["attributes"] = {"second": "x" * 9_000}
    assert world("graph.relationships.create", told).status == 422
    names = {"name": "Ada", "aliases": [f"A{number}" for number in range(60)]}
    assert world("graph.entities.create", names).status == 200
    names["aliases"] = [f"B{number}" for number in range(5)]
    refused = world("graph.entities.create", names)
    assert (refused.status, refused.body["details"][0]["loc"]) == (422, ["body", "aliases"])


# --- sources --------------------------------------------------------------------------------------


def test_what_only_a_memory_said_goes_with_it(world: GraphHarness) -> None:
    one, other = (
        world.remember("Ada knows Charles."),
        world.remember("Ada met Charles again, and Mary."),
    )
    world.relate("Ada", "knows", "Charles", source_memory_id=one)
    world.relate("Ada", "knows", "Charles", source_memory_id=other)
    world.relate("Ada", "knows", "Mary", source_memory_id=other)
    assert world("graph.entities.get", entity_name="Ada").body["entity"]["mention_count"] == 2
    assert len(world("graph.entities.get", entity_name="Ada").body["source_memories"]) == 2
    world("memories.delete", id=other)
    assert world.targets("Ada") == ["Charles"]
    assert world("graph.entities.get", entity_name="Mary").status == 404
    world("memories.delete", id=one)
    assert world("graph.entities.get", entity_name="Ada").status == 404
    assert world.stats() | {"updated_at": None} == {
        "entities": 0, "relationships": 0, "entities_by_type": {}, "relationships_by_type": {},
        "contradictions": 0, "average_degree": 0.0, "max_degree": 0, "components": 0,
        "updated_at": None,
    }  # fmt: skip


def test_what_was_entered_of_a_memory_outlives_its_edits_and_goes_with_it(
    world: GraphHarness,
) -> None:
    memory = world.remember("A note about the two of them.")
    entered = world.relate("Ada", "knows", "Charles", source_memory_id=memory)
    for text in ("Rewritten.", "Once more."):
        world("memories.update", {"content": text}, id=memory)
        (claim,) = world("graph.query", {"entity": "Ada"}).body["relationships"]
        assert (claim["id"], claim["source_memory_id"]) == (entered["id"], memory)
        details = world("graph.entities.get", entity_name="Ada").body
        assert details["entity"]["mention_count"] == 1
        assert [source["content"] for source in details["source_memories"]] == [text]
    world("memories.delete", id=memory)
    assert world("graph.entities.get", entity_name="Ada").status == 404


def test_what_was_asked_for_stays(world: GraphHarness) -> None:
    memory = world.remember("Ada knows Charles.")
    world.relate("Ada", "knows", "Charles", source_memory_id=memory)
    world.relate("Ada", "knows", "Charles")
    world("memories.delete", id=memory)
    assert world.targets("Ada") == ["Charles"]


def test_a_dropped_collection_is_out_of_the_graph_at_once(world: GraphHarness) -> None:
    collection = world("collections.create", {"name": "work"}).body["id"]
    memory = world(
        "memories.create", {"content": "Ada knows Charles.", "collection_id": collection}
    ).body["id"]
    world.relate("Ada", "knows", "Charles", source_memory_id=memory)
    world("graph.entities.create", {"name": "Engine", "collection_id": collection})
    world("collections.delete", id=collection)
    assert world("graph.entities.list").body["items"] == []
    assert world("graph.entities.get", entity_name="Engine").status == 404
    assert world("graph.query", {}).body["relationships"] == []


def test_what_was_made_in_a_dropped_collection_stays_away(world: GraphHarness) -> None:
    collection = world("collections.create", {"name": "work"}).body["id"]
    for name in ("Engine", "Ada"):
        world("graph.entities.create", {"name": name, "collection_id": collection})
    world.relate("Engine", "is_of", "Brass")
    elsewhere = world.remember("Ada knows Charles.")
    world.relate("Ada", "knows", "Charles", source_memory_id=elsewhere)
    world("collections.delete", id=collection)
    world.harness.settle()
    names = sorted(item["name"] for item in world("graph.entities.list").body["items"])
    assert names == ["Ada", "Brass", "Charles"]
    assert world("graph.entities.get", entity_name="Engine").status == 404
    assert world("graph.entities.get", entity_name="Ada").body["entity"]["collection_id"] is None
    assert world.targets("Ada") == ["Charles"]
    world("memories.delete", id=elsewhere)
    world.harness.settle()
    assert [item["name"] for item in world("graph.entities.list").body["items"]] == ["Brass"]


# --- figures --------------------------------------------------------------------------------------


def counted(edges: list[tuple[str, str]], nodes: set[str]) -> tuple[int, int]:
    """(components, largest degree) by looking at everything."""
    left, components = set(nodes), 0
    while left:
        components += 1
        front = {left.pop()}
        while front:
            reached = {b for a, b in edges if a in front} | {a for a, b in edges if b in front}
            front = reached & left
            left -= front
    degrees = [
        sum((a == node) + (b == node) - (a == b == node) for a, b in edges) for node in nodes
    ]
    return components, max(degrees, default=0)


def merged(
    claims: dict[str, tuple[str, str, str]], gone: str, stays: str
) -> dict[str, tuple[str, str, str]]:
    """The claims when one entity is another: what both say is said once, by the one that stays."""
    after = {found: says for found, says in claims.items() if gone not in says}
    for found, (source, kind, target) in claims.items():
        says = (stays if source == gone else source, kind, stays if target == gone else target)
        is_between = source != target and says[0] == says[2]
        if found not in after and not is_between and says not in after.values():
            after[found] = says
    return after


@pytest.mark.parametrize("seed", range(4))
def test_figures_are_what_counting_gives(world: GraphHarness, seed: int) -> None:
    chance = random.Random(seed)
    names = [f"n{i}" for i in range(9)]
    claims: dict[str, tuple[str, str, str]] = {}
    nodes: set[str] = set()
    for _ in range(60):
        if claims and chance.random() < 0.45:
            chosen = chance.choice(sorted(claims))
            del claims[chosen]
            assert world("graph.relationships.delete", {"relationship_id": chosen}).status == 200
        elif nodes and chance.random() < 0.1:
            doomed = chance.choice(sorted(nodes))
            nodes.discard(doomed)
            claims = {found: says for found, says in claims.items() if doomed not in says}
            assert world("graph.entities.delete", entity_name=doomed).status == 200
        elif len(nodes) > 1 and chance.random() < 0.15:
            gone, stays = chance.sample(sorted(nodes), 2)
            assert world("graph.entities.merge", {"into": stays}, entity_name=gone).body["complete"]
            nodes.discard(gone)
            names = [name for name in names if name != gone]
            claims = merged(claims, gone, stays)
        else:
            source, target = chance.choice(names), chance.choice(names)
            kind = chance.choice(("knows", "likes"))
            claims[world.relate(source, kind, target)["id"]] = (source, kind, target)
            nodes |= {source, target}
        stats = world.stats()
        ends = [(source, target) for source, _, target in claims.values()]
        components, degree = counted(ends, nodes)
        assert (stats["entities"], stats["relationships"]) == (len(nodes), len(claims))
        assert (stats["components"], stats["max_degree"]) == (components, degree)
        assert sum(stats["relationships_by_type"].values()) == len(claims)
