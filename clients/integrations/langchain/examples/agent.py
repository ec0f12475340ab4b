"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each conversation is a chat history of its own; the retriever finds what earlier ones said. The
model is scripted: it answers from the memories in its prompt. Put a chat model in its place, and
the chain stays as it is.
"""

from __future__ import annotations

import uuid
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from mneme_client import Mneme
from mneme_langchain import MnemeChatMessageHistory, MnemeRetriever

TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]
PROMPT = ChatPromptTemplate(
    [
        ("system", "What you know of the user:\n{memories}"),
        MessagesPlaceholder("earlier"),
        ("human", "{said}"),
    ]
)


def model(prompt: PromptValue) -> AIMessage:
    """Scripted: a question is answered by the first memory, a statement with a nod."""
    known, *_, said = prompt.to_messages()
    memories = known.text.splitlines()[1:]
    return AIMessage(
        f"You said: {memories[0]}" if said.text.endswith("?") and memories else "Noted."
    )


def main() -> None:
    user_id = uuid.uuid4().hex
    with Mneme() as client:
        retriever = MnemeRetriever(client=client, user_id=user_id, filters={"role": "user"})

        def memories(inputs: dict[str, Any]) -> str:
            found = retriever.invoke(inputs["said"])
            return "\n".join(
                document.page_content
                for document in found
                if document.page_content != inputs["said"]
            )

        chain = RunnableWithMessageHistory(
            RunnablePassthrough.assign(memories=memories) | PROMPT | RunnableLambda(model),
            lambda session_id: MnemeChatMessageHistory(session_id, client, user_id=user_id),
            input_messages_key="said",
            history_messages_key="earlier",
        )
        for number, conversation in enumerate(TALK, 1):
            print(f"Conversation {number}")
            config = {"configurable": {"session_id": uuid.uuid4().hex}}
            for said in conversation:
                print(f"> {said}\n{chain.invoke({'said': said}, config).text}")


if __name__ == "__main__":
    main()
