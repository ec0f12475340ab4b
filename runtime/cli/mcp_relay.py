"""`mneme mcp`: MCP over standard input and output, for hosts that start a program, relayed to a
running service.

It offers what the service offers at /mcp, and does nothing by itself: each request of the host
becomes one to the service, with the account's key. The official SDK speaks on both sides, so the
host and the service need not agree on a version of the protocol. Standard output carries the
protocol and nothing else.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import mcp_types as types
import orjson
from mcp import Client, stdio_server
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server

from runtime.cli.client import is_loopback
from runtime.limits import CALL_SECONDS_MAX


def relay(base_url: str, api_key: str) -> None:
    """Serve the host until it closes standard input. Raises BrokenPipeError where it has closed
    standard output before.
    """
    is_heard = True
    try:
        asyncio.run(_relay(base_url, api_key))
    except* BrokenPipeError:
        is_heard = False
    if not is_heard:
        raise BrokenPipeError


async def _relay(base_url: str, api_key: str) -> None:
    remote = not is_loopback(base_url)
    headers = {"Authorization": f"Bearer {api_key}"}
    async with (
        _Telling(
            headers=headers, verify=remote, trust_env=remote, timeout=CALL_SECONDS_MAX
        ) as http,
        Client(streamable_http_client(f"{base_url}/mcp", http_client=http), cache=None) as service,
        stdio_server() as (heard, said),
    ):
        server = _server(service)
        await server.run(heard, said, server.create_initialization_options())


class _Telling(httpx2.AsyncClient):
    """An HTTP client for which a service that does not answer, or refuses, is an answer with the
    reason as an error of the protocol.

    A host is told so, and the relay goes on: the service may be back for its next request.
    """

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        try:
            answer = await super().send(request, **how)
        except httpx2.TransportError:
            return _error(request, 503, f"The service at {request.url} does not answer.")
        if answer.status_code < 400:
            return answer
        try:
            error = orjson.loads(await answer.aread())["error"]
            # An error of the protocol has a number for its code, and is passed on; one of the
            # service has a word or none.
            return (
                answer
                if isinstance(error.get("code"), int)
                else _error(request, answer.status_code, error["message"])
            )
        except (
            orjson.JSONDecodeError,
            LookupError,
            TypeError,
            AttributeError,
            httpx2.TransportError,
        ):
            return _error(
                request,
                answer.status_code,
                f"The service at {request.url} answered with {answer.status_code}.",
            )


def _error(request: httpx2.Request, status: int, message: str) -> httpx2.Response:
    body = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": types.INTERNAL_ERROR, "message": message},
    }
    return httpx2.Response(status, json=body, request=request)


def _server(service: Client) -> Server[Any]:
    async def list_tools(
        _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return await service.list_tools(cursor=_cursor(params))

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await service.call_tool(params.name, params.arguments)

    async def list_resources(
        _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await service.list_resources(cursor=_cursor(params))

    async def list_templates(
        _: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return await service.list_resource_templates(cursor=_cursor(params))

    async def read_resource(
        _: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await service.read_resource(params.uri)

    about = service.server_info
    if about is None:
        raise LookupError("the service did not say who it is")
    return Server(
        about.name,
        version=about.version,
        title=about.title,
        instructions=service.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _cursor(params: types.PaginatedRequestParams | None) -> str | None:
    return params.cursor if params is not None else None
