"""A service that is filled with conversations and asked their questions: in this process, under any
settings, or over HTTP.

`Installation` is the whole service on a temporary directory: every plugin, the real gateway, shard
and embedded model. `configure` opens it again under other settings; memories stay, and a query's
embedding is made only once. `Remote` is a running service.

Conversations share one collection, as they would in an assistant's memory of years, so that each
question has to find its evidence among hundreds of memories; notes have a collection of their own.
`apart` gives each conversation its own instead. `withheld` tells the service no speakers and no
sessions, so that everything is a note.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import serve_app  # noqa: E402
from loadtests.evidence import CUTOFFS, Conversation, Question, Turn, figures  # noqa: E402
from plugins.memories import BATCH_ITEMS_MAX  # noqa: E402
from runtime.cluster import LocalShards  # noqa: E402
from runtime.http import build_asgi  # noqa: E402
from runtime.inference import load_models  # noqa: E402
from runtime.installation import Secrets  # noqa: E402
from runtime.shard import Shard  # noqa: E402
from runtime.telemetry import Telemetry  # noqa: E402
from serve_app import LOCAL_PROFILE, Settings  # noqa: E402
from storage.store import Identity  # noqa: E402

REQUEST_SECONDS_MAX = 120
PASSWORD = "correct horse battery staple"


class Refused(Exception):
    """The service did not do what it was asked to."""


@dataclass(frozen=True)
class Answer:
    """What one question brought. found: ids of turns, best first; hits: the same as the service
    shows them.
    """

    conversation: str
    question: Question
    found: list[str]
    hits: list[dict[str, Any]]
    confidence: float
    abstained: bool

    @property
    def figures(self) -> dict[str, float]:
        return figures(self.question.evidence, self.found)


class Remote:
    """A running service, spoken to with an API key or an access token."""

    def __init__(self, client: httpx.AsyncClient, key: str):
        self._client, self._key = client, key
        self._runner = asyncio.Runner()

    @classmethod
    def at(cls, base_url: str, key: str) -> Remote:
        return cls(
            httpx.AsyncClient(
                base_url=base_url.rstrip("/").removesuffix("/v1"), timeout=REQUEST_SECONDS_MAX
            ),
            key,
        )

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Raises Refused."""
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        answer = self._runner.run(self._client.post(path, json=body, headers=headers))
        if not answer.is_success:
            raise Refused(f"POST {path}: {answer.status_code} {answer.text[:300]}")
        return answer.json()

    def fill(
        self, conversations: Iterable[Conversation], *, apart: bool = False, withheld: bool = False
    ) -> dict[str, str]:
        """Add every turn; -> conversation -> id of its collection. Raises Refused."""
        named: dict[str, str] = {}
        collections: dict[str, str] = {}
        for conversation in conversations:
            name = conversation.name if apart else "conversations" if conversation.told else "notes"
            if name not in named:
                named[name] = self.post("/v1/collections", {"name": f"retrieval {name}"})["id"]
            collections[conversation.name] = named[name]
            bodies = [_memory(turn, withheld) for turn in conversation.turns]
            for start in range(0, len(bodies), BATCH_ITEMS_MAX):
                batch = {
                    "memories": bodies[start : start + BATCH_ITEMS_MAX],
                    "collection_id": named[name],
                    "wait_for_index": True,
                }
                self.post("/v1/memories/batch", batch)
        return collections

    def ask(
        self, conversations: Iterable[Conversation], collections: Mapping[str, str], **search: Any
    ) -> list[Answer]:
        """Every question, one after the other; `search` are further fields of the request. Raises
        Refused.
        """
        answers = []
        for conversation in conversations:
            for question in conversation.questions:
                asked = {
                    "query": question.text,
                    "collection_id": collections[conversation.name],
                    "limit": max(CUTOFFS),
                    **search,
                }
                reply = self.post("/v1/search", asked)
                hits = reply["results"]
                found = [hit["metadata"]["turn"] for hit in hits]
                doubt = reply["query_confidence"], reply["abstain_recommended"]
                answers.append(Answer(conversation.name, question, found, hits, *doubt))
        return answers


class Installation(Remote):
    """A service in this process, with one account."""

    def __init__(self, **overrides: Any):
        self._directory = tempfile.TemporaryDirectory(prefix="mneme-retrieval-")
        self._home = Path(self._directory.name)
        self._secrets = Secrets.generate()
        self._models = load_models(self._settings(overrides), self._home)
        self._runner = asyncio.Runner()
        self._shard: Shard | None = None
        self._key = ""
        self.configure(overrides)
        account = {
            "email": "retrieval@mneme.example",
            "password": PASSWORD,
            "full_name": "Retrieval",
        }
        self._key = self.post("/v1/auth/register", account)["access_token"]

    def configure(self, overrides: Mapping[str, Any]) -> None:
        """Open again under these settings, by dotted name; what is not named has its default."""
        self._stop()
        settings = self._settings(overrides)
        registry = serve_app.registry()
        shard = Shard(
            self._home / "shard",
            registry,
            settings,
            self._models,
            Identity("", 0, 1, 4096, 1),
            self._secrets,
        )
        self._runner.run(shard.open(create=not (self._home / "shard").exists()))
        self._shard = shard
        application = build_asgi(
            registry, settings, LocalShards([shard]), self._secrets, Telemetry()
        )
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(application), base_url="http://mneme.test"
        )

    def close(self) -> None:
        self._stop()
        self._runner.run(self._models.close())
        self._runner.close()
        self._directory.cleanup()

    def _stop(self) -> None:
        if self._shard is not None:
            self._runner.run(self._client.aclose())
            self._runner.run(self._shard.close())
            self._shard = None

    def _settings(self, overrides: Mapping[str, Any]) -> Settings:
        return Settings.load(LOCAL_PROFILE, {"data_dir": str(self._home), **overrides})


def _memory(turn: Turn, withheld: bool) -> dict[str, Any]:
    told = (
        {"speaker": turn.speaker, "session_id": turn.session}
        if turn.session and not withheld
        else {}
    )
    return {
        "content": turn.text,
        "occurred_at": turn.at.isoformat(),
        "metadata": {"turn": turn.id},
        **told,
    }
