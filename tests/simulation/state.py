"""What the model keeps: accounts and all that is theirs, requests, and what an answer must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runtime.timestamps import iso

DAY_MS = 24 * 3600 * 1000
IMPLIED = {"read": {"read"}, "write": {"read", "write"}, "admin": {"read", "write", "admin"}}
SHOWN = ("title", "tags", "metadata", "importance", "user_id", "session_id", "speaker")
CLEARED = {"tags": [], "metadata": {}}


@dataclass(eq=False)
class Collection:
    name: str
    created_at: int
    id: str | None = None
    description: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    updated_at: int = 0
    is_default: bool = False
    is_gone: bool = False


@dataclass(eq=False)
class Memory:
    """is_searchable None: not known since a crash. versions: (event, content) of each."""

    content: str
    collection: Collection
    created_at: int
    is_searchable: bool | None
    fields: dict[str, Any]
    expires_at: int | None = None
    id: str | None = None
    updated_at: int = 0
    is_gone: bool = False
    versions: list[tuple[str, str]] = field(default_factory=list)

    def readable(self, now: int) -> bool:
        return not self.is_gone and (self.expires_at is None or self.expires_at > now)

    def view(self) -> dict[str, Any]:
        """What the API shows of it, as far as it is known."""
        shown = {name: self.fields.get(name, CLEARED.get(name)) for name in SHOWN} | {
            "content": self.content,
            "version": len(self.versions),
            "created_at": iso(self.created_at),
            "updated_at": iso(self.updated_at),
            "expires_at": None if self.expires_at is None else iso(self.expires_at),
        }
        shown |= {
            name: value
            for name, value in (("id", self.id), ("collection_id", self.collection.id))
            if value is not None
        }
        if self.is_searchable is not None:
            shown |= {
                "searchable": self.is_searchable,
                "processing_status": "completed" if self.is_searchable else "processing",
            }
        return shown


@dataclass(eq=False)
class Decision:
    """outcomes: what was reported, in order; the last one counts."""

    chosen: str
    id: str | None = None
    outcomes: list[bool] = field(default_factory=list)

    def view(self) -> dict[str, Any]:
        """What the API shows of it."""
        shown = {
            "chosen_action_key": self.chosen,
            "action_probability": 0.5,
            "propensity_source": "client",
        }
        shown |= {
            "status": "final" if self.outcomes else "pending",
            "outcomes": [{"value": float(value)} for value in self.outcomes],
        }
        return shown | {"composite_reward": float(self.outcomes[-1]) if self.outcomes else None}


@dataclass(eq=False)
class Access:
    """A session (no name) or an API key. text None: it was minted in a crash, and nobody has seen
    it.
    """

    account: Account
    text: str | None
    scopes: tuple[str, ...]
    expires_at: int | None
    name: str = ""
    id: str | None = None
    is_gone: bool = False

    @property
    def rights(self) -> set[str]:
        return set().union(*(IMPLIED[scope] for scope in self.scopes))


@dataclass(eq=False)
class Record:
    """What an Idempotency-Key is bound to. A crash may have hidden the reply: then `statuses` are
    those it can have, and body is None.

    memories: of a canonical one
    """

    request: Request
    expires_at: int | None
    statuses: tuple[int, ...]
    body: Any
    memories: list[Memory]


@dataclass(eq=False)
class Profile:
    """since: how many memories there were when it was last deleted; those do not count. is_set: by
    a caller, and not deleted since.
    """

    bio: str | None = None
    since: int = 0
    is_set: bool = False


@dataclass(eq=False)
class Account:
    email: str
    password: str
    id: str | None = None
    collections: list[Collection] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    keys: list[Access] = field(default_factory=list)
    records: dict[str, Record] = field(default_factory=dict)
    spent: int = 0  # credits of writes
    profiles: dict[str, Profile] = field(
        default_factory=lambda: {user: Profile() for user in ("ada", "bob")}
    )

    def readable(self, now: int) -> list[Memory]:
        return [memory for memory in self.memories if memory.readable(now)]

    def matching(self, asked: dict[str, Any], now: int) -> list[Memory]:
        """The readable ones that pass these filters, in order of arrival."""
        wanted = {
            name: value
            for name, value in asked.items()
            if name in ("collection_id", "user_id", "session_id", "tag")
        }
        return [
            memory
            for memory in self.readable(now)
            if all(_passes(memory, *item) for item in wanted.items())
        ]

    def home_of(self, user: str, now: int) -> list[tuple[str, str | None]]:
        """(place, memory id) of what the user's memories say last of where they live; [] when they
        do not say.
        """
        said = []
        for order, memory in enumerate(self.memories[self.profiles[user].since :]):
            place = memory.content.partition(" I live in ")[2]
            own = (
                memory.fields.get("user_id") == user and memory.fields.get("speaker") != "assistant"
            )  # whose "I" is somebody else
            if place and own and memory.readable(now):
                said.append((memory.created_at, order, place, memory.id))
        return [max(said)[2:]] if said else []


@dataclass(eq=False)
class Request:
    """One request. in_time: whether its text is embedded before the answer; None where others in
    its commit decide that.
    """

    operation: str
    who: Access | None = None
    body: Any = None
    query: dict[str, Any] = field(default_factory=dict)
    path: dict[str, str] = field(default_factory=dict)
    key: str | None = None
    if_match: str | None = None
    prefer: dict[str, str] = field(default_factory=dict)
    in_time: bool | None = True

    @property
    def meaning(self) -> tuple[Any, ...]:
        return self.operation, repr(self.body), repr(self.query), repr(self.path)


@dataclass
class Expected:
    """statuses: any of them. fields: what the body must say. apply(body, status): what changes;
    body None: the answer was lost.

    is_replay: `body` is to come again, word for word, unless it is None. found: ids a search must
    find; `also`: ids it may find too. credits: what the write costs when it takes effect.
    """

    statuses: tuple[int, ...]
    fields: dict[str, Any] = field(default_factory=dict)
    apply: Callable[[Any, int | None], list[Memory] | None] | None = None
    body: Any = None
    is_replay: bool = False
    found: set[str] | None = None
    also: set[str] = field(default_factory=set)
    credits: int = 0


class Refused(Exception):
    def __init__(self, status: int):
        self.status = status


def _passes(memory: Memory, name: str, value: Any) -> bool:
    if name == "collection_id":
        return memory.collection.id == value
    if name == "tag":
        return value in memory.fields.get("tags", ())
    return memory.fields.get(name) == value
