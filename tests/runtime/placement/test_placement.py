"""tenant → slot → shard, and how a placement changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from runtime.limits import SLOTS
from runtime.placement import (
    COPYING,
    ERASING,
    PLANNED,
    UNDOING,
    Attempt,
    Move,
    Place,
    Placement,
    PlacementError,
    balanced,
    evened,
)
from runtime.placement.placement import shard_of_slot
from runtime.tenancy import normalise_email, slot_of_email


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64, 4096])
def test_every_slot_has_one_shard_and_loads_are_even(shards: int) -> None:
    placement = Placement.even(shards)
    owned = [placement.slots_of(shard) for shard in range(shards)]
    assert [slot for slots in owned for slot in slots] == list(range(SLOTS))
    assert all(
        shard_of_slot(slot, shards) == shard for shard, slots in enumerate(owned) for slot in slots
    )
    sizes = {len(slots) for slots in owned}
    assert max(sizes) - min(sizes) <= 1


def test_a_placement_survives_being_written() -> None:
    placement = (
        Placement.even(3, "c")
        .planned([Move("a", (1, 2), 0, 2), Move("b", (4000,), 2, 1)])
        .begun("a", "t")
        .cut_over(Attempt("a", "t"))
    )
    placement = placement.placed({1: Place("n1"), 3: Place("n2", draining=True)})
    assert Placement.decode(placement.encode()) == placement
    assert (placement.version, len(placement.shards), placement.owners[1]) == (4, 4, 2)
    with pytest.raises(ValueError, match="each slot"):
        Placement.decode(
            placement.encode()
            .replace(b"[4000", b"[4001")
            .replace(b'"shards":[', b'"shards":[],"x":[')
        )


def test_a_move_ends_in_one_of_two_ways_and_slots_have_one_owner_throughout() -> None:
    before = Placement.even(2).planned([Move("a", (7, 9), 0, 1)])
    assert (before.move("a").state, before.owners[7], before.holds(1)) == (PLANNED, 0, True)
    first, second = Attempt("a", "first"), Attempt("a", "second")
    copying = before.begun("a", "first")
    assert (copying.move("a").state, copying.owners[7]) == (COPYING, 0)
    arrived = copying.cut_over(first)
    assert (arrived.move("a").state, arrived.owners[7], arrived.owners[8]) == (ERASING, 1, 0)
    assert arrived.ended(first).moves == ()
    given_up = copying.undone(first)
    assert (given_up.move("a").state, given_up.owners[7]) == (UNDOING, 0)
    again = given_up.planned_again(first)
    assert (again.move("a").state, again.move("a").attempts) == (PLANNED, 1)
    for wrong in (
        given_up.cut_over,
        arrived.undone,
        before.cut_over,
        copying.ended,
        arrived.ended(first).ended,
    ):
        with pytest.raises(PlacementError):
            wrong(first)
    with pytest.raises(PlacementError):
        copying.begun("a", "second")
    later = again.begun("a", "second")
    assert later.is_copying(second) and not later.is_copying(first)
    for change, placement in (
        ("cut_over", later),
        ("undone", later),
        ("ended", later.cut_over(second)),
        ("planned_again", later.undone(second)),
        ("hopeless", later.undone(second)),
        ("ended", again),
    ):
        with pytest.raises(PlacementError, match="another attempt"):
            getattr(placement, change)(first)


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (PLANNED, lambda placement, _: placement.begun("a", "t")),
        (
            COPYING,
            lambda placement, attempt: (
                placement.undone(attempt).planned_again(attempt).begun("a", "t")
            ),
        ),
        (ERASING, lambda placement, attempt: placement.ended(attempt)),
        (UNDOING, lambda placement, attempt: placement.planned_again(attempt)),
    ],
)
def test_moves_of_an_earlier_release_go_on(
    state: str, change: Callable[[Placement, Attempt], Placement]
) -> None:
    """They have no token; whoever finds them begins them, gives them up, or finishes them."""
    move = (
        b'{"id":"a","slots":[7],"source":0,"target":1,"state":"%b","attempts":1}' % state.encode()
    )
    stored = (
        b'{"version":4,"cluster_id":"c","shards":[{"node":"","draining":false},{}],"owners":[[0,0],'
        b'[2048,1]],"moves":[%b],"at":5}'
    )
    placement = Placement.decode(stored % move)
    assert placement.moves == (Move("a", (7,), 0, 1, state, 1, ""),)
    assert Placement.decode(placement.encode()) == placement
    assert change(placement, Attempt("a", "")).version > placement.version


@pytest.mark.parametrize(
    ("move", "why"),
    [
        (Move("b", (0,), 0, 0), "cannot move"),
        (Move("b", (0,), 0, 2), "cannot move"),
        (Move("b", (0,), 1, 0), "does not belong"),
        (Move("b", (SLOTS,), 0, 1), "does not belong"),
        (Move("b", (7,), 0, 1), "already"),
        (Move("b", (3, 3), 0, 1), "already"),
    ],
)
def test_a_move_that_makes_no_sense_is_refused(move: Move, why: str) -> None:
    placement = Placement.even(2).planned([Move("a", (7,), 0, 1)])
    with pytest.raises(PlacementError, match=why):
        placement.planned([move])


def test_shards_are_added_and_only_empty_ones_left_out() -> None:
    grown = Placement.even(2).resized(4)
    assert len(grown.shards) == 4 and not grown.holds(3)
    assert len(grown.resized(2).shards) == 2
    with pytest.raises(PlacementError, match="Shard 3 holds slots"):
        grown.planned([Move("a", (7,), 0, 3)]).begun("a", "t").cut_over(Attempt("a", "t")).ended(
            Attempt("a", "t")
        ).resized(3)


def test_a_plan_evens_out_and_empties() -> None:
    loads = {slot: 1.0 + slot % 7 for slot in range(200)}
    owners = dict.fromkeys(loads, 0)
    plan = balanced(loads, owners, [0, 1, 2, 3], 512)
    totals = [
        sum(load for slot, load in loads.items() if plan.get(slot, 0) == shard)
        for shard in range(4)
    ]
    assert max(totals) - min(totals) <= 7
    assert balanced(loads, {slot: plan.get(slot, 0) for slot in loads}, [0, 1, 2, 3], 512) == {}
    emptied = balanced(loads, owners, [1, 2], 512)
    assert set(emptied) == set(loads) and set(emptied.values()) == {1, 2}
    assert len(balanced(loads, owners, [0, 1], 5)) == 5
    assert balanced({1: 10.0}, {1: 0}, [0, 1], 5) == {}, (
        "one heavy slot gains nothing by going elsewhere"
    )


def test_slots_that_hold_nothing_are_shared_out() -> None:
    owners, loaded = dict.fromkeys(range(100), 0), set(range(10))
    plan = evened(loaded, owners, [0, 1, 2])
    counts = Counter((owners | plan).values())
    assert sorted(counts.values()) == [33, 33, 34]
    assert not loaded & plan.keys()
    assert evened(loaded, owners | plan, [0, 1, 2]) == {}
    assert evened(set(owners), owners, [0, 1]) == {}, "there is nothing to share"
    mixed = {slot: slot % 2 for slot in range(10)} | {10: 2, 11: 2}
    assert set(evened(set(), mixed, [0, 1]).values()) == set(), (
        "what leaves a shard has its own plan"
    )


def test_spellings_of_an_address_share_a_slot() -> None:
    assert normalise_email("  Ada@Example.COM ") == "ada@example.com"
    assert normalise_email("ａda@example.com") == "ada@example.com"
    assert slot_of_email(" ADA@example.com") == slot_of_email("ada@EXAMPLE.com")


def test_addresses_spread_over_the_slots() -> None:
    used = {slot_of_email(f"user{i}@example.com") for i in range(20_000)}
    assert len(used) > 0.97 * SLOTS and max(used) < SLOTS
