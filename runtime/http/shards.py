"""What the gateway needs of the shards, wherever they are."""

from __future__ import annotations

from typing import Any, Protocol

from runtime.api.operation import Call, Reply


class Shards(Protocol):
    """Where calls go: the shards of this process or of a cluster. Statuses have at least "shard"
    (number) and "open".
    """

    @property
    def placement_version(self) -> int: ...

    async def execute(self, call: Call) -> Reply: ...

    async def status(self) -> list[dict[str, Any]]: ...

    async def supervise(self, name: str, **given: Any) -> dict[str, Any]: ...
