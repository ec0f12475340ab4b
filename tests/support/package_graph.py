"""Which file imports which, and which package imports which, as the sources say it.

    python -m tests.support.package_graph     prints each package, what it imports, and how many
                                              names other packages take from it

Imports that are made for types alone, or inside a function, count like all others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.support import ROOT

FLOORS = ("storage", "runtime", "plugins")
Graph = Mapping[str, set[str]]


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file, of every module of the service."""
    files = [path for floor in FLOORS for path in sorted((ROOT / floor).glob("**/*.py"))]
    return {_dotted(path): path for path in [*files, ROOT / "serve_app.py"]}


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports(module: str) -> frozenset[tuple[str, str]]:
    """(module of the service, name that is taken from it, "" for the module itself)"""
    return imports_of(modules()[module], module)


def imports_of(path: Path, module: str = "") -> frozenset[tuple[str, str]]:
    """As imports, of any file; `module` is its own dotted name, if others import it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= set(_taken(module, node))
    return frozenset((other, name) for other, name in found if other in modules())


def _taken(module: str, node: ast.ImportFrom) -> Iterator[tuple[str, str]]:
    source = node.module or ""
    if node.level:
        is_package = modules()[module].name == "__init__.py"
        folder = module if is_package else module.rpartition(".")[0]
        for _ in range(node.level - 1):
            folder = folder.rpartition(".")[0]
        source = f"{folder}.{source}".rstrip(".")
    own = f"{module}.".startswith(f"{source}.")
    for alias in node.names:
        whole = f"{source}.{alias.name}"
        is_module = whole in modules() and (own or alias.name not in face(source))
        yield (whole, "") if is_module else (source, alias.name)


@cache
def face(module: str) -> frozenset[str]:
    """The names in a module's `__all__`; a module may be among them."""
    tree = ast.parse(modules()[module].read_text()) if module in modules() else ast.Module([], [])
    return frozenset(
        name
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for name in ast.literal_eval(node.value)
    )


def package_of(module: str) -> str:
    """The room a module belongs to: its first two names, "plugins.memories" or "runtime.ids"."""
    return ".".join(module.split(".")[:2])


def of_files() -> dict[str, set[str]]:
    """Module -> the modules it imports."""
    return {
        module: {other for other, _ in imports(module)} - {module, *FLOORS} for module in modules()
    }


def of_packages() -> dict[str, set[str]]:
    """Package -> the packages it imports."""
    graph: dict[str, set[str]] = {}
    for module, others in of_files().items():
        package = package_of(module)
        graph.setdefault(package, set()).update(map(package_of, others))
        graph[package].discard(package)
    return graph


def names_taken() -> dict[str, set[str]]:
    """Package -> the names that other packages import from it."""
    taken: dict[str, set[str]] = {}
    for module in modules():
        for other, name in imports(module):
            if package_of(other) != package_of(module):
                taken.setdefault(package_of(other), set()).add(name or other.rpartition(".")[2])
    return taken


def circles(graph: Graph) -> list[list[str]]:
    """The sets of nodes that reach each other, each in order (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            component, stack[at:] = stack[at:], []
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main() -> None:
    graph, taken = of_packages(), names_taken()
    for package in sorted(graph):
        shown = len(taken.get(package, ()))
        print(f"{package}  shows {shown} name{'' if shown == 1 else 's'}")
        for other in sorted(graph[package]):
            print(f"    → {other}")
    for circle in circles(graph):
        print("circle of packages:", ", ".join(circle))
    for circle in circles(of_files()):
        print("circle of files:", ", ".join(circle))
    if not circles(graph) and not circles(of_files()):
        print("no circle among packages, and none among files")


if __name__ == "__main__":
    main()
