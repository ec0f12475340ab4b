"""`mneme admin verify`: every store of the data directory is read beside whoever writes it, and
what is found wrong is mended where that was asked for; and whether its log in the object store has
what a restore needs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from runtime.api.checks import Account, Finding
from runtime.api.context import Environment
from runtime.api.operation import NOBODY
from runtime.api.slot_context import OperatorWriteContext
from runtime.cli import shipped_log
from runtime.cli.client import Client, local_base_url
from runtime.cli.offline import environment_of
from runtime.cluster import held_shards
from runtime.installation import Layout, LayoutError, held, shard_directory
from runtime.limits import FINDINGS_SHOWN_MAX
from runtime.placement import Placement, PlacementTable
from runtime.settings import Settings
from runtime.shard import verification
from storage.store import Scope, ShippingState, Store

OK, FOUND = 0, 1

Mend = Callable[[int, Account], tuple[int, list[Finding]]]


def verify_stores(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print every finding and, when asked to, repair; 0 when nothing is wrong, or nothing any more.
    On several nodes: of this one.
    """
    layout = Layout.load(settings.data_dir)
    environment = environment_of(settings)
    wrong: list[tuple[int, Account]] = []
    table = PlacementTable.of(settings)
    placement = table.load()
    stores: dict[int, list[Scope]] = {}
    gone = 0  # shards of whose log in the object store something is missing
    numbers = (
        range(len(placement.shards))
        if settings.cluster.name is None
        else held_shards(settings.data_dir)
    )
    for number in numbers:
        found, stores[number], shipped = _examine(settings, layout, placement, number, environment)
        wrong += found
        if (missing := shipped_log.missing(settings, layout, number, shipped)) is not None:
            gone += 1
            print(missing, flush=True)
    remain = _tell_misplaced(table, placement, stores) + gone
    if not wrong or not parsed.repair:
        return FOUND if wrong or remain else OK
    with _mender(parsed, settings, layout, environment) as mend:
        for shard, account in wrong:
            repaired, left = mend(shard, account)
            remain += len(left)
            print(f"{_named(account)}: {repaired} repaired, {len(left)} left")
            _show(left)
    return FOUND if remain else OK


def _examine(
    settings: Settings, layout: Layout, placement: Placement, number: int, environment: Environment
) -> tuple[list[tuple[int, Account]], list[Scope], ShippingState]:
    """Verify one shard's store, printing; -> the accounts where something is wrong, whose rows it
    has, and how far its log was shipped. What a move still erases is no account.
    """
    wrong, findings_count = [], 0
    passing = {slot for move in placement.moves for slot in move.slots}
    now_ms = _now_ms() + int(settings.clock.offset_seconds * 1000)
    tables = environment.registry.tables.values()
    directory, secrets = shard_directory(settings.data_dir, number), environment.secrets
    store = Store.open_to_read(
        directory,
        tables,
        identity=layout.identity(number),
        map_bytes=settings.storage.map_bytes_max,
        service_key=secrets.service,
        earlier_keys=secrets.earlier_services,
    )
    try:
        with store.snapshot() as snapshot:
            scopes = list(snapshot.scopes())
            accounts = verification.accounts(snapshot)
        accounts = [
            account
            for account in accounts
            if placement.owners[account.slot] == number or account.slot not in passing
        ]
        for account in accounts:
            with (
                store.snapshot() as snapshot
            ):  # a short one for each: pages that a snapshot sees cannot be used again
                findings = verification.examine(snapshot, environment, account, now_ms)
            if findings:
                wrong.append((number, account))
                findings_count += len(findings)
                print(f"{_named(account)}: {len(findings)} findings")
                _show(findings)
        figures, shipped = store.stat(), store.log.state()
    finally:
        store.close()
    people = sum(account.number > 0 for account in accounts)
    print(
        f"shard {number}: {people} accounts, {figures['rows']} rows, sequence "
        f"{figures['sequence']}, {findings_count} findings",
        flush=True,
    )
    return wrong, scopes, shipped


def _tell_misplaced(
    table: PlacementTable, placement: Placement, stores: Mapping[int, list[Scope]]
) -> int:
    """Print which slots lie in other shards than the placement says; -> how many."""
    misplaced = placement.misplaced(stores)
    if misplaced and table.load().version != placement.version:
        print("Slots moved while their shards were read: verify again when they have arrived.")
    elif misplaced:
        print(
            f"placement: version {placement.version} gives slot {misplaced[0]} and "
            f"{len(misplaced) - 1} others to a shard that does not have their rows: its newest "
            "versions are missing or altered. Put them back from the object store or a backup."
        )
    return len(misplaced)


@contextmanager
def _mender(
    parsed: argparse.Namespace, settings: Settings, layout: Layout, environment: Environment
) -> Iterator[Mend]:
    """How accounts are repaired: on the files when nobody else holds them, else by the service that
    does.
    """
    try:
        hold = held(settings.data_dir)
        hold.__enter__()
    except LayoutError:
        with Client(
            parsed.base_url or local_base_url(settings), environment.secrets.operator_token
        ) as client:
            yield lambda _, account: _mend_through(client, account)
        return
    try:
        yield lambda shard, account: _mend_files(settings, layout, environment, shard, account)
    finally:
        hold.__exit__(None, None, None)


def _mend_through(client: Client, account: Account) -> tuple[int, list[Finding]]:
    answer = client.call(
        "POST", "/v1/internal/repair", {"slot": account.slot, "number": account.number}
    )
    return answer["repaired"], [Finding(each["table"], each["what"]) for each in answer["left"]]


def _mend_files(
    settings: Settings, layout: Layout, environment: Environment, shard: int, account: Account
) -> tuple[int, list[Finding]]:
    """Repair one account in a transaction of its own. Jobs that this makes run when the service
    starts.
    """
    tables, identity = environment.registry.tables.values(), layout.identity(shard)
    directory, secrets = shard_directory(settings.data_dir, shard), environment.secrets
    store = Store.open(
        directory,
        tables,
        identity=identity,
        create=False,
        service_key=secrets.service,
        earlier_keys=secrets.earlier_services,
    )
    try:
        call = verification.verification_call(account)
        scope = Scope.of_slot(account.slot)
        mended = store.write(
            lambda transaction: OperatorWriteContext(
                transaction, scope, call, environment, NOBODY
            ).mend(account.number)
        )
        return mended.result
    finally:
        store.close()


def _show(findings: list[Finding]) -> None:
    for finding in findings[:FINDINGS_SHOWN_MAX]:
        print(
            f"  {finding.table or 'store'}: "
            f"{finding.what}{' (can be repaired)' if finding.repair else ''}"
        )
    if len(findings) > FINDINGS_SHOWN_MAX:
        print(f"  and {len(findings) - FINDINGS_SHOWN_MAX} more")


def _named(account: Account) -> str:
    return (
        f"slot {account.slot}, account {account.number}"
        if account.number
        else f"slot {account.slot}"
    )


def _now_ms() -> int:
    return int(time.time() * 1000)
