from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from runtime.cli.ingest_files import files_in
from tests.support import ROOT, corpus
from tests.support.served import MNEME, Served


def ingest(
    service: Served, token: str, *arguments: str | Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    where = ["--base-url", service.url, "--config", str(ROOT / "configs/test.yaml")]
    where += ["--api-key", token] if token else ["--data-dir", str(service.data_dir)]
    return subprocess.run(
        [MNEME, "ingest", *where, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        check=False,
        env={**os.environ, **environ},
    )


def listed(service: Served, token: str) -> dict[str, str]:
    answer = service.http.get(
        "/v1/documents?limit=100", headers={"Authorization": f"Bearer {token}"}
    )
    return {item["filename"]: item["status"] for item in answer.json()["items"]}


def test_a_folder_goes_in_and_the_next_run_goes_on(service: Served, tmp_path: Path) -> None:
    token = service.register()
    (tmp_path / "deep").mkdir()
    (tmp_path / ".hidden").write_text("left out")
    (tmp_path / "note.md").write_text("# Note\n\nThe boat is red.")
    (tmp_path / "deep" / "tides.html").write_text(corpus.HTML)
    first = ingest(service, token, tmp_path, "--tags", "boats")
    assert (first.returncode, first.stdout.splitlines()[-1]) == (
        0,
        "2 uploaded, 0 there already, 0 failed.",
    ), first.stderr
    assert listed(service, token) == {"note.md": "completed", "tides.html": "completed"}

    (tmp_path / "program.exe").write_bytes(b"MZ\x00\x00\x01\x02")
    (tmp_path / "broken.json").write_text("{")
    again = ingest(service, token, tmp_path)
    assert again.returncode == 1
    assert again.stdout.splitlines() == [
        f"{tmp_path / 'broken.json'}: The file is not valid JSON.",
        f"{tmp_path / 'program.exe'}: not a supported format, left out",
        "1 uploaded, 2 there already, 1 failed.",
    ]
    (tmp_path / "broken.json").unlink()
    assert ingest(service, token, tmp_path).returncode == 0
    named = ingest(service, token, tmp_path / "program.exe")
    assert named.returncode == 1 and "not a supported format" in named.stdout


def test_a_name_that_is_no_utf8_hinders_no_file(service: Served, tmp_path: Path) -> None:
    token = service.register()
    (tmp_path / "note.md").write_text("The boat is red.")
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("The cup is blue.")
    (tmp_path / os.fsdecode(b"broken\xff.json")).write_text("{")
    done = ingest(service, token, tmp_path)
    assert done.stdout.splitlines() == [
        f"{tmp_path}/broken\ufffd.json: The file is not valid JSON.",
        "3 uploaded, 0 there already, 1 failed.",
    ], done.stderr
    there = {"note.md": "completed", "caf\ufffd.md": "completed", "broken\ufffd.json": "failed"}
    assert listed(service, token) == there


def test_what_is_named_and_is_no_file_is_refused(service: Served, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused = ingest(service, service.register(), tmp_path / "pipe")
    assert refused.returncode == 1 and "is neither a file nor a folder" in refused.stderr


def test_what_stops_everything_is_one_sentence(service: Served, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("A note.")
    refused = ingest(service, "mem_sk_" + "0" * 64, tmp_path)
    assert (
        refused.returncode == 1
        and refused.stderr.strip().count("\n") == 0
        and "401" in refused.stderr
    )
    missing = ingest(service, "x", tmp_path / "nowhere")
    assert (
        missing.returncode == 1
        and missing.stderr.strip()
        == f"mneme ingest: There is no file or folder {tmp_path / 'nowhere'}."
    )


def test_a_folder_gives_its_own_visible_files(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("o")
    folder = tmp_path / "folder"
    (folder / "b").mkdir(parents=True)
    for name in ("b/2.txt", "a.txt", ".git"):
        (folder / name).write_text(name)
    (folder / "link.txt").symlink_to(outside)
    assert [path.relative_to(folder).as_posix() for path in files_in([folder])] == [
        "a.txt",
        "b/2.txt",
    ]
    assert list(files_in([outside])) == [outside]


def test_without_a_key_no_account_is_made(service: Served, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("The boat is red.")
    refused = ingest(service, "", note)
    assert refused.returncode == 1 and "--api-key" in refused.stderr
    assert not (service.data_dir / "demo.json").exists()
    # A demo account of another service: its key stays where it is, and so does its file.
    demo = {"email": "a@example.com", "password": "b", "api_key": "mem_sk_" + "0" * 64}
    (tmp_path / "demo.json").write_text(json.dumps(demo))
    there = ("--data-dir", str(tmp_path))
    refused = ingest(service, "", note, *there)
    assert refused.returncode == 1 and "is none of the service at" in refused.stderr
    assert json.loads((tmp_path / "demo.json").read_text()) == demo
    elsewhere = ingest(service, "", note, *there, "--base-url", "http://192.0.2.1:8000")
    assert elsewhere.returncode == 1 and "--api-key" in elsewhere.stderr
    (tmp_path / "demo.json").write_text(json.dumps({**demo, "api_key": service.register()}))
    assert ingest(service, "", note, *there).returncode == 0
    token = service.register()
    done = ingest(service, "", note, MNEME_API_KEY=token)
    assert (done.returncode, listed(service, token)) == (0, {"note.md": "completed"}), done.stderr
