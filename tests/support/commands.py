"""The command line in this process: it does and prints the same, and nothing has to be imported
anew each time.
"""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path

from runtime.cli import main
from tests.support import ROOT
from tests.support.served import Served


def mneme(*arguments: object) -> tuple[int, str, str]:
    """Run `mneme`; -> (exit status, standard output, standard error). Not for threads: what is
    printed is caught process-wide.
    """
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert "Traceback" not in err.getvalue(), err.getvalue()
    return status, out.getvalue(), err.getvalue()


def admin(
    command: str, data_dir: Path, *arguments: object, service: Served | None = None
) -> tuple[int, str, str]:
    """As mneme, of `mneme admin` on a data directory, or on a running service."""
    where = () if service is None else ("--base-url", service.url)
    return mneme(
        "admin",
        command,
        *arguments,
        "--config",
        ROOT / "configs/test.yaml",
        "--data-dir",
        data_dir,
        *where,
    )
