#!/usr/bin/env python3
"""An agent with memory: a language model that is given Mneme's tools over MCP, and decides by
itself when to use them.

The loop is the one in every agent framework; those that speak MCP need nothing but the address and
the header below.

.venv/bin/python examples/agent.py --api-key mem_sk_… --llm-url http://127.0.0.1:11434/v1 --model
llama3.2 "I moved to Porto."
"""

from __future__ import annotations

import argparse
import asyncio
import json

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from openai import AsyncOpenAI

ROUNDS_MAX = 8


async def ask(memory: Client, llm: AsyncOpenAI, model: str, text: str) -> str:
    """The agent's answer, after as many calls of tools as it wants."""
    functions = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            },
        }
        for tool in (await memory.list_tools()).tools
    ]
    conversation = [
        {"role": "system", "content": memory.instructions},
        {"role": "user", "content": text},
    ]
    for _ in range(ROUNDS_MAX):
        completion = await llm.chat.completions.create(
            model=model, messages=conversation, tools=functions
        )
        said = completion.choices[0].message
        if not said.tool_calls:
            return said.content
        conversation.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            result = await memory.call_tool(call.function.name, json.loads(call.function.arguments))
            print(f"{call.function.name}: {'refused' if result.is_error else 'done'}")
            # What a tool says when it fails goes to the model as well: it can mend its call.
            conversation.append(
                {"role": "tool", "tool_call_id": call.id, "content": result.content[0].text}
            )
    return "I could not finish."


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", default="http://127.0.0.1:8000")
    parser.add_argument("--api-key", required=True)
    parser.add_argument(
        "--llm-url",
        default="http://127.0.0.1:11434/v1",
        help="an OpenAI-compatible endpoint with tools",
    )
    parser.add_argument("--model", default="llama3.2")
    parser.add_argument(
        "text", nargs="+", help="what to say; each text is a conversation of its own"
    )
    options = parser.parse_args()
    async with (
        httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {options.api_key}"}, timeout=60
        ) as http,
        Client(streamable_http_client(f"{options.base_url}/mcp", http_client=http)) as memory,
        AsyncOpenAI(base_url=options.llm_url, api_key="none") as llm,
    ):
        for text in options.text:
            print(">", text)
            print(await ask(memory, llm, options.model, text))


if __name__ == "__main__":
    asyncio.run(main())
