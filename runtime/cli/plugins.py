"""`mneme plugin`: a package with a plugin, begun and judged.

`new` writes one with a single endpoint, its test and its pyproject.toml; `check` runs the contract
over the plugins that the pyproject.toml of a directory names, which need not be installed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tomllib
from pathlib import Path

from runtime.installed import GROUP, NAME

OK, FAILED = 0, 1

PYPROJECT = """\
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"

[project]
name = "mneme-plugin-{dashed}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["mneme>=0.1"]

[project.entry-points."mneme.plugins"]
{name} = "mneme_plugin_{name}:plugin"

[tool.setuptools]
py-modules = ["mneme_plugin_{name}"]
"""
MODULE = '''\
"""What this plugin is about, in a sentence."""

from mneme import Plugin, Query, Read, View
from pydantic import Field


class Greeted(Query):
    who: str = Field("world", max_length=64, description="Whom to greet.")


class Greeting(View):
    text: str


def greet(ctx, body):
    return {{"text": f"Hello, {{ctx.query.who}}."}}


plugin = Plugin(
    name="{name}",
    operations=(
        Read(
            name="{name}.greet",
            method="GET",
            path="/v1/{dashed}",
            handler=greet,
            query=Greeted,
            response=Greeting,
            summary="Greet somebody",
            example_reply={{"text": "Hello, world."}},
        ),
    ),
)
'''
TEST = '''\
"""The plugin, over HTTP in a service of the test's own."""

from mneme.testing import Harness, check_plugin
from mneme_plugin_{name} import plugin


def test_the_contract():
    assert check_plugin(plugin) == []


def test_it_greets(tmp_path):
    with Harness(tmp_path, plugin) as service:
        answer = service.request("GET", "/v1/{dashed}?who=Ada", who=service.register())
        assert answer.json() == {{"text": "Hello, Ada."}}
'''


class PluginCommandFailed(Exception):
    """The command cannot do what it was asked; the message is one sentence."""


def files(name: str) -> dict[str, str]:
    """What `new` writes: file -> text."""
    given = {"name": name, "dashed": name.replace("_", "-")}
    return {
        "pyproject.toml": PYPROJECT.format(**given),
        f"mneme_plugin_{name}.py": MODULE.format(**given),
        f"test_{name}.py": TEST.format(**given),
    }


def new(parsed: argparse.Namespace) -> int:
    if not NAME.fullmatch(parsed.name):
        raise PluginCommandFailed(
            f"{parsed.name!r} is no name for a plugin: use 2 to 40 small letters, digits and "
            "underscores, a letter first."
        )
    _check_free(parsed.name)
    directory = parsed.directory or Path(f"mneme_plugin_{parsed.name}")
    if directory.exists() and any(directory.iterdir()):
        raise PluginCommandFailed(f"{directory} is not empty; name another with --directory.")
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in files(parsed.name).items():
        (directory / file).write_text(text, encoding="utf-8")
        print(directory / file)
    # A name without a slash pip looks for in its index, where it may be somebody else's.
    print(f"\nTry it: mneme plugin check {directory}; then pip install {directory.resolve()}")
    return OK


def _check_free(name: str) -> None:
    """Raise where the service has a plugin of this name, or an address that its first endpoint
    would have.
    """
    own = importlib.import_module("serve_app").registry()
    path = f"/v1/{name.replace('_', '-')}"
    if name in {plugin.name for plugin in own.plugins}:
        raise PluginCommandFailed(f"{name!r} is a plugin of the service itself; choose another.")
    if path in {operation.path for operation in own.operations.values()}:
        raise PluginCommandFailed(f"The service itself answers at {path}; choose another name.")


def check(parsed: argparse.Namespace) -> int:
    directory: Path = parsed.directory.resolve()
    try:
        declared = tomllib.loads((directory / "pyproject.toml").read_text(encoding="utf-8"))
    except OSError as unreadable:
        raise PluginCommandFailed(
            f"{directory}/pyproject.toml cannot be read ({unreadable.strerror}): name the folder "
            "of a plugin's package."
        ) from None
    except ValueError as malformed:
        raise PluginCommandFailed(
            f"{directory}/pyproject.toml is not well formed: {malformed}."
        ) from None
    points = declared.get("project", {}).get("entry-points", {}).get(GROUP, {})
    if not points:
        raise PluginCommandFailed(
            f"{directory}/pyproject.toml names no plugin: it needs a table "
            f'[project.entry-points."{GROUP}"].'
        )
    sys.path[:0] = [str(directory), str(directory / "src")]
    verdicts = [_checked(name, reference) for name, reference in points.items()]
    return OK if all(verdicts) else FAILED


def _checked(name: str, reference: str) -> bool:
    """Print what the plugin does not keep; -> whether it keeps everything."""
    module, _, attribute = reference.partition(":")
    try:
        plugin = getattr(importlib.import_module(module), attribute)
    except (
        Exception,
        SystemExit,
    ) as failed:  # whatever somebody else's module raises is what has to be told
        print(f"✗ {name}: {reference} cannot be loaded: {type(failed).__name__}: {failed}")
        return False
    if getattr(plugin, "name", None) != name:
        print(f"✗ {name}: {reference} is no plugin of this name")
        return False
    found = importlib.import_module("mneme.testing").check_plugin(plugin)
    for what in found:
        print(f"✗ {name}: {what}")
    if not found:
        print(f"✓ {name} keeps the contract: {len(plugin.operations)} operations")
    return not found
