"""An account that is told things and draws a graph; what it knows once all jobs have run is
foretold.

People say where they live, the same again in other words, and what they love; entities and edges
are asked for beside that; memories and edges are deleted. Each sentence is new, so a text names a
memory, and nobody speaks twice before the first sentence has settled. Of a person's homes the last
one holds, of a home the first sentence stands; all the others are superseded and come back when
what stands before them is deleted.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from runtime.timestamps import iso
from tests.simulation.world import SURVIVES, World
from tests.support.shard_harness import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

EMAIL = "scribe@example.com"
PEOPLE = ("Ada", "Grace", "Emmy")
DAY_MS = 24 * 3600 * 1000
HISTORY_DAYS = 1_000
ALL = {"limit": 100, "include_superseded": True}
DOOM = 0.25


class Scribe:
    """hold(whether it is so, what is wrong, answer) raises; note(line, answer) goes into the trace;
    word() was never said before.
    """

    def __init__(
        self, world: World, chance: random.Random, word: Callable[[], str], note: Any, hold: Any
    ):
        self._world, self._chance, self._word, self._note, self._hold = (
            world,
            chance,
            word,
            note,
            hold,
        )
        self._token = world.register(EMAIL, "Scribe")
        self._began_at = world.now_ms - HISTORY_DAYS * DAY_MS
        self._told = 0
        self._homes: dict[str, list[tuple[str, list[str]]]] = defaultdict(
            list
        )  # (place, its sentences, the one that stands first)
        self._loved: dict[str, dict[str, str]] = defaultdict(dict)  # sentence -> thing
        self._asked: set[str] = set()
        self._edges: dict[tuple[str, str], str | None] = {}  # ends -> id
        self._ids: dict[str, str] = {}  # sentence -> memory
        self._waiting: set[str] = set()

    def act(self) -> None:
        """One request, perhaps the last one of this process."""
        actions = {self._tell: 5, self._draw: 1.5, self._forget: 2, self._rub_out: 1}
        self._chance.choices(list(actions), list(actions.values()))[0]()

    # --- what is asked ----------------------------------------------------------------------------

    def _tell(self) -> None:
        person = self._chance.choice(PEOPLE)
        if person in self._waiting:
            return
        homes, kind = self._homes[person], self._chance.random()
        if kind < 0.3 and homes and homes[-1][1] == [f"I live in {homes[-1][0]}."]:
            self._say(
                person, text := f"I am living in {homes[-1][0]}.", lambda: homes[-1][1].append(text)
            )
        elif kind < 0.7:
            place = self._word().capitalize()
            self._say(person, text := f"I live in {place}.", lambda: homes.append((place, [text])))
        else:
            thing = self._word()
            self._say(
                person,
                text := f"I love {thing}.",
                lambda: self._loved[person].update({text: thing}),
            )

    def _say(self, person: str, text: str, heard: Callable[[], Any]) -> None:
        self._told += 1
        at = iso(self._began_at + self._told * DAY_MS)
        body = {
            "messages": [{"role": "user", "name": person, "content": text}],
            "occurred_at": at,
        }
        if self._ask("memories.process", body)[0]:
            heard()
            self._waiting.add(person)

    def _draw(self) -> None:
        names = [f"Node {number}" for number in range(6)]
        source, target = self._chance.sample(names, 2)
        if self._chance.random() < 0.4:
            if self._ask("graph.entities.create", {"name": source, "type": "thing"})[0]:
                self._asked.add(source)
            return
        done, answer = self._ask(
            "graph.relationships.create", {"source": source, "target": target, "type": "knows"}
        )
        if done:
            self._asked |= {source, target}
            self._edges[source, target] = None if answer is None else answer.body["id"]

    def _rub_out(self) -> None:
        ends = [ends for ends, edge in self._edges.items() if edge is not None]
        if ends:
            chosen = self._chance.choice(ends)
            if self._ask("graph.relationships.delete", {"relationship_id": self._edges[chosen]})[0]:
                del self._edges[chosen]

    def _forget(self) -> None:
        """Delete a memory, whether it stands or not, of somebody who has no sentence waiting."""
        known = [
            (who, text)
            for who in PEOPLE
            if who not in self._waiting
            for text in self._texts(who)
            if text in self._ids
        ]
        if not known:
            return
        person, text = self._chance.choice(known)
        if self._ask("memories.delete", id=self._ids[text])[0]:
            self._loved[person].pop(text, None)
            for home in list(self._homes[person]):
                if text in home[1]:
                    home[1].remove(text)
                    if not home[1]:
                        self._homes[person].remove(home)

    def _ask(self, operation: str, body: Any = None, **path: str) -> tuple[bool, Answer | None]:
        """Whether it took effect, and the answer, if there was one."""
        step = self._chance.choice(list(SURVIVES)) if self._chance.random() < DOOM else None
        self._world.arm(step)
        answer = self._world.ask([self._world.form(operation, body, who=self._token, **path)])[0]
        self._world.arm(None)
        self._note(
            f"{operation} {body or path} by the scribe, armed {step} -> "
            f"{'no answer' if answer is None else answer.status}",
            answer,
        )
        if answer is None:
            return SURVIVES[step], None
        if answer.status == 401:
            self._token = self._world(
                "auth.login", {"email": EMAIL, "password": "correct horse"}
            ).body["access_token"]
            return False, answer
        self._hold(answer.status < 300, "the scribe was refused", answer)
        return True, answer

    # --- what is to be seen -----------------------------------------------------------------------

    def _texts(self, person: str) -> list[str]:
        return [*(text for _, texts in self._homes[person] for text in texts), *self._loved[person]]

    def look(self) -> None:
        """All jobs have run: memories, claims, entities and figures are those that are foretold."""
        self._waiting.clear()
        self._token = self._world("auth.login", {"email": EMAIL, "password": "correct horse"}).body[
            "access_token"
        ]
        listed = self._every("memories.list", include_superseded=True)
        self._ids = {item["content"]: item["id"] for item in listed}
        standing = {
            text
            for who in PEOPLE
            for text in [*self._loved[who], *(texts[0] for _, texts in self._homes[who][-1:])]
        }
        every = sorted(text for who in PEOPLE for text in self._texts(who))
        self._same("memories", sorted(item["content"] for item in listed), every)
        self._same(
            "standing memories",
            {item["content"] for item in listed if item["conflict_status"] == "none"},
            standing,
        )
        for who in PEOPLE:
            self._same(
                f"home of {who}",
                self._targets(who, "lives_in"),
                {place for place, _ in self._homes[who][-1:]},
            )
            self._same(
                f"what {who} loves", self._targets(who, "likes"), set(self._loved[who].values())
            )
        places = {place for who in PEOPLE for place, _ in self._homes[who]}
        things = {thing for who in PEOPLE for thing in self._loved[who].values()}
        entities = {item["name"] for item in self._every("graph.entities.list")}
        self._same(
            "entities",
            entities,
            {who for who in PEOPLE if self._texts(who)} | places | things | self._asked,
        )
        stats = self._world("graph.stats", who=self._token).body
        self._same(
            "relationships", stats["relationships"], len(places) + len(things) + len(self._edges)
        )
        self._same("contradictions", stats["contradictions"], 0)
        drawn = self._world(
            "graph.query", {"relation_type": "knows", "limit": 100}, who=self._token
        ).body["relationships"]
        self._edges = (
            {(edge["source"]["name"], edge["target"]["name"]): edge["id"] for edge in drawn}
            if self._edges
            else {}
        )
        self._same("edges", len(drawn), len(self._edges))

    def _targets(self, person: str, kind: str) -> set[str]:
        answer = self._world(
            "graph.query", {"entity": person, "relation_type": kind, "limit": 100}, who=self._token
        )
        return (
            set()
            if answer.status == 404
            else {found["target"]["name"] for found in answer.body["relationships"]}
        )

    def _every(self, operation: str, **query: Any) -> list[dict[str, Any]]:
        items, cursor = [], {}
        while True:
            page = self._world(
                operation, who=self._token, query={"limit": 100, **query, **cursor}
            ).body
            items += page["items"]
            if not page["has_more"]:
                return items
            cursor = {"cursor": page["next_cursor"]}

    def _same(self, what: str, found: Any, foretold: Any) -> None:
        self._hold(found == foretold, f"the scribe's {what}: {found}, not {foretold}")
