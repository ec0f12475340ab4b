"""How far a command has got, on a terminal or in a log."""

from __future__ import annotations

from typing import TextIO

_BAR_CHARS = 32


class ProgressBar:
    """A bar on a terminal; elsewhere a line now and then.

    label  said before the counts
    """

    def __init__(self, out: TextIO, total: int, label: str = ""):
        self._out, self._total, self._tenth = out, total, 0
        self._label = label and f"{label} "

    def show(self, done: int) -> None:
        """Show that so much is done of the total."""
        share = done / self._total if self._total else 1.0
        line = f"{self._label}{done:,} of {self._total:,} ({share:.0%})"
        if self._out.isatty():
            filled = round(_BAR_CHARS * share)
            self._out.write(f"\r[{'#' * filled}{' ' * (_BAR_CHARS - filled)}] {line}")
            self._out.flush()
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            self._out.write(line + "\n")

    def end(self) -> None:
        """What is written next begins a line."""
        if self._out.isatty():
            self._out.write("\n")
