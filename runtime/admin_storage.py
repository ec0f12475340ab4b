"""`mneme admin backup`, `restore` and `verify`: an operator's commands on stored data.

Backup and verification read the files and need nobody's leave: a store may be read beside the process that writes it. Repairs go
through the service's internal route with the operator token while it runs, and straight to the files, held with the service's
own lock, while it does not. Restoring is for a directory that no service has yet.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from runtime import backup, recovery, verification
from runtime.admin import Command
from runtime.backup import BackupError
from runtime.client import Client, local_base_url
from runtime.layout import Layout, LayoutError, held, shard_directory
from runtime.limits import FINDINGS_SHOWN_MAX
from runtime.operation import Environment, WriteContext
from runtime.outbound import Outbound
from runtime.placement import Placement
from runtime.placement_table import PlacementTable
from runtime.secrets import Secrets
from runtime.settings import Settings
from runtime.shard_home import held_shards
from runtime.timestamps import iso
from runtime.verification import Account, Finding
from storage.replay import Restored
from storage.table import Scope, Store

OK, FOUND = 0, 1


Mend = Callable[[int, Account], tuple[int, list[Finding]]]


def back_up(parsed: argparse.Namespace, settings: Settings) -> int:
    if settings.cluster.name is not None:
        raise BackupError("No node has all shards: on several nodes the object store is the backup; `mneme admin restore` reads it.")
    manifest = backup.back_up(settings.data_dir, parsed.directory, _now_ms())
    print(f"{_told(manifest)} of {settings.data_dir} are in {parsed.directory}.")
    return OK


def restore(parsed: argparse.Namespace, settings: Settings) -> int:
    if parsed.directory is None:
        return _restore_from_log(parsed, settings)
    if parsed.at or parsed.take_over or parsed.cluster:
        raise BackupError("--at, --take-over and --cluster are for a restore from the object store: a backup is of one moment.")
    manifest = backup.restore(parsed.directory, settings.data_dir)
    print(f"{_told(manifest)}, as of {manifest.made_at}, are in {settings.data_dir}; every checksum and count agrees.")
    return OK


def _restore_from_log(parsed: argparse.Namespace, settings: Settings) -> int:
    """From the object store of the settings; say how far each shard got."""

    def told(shard: int, found: Restored) -> None:
        print(f"shard {shard}: commit {found.sequence} of {iso(found.at)}, from a snapshot and {found.segments} segments", flush=True)

    layout = recovery.restore_installation(settings, cluster_id=parsed.cluster, at=parsed.at, take_over=parsed.take_over, told=told)
    print(f"{layout.shards} shards of {settings.object_store.url} are in {settings.data_dir}; every checksum agrees.")
    if not parsed.take_over:
        print("They are for looking at: a service of these settings refuses them. Restore with --take-over to go on from here.")
    return OK


def verify(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print every finding and, when asked to, repair; 0 when nothing is wrong, or nothing any more. On several nodes: of this one."""
    layout = Layout.load(settings.data_dir)
    environment = _environment(settings)
    wrong: list[tuple[int, Account]] = []
    placement = PlacementTable.of(settings).load()
    numbers = range(len(placement.shards)) if settings.cluster.name is None else held_shards(settings.data_dir)
    for number in numbers:
        wrong += _examine(settings, layout, placement, number, environment)
    if not wrong or not parsed.repair:
        return FOUND if wrong else OK
    remain = 0
    with _mender(parsed, settings, layout, environment) as mend:
        for shard, account in wrong:
            repaired, left = mend(shard, account)
            remain += len(left)
            print(f"{_named(account)}: {repaired} repaired, {len(left)} left")
            _show(left)
    return FOUND if remain else OK


def _environment(settings: Settings) -> Environment:
    from runtime.cluster import resolve

    outbound = Outbound(allow_private_networks=settings.webhooks.allow_private_networks)
    return Environment(resolve("serve_app:registry")(), settings, Secrets.of(settings), outbound)


def _examine(settings: Settings, layout: Layout, placement: Placement, number: int, environment: Environment) -> list[tuple[int, Account]]:
    """Verify one shard's store, printing; -> the accounts where something is wrong. What a move still erases is no account."""
    wrong, findings_count = [], 0
    passing = {slot for move in placement.moves for slot in move.slots}
    now_ms = _now_ms() + int(settings.clock.offset_seconds * 1000)
    tables = environment.registry.tables.values()
    directory, key = shard_directory(settings.data_dir, number), environment.secrets.service
    store = Store.open_to_read(directory, tables, identity=layout.identity(number), service_key=key)
    try:
        with store.snapshot() as snapshot:
            accounts = verification.accounts(snapshot)
        accounts = [account for account in accounts if placement.owners[account.slot] == number or account.slot not in passing]
        for account in accounts:
            with store.snapshot() as snapshot:  # a short one for each: pages that a snapshot sees cannot be used again
                findings = verification.examine(snapshot, environment, account, now_ms)
            if placement.owners[account.slot] != number and not account.number:
                findings.append(Finding("", f"slot {account.slot} does not belong to shard {number}"))
            if findings:
                wrong.append((number, account))
                findings_count += len(findings)
                print(f"{_named(account)}: {len(findings)} findings")
                _show(findings)
        figures = store.stat()
    finally:
        store.close()
    people = sum(account.number > 0 for account in accounts)
    print(
        f"shard {number}: {people} accounts, {figures['rows']} rows, sequence {figures['sequence']}, {findings_count} findings", flush=True
    )
    return wrong


@contextmanager
def _mender(parsed: argparse.Namespace, settings: Settings, layout: Layout, environment: Environment) -> Iterator[Mend]:
    """How accounts are repaired: on the files when nobody else holds them, else by the service that does."""
    try:
        hold = held(settings.data_dir)
        hold.__enter__()
    except LayoutError:
        with Client(parsed.base_url or local_base_url(settings), environment.secrets.operator_token) as client:
            yield lambda _, account: _mend_through(client, account)
        return
    try:
        yield lambda shard, account: _mend_files(settings, layout, environment, shard, account)
    finally:
        hold.__exit__(None, None, None)


def _mend_through(client: Client, account: Account) -> tuple[int, list[Finding]]:
    answer = client.call("POST", "/v1/internal/repair", {"slot": account.slot, "number": account.number})
    return answer["repaired"], [Finding(each["table"], each["what"]) for each in answer["left"]]


def _mend_files(settings: Settings, layout: Layout, environment: Environment, shard: int, account: Account) -> tuple[int, list[Finding]]:
    """Repair one account in a transaction of its own. Jobs that this makes run when the service starts."""
    tables, identity = environment.registry.tables.values(), layout.identity(shard)
    directory, key = shard_directory(settings.data_dir, shard), environment.secrets.service
    store = Store.open(directory, tables, identity=identity, create=False, service_key=key)
    try:
        call = verification.verification_call(account)
        scope = Scope.of_slot(account.slot)
        mended = store.write(lambda transaction: verification.mend(WriteContext(transaction, scope, call, environment, None), account))
        return mended.result
    finally:
        store.close()


def _show(findings: list[Finding]) -> None:
    for finding in findings[:FINDINGS_SHOWN_MAX]:
        print(f"  {finding.table or 'store'}: {finding.what}{' (can be repaired)' if finding.repair else ''}")
    if len(findings) > FINDINGS_SHOWN_MAX:
        print(f"  and {len(findings) - FINDINGS_SHOWN_MAX} more")


def _named(account: Account) -> str:
    return f"slot {account.slot}, account {account.number}" if account.number else f"slot {account.slot}"


def _told(manifest: backup.Manifest) -> str:
    rows = sum(store.rows for store in manifest.stores)
    return f"{rows} rows of {len(manifest.stores)} shards in {len(manifest.files)} files, {manifest.size} bytes"


def _now_ms() -> int:
    return int(time.time() * 1000)


def _backup_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the backup's directory")


def _restore_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory", type=Path, nargs="?", metavar="DIR", help="a backup's directory (default: the log in object_store.url)"
    )
    parser.add_argument("--at", type=_moment, metavar="TIME", help="the state of that time (ISO 8601; default: the last)")
    parser.add_argument("--take-over", action="store_true", help="become the owner of the shards: whoever served them stops")
    parser.add_argument("--cluster", metavar="ID", help="which installation, where the object store holds several")


def _moment(text: str) -> int:
    """ISO 8601 with an offset -> Unix milliseconds."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no time of ISO 8601, such as 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} has no offset: write 2026-01-31T12:00:00Z for UTC")
    return int(moment.timestamp() * 1000)


def _repair(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="make what derives from other rows again")


COMMANDS: tuple[Command, ...] = (
    Command("backup", "copy all data into a new directory, also while the service runs", _backup_directory, back_up),
    Command("restore", "make a new data directory from a backup, or from the log in object storage", _restore_arguments, restore),
    Command("verify", "check that everything stored agrees with itself, also while the service runs", _repair, verify),
)
