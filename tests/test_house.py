"""The rules of the house, as tests: floors, names, sizes. Each test is one rule, and names all who
break it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from serve_app import PLUGINS
from tests.support import ROOT, package_graph

LAYERS = ("storage", "runtime", "plugins")
FLOOR = {"storage": 0, "runtime": 1, "plugins": 2, "serve_app": 3}
SOURCES = [
    *sorted(path for layer in LAYERS for path in (ROOT / layer).glob("**/*.py")),
    ROOT / "serve_app.py",
]
CLIENT = ROOT / "clients/python"
GENERATED = {
    CLIENT / "mneme_client" / name for name in ("models.py", "operations.py", "async_operations.py")
}
CLIENT_SOURCES = [path for path in sorted(CLIENT.glob("**/*.py")) if path not in GENERATED]
INTEGRATION_SOURCES = sorted((ROOT / "clients/integrations").glob("*/mneme_*/*.py"))
OURS = [*SOURCES, *CLIENT_SOURCES, *INTEGRATION_SOURCES]  # written by hand
FACE_NAMES_MAX = 25
FACE_NAMES_MAX_OF = {"plugins.memories": 67}  # what all others stand on
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 600
TEST_FILE_LINES_MAX = 700
BANNED_NAMES = ("utils", "helpers", "common", "manager", "service")
ONLY_IN = {
    "ray": {
        *(
            "runtime/cluster/actors.py",
            "runtime/cluster/gateways.py",
            "runtime/cluster/nodes.py",
            "runtime/cluster/ray_shards.py",
            "runtime/cluster/ray_metrics.py",
            "runtime/cluster/shared_model.py",
            "runtime/cluster/supervisor_actor.py",
        ),
        *(
            "runtime/serve/joined_ray.py",
            "runtime/serve/on_ray.py",
            "runtime/serve/own_ray.py",
            "runtime/serve/serve_command.py",
        ),
    },
    "lmdb": {
        "storage/store/bound_table.py",
        "storage/store/environment.py",
        "storage/store/store.py",
        "storage/store/transaction.py",
        "storage/replication/restore.py",
    },
    "uvicorn": {"runtime/serve/connection.py", "runtime/serve/local.py"},
    "hnswlib": {"storage/indexes/vectors/cells.py"},
    "openai": {"runtime/inference/openai_chat.py"},
    "mcp": {"plugins/mcp/server.py", "runtime/cli/mcp_relay.py"},
    "mcp_types": {"plugins/mcp/server.py", "runtime/cli/mcp_relay.py"},
}
# What a plugin may use of the runtime: its vocabulary, and never the machinery that runs it.
PLUGINS_MAY_IMPORT = (
    *(
        "api",
        "errors",
        "extras",
        "ids",
        "inference",
        "installation.blob_store",
        "limits",
        "long_work",
        "processor_turns",
        "outbound",
        "placement",
        "retry_after",
        "settings",
    ),
    *("signatures", "tenancy", "timestamps"),
)

# Load tests of one part of a package, which they reach.
MEASURES_AN_INSIDE = {
    "loadtests/calibrate.py": ("plugins.search.judging",),
    "loadtests/checkpoints.py": ("runtime.cli.bench",),
    "loadtests/claims.py": ("plugins.ingestion",),
    "loadtests/embedder.py": ("runtime.inference.minilm",),
    "loadtests/extraction.py": ("plugins.ingestion", "runtime.inference.openai_chat"),
    "loadtests/floor.py": ("runtime.cluster.batching",),
    "loadtests/graph.py": ("runtime.http.credentials", "runtime.shard.auth"),
    "loadtests/insights.py": ("runtime.http.credentials",),
    "loadtests/learn_ranking.py": ("plugins.search.ranking",),
    "loadtests/load.py": ("runtime.cli.demo",),
    "loadtests/log_faults.py": ("storage.replication.shipper", "storage.replication.snapshots"),
    "loadtests/long_memories.py": ("plugins.memories.indexing", "plugins.memories.limits"),
    "loadtests/merging.py": ("plugins.ingestion.duplicates",),
    "loadtests/parsers.py": (
        *("plugins.documents.chunking", "plugins.documents.limits", "plugins.documents.parsing"),
        "plugins.documents.settings",
    ),
    "loadtests/policy_simulation.py": ("plugins.learning.statistics",),
    "loadtests/retrieval.py": ("plugins.search.ranking",),
    "loadtests/sealing.py": ("plugins.memories.rows",),
    "loadtests/speech_errors.py": ("plugins.documents.parsing",),
    "loadtests/understanding.py": ("plugins.ingestion.engine", "plugins.ingestion.facts"),
}
# Packages below the plugins that others reach by their face alone.
FACES = (
    "runtime.cluster",
    "runtime.http",
    "runtime.inference",
    "runtime.installation",
    "runtime.placement",
    "runtime.serve",
    "runtime.settings",
    "runtime.shard",
    "storage.blobs",
    "storage.indexes",
    "storage.replication",
    "storage.store",
    "storage.text",
)


@cache
def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


@cache
def imports_of(path: Path) -> set[str]:
    """Dotted names of every module imported anywhere in a file."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            if node.module in FLOOR:
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def imports(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """(file, module it imports)"""
    return ((path, module) for path in paths for module in sorted(imports_of(path)))


def nodes(paths: Iterable[Path]) -> Iterator[tuple[Path, ast.AST]]:
    return ((path, node) for path in paths for node in nodes_of(path))


def hold(offenders: Iterable[str]) -> None:
    """Fail if there are any, and name them all."""
    found = list(offenders)
    assert not found, "\n" + "\n".join(found)


def test_imports_go_down_a_floor() -> None:
    def above(path: Path, module: str) -> bool:
        top = module.split(".")[0]
        return (
            top == "mneme_client"
            or FLOOR.get(top, -1) > FLOOR[path.relative_to(ROOT).parts[0].removesuffix(".py")]
        )

    hold(
        f"{name_of(path)} imports {module}, which lives above it"
        for path, module in imports(SOURCES)
        if above(path, module)
    )


def test_heavy_libraries_stay_in_their_room() -> None:
    def elsewhere(path: Path, module: str) -> bool:
        rooms = ONLY_IN.get(module.split(".")[0])
        return rooms is not None and name_of(path) not in rooms

    hold(
        f"{name_of(path)} imports {module}, which is for others"
        for path, module in imports(SOURCES)
        if elsewhere(path, module)
    )


def test_plugins_use_the_runtime_through_its_vocabulary() -> None:
    def outside(taken: str) -> bool:
        top, _, rest = taken.partition(".")
        return top == "runtime" and not any(
            f"{rest}.".startswith(f"{allowed}.") for allowed in PLUGINS_MAY_IMPORT
        )

    hold(
        f"{module} imports {taken}"
        for module in package_graph.modules()
        for taken in sorted(".".join(pair) for pair in package_graph.imports(module))
        if module.startswith("plugins.") and outside(taken)
    )


# Who may be given more than one tenant's rows, or speaks of those who are.
SLOT_CONTEXTS_IN = (
    *("runtime/api/erasures.py", "runtime/api/operation.py", "runtime/api/plugin.py"),
    *("runtime/api/tenants.py", "runtime/cli/verify.py"),
    *("runtime/shard/", "plugins/operator/"),
    *(
        "plugins/accounts/erasure.py",
        "plugins/accounts/invitations.py",
        "plugins/accounts/mail.py",
        "plugins/accounts/recovery.py",
        "plugins/accounts/tickets.py",
        "plugins/accounts/operations.py",
        "plugins/billing/operations.py",
        "plugins/billing/retained.py",
        "plugins/usage.py",
    ),
)
# What leads from a context, or what is bound through it, to the rows of others.
INNER_NAMES = (
    *("_reader", "_environment", "_of_slot", "_seen_as", "_scope", "_bind", "_bound", "_answers"),
    *("_source", "_lmdb", "_keyring"),
)


def test_only_operators_and_accounts_are_given_a_slot() -> None:
    hold(
        f"{name_of(path)} imports {module}, which is for those who serve no single tenant"
        for path, module in imports(SOURCES)
        if module == "runtime.api.slot_context" and not name_of(path).startswith(SLOT_CONTEXTS_IN)
    )


def test_plugins_reach_for_nothing_inside_a_context() -> None:
    hold(
        f"{name_of(path)}:{node.lineno} reaches for {node.attr}"
        for path, node in nodes(SOURCES)
        if name_of(path).startswith("plugins/")
        and isinstance(node, ast.Attribute)
        and node.attr in INNER_NAMES
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    )


def test_what_is_decoded_was_made_known_when_its_module_was_loaded() -> None:
    """A type that msgspec meets for the first time in two threads at once ends the process."""
    hold(
        f"{name_of(path)}:{node.lineno} decodes by a type that it names there"
        for path, node in nodes(SOURCES)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(".decode")
        and any(keyword.arg == "type" for keyword in node.keywords)
    )


def test_no_files_and_no_packages_import_each_other() -> None:
    """Imports that are made for types alone, or inside a function, count."""
    hold(", ".join(circle) for circle in package_graph.circles(package_graph.of_files()))
    hold(", ".join(circle) for circle in package_graph.circles(package_graph.of_packages()))


def test_a_package_is_reached_by_its_face() -> None:
    """Others import `plugins.<name>`, or one of FACES, and nothing below it."""

    def below(module: str, other: str) -> bool:
        face = package_graph.package_of(other)
        has_face = face.startswith("plugins.") or face in FACES
        return has_face and other != face != package_graph.package_of(module)

    hold(
        f"{module} imports {other}"
        for module in package_graph.modules()
        for other in sorted({other for other, _ in package_graph.imports(module)})
        if below(module, other)
    )


def test_a_load_test_reaches_packages_by_their_faces() -> None:
    def inside(path: Path, module: str) -> bool:
        below = module.count(".") > 1 and module.split(".")[0] in LAYERS
        allowed = ("runtime.api", *MEASURES_AN_INSIDE.get(name_of(path), ()))
        return below and not any(f"{module}.".startswith(f"{room}.") for room in allowed)

    hold(
        f"{name_of(path)} imports {module}"
        for path in sorted((ROOT / "loadtests").glob("*.py"))
        for module in sorted({module for module, _ in package_graph.imports_of(path)})
        if inside(path, module)
    )


def faces() -> Iterator[tuple[str, list[str]]]:
    """(package of plugins, the names in its `__all__`)"""
    for module, path in package_graph.modules().items():
        if module.startswith("plugins.") and module == package_graph.package_of(module):
            for node in tree_of(path).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    yield module, ast.literal_eval(node.value)


def test_a_face_is_small() -> None:
    hold(
        f"{package} shows {len(names)} names"
        for package, names in faces()
        if len(names) > FACE_NAMES_MAX_OF.get(package, FACE_NAMES_MAX)
    )


def test_a_face_shows_what_others_use() -> None:
    """What only tests use is no part of it."""
    taken = package_graph.names_taken()
    hold(
        f"{package} shows {name}, which no other package takes"
        for package, names in faces()
        for name in sorted({*names} - {"plugin"} - taken.get(package, set()))
    )


def declared_plugins() -> Iterator[tuple[str, str, set[str]]]:
    """(package, name, requires) of each Plugin that a file of plugins/ makes."""
    for module, path in package_graph.modules().items():
        for _, node in nodes([path]) if module.startswith("plugins.") else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Plugin":
                fields = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                requires = ast.literal_eval(fields.get("requires", "()"))
                yield (
                    package_graph.package_of(module),
                    ast.literal_eval(fields["name"]),
                    {*requires},
                )


def test_the_core_s_settings_name_no_section_of_a_plugin() -> None:
    sections = {name for plugin in PLUGINS for name in plugin.settings}

    def names(node: ast.AST) -> Iterator[str]:
        """Sections that a field, a key or the dotted name of a setting would be of."""
        if isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target)
        if isinstance(node, ast.Dict):
            yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
        if isinstance(node, ast.Constant) and "." in str(node.value):
            yield str(node.value).partition(".")[0]

    of_the_core = (ROOT / "runtime/settings").glob("*.py")
    hold(
        f"{name_of(path)}:{getattr(node, 'lineno', 0)} names {name}"
        for path, node in nodes(sorted(of_the_core))
        for name in names(node)
        if name in sections
    )


def test_a_package_of_plugins_is_one_plugin() -> None:
    declared = [package for package, _, _ in declared_plugins()]
    packages = {package_graph.package_of(module) for module in package_graph.modules()}
    hold(
        f"{package} makes {declared.count(package)} plugins"
        for package in sorted(packages)
        if package.startswith("plugins.") and declared.count(package) != 1
    )


def test_a_plugin_requires_what_it_imports() -> None:
    """No more and no less: of plugins that it hears of by their events alone it requires none."""
    declared = list(declared_plugins())
    home = {name: package for package, name, _ in declared}
    graph = package_graph.of_packages()
    imported = {
        package: {other for other in graph[package] if other.startswith("plugins.")}
        for package, _, _ in declared
    }
    required = {package: {home[name] for name in requires} for package, _, requires in declared}
    hold(
        f"{package} imports {other} and does not require it"
        for package in imported
        for other in sorted(imported[package] - required[package])
    )
    hold(
        f"{package} requires {other} and does not import it"
        for package in imported
        for other in sorted(required[package] - imported[package])
    )


def test_the_client_stands_on_its_own() -> None:
    """It needs httpx and nothing of the service, which needs nothing of it."""
    beside = {path.stem for path in CLIENT.glob("*.py")}  # the generator's own
    its = {"httpx", "mneme_client", *beside, *sys.stdlib_module_names}
    client = [*CLIENT_SOURCES, *sorted(GENERATED)]
    hold(
        f"{name_of(path)} imports {module}"
        for path, module in imports(client)
        if module.split(".")[0] not in its
    )


PRIVATE_OF_OTHERS = (
    *("_replace", "_asdict"),  # of named tuples, whose names they keep free
    "_generate_config_file_internal",  # of Ray's proxy
    *("_parser", "_constants"),  # of Python's `re`, which has no public parser
)
OWN = ("self", "cls", "super()")
BY_TEXT = ("setattr", "getattr", "delattr", "patch.object")


def private_names(node: ast.AST) -> Iterator[str]:
    """What is taken there of another object or of a module of ours, by its name or by a text."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in OWN:
        yield node.attr
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(BY_TEXT):
        yield from (arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant))
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (*FLOOR, "tests"):
        yield from (alias.name for alias in node.names)


def test_tests_reach_for_nothing_private() -> None:
    hold(
        f"{name_of(path)}:{getattr(node, 'lineno', 0)} reaches for {name}"
        for path, node in nodes(sorted((ROOT / "tests").glob("**/*.py")))
        for name in private_names(node)
        if re.match(r"_(?!_)", name) and name not in PRIVATE_OF_OTHERS
    )


def test_what_tests_share_lies_in_support() -> None:
    hold(
        f"{name_of(path)} imports {module}: what tests share goes to tests/support"
        for path, module in imports(sorted((ROOT / "tests").glob("**/*.py")))
        if re.match(r"tests\.(?:.*\.)?test_", module)
    )


def test_tests_patch_what_they_import() -> None:
    """A module that is named in a text, as `setattr("runtime.limits.X", 1)` has it, is one that no
    checker of types and no change of names sees.
    """
    hold(
        f"{name_of(path)}:{node.lineno} names {arg.value} in a text"
        for path, node in nodes(sorted((ROOT / "tests").glob("**/*.py")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("setattr", "patch"))
        for arg in node.args[:1]
        if isinstance(arg, ast.Constant) and str(arg.value).split(".")[0] in FLOOR
    )


def test_files_fit_a_reader() -> None:
    lines = {path: path.read_text().count("\n") for path in OURS}
    hold(
        f"{name_of(path)} has {count} lines: split the noun"
        for path, count in lines.items()
        if count > FILE_LINES_MAX
    )
    hold(
        f"{name_of(path)} has {count} lines: what tests share goes to tests/support"
        for path in sorted((ROOT / "tests").glob("**/*.py"))
        if (count := path.read_text().count("\n")) > TEST_FILE_LINES_MAX
    )


def test_functions_fit_a_reader() -> None:
    functions = [
        (path, node)
        for path, node in nodes(OURS)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lines = [
        (name_of(path), node.name, node.end_lineno - node.lineno + 1) for path, node in functions
    ]
    hold(
        f"{path}: {name} has {count} lines"
        for path, name, count in lines
        if count > FUNCTION_LINES_MAX
    )


def test_files_open_with_their_essay() -> None:
    hold(
        name_of(path)
        for path in OURS
        if path.name != "__init__.py" and not ast.get_docstring(tree_of(path))
    )


def test_names_say_what_a_thing_is() -> None:
    classes = [(path, node) for path, node in nodes(OURS) if isinstance(node, ast.ClassDef)]
    vague = [
        f"{name_of(path)}: class {node.name}"
        for path, node in classes
        if re.search(r"(Manager|Helper|Util)s?$", node.name)
    ]
    hold([name_of(path) for path in OURS if path.stem in BANNED_NAMES] + vague)


def test_nothing_is_left_unfinished() -> None:
    words = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError|coming soon)\b")
    hold(f"{name_of(path)}: {word}" for path in OURS for word in words.findall(path.read_text()))
