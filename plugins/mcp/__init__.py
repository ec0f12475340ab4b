"""MCP: memory for agent hosts, at /mcp (streamable HTTP), with the same credential as everything
else.

Owns who is let in there. What there is to do, the plugins declare as tools; tools.py
makes requests of them, and server.py says it in the protocol. It is imported when the first agent
connects: a gateway that serves none does not pay for the protocol. Desktop hosts reach the same
address through `mneme mcp` (runtime/cli/mcp_relay.py).

Choices:
- There are no sessions and no streams, so that any gateway answers any request: a GET, which would
  open a stream, is 405.
- A credential that the service does not know is 401 whatever is asked, so that hosts notice at
  once. Messages that ask nothing of the API are let in by asking it who is calling; the others find
  out by themselves.
- Where the protocol's package is not installed, whoever has a valid credential is told so: 501.
- Nothing is granted for where a request comes from, so any Host will do. An Origin header must name
  that same host, or be one of `http.cors_origins`: a page of another site has no business here.
"""

from __future__ import annotations

from plugins.mcp.endpoint import build, claims
from runtime.api.mount import Mount
from runtime.api.plugin import Plugin
from runtime.extras import MCP

__all__ = ["plugin"]

plugin = Plugin(
    name="mcp",
    mounts=(Mount("mcp", claims, build),),
    extras=(MCP,),
)
