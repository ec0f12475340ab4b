"""`mneme upgrade-check`: what the next start of the installed release would do to the data.

It opens every store to read, beside a service that may be running, and changes nothing: whether
this release knows the stores, whether it would bring them up to date, after which no older release
opens them, and whether there is room for the backup that is taken before.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from runtime.cli import doctor
from runtime.cli.client import CallFailed, Client, local_base_url
from runtime.cli.doctor_disk import shown_size
from runtime.cli.finding import Finding
from runtime.installation import (
    LAYOUT_FILE,
    Layout,
    LayoutError,
    Secrets,
    SecretsError,
    shard_directory,
)
from runtime.placement import PlacementTable
from runtime.release import service_build, service_version
from runtime.settings import Settings
from storage.store import (
    DATA_FILE,
    Store,
    StoreError,
    StoreMissing,
    StoreOlder,
    StoreTooNew,
    Table,
    WrongServiceKey,
)

BACKUP = "run `mneme admin backup DIR` first; `mneme admin restore` brings the older release back"


def examine(settings: Settings, tables: Iterable[Table]) -> Iterator[Finding]:
    """Every check in turn, each finding as soon as it is known."""
    yield Finding("ok", f"installed: mneme {service_version()} ({service_build()})")
    yield _running(settings)
    yield doctor.guarded(doctor.store_format, settings)
    try:
        layout = Layout.load(settings.data_dir)
        secrets = Secrets.of(settings)
    except LayoutError:
        return
    except SecretsError as missing:
        yield Finding("wrong", f"secrets: {missing}", "bring back the secrets of this data")
        return
    yield from _stores(settings, layout, secrets, tables)
    yield _room(settings.data_dir)
    yield doctor.weights(settings)


def unusable(settings: Settings, tables: Iterable[Table]) -> Iterator[Finding]:
    """The stores that a start refuses. That layout or secrets cannot be read is for others to
    say.
    """
    if not (settings.data_dir / LAYOUT_FILE).exists():
        return
    with contextlib.suppress(LayoutError, SecretsError, StoreError, OSError):
        layout, secrets = Layout.load(settings.data_dir), Secrets.of(settings)
        for finding in _stores(settings, layout, secrets, tables):
            if finding.verdict == "wrong":
                yield finding


def _stores(
    settings: Settings, layout: Layout, secrets: Secrets, tables: Iterable[Table]
) -> Iterator[Finding]:
    tables = tuple(tables)
    for number in range(len(PlacementTable.of(settings).load().shards)):
        directory = shard_directory(settings.data_dir, number)
        if settings.cluster.name is None or directory.exists():
            yield _store(settings, layout, secrets, number, tables)


def _running(settings: Settings) -> Finding:
    """Which release answers at the address of the settings."""
    try:
        with Client(local_base_url(settings)) as client:
            health = client.call("GET", "/v1/health", accept=(503,))
    except CallFailed:
        return Finding("ok", "running: no service answers at the address of these settings")
    said = f"running: {health.get('version')} ({health.get('build')})"
    if (health.get("version"), health.get("build")) == (service_version(), service_build()):
        return Finding("ok", f"{said}, the installed release")
    return Finding("advice", said, "restart the service when what follows is in order")


def _store(
    settings: Settings, layout: Layout, secrets: Secrets, number: int, tables: Sequence[Table]
) -> Finding:
    directory = shard_directory(settings.data_dir, number)
    size = shown_size((directory / DATA_FILE).stat().st_size) if (
        (directory / DATA_FILE).exists()
    ) else "no data"  # fmt: skip
    what = f"shard {number}, {size}"
    try:
        store = Store.open_to_read(
            directory,
            tables,
            identity=layout.identity(number),
            map_bytes=settings.storage.map_bytes_max,
            service_key=secrets.service,
            earlier_keys=secrets.earlier_services,
        )
        with contextlib.closing(store), store.snapshot() as snapshot:
            snapshot.check_opens(tables)
    except StoreOlder:
        return Finding(
            "advice",
            f"{what}: an older release wrote it; the next start brings it up to date, and older "
            "releases cannot open it then",
            BACKUP,
        )
    except StoreTooNew as newer:
        return Finding("wrong", f"{what}: {newer}", "install the release that wrote it")
    except StoreMissing as missing:
        if not layout.complete:
            return Finding("ok", f"{what}: the next start makes it")
        return Finding("wrong", f"{what}: {missing}", "restore a backup")
    except WrongServiceKey as other:
        return Finding("wrong", f"{what}: {other}", "bring back the secrets of this data")
    except StoreError as broken:
        return Finding("wrong", f"{what}: {broken}", "restore a backup")
    return Finding("ok", f"{what}: nothing changes")


def _room(data_dir: Path) -> Finding:
    """Whether a backup, or a store written anew, fits beside the data."""
    used = sum(path.stat().st_blocks * 512 for path in data_dir.glob(f"shards/*/{DATA_FILE}"))
    free = shutil.disk_usage(data_dir).free
    what = f"room: {shown_size(free)} free beside {shown_size(used)} of data"
    if free < used:
        return Finding("advice", what, "back up to another disk, and free some space")
    return Finding("ok", what)


def conclusion(verdicts: Sequence[str]) -> str:
    """One sentence about all findings."""
    if "wrong" in verdicts:
        return "Do not start this release on this data before what is marked ✗ is mended."
    if "advice" in verdicts:
        return "This release can start on this data; mind what is marked !."
    return "This release starts on this data and changes nothing."
