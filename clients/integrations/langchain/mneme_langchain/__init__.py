"""Mneme for LangChain.

    retriever = MnemeRetriever(user_id="ada", k=4)
    retriever.invoke("What must Ada not eat?")

    history = MnemeChatMessageHistory("chat-7", user_id="ada")
    history.add_messages([HumanMessage("I eat no nuts.")])

`MnemeRetriever` is a `BaseRetriever` over all that is remembered, `MnemeChatMessageHistory` a
`BaseChatMessageHistory`. What the one keeps the other finds.
"""

from .history import MnemeChatMessageHistory
from .retriever import MnemeRetriever

__all__ = ["MnemeChatMessageHistory", "MnemeRetriever"]
