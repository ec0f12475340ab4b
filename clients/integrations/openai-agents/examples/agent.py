"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each conversation is a session of its own; the tool `recall` is what leads from one to another. The
model is scripted: it asks its tool when it is asked, and says what it was told. Give the agent a
model of yours in its place.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from mneme_client import Mneme
from mneme_openai_agents import MnemeSession
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]


class Scripted(Model):
    """A question makes it call `recall`; what that returns is its answer."""

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        last = (args[1] if len(args) > 1 else kwargs["input"])[-1]
        if last.get("type") == "function_call_output":
            output: Any = said(f"You said: {last['output'].splitlines()[0]}")
        elif last["content"].endswith("?"):
            output = ResponseFunctionToolCall(
                type="function_call",
                call_id=uuid.uuid4().hex,
                name="recall",
                arguments=json.dumps({"query": last["content"]}),
            )
        else:
            output = said("Noted.")
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise RuntimeError("This script does not stream.")


def said(text: str) -> ResponseOutputMessage:
    return ResponseOutputMessage(
        id=uuid.uuid4().hex,
        type="message",
        role="assistant",
        status="completed",
        content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
    )


async def main() -> None:
    user_id = uuid.uuid4().hex
    with Mneme() as client:
        for number, conversation in enumerate(TALK, 1):
            print(f"Conversation {number}")
            session = MnemeSession(uuid.uuid4().hex, client, user_id=user_id)
            agent = Agent(name="assistant", model=Scripted(), tools=[session.recall_tool()])
            for text in conversation:
                config = RunConfig(tracing_disabled=True)
                ended = await Runner.run(agent, text, session=session, run_config=config)
                print(f"> {text}\n{ended.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
