"""MCP as agent hosts see it, through the official client: in one process, over sockets, and over
standard input and output.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from plugins.mcp.tools import BoundTool
from runtime.limits import JSON_ITEMS_MAX
from tests.support.in_process import InProcess, in_process
from tests.support.served import MNEME, Served

SECONDS_MAX = 120
PAGE = "https://app.example"  # of http.cors_origins
NAMES = {
    "add_memory", "search_memories", "recall_context", "get_memory", "update_memory",
    "delete_memory", "list_memories", "process_conversation", "ask_memories", "graph_query",
    "add_correction", "record_decision", "record_outcome",
}  # fmt: skip
READING = {
    "search_memories", "recall_context", "get_memory", "list_memories", "ask_memories",
    "graph_query",
}  # fmt: skip
DESTRUCTIVE = {"update_memory", "delete_memory"}


class Host:
    """An agent host: calls tools, and notes which."""

    def __init__(self, client: Client):
        self.client = client
        self.used: set[str] = set()

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """What a call that must succeed returns."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        self.used.add(tool)
        assert json.loads(result.content[0].text) == result.structured_content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """What a call that must fail says."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error and result.structured_content is None
        return result.content[0].text


@asynccontextmanager
async def host_of(service: InProcess, key: str, mode: str = "auto") -> AsyncIterator[Host]:
    """A host of this process's service. `legacy` begins with the handshake of older protocol
    versions.
    """
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(service.application), headers=headers
        ) as http,
        Client(
            streamable_http_client("http://mneme.test/mcp", http_client=http), mode=mode
        ) as client,
    ):
        yield Host(client)


@asynccontextmanager
async def over_sockets(service: Served, key: str, mode: str) -> AsyncIterator[Host]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=SECONDS_MAX) as http,
        Client(streamable_http_client(f"{service.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield Host(client)


@asynccontextmanager
async def over_standard_streams(service: Served, key: str, mode: str) -> AsyncIterator[Host]:
    program = StdioServerParameters(
        command=MNEME, args=["mcp", "--base-url", service.url], env={"MNEME_API_KEY": key}
    )
    async with Client(program, mode=mode) as client:
        yield Host(client)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("mcp"), http__cors_origins=[PAGE]) as running:
        yield running


@pytest.fixture(scope="module")
def token(service: InProcess) -> str:
    return service.register("ada@example.com")


def visit(
    service: InProcess, key: str, story: Callable[[Host], Awaitable[None]], mode: str = "auto"
) -> None:
    """Run a host's story beside the service."""

    async def run() -> None:
        async with asyncio.timeout(SECONDS_MAX), host_of(service, key, mode) as host:
            await story(host)

    service.run(run())


# --- what there is --------------------------------------------------------------------------------


def test_a_tool_is_an_operation_with_some_of_its_fields(service: InProcess) -> None:
    for tool, operation in service.registry.tools:
        assert service.registry.operations[tool.operation] is operation
        schema = BoundTool(tool, operation).input_schema()
        text = json.dumps(schema)
        assert "$ref" not in text and '"null"' not in text
        assert set(schema["required"]) <= set(schema["properties"])
        assert schema["additionalProperties"] is False
        assert all(field["description"] for field in schema["properties"].values()), tool.name


async def use_every_tool(host: Host) -> None:
    """One story with all of them."""
    listed = (await host.client.list_tools()).tools
    assert {tool.name for tool in listed} == NAMES
    assert {tool.name for tool in listed if tool.annotations.read_only_hint} == READING
    assert {tool.name for tool in listed if tool.annotations.destructive_hint} == DESTRUCTIVE
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)
    made = await host(
        "add_memory",
        content="The spare key is under the blue flowerpot.",
        user_id="ada",
        tags=["home"],
    )
    found = await host("search_memories", query="Where is the spare key?", user_id="ada")
    assert [hit["id"] for hit in found["results"]] == [made["id"]] and "metadata" not in found[
        "results"
    ][0]
    full = await host("search_memories", query="Where is the spare key?", view="full")
    assert full["results"][0]["tags"] == ["home"]
    changed = await host(
        "update_memory", memory_id=made["id"], content="The spare key is in the shed."
    )
    assert changed["version"] == 2
    assert (await host("get_memory", memory_id=made["id"]))[
        "content"
    ] == "The spare key is in the shed."
    said = [{"role": "user", "name": "Zoe", "content": "I live in Lisbon. I love jazz."}]
    job = await host("process_conversation", messages=said, user_id="zoe")
    assert job["status"] == "completed" and job["result"]["memories_created"] == 3
    page = await host("list_memories", user_id="zoe", limit=2, include_superseded=True)
    assert page["total_count"] == 3 and page["has_more"]
    rest = await host(
        "list_memories", user_id="zoe", limit=2, include_superseded=True, cursor=page["next_cursor"]
    )
    assert rest["items"] and not rest["has_more"]
    answer = await host("ask_memories", query="Where is the spare key?", user_id="ada")
    assert "citations" in answer
    block = await host("recall_context", query="Where is the spare key?", token_budget=200)
    assert "shed" in block["context"] and block["tokens"] <= 200
    graph = await host("graph_query", entity="Zoe", depth=1)
    assert "Lisbon" in [entity["name"] for entity in graph["entities"]]
    corrected = await host(
        "add_correction",
        corrected_content="Zoe lives in Porto.",
        correction_type="factual",
        user_id="zoe",
    )
    assert corrected["correction_type"] == "factual"
    candidates = [{"action_key": "refund"}, {"action_key": "voucher"}]
    own = {"mode": "observe", "chosen_action_key": "refund", "propensity_unknown": True}
    decision = await host("record_decision", policy_key="support", candidates=candidates, **own)
    outcome = await host("record_outcome", decision_id=decision["decision_id"], success=True)
    assert outcome["composite_reward"] == 1
    assert (await host("delete_memory", memory_id=made["id"]))["deleted"]
    assert host.used == NAMES


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_works_in_every_version_of_the_protocol(service: InProcess, mode: str) -> None:
    visit(service, service.register(f"{mode}@example.com"), use_every_tool, mode)


def test_resources_are_the_profile_and_the_collections(service: InProcess) -> None:
    key = service.register("collector@example.com")
    for number in range(60):
        service.request(
            "POST",
            "/v1/collections",
            {"name": f"collection {number}", "description": "of a test"},
            who=key,
        )
    service.request(
        "POST", "/v1/memories", {"content": "A thing to list.", "user_id": "a/b"}, who=key
    )

    async def story(host: Host) -> None:
        first = await host.client.list_resources()
        second = await host.client.list_resources(cursor=first.next_cursor)
        found = first.resources + second.resources
        assert second.next_cursor is None and len({resource.uri for resource in found}) == 62
        assert found[0].uri == "mneme://profile" and {resource.name for resource in found} >= {
            "default",
            "collection 59",
        }

        async def read(uri: str) -> Any:
            (content,) = (await host.client.read_resource(uri)).contents
            assert (content.uri, content.mime_type) == (uri, "application/json")
            return json.loads(content.text)

        assert (await read("mneme://profile"))["user_id"] is None
        assert (await read("mneme://profile/a%2Fb"))["user_id"] == "a/b"
        default = next(resource.uri for resource in found if resource.name == "default")
        assert (await read(default))["is_default"]
        assert [item["content"] for item in (await read(default + "/memories"))["items"]] == [
            "A thing to list."
        ]
        templates = (await host.client.list_resource_templates()).resource_templates
        assert {template.uri_template for template in templates} == {
            "mneme://profile/{user_id}", "mneme://collections/{id}",
            "mneme://collections/{id}/memories",
        }  # fmt: skip
        for wrong in (
            "mneme://secrets",
            "mneme://collections/",
            "mneme://collections/../memories/x",
            "file:///etc/passwd",
            "mneme://profile?x",
        ):
            with pytest.raises(MCPError, match="no resource with this address"):
                await host.client.read_resource(wrong)
        with pytest.raises(MCPError, match="no collection with this id"):
            await host.client.read_resource("mneme://collections/col_1")

    visit(service, key, story)


# --- who may --------------------------------------------------------------------------------------


def test_another_account_s_ids_are_refused(service: InProcess, token: str) -> None:
    stranger = service.register("eve@example.com")
    memory = service.request(
        "POST", "/v1/memories", {"content": "Eve's secret."}, who=stranger
    ).json()["id"]
    collection = service.request("POST", "/v1/collections", {"name": "Eve's"}, who=stranger).json()[
        "id"
    ]
    told = {"policy_key": "p", "candidates": [{"action_key": "a"}]}
    decision = service.request("POST", "/v1/learning/decisions", told, who=stranger).json()[
        "decision_id"
    ]

    async def story(host: Host) -> None:
        foreign = "This id belongs to another account."
        for tool in ("get_memory", "update_memory", "delete_memory"):
            assert await host.refused(tool, memory_id=memory) == foreign
        assert await host.refused("record_outcome", decision_id=decision, success=True) == foreign
        assert (
            await host.refused(
                "add_correction", corrected_content="x", correction_type="factual", memory_id=memory
            )
            == foreign
        )
        for tool, arguments in (
            ("add_memory", {"content": "x"}), ("search_memories", {"query": "secret"}),
            ("ask_memories", {"query": "secret"}),
            ("list_memories", {}),
            ("process_conversation", {"messages": [{"role": "user", "content": "x"}]}),
            ("record_decision", told),
            ("add_correction", {"corrected_content": "x", "correction_type": "factual"}),
        ):  # fmt: skip
            assert await host.refused(tool, collection_id=collection, **arguments) == foreign, tool
        with pytest.raises(MCPError, match="another account"):
            await host.client.read_resource(f"mneme://collections/{collection}/memories")
        assert (await host("search_memories", query="Eve's secret"))["results"] == []

    visit(service, token, story)
    assert (
        service.request("GET", f"/v1/memories/{memory}", who=stranger).json()["content"]
        == "Eve's secret."
    )


def test_a_key_that_reads_cannot_write(service: InProcess, token: str) -> None:
    memory = service.request("POST", "/v1/memories", {"content": "To be kept."}, who=token).json()[
        "id"
    ]
    key = service.mint(token, "read")["key"]
    writing = {
        "add_memory": {"content": "x"}, "update_memory": {"memory_id": memory, "content": "x"},
        "delete_memory": {"memory_id": memory},
        "process_conversation": {"messages": [{"role": "user", "content": "x"}]},
        "add_correction": {
            "corrected_content": "x", "correction_type": "factual", "memory_id": memory
        },
        "record_decision": {"policy_key": "p", "candidates": [{"action_key": "a"}]},
        "record_outcome": {"decision_id": "dec_" + "0" * 32, "success": True},
    }  # fmt: skip
    assert set(writing) == NAMES - READING

    async def story(host: Host) -> None:
        for tool, arguments in writing.items():
            assert await host.refused(tool, **arguments) == "This API key lacks the scope 'write'."
        assert (await host("get_memory", memory_id=memory))["version"] == 1

    visit(service, key, story)


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def post(service: InProcess, sent: Any, who: str | None, **headers: str) -> httpx.Response:
    """A message as it comes over the wire, in a version of the protocol that needs nothing else."""
    return service.request(
        "POST",
        "/mcp",
        sent,
        who=who,
        **{"Accept": "application/json, text/event-stream", **headers},
    )


HELLO = message(
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)
ASKED = {
    "initialize": HELLO, "tools/list": message("tools/list"),
    "tools/call": message("tools/call", name="list_memories", arguments={}),
    "no such tool": message("tools/call", name="nothing", arguments={}),
    "what no tool takes": message("tools/call", name="list_memories", arguments={"limit": 10**33}),
    "resources/list": message("resources/list"),
    "resources/read": message("resources/read", uri="mneme://profile"), "ping": message("ping"),
    "no such resource": message("resources/read", uri="mneme://nothing"),
    "a notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "nonsense": message("x/y"), "no message": [],
}  # fmt: skip


@pytest.mark.parametrize("what", ASKED)
def test_without_a_good_credential_nothing_is_answered(
    service: InProcess, token: str, what: str
) -> None:
    minted = service.mint(token, "read")
    content = json.dumps(ASKED[what]).encode()
    typed = {"Content_Type": "application/json"}
    assert post(service, content, minted["key"], **typed).status_code < 500
    service.request("DELETE", f"/v1/auth/api-keys/{minted['id']}", who=token)
    for who, code in (
        (None, "missing_api_key"),
        ("nonsense", "invalid_api_key"),
        (minted["key"], "invalid_api_key"),
    ):
        answer = post(service, content, who, **typed)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, code)
        assert answer.headers["WWW-Authenticate"] == "Bearer" and answer.headers["X-Request-ID"]


def test_a_number_that_no_request_holds_is_refused(
    service: InProcess, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    fact = {"content": "The key is under the pot.", "importance": 10**33}
    asked = message("tools/call", name="add_memory", arguments=fact)
    answer = post(service, json.dumps(asked).encode(), token, Content_Type="application/json")
    assert "too large" in answer.json()["error"]["message"]
    asked = message("tools/call", name="list_memories", arguments={"limit": 10**33})
    answer = post(service, json.dumps(asked).encode(), token, Content_Type="application/json")
    assert answer.json()["result"]["isError"] and "limit" in answer.text
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_is_not_taken_as_absent(
    service: InProcess, token: str, number: str
) -> None:
    for argument, value in (("importance", number), ("metadata", f'{{"width": [{number}]}}')):
        arguments = f'{{"content": "A wall.", "{argument}": {value}}}'
        asked = json.dumps(message("tools/call", name="add_memory", arguments=0))
        sent = asked.replace('"arguments": 0', f'"arguments": {arguments}').encode()
        answer = post(service, sent, token, Content_Type="application/json").json()["result"]
        assert answer["isError"]
        assert answer["content"][0]["text"].startswith(f"{argument} must have finite numbers")


def test_the_operator_is_no_tenant(service: InProcess) -> None:
    operator = service.secrets.operator_token
    assert post(service, ASKED["tools/list"], operator).status_code == 403
    called = post(service, ASKED["tools/call"], operator).json()["result"]
    assert called["isError"] and "operator" in called["content"][0]["text"]


def test_other_methods_and_other_origins_are_refused(service: InProcess, token: str) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        answer = service.request(method, "/mcp", who=token, Accept="text/event-stream")
        assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        assert service.request(method, "/mcp").status_code == 401
    assert post(service, HELLO, token, Origin="http://evil.example").status_code == 403
    assert post(service, HELLO, token, Origin="null").status_code == 403
    assert post(service, HELLO, token, Origin=PAGE).status_code == 200
    assert post(service, HELLO, token, Origin="http://mneme.test").status_code == 200
    assert (
        service.request(
            "POST", "/mcp/", HELLO, who=token, Accept="application/json, text/event-stream"
        ).status_code
        == 200
    )
    assert service.request("POST", "/mcpx", HELLO, who=token).status_code == 404


# --- what is sent to try it out -------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"null", b"[]", b'"tools/call"', b"\xff\xfe", b"{}",
        b'{"jsonrpc": "2.0", "id": 1}', b"[" * 100_000, b"9" * 10_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {"jsonrpc": "2.0", "id": 2, '
        b'"method": "tools/list"}]',
        b'{"jsonrpc": "2.0", "id": 1, "method": {"a": "tools/call"}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add_memory", '
        b'"arguments": ["x"]}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 7}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", "1999-01-01"])
def test_what_is_no_message_is_an_error_and_no_fault(
    service: InProcess, token: str, content: bytes, version: str
) -> None:
    answer = post(
        service, content, token, Content_Type="application/json", MCP_Protocol_Version=version
    )
    assert answer.status_code in (200, 202, 400, 404, 406), answer.text
    if answer.status_code == 200:
        assert "error" in answer.json()


def test_arguments_are_judged_by_the_operation(service: InProcess, token: str) -> None:
    async def story(host: Host) -> None:
        assert await host.refused("add_memory") == "content is required."
        assert "body.content" in await host.refused("add_memory", content=7)
        assert "body.importance" in await host.refused("add_memory", content="x", importance=2)
        assert "query.limit" in await host.refused("list_memories", limit=101)
        assert await host.refused("list_memories", limit={"a": [1]}) == "limit must be one value."
        assert await host.refused("list_memories", tag=["a"]) == "tag must be one value."
        assert "must not be empty" in await host.refused("list_memories", user_id="")
        assert await host.refused("process_conversation") == "messages is required."
        assert "body.filters" in await host.refused(
            "search_memories", query="x", filters={"colour": "blue"}
        )
        no_id = "memory_id must be an id, as other tools return it."
        for wrong in (
            None,
            "",
            "all",
            "..",
            "mem_1/../all",
            "mem_%2e",
            ["mem_1"],
            7,
            "mem_1?confirm=delete-all-memories",
            "x" * 10_000,
        ):
            for tool in ("get_memory", "delete_memory"):
                assert await host.refused(tool, memory_id=wrong) == no_id
            assert await host.refused("update_memory", memory_id=wrong, content="x") == no_id
        assert (
            await host.refused("get_memory", memory_id="mem_1")
            == "There is no memory with this id."
        )
        for other in ({"contents": "y"}, {"expires_at": "2020-01-01"}, {"wait_for_index": True}):
            refused = await host.refused("add_memory", content="x", **other)
            assert refused.startswith("The arguments of add_memory are content, user_id, "), refused
        with pytest.raises(MCPError, match="no tool of this name"):
            await host.client.call_tool("drop_tables", {})

    visit(service, token, story)


def test_a_body_may_not_be_endless(service: InProcess, token: str) -> None:
    assert (
        post(
            service, b" " * (10 * 1024 * 1024 + 1), token, Content_Type="application/json"
        ).status_code
        == 413
    )


def test_a_message_may_not_have_endless_values(service: InProcess, token: str) -> None:
    head = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":['
    for count, status in ((JSON_ITEMS_MAX // 2, 200), (JSON_ITEMS_MAX, 400)):
        sent = head + b",".join([b"1"] * count) + b"]}}"
        answer = post(service, sent, token, Content_Type="application/json")
        assert answer.status_code == status
    assert "values" in answer.text


def test_the_wrong_type_of_content_is_refused(service: InProcess, token: str) -> None:
    assert (
        post(service, json.dumps(HELLO).encode(), token, Content_Type="text/plain").status_code
        == 400
    )


def test_nothing_an_agent_says_is_logged(
    service: InProcess, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def story(host: Host) -> None:
        await host("add_memory", content="Canary sings.")
        await host.refused("search_memories", query="Canary", limit=-1)
        with pytest.raises(MCPError):
            await host.client.call_tool("Canary", {"Canary": "Canary"})
        with pytest.raises(MCPError):
            await host.client.read_resource("mneme://Canary")

    visit(service, token, story)
    assert "Canary" not in caplog.text


def test_a_tool_costs_what_its_operation_costs(service: InProcess) -> None:
    key = service.register("payer@example.com")

    async def story(host: Host) -> None:
        await host("add_memory", content="x")
        await host.refused("add_memory", content="")
        await host("list_memories")

    visit(service, key, story)
    used = service.request("GET", "/v1/usage", who=key).json()
    assert used["credits"]["used"] == 1
    assert {
        entry["operation"]: entry["credits"] for entry in used["by_operation"] if entry["credits"]
    } == {"memories.create": 1}


# --- for real -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "mode"),
    [
        (over_sockets, "auto"),
        (over_sockets, "legacy"),
        (over_standard_streams, "auto"),
        (over_standard_streams, "legacy"),
    ],
)
def test_an_agent_host_uses_every_tool_of_a_service(
    shared_service: Served, way: Any, mode: str
) -> None:
    key = shared_service.register(f"{way.__name__}-{mode}@example.com")
    reader = mint(shared_service, key, "read")

    async def story() -> None:
        async with asyncio.timeout(SECONDS_MAX), way(shared_service, key, mode) as host:
            assert (
                host.client.instructions.startswith("Mneme remembers")
                and host.client.server_info.name == "mneme"
            )
            if mode == "legacy":
                assert await host(
                    "add_memory", content="The protocol is what differs, the tools do not."
                )
                return
            await use_every_tool(host)
            assert (await host.client.list_resources()).resources[0].uri == "mneme://profile"
            assert len((await host.client.list_resource_templates()).resource_templates) == 3
            assert (await host.client.read_resource("mneme://profile")).contents
            assert "no memory with this id" in await host.refused("get_memory", memory_id="mem_1")
        async with asyncio.timeout(SECONDS_MAX), way(shared_service, reader, mode) as host:
            assert "lacks the scope 'write'" in await host.refused("add_memory", content="x")

    asyncio.run(story())


def mint(service: Served, token: str, *scopes: str) -> str:
    answer = service.http.post(
        "/v1/auth/api-keys",
        json={"name": "k", "scopes": scopes},
        headers={"Authorization": f"Bearer {token}"},
    )
    return answer.json()["key"]
