"""What `mneme doctor` says of plugins of other packages: which are installed and enabled, which
could not be loaded, whose rows the next start brings up to date, and whose the stores keep that no
installed plugin declares.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from runtime.api.plugin import Registry, RegistryError
from runtime.cli.finding import Finding
from runtime.installed import Installed, installed, owner_of
from runtime.settings import Settings
from storage.store import StoreError, Table, table_versions


def chosen(settings: Settings) -> tuple[Registry, list[Finding]]:
    """What the service has; where plugins clash, what this repository has, and a finding."""
    service = importlib.import_module("serve_app")
    try:
        return service.registry(settings), []
    except RegistryError as clash:
        remedy = "name those that the service is to have in plugins.enabled; it does not start so"
        return service.registry(), [Finding("wrong", f"plugins: {clash}", remedy)]


def examine(settings: Settings, registry: Registry) -> Iterator[Finding]:
    """Examine what the plugins need. registry: of all that the service has."""
    has = {plugin.name for plugin in registry.plugins}
    for each in installed():
        yield _of(each, each.name in has)
    yield from _stored(settings, registry.tables)


def _of(each: Installed, is_enabled: bool) -> Finding:
    what = f"plugin {each.name}: {each.package} {each.version}"
    if each.plugin is None:
        return Finding(
            "wrong",
            f"{what} cannot be loaded: {each.problem}",
            "the service starts without it; install a release of it that loads, or uninstall it",
        )
    if not is_enabled:
        return Finding("ok", f"{what}, which plugins.enabled leaves out")
    return Finding("ok", f"{what}, {len(each.plugin.operations)} operations")


def _stored(settings: Settings, declared: Mapping[str, Table]) -> Iterator[Finding]:
    """Whose tables the stores have in another version, or beside those that are declared."""
    found: dict[str, set[str]] = {}
    older: dict[str, set[str]] = {}
    newer: dict[str, set[str]] = {}
    for directory in sorted(settings.data_dir.glob("shards/*")):
        try:
            versions = table_versions(directory)
        except StoreError as unreadable:
            yield Finding("wrong", f"plugins: {unreadable}", "restore a backup")
            continue
        for name, version in versions.items():
            if not (owner := owner_of(name)):
                continue
            if name not in declared:
                found.setdefault(owner, set()).add(name)
            elif version != declared[name].version:
                kind = older if version < declared[name].version else newer
                kind.setdefault(owner, set()).add(name)
    for owner, tables in sorted(older.items()):
        yield Finding(
            "advice",
            f"plugin {owner}: the next start brings its rows up to date: "
            f"{', '.join(sorted(tables))}; older releases of it cannot read them then",
            "run `mneme admin backup DIR` first",
        )
    for owner, tables in sorted(newer.items()):
        yield Finding(
            "wrong",
            f"plugin {owner}: a newer release of it wrote its rows: {', '.join(sorted(tables))}",
            "install that release; the service does not start with this one",
        )
    for owner, tables in sorted(found.items()):
        yield Finding(
            "advice",
            f"plugin {owner} is not there, and its rows are: {', '.join(sorted(tables))}",
            "nothing touches them but the erasure of an account, and whoever installs it again "
            "finds them as they were; until then slots with any cannot move",
        )
