"""`mneme admin backup`, `restore` and `verify`: an operator's commands on stored data.

Backup and verification read the files and need nobody's leave: a store may be read beside the
process that writes it. Repairs go through the service's internal route with the operator token
while it runs, and straight to the files, held with the service's own lock, while it does not.
Restoring is for a directory that no service has yet.
"""

from __future__ import annotations

import argparse
import time
from datetime import datetime
from pathlib import Path

from runtime.cli import backup, recovery
from runtime.cli.admin import Command
from runtime.cli.backup import BackupError
from runtime.installation import (
    Layout,
    Secrets,
    key_rings,
    read_key_ring,
)
from runtime.settings import Settings
from runtime.timestamps import iso
from storage.replication import Restored

OK, STILL_NEEDED = 0, 1


def back_up(parsed: argparse.Namespace, settings: Settings) -> int:
    if settings.cluster.name is not None:
        raise BackupError(
            "No node has all shards: on several nodes the object store is the backup; `mneme admin "
            "restore` reads it."
        )
    manifest = backup.back_up(
        settings.data_dir, parsed.directory, _now_ms(), settings.storage.map_bytes_max
    )
    print(f"{_summary(manifest)} of {settings.data_dir} are in {parsed.directory}.")
    return OK


def restore(parsed: argparse.Namespace, settings: Settings) -> int:
    if parsed.directory is None:
        return _restore_from_log(parsed, settings)
    if parsed.at or parsed.take_over or parsed.cluster:
        raise BackupError(
            "--at, --take-over and --cluster are for a restore from the object store: a backup is "
            "of one moment."
        )
    manifest = backup.restore(parsed.directory, settings.data_dir)
    print(
        f"{_summary(manifest)}, as of {manifest.made_at}, are in {settings.data_dir}; every "
        "checksum and count agrees."
    )
    return OK


def _restore_from_log(parsed: argparse.Namespace, settings: Settings) -> int:
    """Restore from the object store of the settings; say how far each shard got."""

    def report(shard: int, found: Restored) -> None:
        print(
            f"shard {shard}: commit {found.sequence} of {iso(found.at)}, from a snapshot and "
            f"{found.segments} segments",
            flush=True,
        )

    def erased_again(accounts: int) -> None:
        print(
            f"{accounts} accounts whose erasure was asked for since are closed, and are swept when "
            "the directory is served"
        )

    layout = recovery.restore_installation(
        settings,
        cluster_id=parsed.cluster,
        at=parsed.at,
        take_over=parsed.take_over,
        report=report,
        erased_again=erased_again,
    )
    print(
        f"{layout.shards} shards of {settings.object_store.url} are in {settings.data_dir}; every "
        "checksum agrees."
    )
    if not parsed.take_over:
        print(
            "They are for looking at: a service of these settings refuses them. Restore with "
            "--take-over to go on from here."
        )
    return OK


def verify(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print every finding and, when asked to, repair; 0 when nothing is wrong, or nothing any
    more.
    """
    from runtime.cli.verify import verify_stores  # with all that a shard stands on

    return verify_stores(parsed, settings)


def secrets(parsed: argparse.Namespace, settings: Settings) -> int:
    """Say of each shard here whether the service secret before the present one is still needed; 1
    where it is.
    """
    Layout.load(settings.data_dir)  # names a directory without a service's data as such
    given = Secrets.of(settings)
    rings = key_rings(settings.data_dir)
    left = 0
    for path in rings:
        ring = read_key_ring(path, given)
        others, count = ring.wrapped_otherwise(), ring.count()
        ring.close()
        left += others
        print(f"shard {int(path.parent.name)}: {count} data keys, {others} by the secret before")
    if left or not rings:
        print("Start the service with secrets.service and secrets.service_previous: it wraps them.")
        return STILL_NEEDED
    if given.pepper_previous is not None:
        print(
            "Of secrets.pepper_previous this says nothing: `mneme admin verify` finds the "
            "addresses that still need it, and --repair stores them under the new one."
        )
    print(
        f"Nothing that is stored in {settings.data_dir} needs the secret before; API keys that it "
        "signed, and sessions, do."
    )
    return OK


def _summary(manifest: backup.BackupManifest) -> str:
    rows = sum(store.rows for store in manifest.stores)
    return (
        f"{rows} rows of {len(manifest.stores)} shards in {len(manifest.files)} files, "
        f"{manifest.size} bytes"
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


def _backup_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the backup's directory")


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        type=Path,
        nargs="?",
        metavar="DIR",
        help="a backup's directory (default: the log in object_store.url)",
    )
    parser.add_argument(
        "--at",
        type=_moment,
        metavar="TIME",
        help="the state of that time (ISO 8601; default: the last)",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="become the owner of the shards: whoever served them stops",
    )
    parser.add_argument(
        "--cluster", metavar="ID", help="which installation, where the object store holds several"
    )


def _moment(text: str) -> int:
    """ISO 8601 with an offset -> Unix milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is no time of ISO 8601, such as 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text} has no offset: write 2026-01-31T12:00:00Z for UTC"
        )
    return int(moment.timestamp() * 1000)


def _repair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repair", action="store_true", help="make what derives from other rows again"
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "backup",
        "copy all data into a new directory, also while the service runs",
        _backup_directory,
        back_up,
    ),
    Command(
        "restore",
        "make a new data directory from a backup, or from the log in object storage",
        _restore_arguments,
        restore,
        of_service=True,
    ),
    Command(
        "secrets",
        "whether the service secret before the present one is still needed",
        lambda parser: None,
        secrets,
    ),
    Command(
        "verify",
        "check that everything stored agrees with itself, also while the service runs",
        _repair,
        verify,
        of_service=True,
    ),
)
