"""What an installation takes: python loadtests/installation.py FOLDER [--starts 5] [--engine local]

FOLDER is a virtual environment with the service. Told of it: its size and how many packages it has;
and of starts on one data directory, each after one that is not counted, the median time to the
announcement and the memory (PSS) of all its processes, at the announcement and after an account, a
memory and a search.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
STOP_SECONDS_MAX = 60
MIB = 2**20


def pss_mb(process: psutil.Process) -> float:
    """Of a process and of those it started; one that has ended meanwhile has none."""
    found = 0.0
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found += one.memory_full_info().pss / MIB
    return found


def call(url: str, body: dict[str, Any], token: str = "") -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    if not token:
        del headers["Authorization"]
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def started(home: Path, engine: str, data_dir: Path, number: int) -> tuple[float, float, float]:
    """-> (seconds to the announcement, MB there, MB after a search)"""
    words = [home / "bin/mneme", "serve", "--engine", engine, "--port", "0", "--data-dir", data_dir]
    words += ["--config", ROOT / "configs/test.yaml"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    began = time.perf_counter()
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment, cwd=data_dir.parent
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().split()[-1]
        took = time.perf_counter() - began
        family = psutil.Process(process.pid)
        at_rest = pss_mb(family)
        account = {"email": f"ada-{number}@example.com", "password": "correct horse battery staple"}
        me = call(f"{url}/v1/auth/register", {**account, "full_name": "Ada"})["access_token"]
        call(f"{url}/v1/memories", {"content": "Ada eats no nuts."}, me)
        assert call(f"{url}/v1/search", {"query": "nuts"}, me)["total"] == 1
        return took, at_rest, pss_mb(family)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS_MAX)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    asked = parser.parse_args()
    home = asked.folder.resolve()
    said = subprocess.run(["du", "-sm", home], capture_output=True, text=True, check=True).stdout
    packages = len([*home.glob("lib/python3*/site-packages/*.dist-info")])
    print(f"{home.name}: {packages} packages, {said.split()[0]} MB")
    with tempfile.TemporaryDirectory() as directory:
        runs = [
            started(home, asked.engine, Path(directory) / "data", number)
            for number in range(asked.starts + 1)
        ]
    took, at_rest, after = (statistics.median(column) for column in zip(*runs[1:], strict=True))
    print(f"start {took:.2f} s, PSS {at_rest:.0f} MB, after a search {after:.0f} MB")


if __name__ == "__main__":
    main()
