"""What `mneme doctor` says of the disk that the data directory is on."""

from __future__ import annotations

import errno
import shutil
import tempfile

from runtime.cli.finding import Finding
from runtime.settings import Settings
from storage.store import NO_SPACE

FREE_BYTES_MIN = 256 * 1024**2
FREE_BYTES_ADVISED = 2 * 1024**3

_WAYS_OUT = {
    **dict.fromkeys(NO_SPACE, "free some space, or grow the disk or its quota"),
    errno.EROFS: "find out why the disk is mounted read-only (`dmesg`), and mount it for writing",
    errno.EACCES: "run this, and the service, as the user whose data it is, or give it to this one",
    errno.EIO: "the disk fails: look at `dmesg`, and restore onto another one",
}


def way_out(refused: OSError) -> str:
    """What can be done where the system refused the data directory."""
    return _WAYS_OUT.get(refused.errno or 0, "choose another with --data-dir")


def data_directory(settings: Settings) -> Finding:
    """Check that it, or the nearest directory above it, can be written and has room."""
    existing = settings.data_dir
    try:
        while not existing.exists():
            existing = existing.parent
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(b"\0")
            probe.flush()
    except OSError as error:
        return Finding(
            "wrong",
            f"data directory {settings.data_dir} cannot be written: {error.strerror}",
            way_out(error),
        )
    free = shutil.disk_usage(existing).free
    what = f"data directory {settings.data_dir}: {shown_size(free)} free"
    if free < FREE_BYTES_ADVISED:
        return Finding(
            "wrong" if free < FREE_BYTES_MIN else "advice",
            what,
            "free some space or choose another with --data-dir",
        )
    return Finding("ok", what)


def shown_size(count: int) -> str:
    return f"{count / 1024**3:.1f} GiB" if count >= 1024**3 else f"{count / 1024**2:.0f} MiB"
