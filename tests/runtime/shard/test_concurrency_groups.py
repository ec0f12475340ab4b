"""Groups take turns, and one that is full holds up nobody."""

from __future__ import annotations

from runtime.api.call import Due
from runtime.shard.concurrency_groups import ConcurrencyGroups


def due(job_id: str, group: str = "", run_at: int = 0) -> Due:
    return Due(run_at, 0, 1, job_id, group)


def taken(groups: ConcurrencyGroups) -> list[str]:
    """Everything that may run now."""
    found = []
    while (job := groups.take()) is not None:
        found.append(job.job_id)
    return found


def test_a_group_has_so_many_and_the_rest_waits_its_turn() -> None:
    groups = ConcurrencyGroups(own_at_once=3, group_at_once=2)
    for n in range(5):
        groups.put(due(f"own{n}"))
        groups.put(due(f"a{n}", "a", run_at=n))
    groups.put(due("b0", "b"))
    assert taken(groups) == ["own0", "own1", "own2", "a0", "b0", "a1"]
    groups.done(due("a1", "a"))
    groups.done(due("own1"))
    assert taken(groups) == ["own3", "a2"]
    assert (groups.waiting(), groups.oldest()) == (3, 0)
    assert groups.stats(now_ms=10) == {"open": 2, "running": 3, "waiting": 2, "oldest_age_ms": 7}


def test_accounts_take_turns_within_a_group() -> None:
    for group in ("", "a"):
        groups = ConcurrencyGroups(own_at_once=1, group_at_once=1)
        for n in range(1000):
            groups.put(due(f"many{n}", group)._replace(tenant=1))
        groups.put(due("one", group, run_at=5)._replace(tenant=2))
        ran = []
        for _ in range(4):
            (job_id,) = taken(groups)
            groups.done(due(job_id, group))
            ran.append(job_id)
        assert ran == ["many0", "one", "many1", "many2"]
        assert (groups.waiting(), groups.oldest()) == (997, 0)
        groups.put(due("elsewhere", group)._replace(slot=3))
        assert [job.job_id for job in groups.remove({3})] == ["elsewhere"]
        assert groups.waiting() == 997


def test_all_lanes_together_have_so_many_and_still_take_turns() -> None:
    groups = ConcurrencyGroups(own_at_once=1, group_at_once=2, groups_max=3)
    for group in "abc":
        for n in range(3):
            groups.put(due(f"{group}{n}", group))
    assert taken(groups) == ["a0", "b0", "c0"]
    groups.put(due("own"))
    groups.done(due("c0", "c"))
    assert taken(groups) == ["own", "a1"], "the shard's own jobs need no room among the groups"
    groups.done(due("a0", "a"))
    assert taken(groups) == ["b1"]


def test_a_group_that_is_empty_is_forgotten_and_comes_back() -> None:
    groups = ConcurrencyGroups(own_at_once=1)
    for _ in range(2):
        groups.put(due("a0", "a"))
        assert taken(groups) == ["a0"]
        groups.done(due("a0", "a"))
        assert groups.stats(now_ms=0)["open"] == 0
