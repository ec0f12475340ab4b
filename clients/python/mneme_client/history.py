"""The history of a conversation: JSON objects in their order, kept as the memories of a session.

    history = History(client, session_id="chat-7", user_id="ada")
    history.add([Entry({"role": "user", "content": "I eat no nuts."}, "I eat no nuts.", "user")])
    history.items(limit=20)  # the latest twenty, oldest first

A memory's content is what was said, so that searches find it in later conversations; its metadata
has the whole object. An object that metadata cannot hold as it is, because it is too large, too
deep or has a number beyond 64 bits, is the content of several memories that follow each other, as
JSON in parts.

Everything that is added at once is there at once, up to BATCH_BYTES_MAX. The order is that of the
service, whichever processes add. Other memories of the session, whatever their tags, are no part of
its history: what makes one is its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from .client import Mneme
from .request import named

TAG, KEY = "history", "history"
# What the metadata of an object's memory begins with, so that the service finds it by this, however
# many values follow. Memories of older versions have no such mark.
MARK, MARKED = "by", "mneme_client.History"
FRAME = "|"  # in front of each part of a marked object: a part of white space alone is no content
PAGE_ITEMS = 100
POPPED_PAGE_ITEMS = 10
DELETED_PER_CALL = 500
BATCH_RECORDS_MAX = 100
BATCH_BYTES_MAX = 8 * 1024 * 1024
METADATA_BYTES_MAX = 15 * 1024  # of 16 KiB, with what is around the object
METADATA_DEPTH_MAX = 50  # of 64 levels, with what is around the object
INTEGER_MAX = 2**63 - 1
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
    user_id        whose conversation it is; the same session_id of another user is another history,
                   and that of no user at all one of its own
    agent_id       the agent that talks; in the same way

    Raises ValueError for an id that is an empty text.
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
        who = {"session_id": session_id, "user_id": user_id, "agent_id": agent_id}
        self._where = {name: named(name, value) for name, value in who.items() if value is not None}
        self._absent = [name for name, value in who.items() if value is None]
        self._collection_id = named("collection_id", collection_id)

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
        if limit is not None and limit < 0:
            raise ValueError("limit is a number of objects, 0 or more.")
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
        """Remove all objects; in one call, but for those that an older version has kept."""
        nobody: list[Any] = [{name: None} for name in self._absent]
        self._client.memories.delete_matching(
            {"AND": [{"tags": TAG}, {f"metadata.{KEY}.{MARK}": {"eq": MARKED}}, *nobody]},
            collection_id=self._collection(),
            **self._where,
        )
        left = [memory["id"] for memory in self._memories(None)]
        for start in range(0, len(left), DELETED_PER_CALL):
            self._client.memories.bulk_delete(left[start : start + DELETED_PER_CALL])

    def _collection(self) -> str:
        """The service takes no collection for all of them."""
        if self._collection_id is None:
            self._collection_id = self._client.collections.get_default()["id"]
        return self._collection_id

    def _memories(self, limit: int | None) -> Iterator[Mapping[str, Any]]:
        """The history's own memories, newest first. The service lists those of everybody for
        nobody's.
        """
        size, cursor = PAGE_ITEMS if limit is None else max(1, min(limit, PAGE_ITEMS)), None
        while True:
            page = self._client.memories.list(
                collection_id=self._collection(),
                tag=TAG,
                limit=size,
                cursor=cursor,
                **self._where,
            ).page()
            for memory in page["items"]:
                is_somebody_s = any(memory.get(name) is not None for name in self._absent)
                if not is_somebody_s and _kept(memory):
                    yield memory
            size, cursor = PAGE_ITEMS, page["next_cursor"]
            if not page["has_more"] or cursor is None:
                return

    def _newest_first(self, limit: int | None) -> Iterator[tuple[list[str], Item]]:
        """The memories of each object, and the object. Where a memory of several was deleted, the
        others are passed over.
        """
        parts: list[Any] = []
        for memory in self._memories(limit):
            told = memory["metadata"][KEY]
            if "item" in told:
                yield [memory["id"]], told["item"]
                parts = []
                continue
            if told["part"] == told["parts"] - 1:
                parts = []
            parts.append(memory)
            if told["part"] == 0 and len(parts) == told["parts"]:
                text = "".join(map(_part, reversed(parts)))
                yield [part["id"] for part in parts], json.loads(text)
                parts = []


def _kept(memory: Mapping[str, Any]) -> bool:
    """Whether a memory is one of a history's: anybody may use its tag."""
    told = memory["metadata"].get(KEY)
    if not isinstance(told, dict):
        return False
    return isinstance(told.get("item"), dict) or all(
        isinstance(told.get(name), int) for name in ("part", "parts")
    )


def _part(memory: Mapping[str, Any]) -> str:
    is_framed = memory["metadata"][KEY].get(MARK) == MARKED
    content = str(memory["content"])
    return content.removeprefix(FRAME) if is_framed else content


def _records(entry: Entry) -> list[Record]:
    """What the memories of an object are created with, in order."""
    text = json.dumps(entry.item, ensure_ascii=False, allow_nan=False)
    if not isinstance(entry.item, dict):
        raise TypeError("An object of a history is a dictionary.")
    role = {} if entry.role is None else {"role": entry.role}
    item = json.loads(text)
    if len(text.encode()) <= METADATA_BYTES_MAX and _is_plain(item):
        said = entry.text if entry.text.strip() else text
        return [{"content": said, **role, "metadata": {KEY: {MARK: MARKED, "item": item}}}]
    parts = [text[at : at + PART_CHARS_MAX] for at in range(0, len(text), PART_CHARS_MAX)]
    return [
        {
            "content": FRAME + part,
            **role,
            "metadata": {KEY: {MARK: MARKED, "part": number, "parts": len(parts)}},
        }
        for number, part in enumerate(parts)
    ]


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether metadata holds a value as it is: its depth and its integers are bounded."""
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth < METADATA_DEPTH_MAX and all(_is_plain(each, depth + 1) for each in inside)
    return not isinstance(value, int) or -INTEGER_MAX - 1 <= value <= INTEGER_MAX


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
