"""What is no request: the server's life, and connections that ask for WebSocket."""

from __future__ import annotations

import os
import time
from collections.abc import MutableMapping
from typing import Any

from runtime.api.mount import Scope, Send
from runtime.api.operation import Reply
from runtime.errors import BadRequest
from runtime.http.bodies import Receive
from runtime.http.responses import Responses, request_id_of

_AS_ANSWER = "websocket.http.response"  # the ASGI extension for refusing with an answer


async def live(receive: Receive, send: Send) -> None:
    """Say that nothing has to be started or stopped here, until the server ends."""
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def refuse_websocket(responses: Responses, scope: Scope, send: Send) -> None:
    """Refuse a connection that wants to go on in WebSocket: with an error like any other where the
    server can send one, else by closing it.
    """
    if _AS_ANSWER not in scope.get("extensions", ()):
        await send({"type": "websocket.close", "code": 1000})
        return
    began = time.perf_counter()

    async def as_answer(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    refused = BadRequest(
        "This service does not speak WebSocket. Send the request without the Upgrade header; what "
        "comes piece by piece comes as server-sent events.",
        param="Upgrade",
    )
    request_id = request_id_of(dict(scope["headers"]), os.urandom(16))
    await responses.send(as_answer, Reply(error=refused), "GET", request_id, began, secure=False)
