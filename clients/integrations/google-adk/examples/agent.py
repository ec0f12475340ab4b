"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each conversation is a session of its own, which is added to the memory when it ends; the tool
`preload_memory` is what leads from one to another. The model is scripted: it answers from the
memories in its prompt. Give the agent a model of yours in its place.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import preload_memory
from google.genai import types
from mneme_google_adk import MnemeMemoryService

APP = "agent"
TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]
MEMORY = re.compile(r"^user: (.+)$", re.MULTILINE)


class Scripted(BaseLlm):
    """Answers a question by the first memory in its prompt, a statement with a nod."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        prompt = [content.parts[0].text for content in llm_request.contents]
        said = prompt[-1]
        known = MEMORY.search("\n".join(prompt[:-1]))
        text = f"You said: {known[1]}" if said.endswith("?") and known else "Noted."
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    memory = MnemeMemoryService(filters={"role": "user"})
    sessions = InMemorySessionService()
    agent = LlmAgent(name="assistant", model=Scripted(model="scripted"), tools=[preload_memory])
    runner = Runner(agent=agent, app_name=APP, session_service=sessions, memory_service=memory)
    user_id = uuid.uuid4().hex
    for number, conversation in enumerate(TALK, 1):
        print(f"Conversation {number}")
        session = await sessions.create_session(app_name=APP, user_id=user_id)
        for said in conversation:
            message = types.Content(role="user", parts=[types.Part(text=said)])
            async for event in runner.run_async(
                user_id=user_id, session_id=session.id, new_message=message
            ):
                if event.is_final_response():
                    print(f"> {said}\n{event.content.parts[0].text}")
        ended = await sessions.get_session(app_name=APP, user_id=user_id, session_id=session.id)
        await memory.add_session_to_memory(ended)
    memory.close()


if __name__ == "__main__":
    asyncio.run(main())
