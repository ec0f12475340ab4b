"""What an account takes of its shard, as it is told and as the operator sees it."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from runtime.account_work import Work
from runtime.api.operation import View


class Load(View):
    """Figures of the last one or two minutes."""

    seconds: float = Field(description="Of how many seconds, up to now, the figures are.")
    requests: int
    cores: float = Field(
        description="Cores of the shard that worked for the account, on average: the three below, "
        "by the time."
    )
    read_ms: float = Field(description="Time of threads for searches and wide reads.")
    write_ms: float = Field(description="Time of the shard's writer, without commits.")
    other_ms: float = Field(
        description="Time of threads for jobs, and for what is taken apart or loaded."
    )
    waited_ms: float = Field(description="Time that its requests waited for turns, all together.")
    embedded_chars: int = Field(description="Characters that the embedding model was given.")
    resident_bytes: int = Field(description="What of the account is in the shard's memory.")

    @classmethod
    def of(cls, work: Work, seconds: float, resident_bytes: int, **further: str | int) -> Self:
        """work: of so many seconds; further: the fields of a subclass."""
        return cls(
            seconds=round(seconds, 1),
            requests=work.calls,
            cores=round(work.seconds / max(seconds, 1.0), 4),
            read_ms=round(work.read_seconds * 1000, 1),
            write_ms=round(work.write_seconds * 1000, 1),
            other_ms=round(work.beside_seconds * 1000, 1),
            waited_ms=round(work.waited_seconds * 1000, 1),
            embedded_chars=work.embedded_chars,
            resident_bytes=resident_bytes,
            **further,
        )


LOAD_EXAMPLE = {
    "seconds": 83.2,
    "requests": 1_204,
    "cores": 0.0613,
    "read_ms": 4_816.2,
    "write_ms": 212.5,
    "other_ms": 71.0,
    "waited_ms": 640.8,
    "embedded_chars": 51_772,
    "resident_bytes": 4_194_304,
}
