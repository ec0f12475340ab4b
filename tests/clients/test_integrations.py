"""What every package of clients/integrations has. Its own tests need its framework: `make
test-integrations` runs them.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.clients.run_integrations import INTEGRATIONS, names
from tests.support import ROOT

FOLDERS = [INTEGRATIONS / name for name in names()]
RANGE = re.compile(r"^[A-Za-z0-9_-]+(\[[\w,-]+\])?>=\d[\w.]*,<\d[\w.]*$")
EXAMPLE_QUESTIONS = (
    "What must I not eat?",
    "In which city do I live?",
    "Who teaches me the cello?",
)


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def package(folder: Path) -> Path:
    (found,) = folder.glob("mneme_*/__init__.py")
    return found.parent


def test_there_are_integrations() -> None:
    assert "langgraph" in names()


@pytest.mark.parametrize("folder", FOLDERS, ids=names())
def test_a_package_is_whole(folder: Path) -> None:
    said = project(folder)
    assert said["license"] == {"text": "Apache-2.0"} and said["readme"] == "README.md"
    assert said["description"] and said["requires-python"] == ">=3.11"
    assert f"{said['name']}".replace("-", "_") == package(folder).name
    assert (package(folder) / "py.typed").exists()
    client, *framework = said["dependencies"]
    assert client.startswith("mneme-client>=") and framework
    ranges = [*said["dependencies"], *said["optional-dependencies"]["test"]]
    assert [line for line in ranges if not RANGE.match(line)] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=names())
def test_a_readme_says_how_to_install_it_and_is_linked(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert f"pip install ./clients/python ./clients/integrations/{folder.name}\n" in readme
    assert "examples/agent.py" in readme
    guide = (ROOT / "docs/guides/frameworks.md").read_text()
    assert f"](../../clients/integrations/{folder.name}/README.md)" in guide


@pytest.mark.parametrize("folder", FOLDERS, ids=names())
def test_an_example_asks_for_what_it_was_told(folder: Path) -> None:
    said = (folder / "examples/agent.py").read_text()
    assert all(question in said for question in EXAMPLE_QUESTIONS)
    assert "examples/agent.py" in (folder / "tests/test_example.py").read_text()


@pytest.mark.parametrize("folder", FOLDERS, ids=names())
def test_a_package_is_built_on_the_client_and_its_framework_alone(folder: Path) -> None:
    roots = {"mneme_client", *FRAMEWORKS[folder.name], *sys.stdlib_module_names}
    for path in sorted(package(folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), str(path))):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= roots, path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert (node.module or "").split(".")[0] in roots, path


FRAMEWORKS = {
    "crewai": {"crewai"},
    "google-adk": {"google"},
    "langchain": {"langchain_core", "pydantic"},
    "langgraph": {"langgraph"},
    "llama-index": {"llama_index"},
    "openai-agents": {"agents"},
}
