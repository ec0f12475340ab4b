"""What `mneme doctor` says of extras: which are missing, what cannot be done without them, and the
line that installs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from runtime import tracing
from runtime.api.plugin import Plugin
from runtime.cli.finding import Finding
from runtime.extras import CLUSTER, MULTILINGUAL, RAY_DASHBOARD, Extra
from runtime.settings import Settings


def examine(settings: Settings, plugins: Iterable[Plugin]) -> Iterator[Finding]:
    """One finding for each that is missing, and one for those that are there. Wrong is what the
    settings ask for: without it the service does not start.
    """
    by_command: dict[str, list[Extra]] = {}
    for extra in (
        CLUSTER,
        MULTILINGUAL,
        RAY_DASHBOARD,
        tracing.EXTRA,
        *(extra for plugin in plugins for extra in plugin.extras),
    ):
        by_command.setdefault(extra.command, []).append(extra)
    there = []
    for command, extras in sorted(by_command.items()):
        if not any(extra.is_missing for extra in extras):
            there.append(extras[0].name)
            continue
        purposes = " and ".join(dict.fromkeys(extra.purpose for extra in extras))
        if any(extra.is_lacking(settings) for extra in extras):
            name = f"extra {extras[0].name} is not installed, and the settings ask for it"
            yield Finding("wrong", f"{name}: {purposes}", command)
        else:
            name = f"extra {extras[0].name} is not installed"
            yield Finding("advice", f"{name}: {purposes} is refused", command)
    if there:
        yield Finding("ok", f"extras installed: {', '.join(there)}")
