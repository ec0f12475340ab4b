"""The MCP server: protocol messages in, calls of the public API out. Imported when the first agent
connects (plugins/mcp/__init__.py).

The official SDK speaks the protocol, every version of it. The server keeps nothing between two
requests, so any gateway may answer any of them: each comes with its credential, and is answered
with one JSON document.
"""

from __future__ import annotations

import logging
from importlib import metadata
from typing import Any

import mcp_types as types
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError

from plugins.mcp.tools import (
    COLLECTION_URI,
    INSTRUCTIONS,
    PROFILE_URI,
    RESOURCES,
    BoundTool,
    NoSuchThing,
    ToolRequest,
    collections_page,
    reading,
)
from runtime.api.mount import Answer, Application, InProcessClient
from runtime.limits import BODY_BYTES_MAX

_JSON = "application/json"

Context = ServerRequestContext[Any, Any]


def application(client: InProcessClient, answered: str) -> Application:
    """The server as an ASGI application.

    answered  under this name the API's last answer is put into the request's scope: one of 401 is
              none to an agent but to its host
    """
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it tells of every message otherwise
    server = _server(Handlers(client, answered))

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        # One of these serves one request, so there is nothing to start with the gateway and to stop
        # with it.
        manager = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=BODY_BYTES_MAX
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return serve


class Handlers:
    """What the server answers to each message, by calls of the public API."""

    def __init__(self, client: InProcessClient, answered: str):
        self._client, self._answered = client, answered
        self._tools = {tool.name: BoundTool(tool, operation) for tool, operation in client.tools}
        self.schemas = {name: tool.input_schema() for name, tool in self._tools.items()}

    async def _ask(self, context: Context, request: ToolRequest) -> Answer:
        """The API's answer to whoever sent the message."""
        if context.request is None:
            raise LookupError("a message came without the request that carried it")
        scope = context.request.scope
        authorization = context.request.headers.get("authorization", "")
        sent = {"query": request.query, "json": request.json, "headers": request.headers}
        try:
            answer = await self._client.call(
                request.method, request.path, within=scope, authorization=authorization, **sent
            )
        except orjson.JSONEncodeError:
            raise MCPError(
                types.INVALID_PARAMS, "An argument has a number that is too large."
            ) from None
        scope[self._answered] = answer
        return answer

    async def _read(self, context: Context, request: ToolRequest) -> Any:
        answer = await self._ask(context, request)
        if answer.status >= 400:
            raise MCPError(
                types.INVALID_PARAMS if answer.status < 500 else types.INTERNAL_ERROR,
                _message(answer),
            )
        return answer.json()

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        tools = [_described(self._tools[name], schema) for name, schema in self.schemas.items()]
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                types.INVALID_PARAMS, "There is no tool of this name; tools/list has them all."
            )
        try:
            answer = await self._ask(context, tool.request(params.arguments or {}))
        except NoSuchThing as nothing:
            return _result(str(nothing), is_error=True)
        if answer.status >= 400:
            return _result(_message(answer), is_error=True)
        return _result(answer.body.decode(), structured=answer.json())

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params is not None else None
        page = await self._read(context, collections_page(cursor))
        found = [
            _resource(
                COLLECTION_URI.format(**item),
                item["name"],
                item["description"] or RESOURCES[COLLECTION_URI][1],
            )
            for item in page["items"]
        ]
        profile = [] if cursor else [_resource(PROFILE_URI, *RESOURCES[PROFILE_URI][:2])]
        return types.ListResourcesResult(
            resources=[*profile, *found], next_cursor=page["next_cursor"]
        )

    async def list_templates(
        self, context: Context, params: Any
    ) -> types.ListResourceTemplatesResult:
        return _templates()

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            found = await self._read(context, reading(params.uri))
        except NoSuchThing as nothing:
            raise MCPError(types.INVALID_PARAMS, str(nothing)) from None
        text = types.TextResourceContents(
            uri=params.uri, mime_type=_JSON, text=orjson.dumps(found).decode()
        )
        return types.ReadResourceResult(contents=[text])


def _server(handlers: Handlers) -> Server[Any]:
    return Server(
        "mneme",
        version=metadata.version("mneme"),
        title="Mneme",
        instructions=INSTRUCTIONS,
        get_tool_input_schema=handlers.schemas.get,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


def _described(bound: BoundTool, schema: dict[str, Any]) -> types.Tool:
    tool = bound.tool
    hints = types.ToolAnnotations(
        title=tool.name.replace("_", " ").capitalize(),
        read_only_hint=bound.reads,
        destructive_hint=tool.destructive,
        idempotent_hint=bound.reads or tool.repeatable,
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name, description=tool.description, input_schema=schema, annotations=hints
    )


def _templates() -> types.ListResourceTemplatesResult:
    """The addresses of resources with a name to fill in."""
    templates = [
        types.ResourceTemplate(
            name=name, uri_template=uri, description=description, mime_type=_JSON
        )
        for uri, (name, description, _) in RESOURCES.items()
        if "{" in uri
    ]
    return types.ListResourceTemplatesResult(resource_templates=templates)


def _resource(uri: str, name: str, description: str) -> types.Resource:
    return types.Resource(uri=uri, name=name, description=description, mime_type=_JSON)


def _result(text: str, *, structured: Any = None, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=structured, is_error=is_error
    )


def _message(answer: Answer) -> str:
    """What the service says is wrong, for an agent to read."""
    body = answer.json()
    error = body["error"] if isinstance(body["error"], dict) else body
    return error["message"]
