"""Advanced search through a real shard: boosts, facets, date ranges, diversity, and a reranker on a port of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from plugins import accounts, collections, memories, search, search_advanced, webhooks
from plugins.search_advanced import AdvancedBody, AdvancedReply
from plugins.search_views import SearchReply
from runtime.errors import ValidationFailed
from runtime.inference import Models
from runtime.reranker import load_reranker
from runtime.settings import Settings
from storage.passages import estimated_tokens
from tests.plugins import CHEAP
from tests.plugins.test_search import Desk, Library, check
from tests.receivers import receiving

DAY_MS = 86_400_000


class Archive(Library):
    """A library with advanced search."""

    def __init__(self, directory: Path, **chosen: Any):
        super().__init__(directory, plugins=(search_advanced.plugin, webhooks.plugin), **chosen)

    def ask(self, query: str = "note", **fields: Any) -> dict[str, Any]:
        answer = self("search.advanced", {"query": query, **fields}, who=self.me)
        assert answer.status == 200, answer
        AdvancedReply.model_validate(answer.body)
        check({name: value for name, value in answer.body.items() if name != "facets"})
        return answer.body
