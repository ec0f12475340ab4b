"""Plugins of other packages: found by their entry points of the group `mneme.plugins`, loaded, and
judged one by one.

    [project.entry-points."mneme.plugins"]
    bookmarks = "mneme_plugin_bookmarks:plugin"

What cannot be loaded is left out and says why; the service starts without it. Which of the loaded
ones it has, plugins.enabled says. A name before a dot tells whose a table, an index, an operation,
a job or a tool is, and an installation whose plugin was removed can still say whose rows it keeps.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from runtime.api.plugin import Plugin, RegistryError
from runtime.settings import Section, Settings

GROUP = "mneme.plugins"
NAME = re.compile(r"[a-z][a-z0-9_]{1,39}")

log = logging.getLogger("mneme.plugins")


@dataclass(frozen=True, slots=True)
class Installed:
    """One entry point.

    name     of the entry point, and of its plugin
    package  and version of the distribution that has it
    plugin   None where it could not be loaded
    problem  why it could not, a sentence
    """

    name: str
    package: str
    version: str
    plugin: Plugin | None = None
    problem: str = ""


@cache
def installed() -> tuple[Installed, ...]:
    """Every plugin of another package in this environment, by name. Raises nothing."""
    points = sorted(metadata.entry_points(group=GROUP), key=lambda point: point.name)
    return tuple(map(_loaded, points))


def enabled(settings: Settings) -> list[Plugin]:
    """The plugins of other packages that these settings enable. RegistryError when they name one
    that is not installed, and when two have one name.
    """
    chosen = settings.plugins.enabled
    found = installed()
    unknown = {*(chosen or ())} - {each.name for each in found}
    if unknown:
        there = ", ".join(each.name for each in found) or "none"
        raise RegistryError(
            f"plugins.enabled names {sorted(unknown)[0]!r}, which is not installed (installed: "
            f"{there})"
        )
    asked = [each for each in found if chosen is None or each.name in chosen]
    for one, other in itertools.pairwise(asked):
        if one.name == other.name:
            raise RegistryError(
                f"plugin {one.name!r} is installed twice, by {one.package} and {other.package}"
            )
    return [each.plugin for each in asked if each.plugin is not None]


def misnamed(plugin: Plugin) -> Iterator[str]:
    """What of a plugin of another package does not bear its name, or keeps whoever has not heard of
    it from starting, a sentence each.
    """
    if not NAME.fullmatch(plugin.name):
        yield (
            f"the plugin's name {plugin.name!r} must be 2 to 40 small letters, digits and "
            "underscores, a letter first"
        )
    for what, names in _names(plugin):
        for name in names:
            if owner_of(name) != plugin.name or name == plugin.name:
                yield f"{what} {name!r} must be called {plugin.name}.…, after the plugin"
    for name, section in plugin.settings.items():
        if not _is_complete(section):
            yield (
                f"the settings section {name!r} must be a Section with a default for each field: "
                "a start without any settings is to succeed"
            )


def _is_complete(section: Any) -> bool:
    """Whether a section of the settings is there where the user writes nothing of it."""
    is_section = isinstance(section, type) and issubclass(section, Section)
    return is_section and not any(each.is_required() for each in section.model_fields.values())


def owner_of(name: str) -> str:
    """The plugin of another package whose table this is, by its name; "" where it is of none."""
    owner, dot, _ = name.partition(".")
    return owner if dot else ""


def _names(plugin: Plugin) -> Iterator[tuple[str, Iterable[str]]]:
    yield "table", (each.name for each in plugin.tables)
    yield "index", (each.name for each in plugin.indexes)
    yield "operation", (each.name for each in plugin.operations)
    yield "job", (each.name for each in plugin.jobs)
    yield "model", plugin.models
    yield "retriever", (each.name for each in plugin.retrievers)


def _loaded(point: metadata.EntryPoint) -> Installed:
    package = point.dist.name if point.dist else "an unknown package"
    version = point.dist.version if point.dist else ""
    plugin, problem = None, ""
    try:
        plugin = point.load()
        if not isinstance(plugin, Plugin):
            problem = f"{point.value} is no Plugin"
        elif plugin.name != point.name:
            problem = f"{point.value} is called {plugin.name!r}, and its entry point {point.name!r}"
        else:
            problem = "; ".join(misnamed(plugin))
    except (Exception, SystemExit) as failed:
        # Whatever somebody else's module raises while it is imported concerns that module alone.
        problem = f"{type(failed).__name__}: {failed}"
    if problem:
        log.error("plugin %s of %s %s is left out: %s", point.name, package, version, problem)
        return Installed(point.name, package, version, None, " ".join(problem.split()))
    return Installed(point.name, package, version, plugin)
