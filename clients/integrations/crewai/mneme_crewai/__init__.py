"""Mneme as the memory of CrewAI crews and agents.

    memory = MnemeMemory(root_scope="/crew/research")
    crew = Crew(agents=[…], tasks=[…], memory=memory)

`MnemeMemory` is a `Memory` that neither embeds nor asks a language model: the service does the
finding. `MnemeStorage`, under it, is a `StorageBackend` but for searches by a vector.
"""

from .memory import MnemeMemory
from .storage import MnemeStorage

__all__ = ["MnemeMemory", "MnemeStorage"]
