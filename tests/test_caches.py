"""What is remembered of a text is remembered for the account it came from: how soon an answer comes
tells nobody what others store or ask.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from runtime.inference.embedding import Asked, BoundedEmbedder, Embedding
from runtime.inference.minilm.weights import packaged_files
from runtime.inference.minilm.word_pieces import WordPieces, open_tokenizer
from storage.text import DIGIT, analyze, read_query
from storage.text.analysis import CACHES
from tests.support.embedding import WordEmbedder
from tests.support.in_process import InProcess, in_process

ROOT = Path(__file__).resolve().parent.parent
# What is kept from call to call for all accounts, and why nobody learns of another by it.
OF_THE_INSTALLATION = "what the installation is made of, and no account"
KEPT = {
    "plugins/memories/features.py:keyed_hash": "by the account's key",
    "plugins/search/search.py:_terms_of_speaker": "by the account's key",
    "runtime/http/credentials.py:_read_key": "by a whole key, which nobody guesses",
    "runtime/http/credentials.py:_signed": "by a whole token, which nobody guesses",
    "runtime/inference/language/spelling.py:_spelt": (
        "words, of whatever a model reads in one run for several accounts: microseconds in some "
        "milliseconds; no long numbers, and no codes"
    ),
    "runtime/networks.py:network_of": "addresses of callers, whom everybody has some of",
    "runtime/http/request_log.py:_second": "instants",
    "runtime/timestamps.py:iso": "instants",
    "plugins/graph/queries.py:_iso": "instants",
    "runtime/http/validation.py:_is_json": "kinds of content",
    "runtime/inference/language/assembly.py:_features": "grammatical tags",
    **dict.fromkeys(
        [
            "plugins/ingestion/rules/patterns.py:_compiled",
            "plugins/profile/operations.py:_zones",
            "plugins/search/settings.py:_weights",
            "runtime/account_work.py:account_work",
            "runtime/cluster/release.py:release_of",
            "runtime/extras.py:_is_there",
            "runtime/inference/checkpoint/description.py:digest",
            "runtime/http/validation.py:_whole_numbers",
            "runtime/inference/language/heads.py:heads",
            "runtime/inference/language/names.py:_chinese",
            "runtime/inference/language/names.py:_japanese",
            "runtime/inference/language/names.py:_korean",
            "runtime/inference/minilm/word_vectors.py:directions",
            "runtime/inference/multilingual.py:_pieces",
            "runtime/inference/openai_chat.py:_json_schema",
            "runtime/inference/token_count.py:shipped_tokenizer",
            "runtime/installation/blobs.py:blob_store",
            "runtime/installation/blobs.py:copies_of",
            "runtime/installed.py:installed",
            "runtime/settings/__init__.py:known_settings",
            "runtime/settings/section.py:_name_in",
            "runtime/long_work.py:_threads",
            "runtime/long_work.py:cores",
            "runtime/tracing/otlp.py:_key",
            "runtime/tracing/otlp.py:_named",
            "storage/indexes/processor.py:byte_products",
            "storage/indexes/processor.py:third_cache_keeps_streams",
            "storage/store/schema.py:of_slot",
        ],
        OF_THE_INSTALLATION,
    ),
}


class Counted(BoundedEmbedder):
    """The embedder's queue and memory as they are in a service; `computed` is what reached the
    model.
    """

    space, width = "words/32", 32

    def __init__(self) -> None:
        super().__init__(timeout_seconds=60, queue_max=10_000, cache_entries=10_000)
        self._words = WordEmbedder()
        self.computed: list[str] = []

    async def _compute(self, asked: list[Asked], deadline: float) -> list[Embedding]:
        texts = [text for text, _ in asked]
        self.computed += texts
        spans = [words if isinstance(words, tuple) else () for _, words in asked]
        return await self._words.embed_words(texts, spans)

    def yield_to_reads(self, reads_wait: bool) -> None:
        """It takes no time."""

    async def close(self) -> None:
        """Nothing is held."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("caches"), embedder=Counted()) as made:
        yield made


def computed(service: InProcess, who: str, path: str, body: dict[str, Any]) -> list[str]:
    """What the model was given for this request and the jobs that it began."""
    before = len(service.embedder.computed)
    answer = service.request("POST", path, body, who=who)
    assert answer.status_code in (200, 201, 202), answer.text
    service.settle()
    return sorted(service.embedder.computed[before:])


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/search", "query"),
        ("/v1/search/advanced", "query"),
        ("/v1/search/reason", "query"),
        ("/v1/context", "query"),
        ("/v1/memories/raw", "content"),
        ("/v1/memories", "content"),
    ],
)
def test_what_another_account_has_asked_or_stored_is_computed_anew(
    service: InProcess, path: str, field: str
) -> None:
    name = path.rpartition("/")[2]
    ada, eve = (service.register(f"{who}.{name}@example.com") for who in ("ada", "eve"))
    body = {field: f"Where did Margaret moor the {name} boat in Antwerp?"}
    first = computed(service, ada, path, body)
    assert first, "it is asked of the model"
    assert computed(service, eve, path, body) == first
    if field == "query":
        assert computed(service, ada, path, body) == [], "her own is remembered"
        assert computed(service, eve, path, body) == []


class Counting:
    """A tokenizer that notes what it is asked to take apart."""

    def __init__(self, tokenizer: Any):
        self._tokenizer, self.asked = tokenizer, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str) -> Any:
        self.asked.append(text)
        return self._tokenizer.encode(text)


@pytest.mark.parametrize("telling", ["4831907", "x12345", "2026A11B27T10"])
def test_what_hardly_anybody_else_has_is_remembered_of_no_text(telling: str) -> None:
    tokenizer = Counting(open_tokenizer(packaged_files() / "tokenizer.json"))
    words: Any = WordPieces(cast(Any, tokenizer))
    for text in (f"The violin of lot {telling} is here.", f"Where is the {telling}?"):
        analyze(text)
        read_query(text)
        words.encode([text])
    kept = [word for own in CACHES.values() for word in (*own, *own.asked)]
    assert "violin" in kept, "other words are"
    assert not [word for word in kept if len(word) > 4 and DIGIT.search(word)]
    assert tokenizer.asked.count("the") == 1
    assert tokenizer.asked.count(telling) == 2


def test_whatever_is_kept_for_all_accounts_has_a_reason() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{function.name}"
        for package in ("plugins", "runtime", "storage")
        for path in (ROOT / package).rglob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef)
        and any("cache" in ast.unparse(mark).split("(")[0] for mark in function.decorator_list)
    }
    assert found == set(KEPT), "what it keeps of texts is kept for one account: then say so here"
