"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each conversation has a memory of its own, which is given to the block when it ends; the block is
what leads from one to another. The model is scripted: it answers from the block in its prompt. Put
a model of yours in its place, and the engine stays as it is.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import MockLLM
from llama_index.core.memory import Memory
from mneme_client import Mneme
from mneme_llama_index import MnemeMemoryBlock

TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]
BLOCK = re.compile(r"<EarlierConversations>\s*(.+)")


class Scripted(MockLLM):
    """Answers a question by the first line of the block, a statement with a nod."""

    async def achat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        said = messages[-1].content
        known = BLOCK.search(messages[0].content or "")
        text = f"You said: {known[1].strip()}" if said.endswith("?") and known else "Noted."
        return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text))


async def main() -> None:
    with Mneme() as client:
        block = MnemeMemoryBlock(client=client, user_id=uuid.uuid4().hex, filters={"role": "user"})
        for number, conversation in enumerate(TALK, 1):
            print(f"Conversation {number}")
            memory = Memory.from_defaults(session_id=uuid.uuid4().hex, memory_blocks=[block])
            engine = SimpleChatEngine.from_defaults(llm=Scripted(), memory=memory)
            for said in conversation:
                print(f"> {said}\n{await engine.achat(said)}")
            await block.aput(await memory.aget_all(), session_id=memory.session_id)


if __name__ == "__main__":
    asyncio.run(main())
