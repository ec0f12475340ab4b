"""The calls of mem0's client, byte for byte as it makes them, through the real gateway: what it
gets back, and what it can never do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from plugins.mem0.mount import ROUTES, claims
from serve_app import Settings
from tests.support import ROOT
from tests.support.in_process import InProcess, in_process

RECORD = {
    "id",
    "memory",
    "user_id",
    "agent_id",
    "app_id",
    "run_id",
    "metadata",
    "categories",
    "created_at",
    "updated_at",
}


class Client:
    """What mem0's client sends: the token, the slash at the end, JSON bodies, scopes as
    parameters.
    """

    def __init__(self, service: InProcess, key: str):
        self.service, self.key = service, key

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return self.service.request(
            method, path, body, Authorization=f"Token {self.key}", Mem0_User_ID="0" * 32, **headers
        )

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.send(method, path, body)
        assert 200 <= answer.status_code < 300, answer.text
        return answer.json()

    def store(self, *texts: str, **fields: Any) -> list[str]:
        messages = [{"role": "user", "content": text} for text in texts]
        made = self("POST", "/v1/memories/", {"messages": messages, "infer": False, **fields})
        return [result["id"] for result in made["results"]]

    def settled(self, event_id: str) -> dict[str, Any]:
        path = f"/v1/event/{event_id}/"
        self.service.until(lambda: self("GET", path)["status"] in ("SUCCEEDED", "FAILED"))
        return self("GET", path)

    def found(self, filters: Any, **further: Any) -> list[str]:
        return [
            one["memory"]
            for one in self("POST", "/v3/memories/", {"filters": filters, **further})["results"]
        ]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("dropin"), dropin__enabled=True) as running:
        yield running


@pytest.fixture(scope="module")
def eve(service: InProcess) -> Client:
    return Client(service, service.register("eve@example.com"))


@pytest.fixture
def ada(service: InProcess, request: pytest.FixtureRequest) -> Client:
    """A new account for each test."""
    return Client(
        service,
        service.mint(
            service.register(f"{abs(hash(request.node.name))}@example.com"),
            "read",
            "write",
            "admin",
        )["key"],
    )


def refused(answer: httpx.Response, status: int) -> dict[str, Any]:
    """The refusal, which has what their client shows and what ours does."""
    assert answer.status_code == status, answer.text
    told = answer.json()
    assert isinstance(told["detail"], str) and told["detail"] == told["error"]["message"]
    assert (
        told["error"]["status_code"] == status
        and told["error"]["request_id"] == answer.headers["X-Request-ID"]
    )
    return told


# --- the calls ------------------------------------------------------------------------------------


def test_a_client_learns_who_its_key_belongs_to(ada: Client) -> None:
    told = ada("GET", "/v1/ping/")
    assert told["org_id"] and told["project_id"] and told["user_email"].endswith("@example.com")
    refused(Client(ada.service, "mem_sk_" + "0" * 64).send("GET", "/v1/ping/"), 401)


def test_an_add_in_the_background_is_polled_until_its_memories_are_there(ada: Client) -> None:
    messages = [
        {"role": "user", "content": "I live in Lisbon."},
        {"role": "assistant", "content": "Noted."},
    ]
    queued = ada(
        "POST",
        "/v3/memories/add/",
        {"messages": messages, "user_id": "ada", "run_id": "r1", "metadata": {"topic": "home"}},
    )
    assert queued["status"] == "PENDING"
    done = ada.settled(queued["event_id"])
    assert done["status"] == "SUCCEEDED" and "Lisbon" in done["results"][0]["memory"]
    record = ada("GET", f"/v1/memories/{done['results'][0]['id']}/")
    assert (record["user_id"], record["run_id"], record["metadata"]) == (
        "ada",
        "r1",
        {"topic": "home"},
    )


def test_what_is_not_to_be_inferred_is_stored_as_it_is(ada: Client) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One."},
        {"role": "assistant", "content": "Two."},
    ]
    messages += [
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": "Three."}]},
    ]
    asked = {
        "messages": messages,
        "filters": {"user_id": 7, "app_id": "web"},
        "infer": False,
        "timestamp": 1_700_000_000,
    }
    event = ada.settled(
        ada("POST", "/v3/memories/add/", {**asked, "expiration_date": "2999-01-31"})["event_id"]
    )
    assert [(result["memory"], result["event"]) for result in event["results"]] == [
        ("One.", "ADD"),
        ("Two.", "ADD"),
        ("Three.", "ADD"),
    ]
    record = ada("GET", f"/v1/memories/{event['results'][0]['id']}/")
    assert (record["user_id"], record["app_id"]) == ("7", "web")
    assert (record["occurred_at"], record["expires_at"]) == (
        "2023-11-14T22:13:20.000Z",
        "2999-02-01T00:00:00.000Z",
    )
    assert record["expiration_date"] == "2999-01-31"


def test_a_conversation_of_any_length_is_one_event(ada: Client) -> None:
    messages = [{"role": "user", "content": f"note {n}"} for n in range(100)]
    event = ada.settled(
        ada("POST", "/v3/memories/add/", {"messages": messages, "infer": False})["event_id"]
    )
    assert [result["memory"] for result in event["results"]] == [f"note {n}" for n in range(100)]


def test_an_expiration_date_holds_for_what_is_inferred_too(ada: Client) -> None:
    made = ada(
        "POST",
        "/v1/memories/",
        {"messages": "I live in Porto.", "user_id": "ada", "expiration_date": "2999-01-31"},
    )
    assert (
        ada("GET", f"/v1/memories/{made['results'][0]['id']}/")["expiration_date"] == "2999-01-31"
    )


def test_a_search_finds_with_scores_from_nought_to_one(ada: Client) -> None:
    ada.store(
        "The spare key is under the flowerpot.",
        "Rye bread is baked on Mondays.",
        user_id="ada",
        categories=["home"],
    )
    body = {"query": "Where is the spare key?", "filters": {"user_id": "ada"}, "top_k": 5}
    (best, *_) = ada("POST", "/v3/memories/search/", body)["results"]
    assert best["memory"].startswith("The spare key") and 0 < best["score"] <= 1
    assert set(best) == {*RECORD, "score"} and best["categories"] == ["home"]
    assert ada("POST", "/v2/memories/search/", body)["results"][0]["id"] == best["id"]
    old = {"query": "spare key", "user_id": "ada", "fields": ["memory"]}
    assert ada("POST", "/v1/memories/search/", old)[0] == {
        "id": best["id"],
        "memory": best["memory"],
    }
    assert (
        ada("POST", "/v1/memories/search/", {**old, "output_format": "v1.1"})["results"][0]["id"]
        == best["id"]
    )
    assert (
        ada("POST", "/v3/memories/search/", {**body, "filters": {"user_id": "ben"}})["results"]
        == []
    )
    assert ada("POST", "/v3/memories/search/", {**body, "threshold": 1.0})["results"] == []
    assert (
        len(
            ada("POST", "/v3/memories/search/", {**body, "threshold": 0.0, "top_k": 5_000})[
                "results"
            ]
        )
        == 2
    )
    assert (
        ada("POST", "/v3/memories/search/", {**body, "rerank": True})["results"][0]["id"]
        == best["id"]
    )


def test_lists_come_page_by_page(ada: Client) -> None:
    ada.store(*(f"note {n}" for n in range(5)), user_id="ada")
    first = ada("POST", "/v3/memories/?page=1&page_size=2", {"filters": {"user_id": "ada"}})
    assert (
        first["count"] == 5
        and first["previous"] is None
        and [one["memory"] for one in first["results"]] == ["note 4", "note 3"]
    )
    assert set(first["results"][0]) == RECORD
    last = ada("POST", "/v2/memories/?page=3&page_size=2", {"filters": {"user_id": "ada"}})
    assert last["next"] is None and [one["memory"] for one in last["results"]] == ["note 0"]
    assert (
        ada("POST", first["next"], {"filters": {"user_id": "ada"}})["previous"]
        == "/v3/memories/?page=1&page_size=2"
    )
    assert [
        one["memory"]
        for one in ada("GET", "/v1/memories/?user_id=ada&page=2&page_size=3")["results"]
    ] == ["note 1", "note 0"]
    assert (
        len(ada("GET", "/v1/memories/?user_id=ada")) == 5
        and ada("GET", "/v1/memories?user_id=ben") == []
    )
    for wrong in ("0", "-1", "x", "1" * 30):
        refused(ada.send("POST", f"/v3/memories/?page={wrong}", {}), 400)


def test_a_memory_is_changed_and_remembers_how(ada: Client) -> None:
    (made,) = ada.store("I live in Lisbon.", user_id="ada", metadata={"a": 1})
    changed = ada(
        "PUT",
        f"/v1/memories/{made}/",
        {"text": "I live in Porto.", "metadata": {"b": 2}, "expiration_date": "2999-01-31"},
    )
    assert (changed["memory"], changed["metadata"], changed["expiration_date"]) == (
        "I live in Porto.",
        {"b": 2},
        "2999-01-31",
    )
    assert "expiration_date" not in ada("PUT", f"/v1/memories/{made}/", {"expiration_date": None})
    told = ada("GET", f"/v1/memories/{made}/history/")
    assert [(one["event"], one["old_memory"], one["new_memory"]) for one in told][:2] == [
        ("ADD", None, "I live in Lisbon."),
        ("UPDATE", "I live in Lisbon.", "I live in Porto."),
    ]
    assert all(one["memory_id"] == made and one["user_id"] == "ada" for one in told)
    refused(ada.send("PUT", f"/v1/memories/{made}/", {}), 400)
    refused(ada.send("PUT", f"/v1/memories/{made}/", {"text": "later", "timestamp": 1}), 400)
    refused(ada.send("DELETE", f"/v1/memories/{made}/?delete_linked=true"), 400)
    assert ada("DELETE", f"/v1/memories/{made}/")["message"] == "Memory deleted successfully!"
    assert (
        refused(ada.send("GET", f"/v1/memories/{made}/"), 404)["error"]["code"]
        == "resource_not_found"
    )


def test_entities_are_listed_and_deleted_by_name(ada: Client) -> None:
    strange = "a/b & c?"
    ada.store("One.", "Two.", user_id="ada", agent_id=strange)
    ada.store("Three.", run_id="r1")
    listed = ada("GET", "/v1/entities/")
    assert listed["count"] == 3
    assert {(one["type"], one["name"], one["total_memories"]) for one in listed["results"]} == {
        ("user", "ada", 2),
        ("agent", strange, 2),
        ("run", "r1", 1),
    }
    ada("DELETE", f"/v2/entities/agent/{quote(strange, safe='')}/")
    refused(ada.send("DELETE", "/v2/entities/user/ada/"), 404)
    refused(ada.send("DELETE", "/v2/entities/planet/ada/"), 400)
    assert ada.found({}) == ["Three."]


def test_batches_change_and_delete(ada: Client) -> None:
    one, two, three = ada.store("1", "2", "3", user_id="ada")
    wanted = {
        "memories": [
            {"memory_id": one, "text": "first"},
            {"memory_id": two, "text": "second", "metadata": {"n": 2}},
        ]
    }
    assert ada("PUT", "/v1/batch/", wanted)["message"] == "Successfully updated 2 memories"
    assert ada.found({}) == ["3", "second", "first"]
    gone = ada("DELETE", "/v1/batch/", {"memories": [{"memory_id": one}, {"memory_id": three}]})
    assert gone["message"] == "Successfully deleted 2 memories" and ada.found({}) == ["second"]
    for wrong in (
        {},
        {"memories": []},
        {"memories": ["x"]},
        {"memories": [{"memory_id": two}] * 101},
        {"memories": [{"text": "x"}]},
    ):
        refused(ada.send("PUT", "/v1/batch/", wrong), 400)


def test_a_batch_with_a_memory_that_is_gone_changes_nothing(ada: Client) -> None:
    one, two = ada.store("1", "2", user_id="ada")
    ada("DELETE", f"/v1/memories/{two}/")
    wanted = [{"memory_id": one, "text": "first"}, {"memory_id": two, "text": "second"}]
    answer = ada.send("PUT", "/v1/batch/", {"memories": wanted})
    assert answer.status_code == 404
    assert answer.json()["detail"].startswith("memories.1: There is no memory")
    assert ada.found({}) == ["1"]


def test_a_repeated_add_with_one_key_stores_once(ada: Client) -> None:
    body = {"messages": [{"role": "user", "content": "Once."}], "infer": False}
    first, again = (
        ada.send("POST", "/v1/memories/", body, Idempotency_Key="k").json()["results"]
        for _ in range(2)
    )
    assert first == again and ada.found({}) == ["Once."]


def test_a_repeated_batch_with_one_key_changes_once(ada: Client) -> None:
    one, two = ada.store("1", "2", user_id="ada")
    wanted = {
        "memories": [{"memory_id": one, "text": "first"}, {"memory_id": two, "text": "second"}]
    }
    answers = [ada.send("PUT", "/v1/batch/", wanted, Idempotency_Key="k") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert [len(ada("GET", f"/v1/memories/{memory_id}/history/")) for memory_id in (one, two)] == [
        2,
        2,
    ]


# --- filters --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shelf(service: InProcess) -> Client:
    client = Client(service, service.register("shelf@example.com"))
    client.store(
        "Red wine",
        user_id="ada",
        agent_id="cook",
        categories=["drink", "evening"],
        metadata={"year": 2019, "of": {"land": "pt"}},
    )
    client.store(
        "Rye bread", user_id="ada", run_id="r1", categories=["food"], metadata={"year": 2024}
    )
    client.store("Green tea", user_id="ben", app_id="web", categories=["drink"])
    return client


def test_a_number_names_whom_it_names_everywhere(eve: Client) -> None:
    """As the ids of a database's rows are: their client makes texts of them, too."""
    eve.store("The boat is red.", user_id=42)
    eve.store("The boat is blue.", user_id="7")
    for test in (42, {"in": [42, 9]}, {"ne": 7}):
        assert eve.found({"AND": [{"user_id": test}, {"user_id": "*"}]}) == ["The boat is red."]
    for path in ("/v1/memories/search/", "/v2/memories/search/"):
        found = eve("POST", path, {"query": "Which colour is the boat?", "user_id": 42})
        found = found if isinstance(found, list) else found["results"]
        assert [one["memory"] for one in found] == ["The boat is red."], path
    assert eve.send("POST", "/v3/memories/", {"filters": {"user_id": True}}).status_code == 422


WINE, BREAD, TEA = "Red wine", "Rye bread", "Green tea"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, {WINE, BREAD, TEA}),
        ({"user_id": "ada"}, {WINE, BREAD}),
        ({"AND": [{"user_id": "ada"}, {"agent_id": "cook"}]}, {WINE}),
        ({"OR": [{"user_id": "ben"}, {"run_id": "r1"}]}, {BREAD, TEA}),
        ({"NOT": [{"user_id": "ada"}]}, {TEA}),
        ({"NOT": {"OR": [{"user_id": "ben"}, {"agent_id": "*"}]}}, {BREAD}),
        ({"user_id": {"in": ["ben", "cy"]}}, {TEA}),
        ({"user_id": {"ne": "ada"}}, {TEA}),
        ({"agent_id": "*"}, {WINE}),
        ({"AND": [{"user_id": "*"}, {"app_id": None}]}, {WINE, BREAD}),
        ({"categories": {"contains": "drink"}}, {WINE, TEA}),
        ({"categories": {"in": ["food", "evening"]}}, {WINE, BREAD}),
        ({"metadata": {"year": 2024}}, {BREAD}),
        ({"metadata": {"year": {"gte": 2019, "lt": 2024}}}, {WINE}),
        ({"metadata": {"of.land": {"icontains": "P"}}}, {WINE}),
        ({"keywords": {"icontains": "GREEN"}}, {TEA}),
        ({"keywords": "bread"}, {BREAD}),
        (
            {
                "AND": [
                    {"created_at": {"gte": "2020-01-01"}},
                    {"created_at": {"lte": 4_000_000_000}},
                ]
            },
            {WINE, BREAD, TEA},
        ),
        ({"created_at": {"gt": 4_000_000_000_000}}, set()),
        ({"updated_at": {"lt": "2020-01-01"}}, set()),
        ({"tags": "food", "categories": "drink"}, set()),
        ({"memory_ids": ["mem_nonsense"]}, set()),
    ],
)
def test_a_filter_selects_what_it_says(
    shelf: Client, condition: dict[str, Any], expected: set[str]
) -> None:
    assert set(shelf.found(condition)) == expected
    if expected:
        hits = shelf(
            "POST",
            "/v3/memories/search/",
            {"query": "wine bread tea", "filters": condition, "threshold": 0.0},
        )["results"]
        assert {hit["memory"] for hit in hits} == expected


def test_dates_and_categories_narrow_beside_the_filter(shelf: Client) -> None:
    assert set(shelf.found({"user_id": "ada"}, categories=["drink"])) == {WINE}
    assert (
        shelf.found({}, start_date="2999-01-01") == []
        and len(shelf.found({}, end_date="2999-01-01")) == 3
    )
    assert [
        one["memory"] for one in shelf("GET", "/v1/memories/?categories=food,evening&user_id=ada")
    ] == [BREAD, WINE]


def nested(depth: int) -> Any:
    condition: Any = {"user_id": "ada"}
    for _ in range(depth):
        condition = {"NOT": [condition]}
    return condition


HOSTILE = {
    "no object": ["user_id"],
    "an unknown field": {"colour": "red"},
    "an unknown operator": {"user_id": {"like": "a%"}},
    "an operator that fits no text": {"user_id": {"gte": "a"}},
    "an operand of the wrong type": {"metadata": {"year": {"gte": {"of": "x"}}}},
    "no time": {"created_at": {"gte": "yesterday"}},
    "a time out of this world": {"created_at": {"gte": 1e300}},
    "AND of no list": {"AND": {"user_id": "ada"}},
    "deep": nested(60),
    "very deep": nested(400),
    "wide": {"OR": [{"user_id": "ada"}] * 5_000},
    "many values": {"user_id": {"in": ["x"] * 5_000}},
    "an empty metadata key": {"metadata": {"": 1}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_filter_is_refused_in_their_shape(shelf: Client, name: str) -> None:
    for path, body in (("/v3/memories/", {}), ("/v3/memories/search/", {"query": "wine"})):
        answer = shelf.send("POST", path, {**body, "filters": HOSTILE[name]})
        if name == "deep":  # within all bounds: an even number of negations
            assert 200 <= answer.status_code < 300 or refused(answer, 400)
        else:
            refused(answer, 422)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'"x"', b"[" * 5_000, b"\xff", b'{"messages": NaN}']
)
def test_a_hostile_body_is_refused_in_their_shape(shelf: Client, body: bytes) -> None:
    for method, path in (
        ("POST", "/v3/memories/add/"),
        ("POST", "/v3/memories/search/"),
        ("PUT", "/v1/batch/"),
    ):
        refused(shelf.send(method, path, body, Content_Type="application/json"), 400)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        "",
        [{"role": "user", "content": " "}],
        ["x"],
        5,
        [{"content": 5}],
        [{"content": [{"type": "image_url"}]}],
    ],
)
def test_messages_without_text_are_refused(shelf: Client, messages: Any) -> None:
    refused(shelf.send("POST", "/v3/memories/add/", {"messages": messages, "user_id": "ada"}), 422)


# --- what can never happen ------------------------------------------------------------------------


def test_an_empty_scope_deletes_nobody(shelf: Client) -> None:
    for query in (
        "",
        "?user_id=",
        "?user_id=%20",
        "?user_id=*",
        "?user_id=ada&agent_id=",
        "?org_id=x",
        "?collection=x",
        "?filters=%7B%7D",
    ):
        refused(shelf.send("DELETE", f"/v1/memories/{query}"), 400)
    assert len(shelf.found({})) == 3


def test_names_delete_their_own_and_need_an_admin_key(ada: Client) -> None:
    ada.store("Ada's", user_id="ada", agent_id="cook")
    ada.store("Ben's", user_id="ben", agent_id="cook")
    weak = Client(
        ada.service,
        ada.service.mint(ada.service.register("weak@example.com"), "read", "write")["key"],
    )
    assert "admin" in refused(weak.send("DELETE", "/v1/memories/?user_id=ada"), 403)["detail"]
    assert (
        ada("DELETE", "/v1/memories/?user_id=ada&agent_id=cook&org_id=o")["message"]
        == "Memories deleted successfully!"
    )
    assert ada.found({}) == ["Ben's"]


def test_another_account_s_memories_are_out_of_reach(ada: Client, eve: Client) -> None:
    (secret,) = eve.store("Eve's secret.", user_id="eve")
    for method, path, body in (
        ("GET", f"/v1/memories/{secret}/", None),
        ("PUT", f"/v1/memories/{secret}/", {"text": "mine"}),
        ("DELETE", f"/v1/memories/{secret}/", None),
        ("GET", f"/v1/memories/{secret}/history/", None),
        ("PUT", "/v1/batch/", {"memories": [{"memory_id": secret, "text": "mine"}]}),
    ):
        refused(ada.send(method, path, body), 403)
    refused(ada.send("GET", f"/v1/event/{secret}/"), 404)
    job = eve("POST", "/v3/memories/add/", {"messages": "I live in Faro.", "user_id": "eve"})[
        "event_id"
    ]
    refused(ada.send("GET", f"/v1/event/{job}/"), 403)
    assert (
        ada("DELETE", "/v1/batch/", {"memories": [{"memory_id": secret}]})["results"][0]["status"]
        == "forbidden"
    )
    assert ada.found({"memory_ids": [secret]}) == [] == ada("GET", "/v1/entities/")["results"]
    ada("DELETE", "/v1/memories/?user_id=eve")
    assert eve("GET", f"/v1/memories/{secret}/")["memory"] == "Eve's secret."


def test_nobody_gets_in_without_a_key(service: InProcess) -> None:
    for method, pattern, _ in ROUTES:
        path = pattern.pattern.replace("(?P<id>(?=[^/]*[\\d_])[^/]+)", "mem_1").replace(
            "(?P<id>[^/]+)", "x"
        )
        path = (
            path.replace("v[123]", "v1")
            .replace("v[23]", "v2")
            .replace("v[12]", "v2")
            .replace("(?P<kind>[^/]+)", "user")
        )
        path = path.replace("(?P<name>.+?)", "ada").replace("/?", "/")
        body = (
            {
                "messages": "x",
                "query": "x",
                "text": "x",
                "memories": [{"memory_id": "mem_1", "text": "x"}],
            }
            if method != "GET"
            else None
        )
        scope = "?user_id=ada" if (method, path) == ("DELETE", "/v1/memories/") else ""
        for credential in ("Token ", "Token mem_sk_" + "0" * 64, "Token x"):
            answer = service.request(method, path + scope, body, Authorization=credential)
            assert "detail" in answer.json(), (method, path, answer.text)
            assert answer.status_code == 401, (method, path, answer.text)


def test_a_stranger_does_not_learn_what_is_wrong_with_a_request(service: InProcess) -> None:
    stranger = Client(service, "mem_sk_" + "0" * 64)
    for method, path, body in (
        ("DELETE", "/v1/memories/", None),
        ("POST", "/v3/memories/add/", {}),
        ("PUT", "/v1/batch/", []),
    ):
        refused(stranger.send(method, path, body), 401)


# --- what stays ours ------------------------------------------------------------------------------


def test_our_own_api_answers_everything_else(ada: Client) -> None:
    made = ada.send("POST", "/v1/memories", {"content": "Ours.", "user_id": "ada"})
    assert made.status_code == 201 and made.json()["content"] == "Ours."
    assert (
        ada("GET", "/v1/memories/jobs")["items"] == []
        and ada("GET", "/v1/memories/scopes")["total_count"] == 1
    )
    assert (
        ada("PATCH", f"/v1/memories/{made.json()['id']}", {"importance": 0.9})["importance"] == 0.9
    )
    bearer = ada.service.request("GET", "/v1/memories", who=ada.key).json()
    assert [item["content"] for item in bearer["items"]] == ["Ours."]
    assert not claims("/v1/memories/jobs", {b"authorization": b"Token x"}) and not claims(
        "/v1/ping/", {b"authorization": b"Bearer x"}
    )


def test_it_is_on_at_home_and_off_in_production(tmp_path: Path) -> None:
    assert Settings.load(ROOT / "configs/local.yaml").dropin.enabled
    assert (
        not Settings.load(ROOT / "configs/production.yaml").dropin.enabled
        and not Settings().dropin.enabled
    )
    with in_process(tmp_path) as service:
        client = Client(service, service.register("ada@example.com"))
        assert client.send("GET", "/v1/ping/").status_code == 404 and "items" in client(
            "GET", "/v1/memories/"
        )
