"""`mneme ingest`: files and folders of files into a running service, with a progress bar, as often
as need be.

Every file is hashed first, and the service is asked whether the collection has that content. What
it has, and has not failed at, is passed over; so a run that was broken off goes on where it
stopped, without a record of its own. Uploads run side by side, wait where the service says so, and
are repeated under the same Idempotency-Key after a failure that may pass. The file itself is
streamed. At the end every document is waited for, unless asked not to, and what failed is listed
with its reason.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from runtime.cli.client import CallFailed, Client
from runtime.cli.progress import ProgressBar

ATTEMPTS_MAX = 8
WAIT_SECONDS_MAX = 60.0
POLL_SECONDS_MIN, POLL_SECONDS_MAX = 0.1, 2.0
HASH_BYTES = 1024 * 1024
DONE = ("completed", "failed")


@dataclass
class IngestedFiles:
    """What became of the files: how many are new, were there before, were passed over as
    unsupported; and those that failed, with why.
    """

    uploaded: int = 0
    present: int = 0
    unsupported: list[Path] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)


def files_in(paths: Sequence[Path]) -> Iterator[Path]:
    """The files named, and all below the folders named, in order; what is hidden by a leading dot
    and links out of a folder are left out.

    Raises OSError for what is not there, or is neither.
    """
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"There is no file or folder {path}.")
        if path.is_file():
            yield path
            continue
        if not path.is_dir():
            raise OSError(f"{path} is neither a file nor a folder.")
        for inside in sorted(path.rglob("*")):
            hidden = any(part.startswith(".") for part in inside.relative_to(path).parts)
            if not hidden and inside.is_file() and inside.resolve().is_relative_to(path.resolve()):
                yield inside


def run(
    client: Client,
    files: Sequence[Path],
    collection_id: str | None,
    *,
    at_once: int,
    wait: bool,
    tags: str = "",
    out: TextIO,
) -> IngestedFiles:
    """Upload what is not there yet, and show on `out` how far that is.

    Raises CallFailed where the service refuses the credential or cannot be reached at all.
    """
    into = collection_id
    if into is None:
        into = client.call("GET", "/v1/collections/default")["id"]
    outcome = IngestedFiles()
    pending: list[tuple[Path, str]] = []
    bar = ProgressBar(out, len(files), "uploading")
    with ThreadPoolExecutor(at_once, "ingest") as pool:
        futures = {pool.submit(_upload, client, path, into, tags): path for path in files}
        for done, future in enumerate(as_completed(futures), 1):
            path = futures[future]
            try:
                status, document = future.result()
            except CallFailed as failed:
                if failed.status in (0, 401, 403):
                    pool.shutdown(cancel_futures=True)
                    raise
                if failed.status == 415:
                    outcome.unsupported.append(path)
                else:
                    outcome.failed.append((path, str(failed)))
            except OSError as unreadable:
                outcome.failed.append((path, str(unreadable)))
            else:
                outcome.uploaded += status == 202
                outcome.present += status == 200
                pending.append((path, document["id"]))
            bar.show(done)
    bar.end()
    if wait:
        _await(client, pending, outcome, out)
    return outcome


def _upload(client: Client, path: Path, collection_id: str, tags: str) -> tuple[int, dict]:
    """(202, document) for a file that was sent, (200, document) for one that was there."""
    digest = _digest(path)
    asked = f"/v1/documents?sha256={digest}&collection_id={collection_id}"
    there = _patiently(lambda: client.call("GET", asked))["items"]
    if there and there[0]["status"] != "failed":
        return 200, there[0]
    fields = {"collection_id": collection_id} | ({"tags": tags} if tags else {})
    labels = hashlib.sha256(os.fsencode(f"{path.name}/{tags}/{collection_id}")).hexdigest()
    key = f"ingest-{digest[:32]}-{labels[:16]}"
    key += f"-{there[0]['version']}" if there else ""

    def send() -> dict:
        with path.open("rb") as file:
            return client.upload("/v1/documents/upload", _readable(path.name), file, fields, key)

    return 202, _patiently(send)["document"]


def _readable(name: str | Path) -> str:
    """A file's name as text: of an older encoding's bytes, which are no UTF-8, signs for what
    cannot be read.
    """
    return os.fsencode(name).decode(errors="replace")


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(HASH_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _patiently(call: Callable[[], dict]) -> dict:
    """The answer, after as many attempts as a busy or restarting service may need. Raises
    CallFailed.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            return call()
        except CallFailed as failed:
            may_pass = failed.status in (409, 429) or failed.status >= 500
            if (
                not may_pass
                or attempt == ATTEMPTS_MAX
                or (failed.status == 409 and failed.retry_after is None)
            ):
                raise
            time.sleep(min(WAIT_SECONDS_MAX, failed.retry_after or min(2**attempt / 4, 8)))
    raise AssertionError("unreachable")


def _await(
    client: Client, pending: Sequence[tuple[Path, str]], outcome: IngestedFiles, out: TextIO
) -> None:
    """Look at each document until it is done."""
    bar = ProgressBar(out, len(pending), "indexing")
    pause = POLL_SECONDS_MIN
    for done, (path, document_id) in enumerate(pending, 1):
        while (document := _document(client, document_id))["status"] not in DONE:
            time.sleep(pause)
            pause = min(POLL_SECONDS_MAX, pause * 1.5)
        if document["status"] == "failed":
            outcome.failed.append((path, document["error"]["message"]))
        bar.show(done)
        pause = POLL_SECONDS_MIN
    bar.end()


def _document(client: Client, document_id: str) -> dict:
    return _patiently(lambda: client.call("GET", f"/v1/documents/{document_id}"))


def summary(outcome: IngestedFiles) -> str:
    """The lines to print at the end."""
    lines = [f"{_readable(path)}: {_readable(why)}" for path, why in outcome.failed]
    lines += [
        f"{_readable(path)}: not a supported format, left out" for path in outcome.unsupported
    ]
    counts = [
        f"{outcome.uploaded} uploaded",
        f"{outcome.present} there already",
        f"{len(outcome.failed)} failed",
    ]
    return "\n".join([*lines, ", ".join(counts) + "."])
