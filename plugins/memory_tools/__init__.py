"""What an agent edits its own memory with (beta): three verbs over memories, and a tree of files.

    edit.py    insert, replace and rethink one memory
    files.py   the commands of a memory tool, over memories that are files in a tree
    paths.py   the names in such a tree

It stores nothing of its own: what it changes are memories, through plugins/memories.
"""

from __future__ import annotations

from plugins.memories import MEMORY_FIELDS
from plugins.memory_tools import edit, files
from plugins.memory_tools.files import FILE
from runtime.api.plugin import Plugin

__all__ = ["FILE", "plugin"]

plugin = Plugin(
    name="memory_tools",
    requires=("collections", "memories"),
    operations=(*edit.OPERATIONS, *files.OPERATIONS),
    index_entries={MEMORY_FIELDS.name: files.index_entries},
)
