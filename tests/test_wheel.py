"""The wheel that is built of this repository is a tool by itself: it starts in an empty directory,
without a checkout, keeps its data where the user's are, and finds them again.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support import ROOT
from tests.support.served import START_SECONDS_MAX, STOP_SECONDS_MAX

BUILD_SECONDS_MAX = 300
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mneme` of an environment with the wheel, and with the packages that the suite runs with."""
    directory = tmp_path_factory.mktemp("wheel")
    source, home = directory / "source", directory / "environment"
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, source / name)
    building = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*building, "--wheel-dir", str(directory), str(source)],
        check=True,
        timeout=BUILD_SECONDS_MAX,
    )
    shutil.rmtree(source)
    (wheel,) = directory.glob("mneme-*.whl")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    install = [*PIP, "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True, timeout=BUILD_SECONDS_MAX)
    (own,) = (home / "lib").glob("python3*/site-packages")
    # Its packages stand before those of the suite, whose path files are not read.
    (own / "beside.pth").write_text(f"{Path(pytest.__file__).parent.parent}\n")
    return home / "bin" / "mneme"


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home)}


@contextmanager
def started(program: Path, home: Path, here: Path) -> Iterator[str]:
    """`mneme serve` as a person types it; -> what it announces."""
    words = [str(program), "serve", "--engine", "local", "--port", "0", "--demo-account"]
    with (home / "serve.err").open("a") as errors:
        process = subprocess.Popen(
            words, cwd=here, env=environment(home), stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        lines: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "try " in line:
                break
        assert lines, (home / "serve.err").read_text()
        yield "".join(lines)
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS_MAX) == 0


def said(announced: str, pattern: str) -> str:
    found = re.search(pattern, announced)
    assert found, announced
    return found[1]


@pytest.mark.long
def test_it_serves_in_an_empty_directory_and_finds_its_data_again(
    program: Path, tmp_path: Path
) -> None:
    home, here, there = tmp_path / "home", tmp_path / "here", tmp_path / "there"
    for directory in (home, here, there):
        directory.mkdir()
    data_dir = home / ".local" / "share" / "mneme"
    with started(program, home, here) as announced:
        assert said(announced, r"data +(\S+)") == str(data_dir)
        url, key = said(announced, r"ready at (\S+)"), said(announced, r"key +(\S+)")
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as client:
            stored = client.post("/v1/memories/raw", json={"content": "The kiln is in the barn."})
            assert stored.status_code == 201
            found = client.post("/v1/search", json={"query": "Where is the kiln?"}).json()
            assert found["results"][0]["id"] == stored.json()["id"]
            assert client.get("/dashboard").status_code == 200
    assert not any(here.iterdir())
    with started(program, home, there) as announced:  # another directory, the same data
        assert said(announced, r"key +(\S+)") == key
    data_dir.rename(there / "data")  # as the checkout had it
    with started(program, home, there) as announced:
        assert said(announced, r"data +(\S+)") == str(there / "data")
        assert said(announced, r"key +(\S+)") == key


@pytest.mark.long
def test_its_other_commands_need_no_checkout_either(program: Path, tmp_path: Path) -> None:
    def run(*arguments: str, command: Path = program) -> str:
        ended = subprocess.run(
            [str(command), *arguments],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=START_SECONDS_MAX,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert run("--version").startswith("mneme ")
    assert "changes nothing" in run("upgrade-check", "--port", "9")
    assert "_shtab_mneme" in run("completion", "bash")
    assert "prometheus --config.file=" in run("monitoring", "watched")
    written = {path.name for path in (tmp_path / "watched").rglob("*") if path.is_file()}
    assert {"prometheus.yml", "alerts.yaml", "mneme.json", "grafana.ini"} <= written
    where = "import runtime; print(runtime.__file__)"
    assert str(ROOT) not in run("-c", where, command=program.with_name("python"))
