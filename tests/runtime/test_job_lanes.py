"""Lanes take turns, and one that is full holds up nobody."""

from __future__ import annotations

from runtime.job_lanes import Due, JobLanes


def due(job_id: str, lane: str = "", run_at: int = 0) -> Due:
    return Due(run_at, 0, 1, job_id, lane)


def taken(lanes: JobLanes) -> list[str]:
    """Everything that may run now."""
    found = []
    while (job := lanes.take()) is not None:
        found.append(job.job_id)
    return found


def test_a_lane_has_so_many_and_the_rest_waits_its_turn() -> None:
    lanes = JobLanes(own_at_once=3, lane_at_once=2)
    for n in range(5):
        lanes.put(due(f"own{n}"))
        lanes.put(due(f"a{n}", "a", run_at=n))
    lanes.put(due("b0", "b"))
    assert taken(lanes) == ["own0", "own1", "own2", "a0", "b0", "a1"]
    lanes.done(due("a1", "a"))
    lanes.done(due("own1"))
    assert taken(lanes) == ["own3", "a2"]
    assert (lanes.waiting(), lanes.oldest()) == (3, 0)
    assert lanes.stats(now_ms=10) == {"open": 2, "running": 3, "waiting": 2, "oldest_age_ms": 7}


def test_all_lanes_together_have_so_many_and_still_take_turns() -> None:
    lanes = JobLanes(own_at_once=1, lane_at_once=2, lanes_max=3)
    for lane in "abc":
        for n in range(3):
            lanes.put(due(f"{lane}{n}", lane))
    assert taken(lanes) == ["a0", "b0", "c0"]
    lanes.put(due("own"))
    lanes.done(due("c0", "c"))
    assert taken(lanes) == ["own", "a1"], "the shard's own jobs need no room among the lanes"
    lanes.done(due("a0", "a"))
    assert taken(lanes) == ["b1"]


def test_a_lane_that_is_empty_is_forgotten_and_comes_back() -> None:
    lanes = JobLanes(own_at_once=1)
    for _ in range(2):
        lanes.put(due("a0", "a"))
        assert taken(lanes) == ["a0"]
        lanes.done(due("a0", "a"))
        assert lanes.stats(now_ms=0)["open"] == 0
