"""tenant → slot → shard."""

from __future__ import annotations

import pytest

from runtime.limits import SLOTS
from runtime.placement import normalise_email, shard_of_slot, slot_of_email, slots_of_shard


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64, 4096])
def test_every_slot_has_one_shard_and_loads_are_even(shards: int) -> None:
    owned = [slots_of_shard(shard, shards) for shard in range(shards)]
    assert [slot for slots in owned for slot in slots] == list(range(SLOTS))
    assert all(shard_of_slot(slot, shards) == shard for shard, slots in enumerate(owned) for slot in slots)
    sizes = {len(slots) for slots in owned}
    assert max(sizes) - min(sizes) <= 1


def test_spellings_of_an_address_share_a_slot() -> None:
    assert normalise_email("  Ada@Example.COM ") == "ada@example.com"
    assert normalise_email("ａda@example.com") == "ada@example.com"
    assert slot_of_email(" ADA@example.com") == slot_of_email("ada@EXAMPLE.com")


def test_addresses_spread_over_the_slots() -> None:
    used = {slot_of_email(f"user{i}@example.com") for i in range(20_000)}
    assert len(used) > 0.97 * SLOTS and max(used) < SLOTS
