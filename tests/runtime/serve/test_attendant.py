"""What waits for the end of a service on Ray, and what ends it: each as the program that it is."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from runtime.serve import attendant
from runtime.settings import Settings
from tests.support.tiny_service import eventually

STOPS = [signal.SIGINT, signal.SIGTERM]
TELL = ["-c", "import sys; print(sys.argv[1:])"]


def waiting(before: str = "") -> subprocess.Popen[str]:
    """The attendant, as a process that has blocked the signals becomes it; before: what this one
    does first, with the orders in `orders`.
    """
    orders = {"pillars": {}, "signals": STOPS, "ending": TELL}
    program = [sys.executable, "-SEP", attendant.__file__]
    line = (
        "import json, os, signal, subprocess, threading, time\n"
        "from runtime.serve.signals import Signals\n"
        "signals = Signals().__enter__()\nsignals.started()\n"
        "threading.Thread(target=time.sleep, args=[600], daemon=True).start()\n"
        f"orders = json.loads({json.dumps(orders)!r})\n"
        f"orders['taken'] = signals.block()\n{before}\n"
        "os.set_inheritable(orders['taken'], True)\n"
        f"os.execv({sys.executable!r}, [*{program}, json.dumps(orders)])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_has_it_end_the_service(number: signal.Signals) -> None:
    with waiting() as process:
        attending = psutil.Process(process.pid)
        assert eventually(lambda: attendant.__file__ in attending.cmdline())
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("['']\n", "")


@pytest.mark.parametrize("kill", ["os.kill(os.getpid()", "signal.pthread_kill(main"])
def test_a_signal_that_comes_between_two_programs_is_not_lost(kill: str) -> None:
    """One to the process is another thread's, which blocks nothing; one to this thread waits."""
    main = "main = threading.main_thread().ident"
    with waiting(f"{main}; {kill}, signal.SIGTERM)") as process:
        assert process.communicate(timeout=60) == ("['']\n", "")


def test_the_end_of_what_the_service_stands_on_is_named() -> None:
    """A child of the process that has started everything is one of the attendant's."""
    begun = (
        "child = subprocess.Popen(['sleep', '600'], stdout=-3, stderr=-3).pid\n"
        "orders['pillars'][child] = 'raylet'; print(child, flush=True)"
    )
    with waiting(begun) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        os.kill(child, signal.SIGKILL)
        ended, _ = process.communicate(timeout=60)
        assert ended == f"['raylet, process {child}, has ended']\n"


def test_it_says_what_keeps_it_from_ending_in_order(tmp_path: Path) -> None:
    lost = str(tmp_path / "python")
    orders = json.dumps({"pillars": {}, "signals": STOPS, "taken": 0, "ending": []})
    line = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, [15]); "
        "from runtime.serve import attendant; os.kill(os.getpid(), signal.SIGTERM); "
        f"sys.executable = {lost!r}; sys.exit(attendant.main({orders!r}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", line],
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = f"mneme serve: {lost}: No such file or directory\n"
    assert (ended.returncode, ended.stderr) == (1, said)


def closed(kept: bytes, data_dir: Path, loss: str) -> subprocess.CompletedProcess[str]:
    """What ends a service, of which nothing runs any more."""
    with tempfile.TemporaryFile() as file:
        file.write(kept)
        file.seek(0)
        given = [str(file.fileno()), str(data_dir), "127.0.0.1:1", loss]
        return subprocess.run(
            [sys.executable, "-m", "runtime.serve.closing", *given],
            pass_fds=[file.fileno()],
            capture_output=True,
            text=True,
            timeout=60,
        )


def test_what_was_lost_is_in_the_log(tmp_path: Path) -> None:
    settings = Settings.model_construct(data_dir=tmp_path)
    ended = closed(pickle.dumps(settings), tmp_path, "raylet, process 7, has ended")
    assert ended.returncode == 1
    assert "raylet, process 7, has ended; the service stops" in ended.stderr


def test_settings_that_nobody_can_read_any_more_are_no_reason_to_stay(tmp_path: Path) -> None:
    ended = closed(b"of another release", tmp_path, "")
    assert ended.returncode == 1
    assert "the next start recovers from what is on disk" in ended.stderr


def test_a_ray_that_stands_still_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as file, socket.create_server(("127.0.0.1", 0)) as silent:
        pickle.dump(Settings.model_construct(data_dir=tmp_path), file)
        file.seek(0)
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        line = (
            "import sys; from runtime import limits; limits.ENDING_SECONDS_MAX = 3; "
            "from runtime.serve import closing; "
            f"sys.exit(closing.main({str(file.fileno())!r}, {str(tmp_path)!r}, {address!r}, ''))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", line],
            pass_fds=[file.fileno()],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 1
    assert "did not end in order within 3 seconds" in ended.stderr
