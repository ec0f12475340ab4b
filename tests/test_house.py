"""The rules of the house, as tests: floors, names, sizes, and that every table has an owner who can erase and export it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("storage", "runtime", "plugins")
FLOOR = {"storage": 0, "runtime": 1, "plugins": 2, "serve_app": 3}
SOURCES = [*sorted(path for layer in LAYERS for path in (ROOT / layer).glob("**/*.py")), ROOT / "serve_app.py"]
CLIENT = ROOT / "clients/python"
GENERATED = {CLIENT / "mneme_client" / name for name in ("models.py", "operations.py", "async_operations.py")}
CLIENT_SOURCES = [path for path in sorted(CLIENT.glob("**/*.py")) if path not in GENERATED]
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 620
BANNED_NAMES = ("utils", "helpers", "common", "manager", "service")
ONLY_IN = {
    "ray": {
        *("runtime/cluster.py", "runtime/ray_shards.py", "runtime/nodes.py", "runtime/supervisor_actor.py", "runtime/serving.py"),
        *("runtime/cli.py", "serve_app.py"),
    },
    "lmdb": {"storage/table.py", "storage/sealed_table.py", "storage/environment.py", "storage/replay.py"},
    "starlette": {"runtime/gateway.py"},
    "uvicorn": {"runtime/connection.py", "runtime/serving.py", "runtime/cluster.py"},
    "hnswlib": {"storage/vector_graph.py"},
    "openai": {"runtime/chat_endpoint.py"},
    "mcp": {"plugins/mcp_server.py", "runtime/mcp_relay.py"},
    "mcp_types": {"plugins/mcp_server.py", "runtime/mcp_relay.py"},
}
PLUGINS_MAY_IMPORT = {
    "admission", "auth", "blobs", "checks", "errors", "flow", "ids", "inference", "jobs", "language_model", "limits", "metering", "mount",
    "operation", "outbound", "pagination", "placement", "plugin", "reading_models", "reranker", "settings", "signatures", "timestamps",
    "token_count", "verification",
}  # fmt: skip


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imports_of(path: Path) -> set[str]:
    """Dotted names of every module imported anywhere in a file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            if node.module in FLOOR:
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_go_down_a_floor(path: Path) -> None:
    mine = FLOOR[path.relative_to(ROOT).parts[0].removesuffix(".py")]
    for module in imports_of(path):
        top = module.split(".")[0]
        assert FLOOR.get(top, -1) <= mine and top != "mneme_client", f"{name_of(path)} imports {module}, which lives above it"


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_heavy_libraries_stay_in_their_room(path: Path) -> None:
    for module in imports_of(path):
        rooms = ONLY_IN.get(module.split(".")[0])
        assert rooms is None or name_of(path) in rooms, f"{name_of(path)} imports {module}; only {sorted(rooms)} may"


@pytest.mark.parametrize("path", [p for p in SOURCES if p.parent.name == "plugins"], ids=name_of)
def test_plugins_use_the_runtime_through_its_vocabulary(path: Path) -> None:
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] == "runtime" and len(parts) > 1:
            assert parts[1] in PLUGINS_MAY_IMPORT, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [*CLIENT_SOURCES, *sorted(GENERATED)], ids=name_of)
def test_the_client_stands_on_its_own(path: Path) -> None:
    """It needs httpx and nothing of the service, which needs nothing of it."""
    mine = {"httpx", "mneme_client", *sys.stdlib_module_names}
    for module in imports_of(path):
        assert module.split(".")[0] in mine, f"{name_of(path)} imports {module}"


@pytest.mark.parametrize("path", [*SOURCES, *CLIENT_SOURCES], ids=name_of)
def test_files_and_functions_fit_a_reader(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX, f"{name_of(path)} is too long: split the noun"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            assert lines <= FUNCTION_LINES_MAX, f"{name_of(path)}: {node.name} has {lines} lines"


@pytest.mark.parametrize("path", [*SOURCES, *CLIENT_SOURCES], ids=name_of)
def test_files_open_with_their_essay(path: Path) -> None:
    if path.name != "__init__.py":
        assert ast.get_docstring(ast.parse(path.read_text())), f"{name_of(path)} has no module docstring"


@pytest.mark.parametrize("path", [*SOURCES, *CLIENT_SOURCES], ids=name_of)
def test_names_say_what_a_thing_is(path: Path) -> None:
    assert path.stem not in BANNED_NAMES
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef):
            assert not re.search(r"(Manager|Helper|Util)s?$", node.name), f"{name_of(path)}: class {node.name}"


@pytest.mark.parametrize("path", [*SOURCES, *CLIENT_SOURCES], ids=name_of)
def test_nothing_is_left_unfinished(path: Path) -> None:
    found = re.findall(r"\b(?:TODO|FIXME|XXX|NotImplementedError|coming soon)\b", path.read_text())
    assert not found, f"{name_of(path)}: {found}"
