"""The history of a conversation: JSON objects in their order, kept as the memories of a session.

    history = History(client, session_id="chat-7", user_id="ada")
    history.add([Entry({"role": "user", "content": "I eat no nuts."}, "I eat no nuts.", "user")])
    history.items(limit=20)  # the latest twenty, oldest first

A memory's content is what was said, so that searches find it in later conversations; its metadata
has the whole object. An object that is too large for metadata is the content of several memories
that follow each other, as JSON in parts.

Everything that is added at once is there at once, up to BATCH_BYTES_MAX. The order is that of the
service, whichever processes add.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from .client import Mneme

TAG, KEY = "history", "history"
PAGE_ITEMS = 100
POPPED_PAGE_ITEMS = 10
BATCH_RECORDS_MAX = 100
BATCH_BYTES_MAX = 8 * 1024 * 1024
METADATA_BYTES_MAX = 15 * 1024  # of 16 KiB, with what is around the object
PART_CHARS_MAX = 90_000

Role = Literal["user", "assistant", "system", "tool"]
Item = dict[str, Any]
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of a history.

    text  what searches find it by; all of it, as JSON, where there is none
    role  as what it was said
    """

    item: Item
    text: str = ""
    role: Role | None = None


class History:
    """The history of one conversation.

    session_id     which one, 1 to 255 characters
    collection_id  where its memories lie; the account's default collection when absent
    user_id        whose conversation it is; the same session_id of another user is another history
    agent_id       the agent that talks
    """

    def __init__(
        self,
        client: Mneme,
        session_id: str,
        *,
        collection_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ):
        self._client = client
        self._where: dict[str, Any] = {
            name: value
            for name, value in (
                ("session_id", session_id),
                ("user_id", user_id),
                ("agent_id", agent_id),
            )
            if value is not None
        }
        self._collection_id = collection_id

    def add(self, entries: Iterable[Entry]) -> None:
        """Add objects at the end. Raises TypeError and ValueError for what is no JSON or larger
        than BATCH_BYTES_MAX, before anything is stored.
        """
        for batch in list(_batches([_records(entry) for entry in entries])):
            memories: list[Any] = [{**record, **self._where, "tags": [TAG]} for record in batch]
            answer = self._client.memories.create_batch(memories, collection_id=self._collection_id)
            for refused in answer["errors"]:
                raise ValueError(f"An object was refused: {refused}")

    def items(self, limit: int | None = None) -> list[Item]:
        """All objects, or the latest `limit` ones; oldest first."""
        return [item for _, item in islice(self._newest_first(limit), limit)][::-1]

    def pop(self) -> Item | None:
        """Remove the latest object and return it; None where there is none. Of several callers each
        gets another one.
        """
        while True:
            for ids, item in self._newest_first(POPPED_PAGE_ITEMS):
                if self._client.memories.bulk_delete(ids)["deleted"]:
                    return item
                break
            else:
                return None

    def clear(self) -> None:
        """Remove all objects, in one call."""
        self._client.memories.delete_matching(
            {"tags": TAG}, collection_id=self._collection_id, **self._where
        )

    def _newest_first(self, limit: int | None) -> Iterator[tuple[list[str], Item]]:
        """The memories of each object, and the object."""
        listed = self._client.memories.list(
            collection_id=self._collection_id,
            tag=TAG,
            limit=PAGE_ITEMS if limit is None else max(1, min(limit, PAGE_ITEMS)),
            **self._where,
        )
        parts: list[Any] = []
        for memory in listed:
            told = memory["metadata"][KEY]
            if "item" in told:
                yield [memory["id"]], told["item"]
                continue
            parts.append(memory)
            if told["part"] == 0:
                text = "".join(part["content"] for part in reversed(parts))
                yield [part["id"] for part in parts], json.loads(text)
                parts = []


def _records(entry: Entry) -> list[Record]:
    """What the memories of an object are created with, in order."""
    text = json.dumps(entry.item, ensure_ascii=False, allow_nan=False)
    if not isinstance(entry.item, dict):
        raise TypeError("An object of a history is a dictionary.")
    role = {} if entry.role is None else {"role": entry.role}
    if len(text.encode()) <= METADATA_BYTES_MAX:
        said = entry.text if entry.text.strip() else text
        return [{"content": said, **role, "metadata": {KEY: {"item": json.loads(text)}}}]
    parts = [text[at : at + PART_CHARS_MAX] for at in range(0, len(text), PART_CHARS_MAX)]
    return [
        {"content": part, **role, "metadata": {KEY: {"part": number, "parts": len(parts)}}}
        for number, part in enumerate(parts)
    ]


def _batches(objects: Sequence[list[Record]]) -> Iterator[list[Record]]:
    """The records in as few calls as the service takes, those of one object in one call."""
    batch: list[Record] = []
    filled = 0
    for records in objects:
        size = sum(len(json.dumps(record, ensure_ascii=False).encode()) for record in records)
        if size > BATCH_BYTES_MAX or len(records) > BATCH_RECORDS_MAX:
            raise ValueError(f"The object is too large: {size} bytes of {BATCH_BYTES_MAX}.")
        if batch and (
            filled + size > BATCH_BYTES_MAX or len(batch) + len(records) > BATCH_RECORDS_MAX
        ):
            yield batch
            batch, filled = [], 0
        batch += records
        filled += size
    if batch:
        yield batch
