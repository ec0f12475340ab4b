"""Plugins of other packages, in a real service: installed, enabled, broken, clashing, removed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.commands import mneme
from tests.support.environments import BESIDE, Environment, PluginEnvironment
from tests.support.pages import blocks
from tests.support.served import PASSWORD, Served
from tests.support.tiny_service import eventually

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "plugin_bookmarks"
CONFIG = ("--config", ROOT / "configs/test.yaml")
# An installation of the test's own: its settings, a free port, and pip that asks no index.
HERE = {
    "MNEME_CONFIG": str(ROOT / "configs/test.yaml"),
    "MNEME_HTTP__PORT": "0",
    "MNEME_ENGINE": "local",
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # "off" is how pip's variable says that there is none
}
TEXT = {"stdout": subprocess.PIPE, "text": True}
PYPROJECT = """\
[build-system]
requires = ["setuptools>=70"]
build-backend = "setuptools.build_meta"
[project]
name = "mneme-plugin-troubles"
version = "0.2.0"
[project.entry-points."mneme.plugins"]
broken = "troubles_broken:plugin"
clash = "troubles:clash"
raising = "troubles:raising"
tagging = "tagging:tagging"
[tool.setuptools]
py-modules = ["tagging", "troubles", "troubles_broken"]
"""
TAGGING = """\
from mneme import Body, Plugin, Read, View


class Said(Body):
    text: str


class Tagged(View):
    tag: str


class Tagger:
    def __init__(self, settings):
        self.engine = settings.engine

    def tag(self, text):
        return f"{self.engine}: {text.split()[-1]}"


async def prepare(call, loaded, models):
    return models.of("tagging.tagger").tag(call.body.text)


tagging = Plugin(
    "tagging",
    models={"tagging.tagger": Tagger},
    operations=(
        Read(name="tagging.tag", method="POST", path="/v1/tags", body=Said, prepare=prepare,
             handler=lambda ctx, body: {"tag": ctx.prepared}, response=Tagged, summary="Tag",
             example={"text": "a bee"}, example_reply={"tag": "local: bee"}),
    ),
)
"""
TROUBLES = """\
from mneme import CatchUp, Idempotency, Job, Plugin, Read, RetryStrategy, View, Write


class Done(View):
    done: bool


def fail(*_):
    raise RuntimeError("zebra in the attic")


def begin(ctx, body):
    ctx.enqueue("raising.work", {})
    return {"done": True}


clash = Plugin("clash", operations=(
    Read(name="clash.list", method="GET", path="/v1/bookmarks", handler=fail, response=Done,
         summary="Fail", example_reply={"done": True}),
))
raising = Plugin(
    "raising",
    models={"raising.model": fail},
    catch_up=CatchUp(fail, fail),
    jobs=(Job("raising.work", fail, retry=RetryStrategy(attempts=1)),),
    operations=(
        Read(name="raising.read", method="GET", path="/v1/raising", handler=fail, response=Done,
             summary="Fail", example_reply={"done": True}),
        Write(name="raising.begin", method="POST", path="/v1/raising", handler=begin, response=Done,
              summary="Begin", example_reply={"done": True}, scope="write",
              idempotency=Idempotency.CACHED),
    ),
)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> PluginEnvironment:
    """With the example, and a package whose plugins are in trouble."""
    directory = tmp_path_factory.mktemp("plugins")
    troubles = directory / "troubles"
    troubles.mkdir()
    (troubles / "pyproject.toml").write_text(PYPROJECT)
    (troubles / "troubles.py").write_text(TROUBLES)
    (troubles / "tagging.py").write_text(TAGGING)
    (troubles / "troubles_broken.py").write_text("raise OSError('no such library')\n")
    return PluginEnvironment(directory, EXAMPLE, troubles)


@pytest.fixture(scope="module")
def service(
    environment: PluginEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    settings = {
        "plugins.enabled": "bookmarks,raising,broken,tagging",
        "bookmarks.per_account_max": 2,
        "bookmarks.per_minute": 4,
        "limits.endpoint_caps": "true",
    }
    data_dir = tmp_path_factory.mktemp("served") / "data"
    running = Served(data_dir, settings=settings, program=environment.program)
    yield running
    running.end()


def save(service: Served, me: str, label: str = "reading") -> int:
    body = {"url": "https://example.org", "label": label}
    return service.http.post(
        "/v1/bookmarks", json=body, headers={"Authorization": f"Bearer {me}"}
    ).status_code


def test_its_endpoints_are_served_documented_limited_charged_and_offered(service: Served) -> None:
    me = service.register()
    bearer = {"Authorization": f"Bearer {me}"}

    def used() -> int:
        return service.http.get("/v1/usage", headers=bearer).json()["credits"]["used"]

    before = used()
    assert [save(service, me) for _ in range(5)] == [201, 201, 409, 409, 429]
    assert used() == before + 2
    paths = service.http.get("/openapi.json").json()["paths"]
    assert {"get", "post"} <= paths["/v1/bookmarks"].keys()
    assert "delete" in paths["/v1/bookmarks/{id}"]
    page = service.http.get("/v1/bookmarks", headers=bearer).json()
    assert page["total_count"] == 2 and page["items"][0]["id"].startswith("bmk_")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    tools = service.http.post("/mcp", json=hello, headers={**bearer, **accept}).text
    assert '"save_bookmark"' in tools


def test_its_rows_are_exported_and_erased_with_the_account(service: Served) -> None:
    me = service.register()
    bearer = {"Authorization": f"Bearer {me}"}
    assert save(service, me, "mine") == 201
    lines = service.http.get("/v1/account/export", headers=bearer).text.splitlines()
    labels = [r["record"]["label"] for r in map(json.loads, lines) if r["kind"] == "bookmark"]
    assert labels == ["mine"]
    confirmed = {"confirm": "erase-account"}
    gone = service.http.request(
        "DELETE", "/v1/account", params=confirmed, json={"password": PASSWORD}, headers=bearer
    )
    assert gone.is_success, gone.text
    assert save(service, me) == 401


def test_its_models_are_loaded_and_given_to_its_steps(service: Served) -> None:
    me = {"Authorization": f"Bearer {service.register()}"}
    answer = service.http.post("/v1/tags", json={"text": "Ada keeps bees"}, headers=me)
    assert answer.json() == {"tag": "local: bees"}


def test_its_retriever_is_in_hybrid_searches_and_may_be_asked_alone(service: Served) -> None:
    me = {"Authorization": f"Bearer {service.register()}"}

    def post(path: str, **body: object) -> dict[str, object]:
        return service.http.post(path, json=body, headers=me).json()

    garden = post("/v1/memories", content="The garden is in Porto.")["id"]
    post("/v1/bookmarks", url="https://example.org", label="holiday", memory_id=garden)
    (hit,) = post("/v1/search", query="holiday", explain=True)["results"]
    assert (hit["id"], "bookmarks.labels" in hit["explanation"]) == (garden, True)
    assert post("/v1/search", query="holiday", search_type="bm25")["results"] == []
    for path in ("/v1/search", "/v1/search/advanced"):
        answer = post(path, query="holiday", search_type="bookmarks.labels")
        assert (answer["evidence_ids"], answer["search_type"]) == ([garden], "bookmarks.labels")
    assert post("/v1/search", query="Porto", search_type="bookmarks.labels")["results"] == []
    choices = "must be one of 'hybrid', 'vector', 'bm25', 'graph' or 'bookmarks.labels'"
    for path in ("/v1/search", "/v1/search/advanced", "/v1/search/reason"):
        (finding,) = post(path, query="holiday", search_type="bookmarks")["error"]["details"]
        assert (finding["loc"], finding["msg"]) == (["body", "search_type"], choices)
    schemas = service.http.get("/openapi.json").json()["components"]["schemas"]
    for model in ("SearchBody", "AdvancedBody", "ReasonBody"):
        (kinds, _) = schemas[model]["properties"]["search_type"]["anyOf"]
        assert kinds["enum"] == ["hybrid", "vector", "bm25", "graph", "bookmarks.labels"]


def test_what_raises_harms_nobody_else(service: Served, environment: PluginEnvironment) -> None:
    me = service.register()
    bearer = {"Authorization": f"Bearer {me}"}
    failed = service.http.get("/v1/raising", headers=bearer)
    assert failed.status_code == 500 and "zebra" not in failed.text
    assert service.http.post("/v1/raising", headers=bearer).status_code == 200
    assert save(service, me) == 201
    assert service.http.get("/v1/health").json()["status"] == "ok"
    assert "plugin broken of mneme-plugin-troubles 0.2.0 is left out" in service.errors
    assert "model raising.model could not be loaded" in service.errors
    where = (*CONFIG, "--data-dir", service.data_dir)
    status, said, _ = environment.mneme("doctor", *where, "--set", "plugins.enabled=bookmarks")
    assert status == 1 and "plugin raising: mneme-plugin-troubles 0.2.0, which" in said
    assert "✗ plugin broken: mneme-plugin-troubles 0.2.0 cannot be loaded: OSError: no such" in said
    assert "✓ plugin bookmarks: mneme-plugin-bookmarks 0.1.0, 3 operations" in said


def test_the_five_commands_of_the_guide_lead_to_an_answer(tmp_path: Path) -> None:
    """As they are printed, but for key and address; then it is removed as is printed, too."""
    guide = blocks(ROOT / "docs/guides/plugins.md")
    typed = "".join(each.text for each in guide if each.not_run)
    install, doctor, serve, key, ask, remove = typed.splitlines()
    printed = [each.text.strip() for each in guide if each.language == "text"]
    fresh = Environment(tmp_path, BESIDE)
    (tmp_path / ".venv").symlink_to(fresh.python.parents[1])
    (tmp_path / "examples").mkdir()
    shutil.copytree(EXAMPLE, tmp_path / "examples" / EXAMPLE.name)

    def run(line: str, **environment: str) -> str:
        given = {**os.environ, **HERE, "MNEME_DATA_DIR": str(tmp_path / "data"), **environment}
        given.pop("PYTHONPATH", None)
        words = ["bash", "-euc", line]
        return subprocess.run(words, cwd=tmp_path, env=given, check=True, **TEXT).stdout

    run(install)
    assert printed[0] in run(doctor)
    environment = {**os.environ, **HERE, "MNEME_DATA_DIR": str(tmp_path / "data")}
    process = subprocess.Popen(
        ["bash", "-c", f"exec {serve}"], cwd=tmp_path, env=environment, **TEXT
    )
    try:
        announced = itertools.takewhile(lambda line: not line.startswith("  try"), process.stdout)
        url, api_key = re.search(
            r" at (\S+)$.*?(mem_sk_\w+)", "".join(announced), re.DOTALL | re.MULTILINE
        ).groups()
        assert key == "export API_KEY=mem_sk_…"
        answer = json.loads(run(ask.replace("http://127.0.0.1:8000", url), API_KEY=api_key))
        assert answer.pop("id").startswith("bmk_")
        assert answer.items() < json.loads(printed[1]).items()
    finally:
        process.terminate()
        process.communicate()
    run(remove)
    said = run(f"{doctor} || true")
    assert "plugin bookmarks is not there, and its rows are: bookmarks." in said


def test_its_own_tests_pass(environment: PluginEnvironment) -> None:
    assert "4 passed" in environment.pytest(environment.copies[0] / "tests")


def test_two_that_clash_are_refused_with_both_names(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    said = environment.refusal(tmp_path / "data")
    assert "by plugin 'bookmarks' and plugin 'clash'" in said and "GET /v1/bookmarks" in said
    assert "Traceback" not in said


@contextmanager
def running(data_dir: Path, program: str = "") -> Iterator[Served]:
    """A service: with bookmarks where `program` is that of an environment that has them."""
    given = {"settings": {"plugins.enabled": "bookmarks"}, "program": program} if program else {}
    service = Served(data_dir, **given)
    try:
        yield service
    finally:
        service.end()


def erase(service: Served, me: str) -> dict[str, int]:
    """Erase an account, and wait until that has ended; -> what went, by store."""
    told = service.http.request(
        "DELETE",
        "/v1/account",
        params={"confirm": "erase-account"},
        json={"password": PASSWORD},
        headers={"Authorization": f"Bearer {me}"},
    )
    receipt = {"receipt": told.json()["receipt"]}
    erased: dict[str, int] = {}

    def is_over() -> bool:
        answer = service.http.post("/v1/account/receipts", json=receipt).json()
        erased.update((each["store"], each["count"]) for each in answer["receipts"])
        return answer["status"] == "completed"

    assert eventually(is_over)
    return erased


def test_an_account_that_is_erased_meanwhile_leaves_no_rows_of_one_that_was_removed(
    environment: PluginEnvironment, tmp_path: Path
) -> None:
    data_dir = tmp_path / "data"
    with running(data_dir, environment.program) as service:
        leaves, stays = service.register(), service.register()
        assert [save(service, each) for each in (leaves, leaves, stays)] == [201, 201, 201]
        assert service.stop() == 0
    with running(data_dir) as without:
        erased = erase(without, leaves)
        assert (erased["bookmarks.rows"], erased["bookmarks.ids"]) == (2, 2)
        assert without.stop() == 0
    with running(data_dir, environment.program) as again:
        bearer = {"Authorization": f"Bearer {stays}"}
        assert again.http.get("/v1/bookmarks", headers=bearer).json()["total_count"] == 1
        assert again.stop() == 0
    where = (*CONFIG, "--data-dir", data_dir, "--set", "plugins.enabled=bookmarks")
    status, said, _ = environment.mneme("admin", "verify", *where)
    assert status == 0 and " 0 findings" in said, said


def test_rows_of_one_that_was_removed_stay_and_have_a_name(
    service: Served, environment: PluginEnvironment
) -> None:
    me, data_dir = service.register(), service.data_dir
    assert save(service, me) == 201
    service.end()
    without = Served(data_dir)
    try:
        assert save(without, me) == 404
        _, said, _ = mneme("doctor", *CONFIG, "--data-dir", data_dir)
        assert "plugin bookmarks is not there, and its rows are: bookmarks.fields.bitmaps" in said
    finally:
        without.end()
    there = {"plugins.enabled": "bookmarks,raising"}
    again = Served(data_dir, settings=there, program=environment.program)
    try:
        page = again.http.get("/v1/bookmarks", headers={"Authorization": f"Bearer {me}"}).json()
        assert page["total_count"] == 1 and page["items"][0]["checked"] is True
        assert again.stop() == 0, "what another one's catch_up raises is nobody else's"
        assert "what a plugin owes accounts begins at the next start" in again.errors
    finally:
        again.end()
