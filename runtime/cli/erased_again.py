"""Accounts that a restore to a point in time brings back, although their erasure was asked for
later: each is closed again and gets its job, with which the restored service sweeps it.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.api import erasures
from runtime.api.checks import Account
from runtime.cli.offline import environment_of
from runtime.installation import Layout, shard_directory
from runtime.settings import Settings
from runtime.shard import open_store, verification
from storage.store import Transaction


def erase_again(
    settings: Settings,
    layout: Layout,
    number: int,
    asked: Mapping[tuple[int, int], erasures.ErasedRow],
) -> int:
    """Close those of the accounts, by slot and number, that the restored shard has; -> how many it
    had.
    """
    environment = environment_of(settings)
    store = open_store(
        shard_directory(settings.data_dir, number),
        environment,
        layout.identity(number),
        create=False,
    )

    def close(transaction: Transaction, slot: int, account: int, row: erasures.ErasedRow) -> bool:
        call = verification.verification_call(Account(slot, 0))
        return erasures.repeat(transaction, environment, call, account, row)

    try:
        return sum(
            store.write(lambda transaction, given=(*place, row): close(transaction, *given)).result
            for place, row in asked.items()
        )
    finally:
        store.close()
