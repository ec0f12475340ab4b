"""Dialectic over HTTP: sessions, hypotheses with evidence, and what is said without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from plugins.profile.dialectic import weighed
from plugins.profile.store import Hypothesis
from tests.support import upstream
from tests.support.over_http import OverHttp, over_http
from tests.support.upstream import Upstream, answers_with, refuses, waits

pytestmark = pytest.mark.usefixtures("without_delay")

ASK = "Where does she live?"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Upstream]:
    with upstream.upstream() as server:
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, endpoint: Upstream) -> Iterator[OverHttp]:
    with over_http(tmp_path_factory.mktemp("dialectic"), llm__base_url=endpoint.url) as service:
        yield service


@pytest.fixture
def me(service: OverHttp, endpoint: Upstream, request: pytest.FixtureRequest) -> str:
    """An account whose user ada lives in Lisbon; without a model that answers, unless the test says
    otherwise.
    """
    endpoint.requests.clear()
    endpoint.will(refuses(401))
    who = service.register(f"{abs(hash(request.node.name))}@example.com")
    service.remember(who, "I live in Lisbon.", "The choir meets on Tuesdays.", user_id="ada")
    service.settle()
    return who


def talk(
    service: OverHttp, who: str, message: str = ASK, status: int = 200, **fields: Any
) -> dict[str, Any]:
    answer = service.post(
        "/v1/profile/dialectic", {"user_message": message, "user_id": "ada", **fields}, who
    )
    assert answer.status_code == status, answer.text
    return answer.json()


def thinks(
    message: str | None, notes: str = "", hypotheses: tuple[tuple[str, float, str], ...] = ()
) -> upstream.Act:
    """The model's turn; notes are named by a word in them."""

    def reply(request: dict[str, Any]) -> str:
        lines = [
            json.loads(line)
            for line in request["messages"][0]["content"].splitlines()
            if line.startswith('{"number"')
        ]

        def numbers(word: str) -> list[int]:
            return [line["number"] for line in lines if word and word in line["text"]]

        guesses = [
            {"statement": said, "confidence": sure, "notes": numbers(word)}
            for said, sure, word in hypotheses
        ]
        thought = {
            "assistant_message": message,
            "notes": numbers(notes),
            "hypotheses": guesses,
            "follow_up_question": "Since when?",
        }
        return json.dumps(thought)

    return answers_with(reply)


def test_without_a_model_the_profile_and_the_memories_speak(service: OverHttp, me: str) -> None:
    reply = talk(service, me)
    assert (reply["engine"], reply["degraded"], reply["abstain_recommended"]) == (
        "extractive",
        True,
        False,
    )
    assert reply["assistant_message"].splitlines()[0] == "lives in: Lisbon."
    (memory,) = {memory for guess in reply["hypotheses"] for memory in guess["evidence_memory_ids"]}
    assert memory in reply["evidence_memory_ids"]
    nothing = talk(service, me, "xylophone quasar?")
    assert (
        nothing["abstain_recommended"],
        nothing["evidence_memory_ids"],
        nothing["hypotheses"],
    ) == (True, [], [])


def test_what_held_once_is_told_as_that(service: OverHttp, me: str) -> None:
    said = {"role": "user", "name": "Ada", "content": "I moved from Lisbon to Oslo."}
    service.post("/v1/memories/process", {"messages": [said], "user_id": "ada"}, me)
    service.settle()
    lines = talk(service, me)["assistant_message"].splitlines()
    assert lines[:2] == ["lives in: Oslo.", "formerly lives in: Lisbon."]


def test_a_model_answers_and_hypotheses_without_evidence_are_dropped(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    endpoint.will(
        thinks(
            "In Lisbon.",
            "Lisbon",
            (("She likes the sea.", 0.6, "Lisbon"), ("She is a spy.", 0.9, "nothing")),
        )
    )
    reply = talk(service, me, reasoning_level="high")
    assert (reply["assistant_message"], reply["engine"], reply["follow_up_question"]) == (
        "In Lisbon.",
        "llm",
        "Since when?",
    )
    assert len(reply["evidence_memory_ids"]) == 1
    assert [(one["statement"], one["confidence"]) for one in reply["hypotheses"]] == [
        ("She likes the sea.", 0.6)
    ]
    assert '{"profile":"lives_in","value":"Lisbon"}' in endpoint.last["messages"][0]["content"]


def test_a_session_remembers_turns_and_hypotheses(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    endpoint.will(thinks("In Lisbon.", "Lisbon", (("She likes the sea.", 0.6, "Lisbon"),)))
    first = talk(service, me)
    assert first["session_id"].startswith("ses_")
    endpoint.will(thinks("On Tuesdays.", "choir", (("She sings.", 0.7, "choir"),)))
    second = talk(service, me, "When does she sing in the choir?", session_id=first["session_id"])
    assert [message["content"] for message in endpoint.last["messages"][1:]] == [
        ASK,
        "In Lisbon.",
        "When does she sing in the choir?",
    ]
    assert [one["statement"] for one in second["hypotheses"]] == [
        "She sings.",
        "She likes the sea.",
    ]
    assert second["hypotheses"][1]["confidence"] < 0.6
    own = talk(service, me, session_id="of my own making")
    assert own["session_id"] == "of my own making" and [
        m["role"] for m in endpoint.last["messages"]
    ] == ["system", "user"]


def test_sessions_belong_to_their_user_and_account(service: OverHttp, me: str) -> None:
    session = talk(service, me)["session_id"]
    assert (
        talk(service, me, status=404, session_id=session, user_id="bo")["error"]["code"]
        == "resource_not_found"
    )
    stranger = service.register(f"stranger{abs(hash(session))}@example.com")
    assert (
        talk(service, stranger, status=403, session_id=session)["error"]["code"]
        == "permission_denied"
    )
    assert talk(service, me, status=404, session_id=session[:-4] + "zzzz")


def test_deleting_the_profile_ends_its_sessions(service: OverHttp, me: str) -> None:
    session = talk(service, me)["session_id"]
    talk(service, me, session_id="mine")
    headers = {"Authorization": f"Bearer {me}"}
    assert service.http.delete("/v1/profile?user_id=ada", headers=headers).json() == {
        "deleted": True
    }
    assert service.http.delete("/v1/profile?user_id=ada", headers=headers).status_code == 404
    talk(service, me, status=404, session_id=session)
    again = talk(service, me, session_id="mine")
    assert again["hypotheses"] == [], (
        "what was known is gone, and the memories of before do not bring it back"
    )


def test_an_empty_or_misspelt_user_id_is_not_the_accounts_own_profile(
    service: OverHttp, me: str
) -> None:
    ask = partial(service.http.request, headers={"Authorization": f"Bearer {me}"})
    assert ask("PATCH", "/v1/profile", json={"name": "Owner"}).status_code == 200
    for method, more in (("DELETE", {}), ("PATCH", {"json": {"name": "Somebody"}})):
        for query, loc in (("user_id=", ["query", "user_id"]), ("userid=ada", ["query"])):
            refused = ask(method, f"/v1/profile?{query}", **more)
            assert refused.status_code == 422, refused.text
            assert refused.json()["error"]["details"][0]["loc"] == loc
    assert ask("GET", "/v1/profile?user_id=").json()["name"] == "Owner"


def test_a_turn_that_ends_after_a_deletion_leaves_nothing(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    endpoint.go_on.clear()
    endpoint.will(waits)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(talk, service, me, session_id="mine")
        service.until(lambda: endpoint.requests)
        service.http.delete("/v1/profile?user_id=ada", headers={"Authorization": f"Bearer {me}"})
        endpoint.go_on.set()
        assert running.result()["session_id"] == "mine"
    assert (
        service.http.delete(
            "/v1/profile?user_id=ada", headers={"Authorization": f"Bearer {me}"}
        ).status_code
        == 404
    )


def test_evidence_that_is_gone_takes_its_hypotheses_along(service: OverHttp, me: str) -> None:
    first = talk(service, me, session_id="mine")
    (memory,) = first["hypotheses"][0]["evidence_memory_ids"]
    assert (
        service.http.delete(
            f"/v1/memories/{memory}", headers={"Authorization": f"Bearer {me}"}
        ).status_code
        == 200
    )
    assert talk(service, me, session_id="mine")["hypotheses"] == []


def turns(service: OverHttp, who: str) -> list[dict[str, Any]]:
    """What an export has of the sessions' turns."""
    lines = service.get("/v1/account/export", who).text.splitlines()
    records = [json.loads(line) for line in lines]
    return [
        turn
        for record in records
        if record["kind"] == "dialogue"
        for turn in record["record"]["turns"]
    ]


def deletes(service: OverHttp, who: str, memory_id: str) -> None:
    headers = {"Authorization": f"Bearer {who}"}
    assert service.http.delete(f"/v1/memories/{memory_id}", headers=headers).is_success


def test_a_turn_goes_with_a_memory_that_it_quotes(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    (home,) = talk(service, me, session_id="mine")["hypotheses"][0]["evidence_memory_ids"]
    talk(service, me, "When does the choir meet?", session_id="mine")
    assert [turn["asked"] for turn in turns(service, me)] == [ASK, "When does the choir meet?"]
    deletes(service, me, home)
    (left,) = turns(service, me)
    assert left["asked"] == "When does the choir meet?"
    endpoint.requests.clear()
    endpoint.will(thinks(None))
    talk(service, me, session_id="mine")
    assert endpoint.requests and all("Lisbon" not in str(asked) for asked in endpoint.requests)


def test_a_turn_of_a_model_goes_with_the_memories_behind_the_facts_it_repeats(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    (home,) = service.get("/v1/profile?user_id=ada", me).json()["static"][0]["evidence_memory_ids"]
    endpoint.will(thinks("She lives in LISBON, I think."))
    assert talk(service, me)["evidence_memory_ids"] == []
    assert len(turns(service, me)) == 1
    deletes(service, me, home)
    assert turns(service, me) == []


def test_a_turn_that_ends_after_its_memory_was_deleted_is_not_kept(
    service: OverHttp, me: str, endpoint: Upstream
) -> None:
    (home,) = talk(service, me)["hypotheses"][0]["evidence_memory_ids"]
    endpoint.requests.clear()
    endpoint.go_on.clear()
    endpoint.will(waits)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(talk, service, me, session_id="mine")
        service.until(lambda: endpoint.requests)
        deletes(service, me, home)
        endpoint.go_on.set()
        assert home in running.result()["evidence_memory_ids"]
    assert turns(service, me) == []


def test_a_deleted_profile_leaves_nothing_that_its_memories_could_find(
    service: OverHttp, me: str
) -> None:
    (home,) = talk(service, me, session_id="mine")["hypotheses"][0]["evidence_memory_ids"]
    headers = {"Authorization": f"Bearer {me}"}
    assert service.http.delete("/v1/profile?user_id=ada", headers=headers).is_success
    deletes(service, me, home)
    assert turns(service, me) == []


@pytest.mark.parametrize("name", ["user_message", "message", "question"])
def test_the_message_has_three_names(service: OverHttp, me: str, name: str) -> None:
    assert (
        service.post("/v1/profile/dialectic", {name: ASK, "user_id": "ada"}, me).status_code == 200
    )
    assert service.post("/v1/profile/dialectic", {name: " "}, me).status_code == 422
    assert service.post("/v1/profile/dialectic", {}, me).status_code == 422


def test_hypotheses_gain_fade_and_are_forgotten() -> None:
    before = [Hypothesis("A.", 0.5, ["1"]), Hypothesis("B.", 0.105, ["2"])]
    after = weighed(before, [Hypothesis("a. ", 0.9, ["3"]), Hypothesis("C.", 0.05, ["4"])])
    assert [(one.statement, one.confidence, one.memory_ids) for one in after] == [
        ("A.", 0.9, ["3", "1"])
    ]
