"""The registry of some of the plugins, with what every shard has."""

from __future__ import annotations

from collections.abc import Iterable

from plugins.billing.settings import offer
from runtime.api.plugin import Plugin, Registry
from runtime.shard import CORE_INDEXES, CORE_TABLES


def registry_of(plugins: Iterable[Plugin]) -> Registry:
    """New accounts get the tier that the settings name, also where billing is not among them."""
    given = tuple(plugins)
    offering = () if any(plugin.offer for plugin in given) else (Plugin("offer", offer=offer),)
    return Registry.build((*given, *offering), core_tables=CORE_TABLES, core_indexes=CORE_INDEXES)
