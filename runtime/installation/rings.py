"""The key rings of the shards of a data directory, for whoever looks at them beside a service or
without one.
"""

from __future__ import annotations

from pathlib import Path

from runtime.installation.secrets import Secrets
from storage.store import KEYS_FILE, Keyring


def key_rings(data_dir: Path) -> list[Path]:
    """The files of those that are there, by shard."""
    return sorted((data_dir / "shards").glob(f"*/{KEYS_FILE}"))


def read_key_ring(path: Path, secrets: Secrets) -> Keyring:
    """One opened to be read; the caller closes it. Raises WrongServiceKey where the secrets are not
    its own, and what storage/store/keyring.py raises.
    """
    return Keyring.open(
        path, secrets.service, create=False, readonly=True, earlier_keys=secrets.earlier_services
    )
