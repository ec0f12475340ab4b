"""Mneme as the long-term memory of LangGraph graphs: `MnemeStore` is a `BaseStore`.

    with MnemeStore() as store:
        graph = builder.compile(store=store)
        store.put(("users", "ada"), "food", {"text": "Ada eats no nuts."})
        store.search(("users", "ada"), query="What must Ada not eat?")

items.py says how an item lies in a memory, conditions.py what a filter means, store.py which
operations of the service each operation of the store becomes.
"""

from .store import MnemeStore

__all__ = ["MnemeStore"]
