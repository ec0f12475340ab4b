"""Slots that move between real shards, alone and under load: nothing is lost, doubled, or answered
by two.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runtime import cli
from runtime.cluster.supervisor import Supervisor
from runtime.limits import SLOT_WAIT_MS_MAX
from runtime.placement import ERASING, UNDOING, Move, Place, PlacementError, PlacementTable
from runtime.shard.slot_moves import MoveOver, MoveRefused
from runtime.tenancy import slot_of_email
from tests.support.sharded import Apart, Sharded, Steps, emails, sharded

pytestmark = pytest.mark.slow

DRAINING = Place(draining=True)
PAUSE_SECONDS = 0.03  # between the requests of one account under load


def unused(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows of tables that do not change because somebody asks for something."""
    changing = ("usage", "key", "sessions")
    return {name: found for name, found in rows.items() if not any(map(name.count, changing))}


def test_a_slot_moves_whole_and_nothing_stays_behind(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            slot = slot_of_email(email)
            token = await service.register(email)
            for number in range(30):
                answer = await service.remember(
                    token, f"fact number {number} of {number * 7}", Idempotency_Key=f"key-{number}"
                )
                assert answer.status_code == 201, answer.text
            key = (
                await service.call(
                    "POST",
                    "/v1/auth/api-keys",
                    {"name": "k", "scopes": ["read", "write"]},
                    who=token,
                )
            ).json()["key"]
            used = (await service.call("GET", "/v1/usage", who=token)).json()
            await service.idle(0)
            before, texts = service.rows(0, slot), await service.texts(token)

            report = await service.operate("POST", "/moves", {"slots": [slot], "shard": 1})
            assert [(move["source"], move["target"]) for move in report["moves"]] == [(0, 1)]
            await service.moved()

            after = service.rows(1, slot)
            assert unused(after) == unused(before)
            assert service.rows(0, slot) == {}
            assert service.findings(1) == []
            assert await service.texts(token) == texts
            found = await service.call("POST", "/v1/search", {"query": "fact number 17"}, who=key)
            assert "fact number 17 of 119" in found.text
            again = await service.remember(token, "fact number 3 of 21", Idempotency_Key="key-3")
            assert again.status_code in (200, 201) and len(await service.texts(token)) == 30
            assert (await service.remember(token, "written there")).status_code == 201
            assert (
                "written there"
                in (
                    await service.call("POST", "/v1/search", {"query": "written there"}, who=token)
                ).text
            )
            now = (await service.call("GET", "/v1/usage", who=token)).json()
            assert (
                now["credits"]["used"] == used["credits"]["used"] + 3
            )  # two searches, one memory; the repeated key is free
            counts = [
                {each["operation"]: each["count"] for each in report["by_operation"]}
                for report in (used, now)
            ]
            assert (
                counts[1]["memories.create"] == counts[0]["memories.create"] + 2
                and counts[1]["search.search"] == 2
            )

            await service.operate(
                "POST", "/moves", {"slots": [slot], "shard": 0}
            )  # and back, over what was erased there
            await service.moved()
            assert (
                len(await service.texts(token)) == 31
                and service.rows(1, slot) == {}
                and service.findings(0) == []
            )
            assert (await service.remember(token, "written at home")).status_code == 201
            for number in (0, 1):  # there and back
                slots = (await service.figures(number))["slots"]
                assert (slots["leaving"], slots["moved_total"], slots["given_up_total"]) == (
                    0,
                    1,
                    0,
                )
            await service.restart(0)
            assert len(await service.texts(token)) == 32

    asyncio.run(work())


class Load:
    """One account that writes and searches until it is told to stop, repeating with the same key
    what is refused with Retry-After.
    """

    def __init__(self, service: Sharded, email: str):
        self.service, self.email, self.slot = service, email, slot_of_email(email)
        self.stored: list[str] = []
        self.searches = self.refused = 0
        self.stopped = False

    async def run(self) -> None:
        self.token = await self.service.register(self.email)
        await asyncio.gather(self._write(), self._search())

    async def _write(self) -> None:
        while not self.stopped:
            text = f"{self.email} keeps number {len(self.stored)}"
            headers = {"Idempotency_Key": f"{len(self.stored)}"} | (
                {"Prefer": "respond-async"} if len(self.stored) % 2 else {}
            )
            answer = await self._answered(
                lambda text=text, headers=headers: self.service.remember(
                    self.token, text, **headers
                )
            )
            assert answer.status_code in (200, 201, 202), answer.text
            self.stored.append(text)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _search(self) -> None:
        while not self.stopped:
            known = len(self.stored)
            body = {"query": "keeps number", "limit": 5}
            answer = await self._answered(
                lambda body=body: self.service.call("POST", "/v1/search", body, who=self.token)
            )
            assert answer.status_code == 200, answer.text
            assert not known or answer.json()["results"], "what was stored before is found"
            self.searches += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _answered(self, request: Any) -> Any:
        """The first answer that is none of a slot between two shards."""
        while True:
            answer = await request()
            if answer.status_code != 503:
                return answer
            assert answer.headers["Retry-After"] == "1"
            self.refused += 1
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("without_delay")
def test_accounts_move_under_load_and_no_write_is_lost_or_doubled(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path, 3) as service:
            loads = [Load(service, email) for shard in range(3) for email in emails(shard, 3, 1)]
            running = [asyncio.create_task(load.run()) for load in loads]
            await service.until(
                lambda: (
                    all(len(load.stored) > 5 for load in loads)
                    or any(task.done() for task in running)
                )
            )
            for target in (1, 2, 0):
                while any(
                    service.table.load().owners[load.slot] != target for load in loads
                ):  # a slow machine may take more than one try
                    await service.operate(
                        "POST", "/moves", {"slots": [load.slot for load in loads], "shard": target}
                    )
                    await service.moved()
            for load in loads:
                load.stopped = True
            await asyncio.gather(*running)
            assert (await service.operate("GET", ""))["finished"] >= 4
            for load in loads:
                assert Counter(await service.texts(load.token)) == Counter(load.stored)
                used = (await service.call("GET", "/v1/usage", who=load.token)).json()
                assert used["credits"]["used"] == len(load.stored) + load.searches
            await service.idle()
            assert [service.findings(number) for number in range(3)] == [[], [], []]
            owners = service.table.load().owners
            assert all(
                service.rows(number, load.slot) == {}
                for load in loads
                for number in range(3)
                if number != owners[load.slot]
            )

    asyncio.run(work())


def test_slots_that_are_written_to_all_the_time_move_after_a_few_rounds(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            accounts = emails(0, 2, 4)
            tokens = [await service.register(email) for email in accounts]
            steps = Counter[str]()

            async def ask(number: int, step: str, *given: Any) -> Any:
                steps[step] += 1
                if step == "changed" and not steps["freeze"]:
                    for token in tokens:
                        await service.remember(token, f"round {steps[step]}")
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(service.table, ask)
            slots = sorted({slot_of_email(email) for email in accounts})
            await supervisor.move(slots, 1)
            (move,) = service.table.load().moves
            await supervisor.advance(move)
            assert steps["freeze"] == 1 and steps["changed"] < 12
            for token in tokens:
                assert len(await service.texts(token)) == steps["changed"]

    asyncio.run(work())


class Killed(Exception):
    """Stands for the end of the supervisor's process."""


class Script(Steps):
    """How a supervisor reaches its shards in a test: at one of its steps, something happens before
    or after.
    """

    async def ask(self, number: int, step: str, *given: Any) -> Any:
        here = self.is_here(step)
        if here and self.fault == "killed before":
            raise Killed
        if here and self.fault.startswith("restart"):
            (move,) = self.service.table.load().moves
            await self.service.restart(
                move.source if self.fault == "restart source" else move.target
            )
        answer = await self.service.opened[number].order(step, *given)
        if here and self.fault == "killed after":
            raise Killed
        return answer


@pytest.mark.parametrize(
    "fault", ["killed before", "killed after", "restart source", "restart target"]
)
def test_a_move_that_is_broken_off_anywhere_rolls_back_or_forward(
    tmp_path: Path, fault: str
) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            slot, stored = slot_of_email(email), ["the first"]
            token = await service.register(email)
            await service.remember(token, stored[0])
            states, at = set(), 0
            while True:
                here = service.table.load().owners[slot]
                script = Script(service, at, fault)
                first = Supervisor(service.table, script.ask)
                await first.move([slot], 1 - here)
                (move,) = service.table.load().moves
                try:
                    await first.advance(
                        move
                    )  # the one attempt of a supervisor that lives as long as this
                except Killed:
                    assert fault.startswith("killed")
                except (MoveRefused, PlacementError):
                    assert fault.startswith("restart")
                states |= {each.state for each in service.table.load().moves}
                second = Supervisor(
                    service.table,
                    lambda number, step, *given: service.opened[number].order(step, *given),
                )
                second.start()
                await service.moved()
                await second.close()
                owner = service.table.load().owners[slot]
                assert service.rows(1 - owner, slot) == {} and service.findings(owner) == []
                stored.append(f"after step {at}")
                assert (await service.remember(token, stored[-1])).status_code == 201
                assert sorted(await service.texts(token)) == sorted(stored)
                at += 1
                if at > len(script.steps):
                    break
            assert at > 10 and ERASING in states

    asyncio.run(work())


def test_a_source_that_is_told_nothing_opens_again_and_fences_the_supervisor(
    tmp_path: Path,
) -> None:
    """As when the supervisor is stopped in the middle of a freeze and wakes up later."""

    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)
            stopped, woken = asyncio.Event(), asyncio.Event()

            async def ask(number: int, step: str, *given: Any) -> Any:
                answer = await service.opened[number].order(step, *given)
                if step == "freeze":
                    stopped.set()
                    await woken.wait()
                return answer

            supervisor = Supervisor(service.table, ask)
            await supervisor.move([slot], 1)
            (move,) = service.table.load().moves
            attempt = asyncio.create_task(supervisor.advance(move))
            await stopped.wait()
            answer = await service.remember(token, "sent into the freeze")
            assert answer.status_code == 503 and answer.headers["Retry-After"] == "1"
            await service.until(lambda: service.table.load().move(move.id).state == UNDOING)
            await service.until_all(lambda figures: figures["slots"]["frozen"] == 0, 0)
            slots = (await service.figures(0))["slots"]
            assert (slots["leaving"], slots["moved_total"], slots["given_up_total"]) == (0, 0, 1)
            assert (await service.remember(token, "after it")).status_code == 201
            woken.set()
            with pytest.raises(MoveOver):
                await attempt
            assert service.table.load().owners[slot] == 0
            assert await service.texts(token) == ["after it"]

    asyncio.run(work())


def test_calls_find_their_way_when_nobody_tells_the_shards(tmp_path: Path) -> None:
    """As when the supervisor ends between publishing the new owner and saying so."""

    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)
            await service.remember(token, "before")

            async def ask(number: int, step: str, *given: Any) -> Any:
                if step == "refresh":
                    raise Killed
                return await service.opened[number].order(step, *given)

            supervisor = Supervisor(service.table, ask)
            await supervisor.move([slot], 1)
            (move,) = service.table.load().moves
            with pytest.raises(Killed):
                await supervisor.advance(move)
            assert service.table.load().move(move.id).state == ERASING
            answers = [
                await service.remember(token, "after") for _ in range(1 + 1000 // SLOT_WAIT_MS_MAX)
            ]
            assert answers[-1].status_code == 201, answers[-1].text
            assert set(await service.texts(token)) == {"before", "after"}
            await service.until(lambda: not service.opened[0].parts.gate.owns(slot))
            assert service.opened[1].parts.gate.owns(slot)

    asyncio.run(work())


def test_a_move_that_cannot_be_made_is_named_and_given_up(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)
            del service.opened[1].moves.tables["memories"]  # as if the target lacked the plugin
            await service.remember(token, "stays")
            await service.operate("POST", "/moves", {"slots": [slot], "shard": 1})
            await service.moved()
            (failure,) = (await service.operate("GET", ""))["failures"]
            assert "knows no table 'memories'" in failure["reason"] and failure["final"]
            assert service.rows(1, slot) == {} and await service.texts(token) == ["stays"]
            for wrong in ({"slots": [slot], "shard": 2}, {"slots": [4096], "shard": 1}):
                answer = await service.call(
                    "POST", "/v1/internal/cluster/moves", wrong, who=service.secrets.operator_token
                )
                assert answer.status_code == 400, answer.text

    asyncio.run(work())


def test_shards_even_out_and_are_emptied(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path, 2) as service:
            tokens = {}
            for email in emails(0, 2, 6):
                tokens[email] = await service.register(email)
                for number in range(3):
                    await service.remember(tokens[email], f"{email} has {number}")
            await service.operate("POST", "/rebalance", {})
            await service.moved()
            owners = service.table.load().owners
            assert sorted(Counter(owners[slot_of_email(email)] for email in tokens).values()) == [
                3,
                3,
            ]
            planned = [await service.operate("POST", "/drain", {"shard": 0}) for _ in range(2)]
            assert {move["id"] for move in planned[1]["moves"]} <= {
                move["id"] for move in planned[0]["moves"]
            }
            await service.moved()
            placement = service.table.load()
            assert placement.slots_of(0) == [] and placement.shards[0].draining
            for token in tokens.values():
                assert len(await service.texts(token)) == 3
            answer = await service.call(
                "POST",
                "/v1/internal/cluster/drain",
                {"shard": 1},
                who=service.secrets.operator_token,
            )
            assert answer.status_code == 400 and "No shard would be left" in answer.text
            await service.operate("POST", "/undrain", {"shard": 0})
            await service.operate("POST", "/rebalance", {})
            await service.moved()
            owners = service.table.load().owners
            assert sorted(Counter(owners[slot_of_email(email)] for email in tokens).values()) == [
                3,
                3,
            ]

    asyncio.run(work())


def test_a_drain_that_is_taken_back_leaves_what_has_not_begun(tmp_path: Path) -> None:
    async def work() -> None:
        async with sharded(tmp_path) as service:
            await service.remember(await service.register(emails(0, 2, 1)[0]), "kept")
            supervisor = Supervisor(service.table, Script(service, -1, "").ask)
            service.table.change(
                lambda newest: newest.planned(
                    [Move("under way", (7,), 0, 1), Move("planned", (8,), 0, 1)]
                )
            )
            service.table.change(lambda newest: newest.begun("under way", "token"))
            before = service.table.change(lambda newest: newest.placed({0: DRAINING}))
            await supervisor.undrain(shard=0)
            after = service.table.load()
            assert (
                [move.id for move in after.moves] == ["under way"]
                and not after.shards[0].draining
                and after.owners == before.owners
            )
            with pytest.raises(PlacementError, match="no such node or shard"):
                await supervisor.undrain(node="elsewhere")

    asyncio.run(work())


def test_the_operator_moves_slots_of_a_stopped_service_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests' own embedder makes the vectors, and no setting names it.
    monkeypatch.setenv("MNEME_PREVIOUS_EMBEDDER__BACKEND", "lost")
    (email,) = emails(0, 2, 1)
    slot = slot_of_email(email)

    async def work() -> None:
        async with sharded(tmp_path) as service:
            await service.remember(await service.register(email), "kept")
            service.layout.completed(tmp_path)

    asyncio.run(work())
    given = ["--config", "configs/test.yaml", "--data-dir", str(tmp_path)]
    assert cli.main(["admin", "move-slot", str(slot), "--to", "1", *given]) == 0
    assert "1 moves were made." in capsys.readouterr().out
    assert cli.main(["admin", "cluster", *given]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[-1] == "BEHIND" and lines[2].split()[-1] == "-", (
        "there is no object store"
    )
    table = [line.split()[:4] for line in lines]
    assert table == [
        ["Placement", "4"],
        ["SHARD", "NODE", "STATE", "SLOTS"],
        ["0", "-", "open", "2047"],
        ["1", "-", "open", "2049"],
    ]
    assert cli.main(["admin", "drain", "--shard", "7", *given]) == 1
    assert "no such node or shard" in capsys.readouterr().err
    PlacementTable(tmp_path).change(lambda placement: placement.placed({1: DRAINING}))
    assert cli.main(["admin", "cluster", *given]) == 0 and "draining" in capsys.readouterr().out
    assert cli.main(["admin", "undrain", "--shard", "1", *given]) == 0
    assert (
        "rebalance" in capsys.readouterr().out
        and not PlacementTable(tmp_path).load().shards[1].draining
    )
    PlacementTable(tmp_path).change(lambda placement: placement.planned([Move("a", (7,), 0, 1)]))
    assert cli.main(["admin", "backup", str(tmp_path.with_name("copy")), *given]) == 1
    assert "being moved" in capsys.readouterr().err


@pytest.mark.parametrize(("mode", "kind"), [("", Sharded), ("local", Sharded), ("local", Apart)])
def test_documents_move_with_their_slot_and_leave_no_file_behind(
    tmp_path: Path, mode: str, kind: type[Sharded]
) -> None:
    """Without an object store, with one from which a file is fetched that is not here, and to
    another machine.
    """

    async def work() -> None:
        options = (
            {"object_store__url": f"file://{tmp_path}/objects", "durability__mode": mode}
            if mode
            else {}
        )
        async with sharded(tmp_path / "data", kind=kind, **options) as service:
            service.layout.completed(tmp_path / "data")
            (email,) = emails(0, 2, 1)
            slot, token = slot_of_email(email), await service.register(email)

            async def upload(name: str, content: bytes) -> str:
                sent = {
                    "files": {"file": (name, content)},
                    "headers": {"Authorization": f"Bearer {token}"},
                }
                return (await service.http.post("/v1/documents/upload", **sent)).json()[
                    "status_url"
                ]

            async def status(url: str) -> str:
                return (await service.call("GET", url, who=token)).json()["status"]

            urls = [await upload("tea.txt", b"Tea needs four minutes.")]
            while await status(urls[0]) != "completed":
                await asyncio.sleep(0.02)
            urls.append(
                await upload("ferry.txt", b"The ferry leaves at dawn.")
            )  # it is read here or there
            while service.table.load().owners[slot] != 1:
                await service.operate("POST", "/moves", {"slots": [slot], "shard": 1})
                await service.moved()
            while [await status(url) for url in urls] != ["completed"] * 2:
                await asyncio.sleep(0.02)
            if mode:  # as on a machine that never had them
                await service.until(lambda: len(files(tmp_path / "objects/blobs")) == 2)
                for file in files(tmp_path / "data/blobs"):
                    file.unlink()
            documents = [(await service.call("GET", url, who=token)).json()["id"] for url in urls]
            contents = [
                (await service.call("GET", f"/v1/documents/{each}/content", who=token)).content
                for each in documents
            ]
            assert contents == [b"Tea needs four minutes.", b"The ferry leaves at dawn."]
            found = await service.call("POST", "/v1/search", {"query": "four minutes"}, who=token)
            assert "Tea needs four minutes." in found.text
            assert service.rows(0, slot) == {} and service.findings(1) == []
            for each in documents:
                assert (
                    await service.call("DELETE", f"/v1/documents/{each}", who=token)
                ).status_code == 200
            await service.until(lambda: not files(tmp_path / "objects/blobs"))
            if kind is Sharded:  # elsewhere what was fetched goes with time
                await service.until(lambda: not files(tmp_path / "data/blobs"))
            await service.idle(1)
            assert service.findings(1) == []
            assert (
                "Tea needs"
                not in (
                    await service.call("POST", "/v1/search", {"query": "four minutes"}, who=token)
                ).text
            )

    asyncio.run(work())


def files(directory: Path) -> list[Path]:
    """Every file of a blob, or its copy, below a directory."""
    return [
        path for path in directory.glob("**/*") if path.is_file() and ".outgoing" not in path.parts
    ]
