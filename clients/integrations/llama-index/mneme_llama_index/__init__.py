"""Mneme for LlamaIndex.

    block = MnemeMemoryBlock(user_id="ada")
    memory = Memory.from_defaults(session_id="chat-7", memory_blocks=[block])

`MnemeMemoryBlock` is a `BaseMemoryBlock`: it keeps what leaves the short-term memory, and gives a
conversation what earlier ones said.
"""

from .block import MnemeMemoryBlock

__all__ = ["MnemeMemoryBlock"]
