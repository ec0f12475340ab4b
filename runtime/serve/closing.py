"""The end of a service on a Ray of its own, as the program that attendant.py becomes."""

from __future__ import annotations

import logging
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer

from runtime import cluster
from runtime.installation import remember_object_store
from runtime.limits import ENDING_SECONDS_MAX
from runtime.log_lines import configure_logging
from runtime.serve.own_ray import end, rejoin
from runtime.serve.run_directory import RunDirectory
from runtime.settings import Settings

log = logging.getLogger("mneme.serving")


def main(kept: str, data_dir: str, address: str, loss: str) -> int:
    """Let running requests end, close the shards in order, leave no process behind; -> the
    process's exit status.

    kept     number of the open file that the settings are in
    address  Ray's
    loss     what has ended that Ray cannot do without, if anything
    """
    run_directory = RunDirectory.of(Path(data_dir))
    _end_by_force_when_late(run_directory)
    try:
        # Both take seconds, and neither needs the other.
        with ThreadPoolExecutor(1) as beside:
            door = beside.submit(run_directory.close_front_door)
            settings = _settings(int(kept))
            if loss:
                log.critical("%s; the service stops", loss)
            else:
                rejoin(settings, address)
            door.result()
    except Exception:  # such as of a release that was exchanged meanwhile
        log.exception("Ray cannot be reached; the next start recovers from what is on disk")
        run_directory.end_processes()
        return 1
    end(settings, run_directory)
    cluster.remove_dead_sockets(settings)
    if not loss:  # else what Ray and HAProxy have written may say why
        run_directory.remove()
    remember_object_store(settings)
    return 1 if loss else 0


def _end_by_force_when_late(run_directory: RunDirectory) -> None:
    """End everything after ENDING_SECONDS_MAX, whatever is still waited for: a Ray whose head
    stands still answers nothing, and does not say so either.
    """

    def end_now() -> None:
        log.error(
            "the service did not end in order within %s seconds; the next start recovers from "
            "what is on disk",
            ENDING_SECONDS_MAX,
        )
        run_directory.end_processes()
        os._exit(1)

    timer = Timer(ENDING_SECONDS_MAX, end_now)
    timer.daemon = True
    timer.start()


def _settings(kept: int) -> Settings:
    with os.fdopen(kept, "rb") as file:
        settings: Settings = pickle.load(file)
    configure_logging(settings)
    return settings


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
