"""Two entities become one by hand: names, claims on both clocks, sources, mentions, bounds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.graph import merging
from runtime.timestamps import iso
from tests.support.graph_harness import GraphHarness


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GraphHarness]:
    world = GraphHarness(tmp_path)
    yield world
    world.close()


def merge(world: GraphHarness, name: str, into: str) -> dict[str, Any]:
    answer = world("graph.entities.merge", {"into": into}, entity_name=name)
    assert answer.status == 200, answer
    return answer.body


def entity(world: GraphHarness, name: str) -> dict[str, Any]:
    return world("graph.entities.get", entity_name=name).body


def test_names_and_attributes_come_along_and_the_one_that_stays_has_the_first_word(
    world: GraphHarness,
) -> None:
    of_mei = {"name": "Mei", "type": "person", "attributes": {"age": 30, "city": "Oslo"}}
    of_lin = {"name": "Mei Lin", "aliases": ["M. Lin", "mei"], "attributes": {"age": 31, "pet": 1}}
    mei = world("graph.entities.create", of_mei).body
    lin = world("graph.entities.create", of_lin).body
    done = merge(world, "Mei Lin", into="Mei")
    assert done["complete"] and done["id"] == mei["id"] and done["type"] == "person"
    assert (done["name"], done["aliases"]) == ("Mei", ["Mei Lin", "M. Lin"])
    assert done["attributes"] == {"age": 30, "city": "Oslo", "pet": 1}
    assert done["primary"]["status"] == "committed"
    for name in ("mei", "Mei Lin", "M. Lin", mei["id"]):
        assert entity(world, name)["entity"]["id"] == mei["id"]
    assert world("graph.entities.get", entity_name=lin["id"]).status == 404
    assert world.stats()["entities"] == 1


def test_what_is_merged_already_stays_as_it_is(world: GraphHarness) -> None:
    world.relate("Mei Lin", "works_at", "Initech")
    world("graph.entities.create", {"name": "Mei"})
    merge(world, "Mei Lin", into="Mei")
    before = entity(world, "Mei")
    again = merge(world, "Mei Lin", into="Mei")
    assert (again["relationships_moved"], again["mentions_moved"], again["complete"]) == (
        0,
        0,
        True,
    )
    assert entity(world, "Mei") == before
    assert world("graph.entities.merge", {"into": "Mei"}, entity_name="Nobody").status == 404
    assert world("graph.entities.merge", {"into": "Nobody"}, entity_name="Mei").status == 404


def test_a_name_that_several_go_by_merges_none_of_them(world: GraphHarness) -> None:
    city, planet = (
        world("graph.entities.create", {"name": "Mercury", "type": kind}).body["id"]
        for kind in ("city", "planet")
    )
    god = {"name": "Hermes", "type": "god", "aliases": ["mercury"]}
    hermes = world("graph.entities.create", god).body["id"]
    other = world("graph.entities.create", {"name": "Wednesday"}).body["id"]
    for name, into in (("mercury", other), (other, "Mercury"), ("mercury", "mercury")):
        refused = world("graph.entities.merge", {"into": into}, entity_name=name)
        assert refused.status == 409, refused
        assert all(each in refused.body["message"] for each in (city, planet, hermes))
        assert world.stats()["entities"] == 4
    merge(world, city, into=planet)
    assert merge(world, "mercury", into="Hermes")["id"] == hermes, "the only other one of the name"
    assert merge(world, "mercury", into=other)["id"] == other


def test_relationships_keep_ids_and_both_clocks(world: GraphHarness) -> None:
    worked = world.relate("Mei Lin", "works_at", "Initech", valid_from="2020-01-01")
    known = world.relate("Ada", "knows", "Mei Lin")
    merge(world, "Mei Lin", into=world("graph.entities.create", {"name": "Mei"}).body["id"])
    moved = {claim["id"]: claim for claim in entity(world, "Mei")["relationships"]}
    assert set(moved) == {worked["id"], known["id"]}
    for before in (worked, known):
        for field in ("type", "valid_from", "recorded_at", "confidence", "functional"):
            assert moved[before["id"]][field] == before[field]
    assert moved[worked["id"]]["source"]["name"] == moved[known["id"]]["target"]["name"] == "Mei"
    assert world.targets("Ada") == ["Mei"] and world.targets("Mei") == ["Initech", "Mei"]
    assert world("graph.relationships.delete", {"relationship_id": known["id"]}).status == 200


def test_what_both_say_is_said_once_with_the_sources_and_ends_of_both(world: GraphHarness) -> None:
    one, other = (world.remember(f"Mei works at Initech, says {who}.") for who in ("Ada", "Bo"))
    begins = {"valid_from": "2020-01-01"}
    stays = world.relate("Mei", "works_at", "Initech", source_memory_id=one, **begins)
    before = iso(world.harness.now_ms)
    fields = {"valid_to": "2023-01-01", "confidence": 0.7, "attributes": {"desk": 4}, **begins}
    world.relate("Mei Lin", "works_at", "Initech", source_memory_id=other, **fields)
    merge(world, "Mei Lin", into="Mei")
    (claim,) = entity(world, "Mei")["relationships"]
    assert (claim["id"], claim["valid_to"]) == (stays["id"], "2023-01-01T00:00:00.000Z")
    assert claim["attributes"] == {"desk": 4} and world.stats()["relationships"] == 1
    assert world.targets("Mei", valid_at="2024-01-01") == []
    assert world.targets("Mei", valid_at="2024-01-01", known_at=before) == ["Initech"]
    world("memories.delete", id=one)
    assert len(entity(world, "Mei")["relationships"]) == 1  # the other memory says it too
    world("memories.delete", id=other)
    assert world("graph.relationships.delete", {"relationship_id": stays["id"]}).status == 404


def test_what_only_one_memory_knows_goes_with_it_after_a_merge(world: GraphHarness) -> None:
    memory = world.remember("Mei Lin left Initech in 2023.")
    fields = {"valid_to": "2023-01-01", "source_memory_id": memory}
    world.relate("Mei", "works_at", "Initech")
    world.relate("Mei Lin", "works_at", "Initech", **fields)
    merge(world, "Mei Lin", into="Mei")
    assert world.targets("Mei") == []
    world("memories.delete", id=memory)
    assert world.targets("Mei") == ["Initech"]  # nobody knows of an end any more


def test_a_relationship_between_the_two_goes_and_one_to_itself_stays(world: GraphHarness) -> None:
    world.relate("Mei Lin", "is", "Mei")
    world.relate("Mei Lin", "trusts", "Mei Lin")
    assert merge(world, "Mei Lin", into="Mei")["relationships_moved"] == 2
    (claim,) = entity(world, "Mei")["relationships"]
    assert (claim["source"]["name"], claim["type"], claim["target"]["name"]) == (
        "Mei",
        "trusts",
        "Mei",
    )


def test_contradictions_are_those_of_the_one_that_stays(world: GraphHarness) -> None:
    world.relate("Mei", "lives_in", "Oslo")
    world.relate("Mei Lin", "lives_in", "Lisbon")
    world.relate("Oslo town", "is_in", "Norway")
    assert world.stats()["contradictions"] == 0
    merge(world, "Mei Lin", into="Mei")
    (found,) = world("graph.contradictions").body["items"]
    assert {claim["value"] for claim in found["claims"]} == {"Oslo", "Lisbon"}
    merge(world, "Lisbon", into="Oslo")
    assert (
        world.stats()["contradictions"] == 0 and world("graph.contradictions").body["items"] == []
    )


def test_what_was_taken_back_is_known_of_the_one_that_stays(world: GraphHarness) -> None:
    memory = world.remember("Mei Lin lives in Oslo.")
    world.relate("Mei Lin", "lives_in", "Oslo", source_memory_id=memory)
    before = iso(world.harness.now_ms)
    newer = world.remember("Mei Lin lives in Rome.")
    assert world("superseding.mark", {"old": memory, "new": newer}).status == 200
    merge(world, "Mei Lin", into=world("graph.entities.create", {"name": "Mei"}).body["id"])
    assert world.targets("Mei") == [] and world.targets("Mei", known_at=before) == ["Oslo"]
    world("superseding.mark", {"old": memory, "back": True})
    assert world.targets("Mei") == ["Oslo"]


def test_mentions_count_for_the_one_that_stays_and_go_with_their_memories(
    world: GraphHarness,
) -> None:
    both = world.remember("Mei and Mei Lin were there.")
    only = world.remember("Mei Lin left.")
    for name, memory in (("Mei", both), ("Mei Lin", both), ("Mei Lin", only)):
        world.relate(name, "was_at", "home", source_memory_id=memory)
    assert merge(world, "Mei Lin", into="Mei")["mentions_moved"] == 2
    found = entity(world, "Mei")
    assert found["entity"]["mention_count"] == 2
    assert {source["memory_id"] for source in found["source_memories"]} == {both, only}
    world("memories.delete", id=only)
    assert entity(world, "Mei")["entity"]["mention_count"] == 1


def test_a_large_entity_is_merged_in_several_transactions(
    world: GraphHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "CLAIMS_MERGED_MAX", 2)
    monkeypatch.setattr(merging, "MENTIONS_MERGED_MAX", 1)
    memories = [world.remember(f"Mei Lin knows {name}.") for name in ("Ada", "Bo", "Cy")]
    for name, memory in zip(("Ada", "Bo", "Cy"), memories, strict=True):
        world.relate("Mei Lin", "knows", name, source_memory_id=memory)
    world("graph.entities.create", {"name": "Mei"})
    done = [merge(world, "Mei Lin", into="Mei") for _ in range(3)]
    assert [part["complete"] for part in done] == [False, False, True]
    assert [part["relationships_moved"] for part in done] == [2, 1, 0]
    assert [part["mentions_moved"] for part in done] == [1, 1, 1]
    assert done[-1]["mention_count"] == 3 and world.targets("Mei") == ["Ada", "Bo", "Cy"]
    assert entity(world, "Mei Lin")["entity"]["name"] == "Mei"
