"""An agent that remembers: three facts over two conversations, and an answer from them in a third.

    python agent.py

Each conversation is a thread of its own, so that nothing but the store connects them. The model is
scripted: it keeps what it is told, and answers from what the store found. Put a chat model in its
place, and the graph stays as it is.
"""

from __future__ import annotations

import uuid

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from mneme_langgraph import MnemeStore

TALK = [
    ["I eat no nuts.", "I live in Lisbon."],
    ["My cello teacher is called Jonas."],
    ["What must I not eat?", "In which city do I live?", "Who teaches me the cello?"],
]


def model(asked: str, memories: list[str]) -> AIMessage:
    """Scripted: a question is answered by the best memory, a statement with a nod."""
    return AIMessage(f"You said: {memories[0]}" if asked.endswith("?") and memories else "Noted.")


def answer(
    state: MessagesState, config: RunnableConfig, *, store: BaseStore
) -> dict[str, list[BaseMessage]]:
    """One turn: look up what is known, answer, remember what was said."""
    namespace = ("agent", config["configurable"]["user_id"])
    said = state["messages"][-1].text
    known = [item.value["said"] for item in store.search(namespace, query=said, limit=3)]
    reply = model(said, known)
    if not said.endswith("?"):
        store.put(namespace, str(uuid.uuid4()), {"said": said})
    return {"messages": [reply]}


def main() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    with MnemeStore() as store:
        graph = builder.compile(store=store)
        user_id = uuid.uuid4().hex
        for number, conversation in enumerate(TALK, 1):
            print(f"Conversation {number}")
            for said in conversation:
                state = graph.invoke(
                    {"messages": [HumanMessage(said)]},
                    {"configurable": {"user_id": user_id, "thread_id": uuid.uuid4().hex}},
                )
                print(f"> {said}\n{state['messages'][-1].text}")


if __name__ == "__main__":
    main()
