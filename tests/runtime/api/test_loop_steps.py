import asyncio
from itertools import pairwise

from runtime.api.loop_steps import in_steps
from runtime.limits import ITEMS_PER_LOOP_STEP
from runtime.turns import in_turn_of


def test_however_many_go_through_many_things_one_piece_is_done_a_round():
    done = 0
    seen: list[int] = []

    async def go_through(count: int) -> None:
        nonlocal done
        async for _ in in_steps(range(count)):
            done += 1

    async def watch() -> None:
        while True:
            seen.append(done)
            await asyncio.sleep(0)

    async def run() -> None:
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(go_through(20 * ITEMS_PER_LOOP_STEP) for _ in range(10)))
        watching.cancel()

    asyncio.run(run())
    assert done == 10 * 20 * ITEMS_PER_LOOP_STEP
    # The first of each, before it can know of the others, is done at once.
    later = [after - before for before, after in pairwise(seen) if before >= seen[1]]
    assert max(later) <= ITEMS_PER_LOOP_STEP


def test_accounts_take_turns_and_whoever_leaves_is_passed_over():
    order: list[str] = []

    async def go_through(name: str, account: str) -> None:
        with in_turn_of(account):
            async for place in in_steps(range(10 * ITEMS_PER_LOOP_STEP)):
                if place % ITEMS_PER_LOOP_STEP == 0:
                    order.append(name)

    async def run() -> None:
        many = [asyncio.create_task(go_through(f"a{n}", "a")) for n in range(8)]
        await asyncio.sleep(0)
        one = asyncio.create_task(go_through("b", "b"))
        await asyncio.sleep(0)
        many[0].cancel()
        await one
        assert order.count("b") == 10
        assert len(order) < 40  # of 90: the eight had as much as the one, and the first of each
        await asyncio.gather(*many, return_exceptions=True)

    asyncio.run(run())
    assert order.count("a7") == 10 and order.count("a0") < 10
