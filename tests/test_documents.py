"""What the documents show is true: each block of code of README.md, docs/ and OPERATIONS.md runs,
page by page in its order, against one real service, and prints what is printed there; each link
leads to something. Those of the other documents run in the tests that ELSEWHERE names.

What the commands are that cannot run here is looked at in test_documented_commands.py.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

import serve_app
from runtime.cli.export_settings import with_table
from runtime.serve.listening import HEALTH_PATH
from runtime.settings import known_settings
from runtime.signatures import headers
from serve_app import Settings
from tests.support import ROOT, upstream
from tests.support.pages import DOCUMENTS, LANGUAGES, READ, Block, blocks, named, prose
from tests.support.served import Served, served
from tests.support.upstream import says

# What mem0's get_all() returned: two memories, one that has expired, and what their graph says.
_MEMORY = {"user_id": "ada", "categories": ["travel"], "updated_at": "2025-06-02T10:00:00Z"}
OF_MEM0 = {
    "results": [
        {
            **{"id": "m1", "memory": "Ada flies to Lisbon.", **_MEMORY, "hash": "1f0c"},
            **{"created_at": "2025-06-01T10:00:00Z", "metadata": {"via": "chat"}},
        },
        {
            **{"id": "m2", "memory": "Ada eats no nuts.", **_MEMORY, "hash": "9b2e"},
            **{"created_at": "2025-06-02T10:00:00Z"},
        },
        {"id": "m3", "memory": "Ada is in Faro.", **_MEMORY, "expiration_date": "2025-06-20"},
    ],
    "relations": [{"source": "ada", "relationship": "flies_to", "target": "lisbon"}],
}
ADDRESS_PRINTED = "http://127.0.0.1:8000"
KEYS = ("API_KEY", "MNEME_API_KEY")
SECONDS_MAX = 120
PATIENT = {"write__ready_wait_ms": 30_000}
# reason -> blocks
NOT_RUN = {
    "a server in production, with secrets of its own": 2,
    "account and invoice are yours": 1,
    "it starts the service that the other examples ask": 1,
    "it takes what an export has brought": 1,
    "it waits for requests; the receiver has a test of its own": 1,
    "it changes the installation": 1,
    "it changes the home directory; a test completes in bash": 1,
    "it changes the system": 2,
    "it installs elsewhere": 3,
    "it installs, and starts a service that needs a collector": 1,
    "it installs into the service; it has a test of its own": 2,
    "it needs Docker": 1,
    "it needs Kubernetes": 1,
    "it starts a service, and Ray's dashboard": 1,
    "it starts the service twice; exchanges of secrets have tests of their own": 1,
    "several nodes": 2,
    "the files are yours": 1,
    "the key is yours": 2,
    "the package mem0ai is not among what is installed here": 1,
}
RUN_HERE = [*READ, ROOT / "OPERATIONS.md"]
# document -> the test, or the command, by which its blocks run
ELSEWHERE = {
    "PLUGINS.md": "tests/runtime/author/test_mneme.py",
    "clients/python/README.md": "tests/clients/test_client_examples.py",
    "clients/typescript/README.md": "clients/typescript/test/package.test.ts",  # make test-clients
}
# page -> files that its commands read
FILES = {"docs/guides/moving.md": {"memories.json": OF_MEM0}}
# What differs from time to time: scores, ids, dates and durations, and the spaces after them.
CHANGES = re.compile(
    r"-?\d+\.\d{2,}( s)?|mem_[0-9a-z]{32}|\d+ ms|demo-[0-9a-f]{16}|[-+]\d\.\d\d", re.MULTILINE
)


PAGES = [
    path for path in RUN_HERE if any(one.language in ("bash", "python") for one in blocks(path))
]
RECEIVER = next(
    one.text for one in blocks(ROOT / "docs/guides/webhooks.md") if "class Receiver" in one.text
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One with a language model, and the paths of mem0's clients. A write waits for its index for
    as long as that takes on a busy machine.
    """
    with upstream.upstream() as model:
        model.will(says("Something without peanuts."))
        settings = {"llm__base_url": model.url, "dropin__enabled": True, **PATIENT}
        with served(tmp_path_factory.mktemp("documents") / "data", **settings) as running:
            yield running


@pytest.fixture(scope="module")
def environment(service: Served) -> dict[str, str]:
    """What a command needs to find the service that is documented at another address."""
    return {
        **os.environ,
        "MNEME_CONFIG": str(ROOT / "configs/test.yaml"),
        "MNEME_DATA_DIR": str(service.data_dir),
        "MNEME_HTTP__PORT": str(httpx.URL(service.url).port),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'clients/python'}",
    }


def ran(block: Block, names: dict[str, object], environment: dict[str, str], home: Path) -> str:
    """What a block prints. Python runs in this process, in the names of its page."""
    if block.language == "python":
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.chdir(home):
            exec(compile(block.text, "example", "exec"), names)
        return told.getvalue()
    ended = subprocess.run(
        ["bash", "-euo", "pipefail"],
        input='curl() { command curl --fail-with-body "$@"; }\n' + block.text,
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, (block.text, ended.stdout, ended.stderr)
    return ended.stdout


def compare(told: str, printed: str) -> None:
    """Line by line, or field by field where it is an answer; apart from what differs each time."""
    if not printed.startswith("{"):
        assert CHANGES.sub("…", told).split() == CHANGES.sub("…", printed).split()
        return
    given = json.dumps(json.loads(told), ensure_ascii=False)
    for name, value in re.findall(r'"(\w+)": ("[^"]*"|[\w.]+|\[\]|\{\})', printed):
        assert f'"{name}": ' in given, name
        if not re.fullmatch(r'"(mem|col)_\w+"|"\d{4}-.*Z"|\d+\.\d{2,}', value):
            assert f'"{name}": {value}' in given, name


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_what_a_page_shows_runs_and_prints_what_is_printed(
    path: Path,
    service: Served,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each page has an account of its own."""
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for name, content in FILES.get(named(path), {}).items():
        (tmp_path / name).write_text(json.dumps(content))
    key = service.register()
    monkeypatch.setenv("API_KEY", key)
    monkeypatch.syspath_prepend(str(ROOT / "clients/python"))
    names: dict[str, object] = {"__name__": "__main__"}
    told = ""
    for block in blocks(path):
        if block.language == "output":
            compare(told, block.text)
        elif block.language in ("bash", "python") and not block.not_run:
            text = block.text.replace(ADDRESS_PRINTED, service.url)
            real = replace(block, text=text.replace("/backups/", f"{tmp_path}/backup-of-"))
            told = ran(real, names, {**environment, **dict.fromkeys(KEYS, key)}, tmp_path)


def test_what_does_not_run_says_why() -> None:
    reasons = Counter(block.not_run for path in RUN_HERE for block in blocks(path) if block.not_run)
    assert reasons == NOT_RUN


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_every_block_says_what_it_is_and_has_a_test(path: Path) -> None:
    before = ""
    for block in blocks(path):
        assert block.language in LANGUAGES
        assert block.language != "output" or before in ("bash", "python", "ts")
        before = block.language
        if path not in RUN_HERE and block.language in ("bash", "console", "python", "ts"):
            assert (ROOT / ELSEWHERE[named(path)]).exists()


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as its readers make them."""
    made: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).strip().replace(" ", "-")
        found.add(f"{name}-{made[name]}" if made[name] else name)
        made[name] += 1
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for target, fragment in re.findall(
        r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", prose(path)
    ):
        to = (path.parent / target).resolve() if target else path
        assert to.exists() and to.is_relative_to(ROOT), target
        assert not fragment or fragment in anchors(to), f"{target}#{fragment}"


@pytest.mark.parametrize("path", RUN_HERE, ids=named)
def test_operations_and_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text()
    known = {
        (one.method, path)
        for one in serve_app.registry().operations.values()
        for path in (one.path, *one.aliases)
    } | {("GET", HEALTH_PATH)}
    for method, operation in re.findall(
        r"`(GET|POST|PUT|PATCH|DELETE) (/v1/[^`\s?…]*)[^`…]*`", text
    ):
        assert (method, operation) in known, operation
    floors = "storage|runtime|plugins|tests|loadtests|configs|clients|examples"
    for name in re.findall(rf"`((?:{floors})/[\w./-]*)`", text):
        assert (ROOT / name).exists(), name


def test_the_table_of_settings_is_the_code_s() -> None:
    configuration = (ROOT / "docs/configuration.md").read_text()
    assert with_table(configuration) == configuration, "run `make docs`"
    assert all(f"| `{name}` |" in configuration for name in known_settings(Settings))


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert (ROOT / "README.md").stat().st_size <= 12_000


def test_every_guide_is_on_the_site_and_in_the_readme() -> None:
    readme, site = (ROOT / "README.md").read_text(), (ROOT / "mkdocs.yml").read_text()
    for guide in READ[1:]:
        assert named(guide) in readme, guide
        assert f": {guide.relative_to(ROOT / 'docs')}\n" in site, guide


def test_the_receiver_takes_what_is_genuine_and_nothing_else() -> None:
    """In a process of its own, on a free port, as printed but for the port."""
    secret, body = "whsec_" + "C" * 43, b'{"event_type": "memory.created", "data": {"id": "mem_1"}}'
    assert len([line for line in RECEIVER.splitlines() if line.strip()]) <= 15
    script = RECEIVER.replace(
        '(("127.0.0.1", 9000), Receiver).serve_forever()', '(("127.0.0.1", 0), Receiver)'
    )
    script += "print(made.server_port, flush=True)\nmade.serve_forever()\n"
    script = script.replace("http.server.HTTPServer(", "made = http.server.HTTPServer(")
    environment = {**os.environ, "WEBHOOK_SIGNING_SECRET": secret}
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    try:
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}/"
        signed = headers("evt_1", body, [secret], int(time.time()))
        assert httpx.post(url, content=body + b" ", headers=signed).status_code == 401
        assert (
            httpx.post(
                url, content=body, headers=headers("evt_1", body, [secret], int(time.time()) - 400)
            ).status_code
            == 401
        )
        assert httpx.post(url, content=body).status_code == 401
        assert httpx.post(url, content=body, headers=signed).status_code == 204
        assert process.stdout.readline() == "memory.created mem_1\n"
    finally:
        process.kill()
        process.communicate()
