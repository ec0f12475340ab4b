"""Mneme for the Google Agent Development Kit.

    memory = MnemeMemoryService()
    runner = Runner(agent=agent, app_name="app", session_service=…, memory_service=memory)
    await memory.add_session_to_memory(session)

`MnemeMemoryService` is a `BaseMemoryService`: it keeps what sessions said, so that the tools
`load_memory` and `preload_memory` find it in later ones.
"""

from .memory import MnemeMemoryService

__all__ = ["MnemeMemoryService"]
