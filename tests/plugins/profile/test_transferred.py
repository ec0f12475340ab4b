"""What was set of a profile moves with the account, as do dialectic sessions, and that a profile
was deleted: exported here, imported there.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.in_process import InProcess
from tests.support.transferred import brought, exported


def test_what_was_set_of_a_profile_comes_along(here: InProcess, there: InProcess) -> None:
    path = "/v1/profile?user_id=yan"
    source = here.register("yan@example.com")
    here.request("POST", "/v1/memories", {"content": "I am Yan.", "user_id": "yan"}, who=source)
    said = {
        "name": "Yannick", "timezone": "Europe/Lisbon", "language": "pt-PT", "bio": "Sails.",
        "static": [{"key": "diet", "value": "vegan"}],
    }  # fmt: skip
    before = here.request("PATCH", path, said, who=source).json()
    here.request("PATCH", "/v1/profile", {"bio": "An account's own."}, who=source)
    content = exported(here, source)
    mine = there.register("yan@elsewhere.example")
    assert brought(there, mine, content)["created"]["profile"] == 2
    after = there.request("GET", path, who=mine).json()
    for name in ("user_id", "name", "timezone", "language", "bio", "updated_at"):
        assert after[name] == before[name], name
    [ours], [theirs] = (
        [fact for fact in shown["static"] if fact["key"] == "diet"] for shown in (before, after)
    )
    assert {**theirs, "id": ""} == {**ours, "id": ""} and theirs["id"] != ours["id"]
    own = there.request("GET", "/v1/profile", who=mine).json()
    assert (own["user_id"], own["bio"]) == (None, "An account's own.")
    # What is set here already stays as it is.
    there.request("PATCH", path, {"bio": "Rows."}, who=mine)
    again = brought(there, mine, content)
    assert (again["created"]["profile"], again["known"]["profile"]) == (0, 2)
    assert there.request("GET", path, who=mine).json()["bio"] == "Rows."


def remember(service: InProcess, who: str, *contents: str, user: str = "zoe") -> list[str]:
    ids = []
    for content in contents:
        body = {"content": content, "user_id": user}
        ids.append(service.request("POST", "/v1/memories", body, who=who).json()["id"])
    service.settle()
    return ids


def sessions(service: InProcess, who: str) -> list[dict[str, Any]]:
    lines = map(json.loads, exported(service, who).splitlines())
    return [line["record"] for line in lines if line["kind"] == "dialogue"]


def test_a_dialectic_session_goes_on_elsewhere(here: InProcess, there: InProcess) -> None:
    source, mine = here.register("zoe@example.com"), there.register("zoe@elsewhere.example")
    remember(here, source, "I live in Lisbon.")
    path, asked = "/v1/profile/dialectic", {"user_id": "zoe", "question": "Where does she live?"}
    ours = here.request("POST", path, asked, who=source).json()
    here.request("POST", path, {"question": "Hello?", "session_id": "chosen"}, who=source)
    content = exported(here, source)
    assert brought(there, mine, content)["created"]["dialogue"] == 2
    kept = {each["session_id"]: each for each in sessions(there, mine)}
    (own,) = (name for name in kept if name != "chosen")
    assert [turn["asked"] for turn in kept[own]["turns"]] == ["Where does she live?"]
    assert [each["statement"] for each in kept[own]["hypotheses"]] == ["lives in: Lisbon"]
    assert kept["chosen"]["user_id"] == "" and kept[own]["user_id"] == "zoe"
    again = {"user_id": "zoe", "session_id": own, "question": "And what else?"}
    reply = there.request("POST", path, again, who=mine).json()
    assert reply["session_id"] == own != ours["session_id"]
    assert [each["statement"] for each in reply["hypotheses"]] == ["lives in: Lisbon"]
    told = brought(there, mine, content)
    assert (told["created"]["dialogue"], told["known"]["dialogue"]) == (0, 2)
    assert len({each["session_id"]: each for each in sessions(there, mine)}[own]["turns"]) == 2
    (memory,) = there.request("GET", "/v1/memories", who=mine).json()["items"]
    there.request("DELETE", f"/v1/memories/{memory['id']}", who=mine)
    left = {each["session_id"]: each for each in sessions(there, mine)}[own]
    assert [turn["asked"] for turn in left["turns"]] == ["And what else?"]
    assert left["hypotheses"] == [], "what rested on it went with it"


def test_a_turn_whose_memory_does_not_come_stays_behind(here: InProcess, there: InProcess) -> None:
    source, mine = here.register("eli@example.com"), there.register("eli@elsewhere.example")
    remember(here, source, "I live in Lisbon.", user="eli")
    asked = {"user_id": "eli", "question": "Where does he live?"}
    here.request("POST", "/v1/profile/dialectic", asked, who=source)
    lines = exported(here, source).splitlines(True)
    kinds = ("memory", "manifest")
    brought(there, mine, b"".join(each for each in lines if json.loads(each)["kind"] not in kinds))
    assert "Lisbon" not in exported(there, mine).decode()


def test_a_deleted_profile_stays_deleted_elsewhere(here: InProcess, there: InProcess) -> None:
    path = "/v1/profile?user_id=zoe"
    source, mine = here.register("kim@example.com"), there.register("kim@elsewhere.example")

    def facts(service: InProcess, who: str) -> list[str]:
        service.settle()
        shown = service.request("GET", path, who=who).json()
        return sorted(fact["value"] for fact in shown["static"])

    remember(here, source, "I live in Lisbon.", "I work at Farfetch.")
    assert here.request("DELETE", path, who=source).status_code == 200
    brought(there, mine, exported(here, source))
    assert facts(there, mine) == []
    assert there.request("DELETE", path, who=mine).status_code == 404
    remember(here, source, "I am allergic to nuts.")
    before = facts(here, source)
    assert len(before) == 1
    third = there.register("kim@third.example")
    brought(there, third, exported(here, source))
    assert facts(there, third) == before
    # What somebody has here already is nobody else's to forget.
    known = there.register("kim@fourth.example")
    remember(there, known, "I live in Oslo.")
    brought(there, known, exported(here, source))
    assert "Oslo" in facts(there, known)


def test_a_time_zone_that_nobody_knows_here_stays_behind(here: InProcess, there: InProcess) -> None:
    source, mine = here.register("tim@example.com"), there.register("tim@elsewhere.example")
    said = {"timezone": "Europe/Lisbon", "bio": "Sails."}
    here.request("PATCH", "/v1/profile?user_id=tim", said, who=source)
    lines = [json.loads(line) for line in exported(here, source).splitlines()[:-1]]
    for line in lines:
        if line["kind"] == "profile":
            line["record"]["timezone"] = "Mars/Olympus"
    brought(there, mine, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    shown = there.request("GET", "/v1/profile?user_id=tim", who=mine).json()
    assert (shown["bio"], shown["timezone"]) == ("Sails.", None)
