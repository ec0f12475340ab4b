"""How a command ends: its exit status, and one sentence on standard error where it failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from runtime.api.plugin import RegistryError
from runtime.cli.arguments import parser
from runtime.cli.client import CallFailed
from runtime.cli.commands import FAILED, CommandFailed
from runtime.cli.moving_in import ImportFailed
from runtime.cli.plugins import PluginCommandFailed
from runtime.cli.weights import WeightsMissing
from runtime.installation import LayoutError, SecretsError
from runtime.log_lines import mask_secrets
from runtime.settings import SettingsError
from storage.store import StoreError

UNREAD = 141  # as a shell counts SIGPIPE


def run(arguments: Sequence[str] | None) -> int:
    """Run one command; -> its exit status. Raises KeyboardInterrupt."""
    parsed = parser().parse_args(arguments)
    try:
        status = parsed.run(parsed)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read it has read enough, such as head; what is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except (
        CommandFailed,
        CallFailed,
        ImportFailed,
        PluginCommandFailed,
        WeightsMissing,
        LayoutError,
        RegistryError,
        SettingsError,
        SecretsError,
        StoreError,
        OSError,
    ) as failed:
        print(
            f"mneme {parsed.command}: {' '.join(mask_secrets(str(failed)).split())}",
            file=sys.stderr,
        )
        return FAILED
