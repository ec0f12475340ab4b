"""What tests of several floors share: the repository's root, settings that cost nothing, and the
plugin of PLUGINS.md.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plugins import accounts
from runtime.api.plugin import Plugin
from runtime.inference import Models
from serve_app import Settings
from tests.support import ROOT
from tests.support.shard_harness import CHEAP, ShardHarness


def settings(**overrides: Any) -> Settings:
    """Cheap settings with dotted overrides, written with two underscores:
    settings(write__ready_wait_ms=0).
    """
    return Settings.load(
        CHEAP, {name.replace("__", "."): value for name, value in overrides.items()}
    )


def example_plugin() -> Plugin:
    """The plugin of PLUGINS.md, exactly as printed there, with its settings and checks."""
    printed = re.findall(r"```python\n(.*?)```", (ROOT / "PLUGINS.md").read_text(), re.DOTALL)
    source = "\n".join(block for block in printed if "BOOKMARKS" in block or "Bookmark" in block)
    module = types.ModuleType("example_bookmarks")
    sys.modules[module.__name__] = module
    exec(compile(source, "PLUGINS.md", "exec"), module.__dict__)
    return module.plugin


@contextmanager
def shard_harness(
    directory: Path, *plugins: Plugin, models: Models | None = None
) -> Iterator[ShardHarness]:
    """A shard with accounts and these plugins."""
    harness = ShardHarness(directory, (accounts.plugin, *plugins), models)
    try:
        yield harness
    finally:
        harness.close()
