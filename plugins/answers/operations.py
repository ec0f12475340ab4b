"""The operation that answers: it searches, once or twice, and then asks the model or quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, Field

from plugins.answers.limits import (
    ANSWER_MEMORY_TOKENS_MAX,
    ANSWER_TOKENS_DEFAULT,
    ANSWER_TOKENS_MAX,
)
from plugins.answers.prompt import fenced, with_successors
from plugins.answers.quotes import Quote, best_quotes, is_supported, sentences, verify
from plugins.answers.settings import AnswersSettings
from plugins.search import SAFETY_CONTRACT, SEARCH_ITEMS_MAX, Grounding, SearchBody
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Flow, Idempotency, View
from runtime.api.steps import Steps
from runtime.inference import CompletionFailed, LanguageModel, Models, Usage
from storage.text import analyze, query_terms

__all__ = ["ANSWER_MEMORY_TOKENS_MAX"]

REPHRASINGS_MAX = 3
RANK_SMOOTHING = 60  # k of reciprocal rank fusion (Cormack et al., 2009)

# --- the wire -------------------------------------------------------------------------------------


class ReasonBody(SearchBody):
    """A search, and how to answer from it."""

    include_steps: bool = Field(
        default=False, description="Say what was searched for and how the answer came about."
    )
    max_tokens: int = Field(
        default=ANSWER_TOKENS_DEFAULT,
        strict=True,
        ge=1,
        le=ANSWER_TOKENS_MAX,
        description="At most so many tokens of answer.",
    )


class Source(View):
    memory_id: str
    content: str
    score: float = Field(description="Its score in the search.")


class Citation(View):
    memory_id: str
    start: int = Field(description="First code point of the quotation in the memory's content.")
    end: int = Field(description="The code point after its last.")
    quote: str = Field(description="Exactly `content[start:end]`.")


class Step(View):
    kind: Literal["search", "rephrase", "answer", "check"]
    detail: str
    results: int | None = Field(default=None, description="How many results a search had.")
    confidence: float | None = Field(default=None, description="query_confidence of a search.")


class TokenUsage(View):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


Doubt = Literal[
    "no_match",
    "weak_evidence",
    "subject_conflict",
    "low_confidence",
    "no_answer_found",
    "unsupported",
]


class ReasonReply(View):
    query: str
    answer: str | None = Field(description="null when nothing stored supports an answer.")
    engine: Literal["llm", "extractive"]
    model: str | None = Field(
        description="The language model asked, null with the extractive engine."
    )
    sources: list[Source] = Field(description="What the answer was made from, best first.")
    citations: list[Citation] = Field(
        description="Verbatim quotations the answer rests on, best first. An extractive answer is "
        "the first; the others are the best sentences of further memories."
    )
    steps: list[Step] | None = Field(default=None, description="With `include_steps`.")
    usage: TokenUsage
    no_match: bool
    abstain_recommended: bool
    abstain_reason: Doubt | None = None
    query_confidence: float
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool
    degraded: bool
    degraded_reasons: list[str]


class Cited(BaseModel):
    memory: int = Field(description="The number of the note.")
    quote: str = Field(
        description="The words of the note that support the answer, copied character by character."
    )


class Written(BaseModel):
    """What the model is asked for."""

    answer: str | None = Field(
        description="A short answer, or null when the notes do not hold one."
    )
    citations: list[Cited] = Field(default_factory=list, description="At least one for an answer.")


class Rephrased(BaseModel):
    """Other ways to ask."""

    queries: list[str] = Field(max_length=10, description="Short search queries.")


# --- searching ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Found:
    """What both rounds found: the first search's envelope, the hits to answer from, and the way
    there.
    """

    envelope: dict[str, Any]
    hits: Sequence[Mapping[str, Any]]
    steps: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    degraded: list[str] = field(default_factory=list)


def load(ctx: ReadContext, body: ReasonBody) -> dict[str, Any]:
    """The settings a gateway's flow goes by."""
    settings = AnswersSettings.of(ctx.settings)
    return {
        "confidence_min": settings.confidence_min,
        "second_round_below": settings.second_round_below,
    }


async def search(call: Call, steps: Steps, model: LanguageModel | None) -> Found:
    """One round, and a wider one when the first is not convincing."""
    body: ReasonBody = call.body
    asked = SearchBody.model_construct(
        **{name: getattr(body, name) for name in SearchBody.model_fields}
    )
    envelope = await steps.run("search.search", asked)
    found = Found(
        envelope,
        envelope["results"],
        [_searched(body.query, envelope)],
        degraded=list(envelope["degraded_reasons"]),
    )
    if envelope["query_confidence"] >= call.loaded["second_round_below"]:
        return found
    queries = await rephrase(body.query, found, model)
    wider = min(2 * body.limit, SEARCH_ITEMS_MAX)
    others = [asked.model_copy(update={"query": query, "limit": wider}) for query in queries]
    rounds = await asyncio.gather(*(steps.run("search.search", other) for other in others))
    found.steps += [
        _searched(query, envelope) for query, envelope in zip(queries, rounds, strict=True)
    ]
    found.hits = merged([found.hits, *(envelope["results"] for envelope in rounds)])[: body.limit]
    return found


async def rephrase(query: str, found: Found, model: LanguageModel | None) -> list[str]:
    """Other queries for the same question: the model's, and the question's own words without those
    that say little.
    """
    keywords = await asyncio.to_thread(_keywords, query)
    others = [keywords] if keywords and keywords != query else []
    if model is None:
        return others
    messages = [
        {
            "role": "system",
            "content": (
                f"Rewrite a question as at most {REPHRASINGS_MAX} short search queries over "
                "somebody's notes."
            ),
        },
        {"role": "user", "content": query},
    ]
    try:
        written = await model.complete(messages, schema=Rephrased, temperature=0)
    except CompletionFailed:
        return others  # the answer's own call says that the model is down
    found.usage += written.usage
    found.steps.append({"kind": "rephrase", "detail": f"{model.name} was asked for other queries"})
    return [text.strip()[: len(query) + 200] for text in written.parsed.queries if text.strip()][
        :REPHRASINGS_MAX
    ] or others


def _keywords(query: str) -> str:
    terms = frozenset(query_terms(query))
    return " ".join(
        dict.fromkeys(word for word in query.split() if not terms.isdisjoint(analyze(word)))
    )


def merged(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Hits of several searches by reciprocal rank, the first search's counting twice."""
    scores: dict[str, float] = {}
    hits: dict[str, Mapping[str, Any]] = {}
    for number, results in enumerate(rounds):
        for place, hit in enumerate(results):
            hits.setdefault(hit["id"], hit)
            scores[hit["id"]] = scores.get(hit["id"], 0.0) + (2 if number == 0 else 1) / (
                RANK_SMOOTHING + place
            )
    return sorted(hits.values(), key=lambda hit: scores[hit["id"]], reverse=True)


# --- answering ------------------------------------------------------------------------------------


@dataclass(slots=True)
class ReasonedAnswer:
    """text None: an abstention, and why."""

    engine: str
    text: str | None
    quotes: list[Quote] = field(default_factory=list)
    why_not: str | None = None


async def reason(call: Call, steps: Steps, models: Models) -> dict[str, Any]:
    """Answer a question: search, answer with the model if there is one, extract otherwise."""
    model = models.language_model
    found = await search(call, steps, model)
    found.hits = with_successors(found.hits)
    answer = None
    if model is not None and found.hits:
        steps.outcome = "asked"  # which costs as much where the client leaves before the answer
        try:
            answer = await ask(call, found, model)
        except CompletionFailed:
            found.degraded.append("language_model_failed")
    if answer is None:
        answer = await asyncio.to_thread(extract, call, found)
    return reply(call, found, answer, model)


def extract(call: Call, found: Found) -> ReasonedAnswer:
    """The best sentence as it stands, unless the search or its confidence advises against, or no
    sentence shows the kind of thing that is asked for.
    """
    envelope = found.envelope
    why_not = envelope["abstain_reason"]
    if why_not is None and envelope["query_confidence"] < call.loaded["confidence_min"]:
        why_not = "low_confidence"
    quotes = [] if why_not else best_quotes(call.body.query, found.hits)
    if not quotes:
        return ReasonedAnswer("extractive", None, why_not=why_not or "no_answer_found")
    found.steps.append(
        {"kind": "answer", "detail": f"the best of {len(quotes)} sentences was quoted as it stands"}
    )
    return ReasonedAnswer("extractive", _attributed(quotes[0], found.hits[quotes[0].place]), quotes)


async def ask(call: Call, found: Found, model: LanguageModel) -> ReasonedAnswer:
    """The model's answer, as far as what it cites bears it out. Raises CompletionFailed."""
    question = call.body.query
    block = fenced(found.hits, call.seed, ANSWER_MEMORY_TOKENS_MAX, numbered=True)
    instruction = (
        "Answer the user's question from the notes below, and from nothing else. Each note has a "
        "number, the date it was written and "
        "who said it; 'yesterday' and the like count from that date. Cite the words that support "
        "your answer, copied exactly. When the "
        "notes do not hold the answer, answer null.\n\n"
    )
    messages = [
        {"role": "system", "content": instruction + block.text},
        {"role": "user", "content": question},
    ]
    completion = await model.complete(
        messages, schema=Written, max_tokens=call.body.max_tokens, temperature=0
    )
    found.usage += completion.usage
    found.steps.append({"kind": "answer", "detail": f"{model.name} read {len(block.ids)} memories"})
    written = completion.parsed
    said = (written.answer or "").strip()
    if not said:
        return ReasonedAnswer("llm", None, why_not="no_answer_found")
    text, quotes = checked(said, written.citations, question, found.hits)
    found.steps.append(
        {
            "kind": "check",
            "detail": f"{len(quotes)} of {len(written.citations)} quotations are in their memories",
        }
    )
    return ReasonedAnswer("llm", text, quotes, None if text else "unsupported")


def checked(
    answer: str, citations: Sequence[Cited], question: str, hits: Sequence[Mapping[str, Any]]
) -> tuple[str | None, list[Quote]]:
    """The answer and the citations that hold; (None, []) when none does, or when they bear out no
    sentence of the answer.
    """
    quotes: dict[tuple[int, int, int], Quote] = {}
    for cited in citations:
        # A right quotation under a wrong number is still a quotation: look for it everywhere.
        for place in dict.fromkeys([cited.memory - 1, *range(len(hits))]):
            quote = (
                verify(cited.quote, hits[place]["content"], place)
                if 0 <= place < len(hits)
                else None
            )
            if quote is not None:
                quotes[quote.place, quote.start, quote.end] = quote
                break
    evidence = " ".join(
        f"{hits[quote.place]['speaker'] or ''} {hits[quote.place]['content']}"
        for quote in quotes.values()
    )
    if not quotes or not any(
        is_supported(claim, question, evidence) for claim in sentences(answer)
    ):
        return None, []
    return answer, list(quotes.values())


def reply(
    call: Call, found: Found, answer: ReasonedAnswer, model: LanguageModel | None
) -> dict[str, Any]:
    envelope = found.envelope
    used = found.usage
    body = {
        "query": call.body.query,
        "answer": answer.text,
        "engine": answer.engine,
        "model": model.name if model is not None and answer.engine == "llm" else None,
        "sources": [
            {"memory_id": hit["id"], "content": hit["content"], "score": hit["score"]}
            for hit in found.hits
        ],
        "citations": [quote.citation(found.hits[quote.place]["id"]) for quote in answer.quotes],
        "usage": {
            "prompt_tokens": used.prompt_tokens,
            "completion_tokens": used.completion_tokens,
            "total_tokens": used.total_tokens,
        },
        "no_match": not found.hits,
        "abstain_recommended": answer.text is None,
        "abstain_reason": answer.why_not,
        "query_confidence": envelope["query_confidence"] if found.hits else 0.0,
        "grounding": envelope["grounding"],
        "evidence_ids": [hit["id"] for hit in found.hits],
        "safety_contract_version": SAFETY_CONTRACT,
        "scores_calibrated": False,
        "degraded": bool(found.degraded),
        "degraded_reasons": found.degraded,
    }
    return body | ({"steps": found.steps} if call.body.include_steps else {})


def _attributed(quote: Quote, hit: Mapping[str, Any]) -> str:
    who = f"{hit['speaker']}, " if hit["speaker"] else ""
    return f"{who}{hit['occurred_at'][:10]}: “{quote.quote}”"


def _searched(query: str, envelope: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "kind": "search",
        "detail": query,
        "results": len(envelope["results"]),
        "confidence": envelope["query_confidence"],
    }


# --- the plugin -----------------------------------------------------------------------------------

_MEMORY = "mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g"
_EXAMPLE_REPLY = {
    "query": "Where does Ada keep the spare key?",
    "answer": "Ada, 2026-05-08: “The spare key is under the blue flowerpot.”",
    "engine": "extractive",
    "model": None,
    "sources": [
        {
            "memory_id": _MEMORY,
            "content": "The spare key is under the blue flowerpot.",
            "score": 1.72,
        }
    ],
    "citations": [
        {
            "memory_id": _MEMORY,
            "start": 0,
            "end": 42,
            "quote": "The spare key is under the blue flowerpot.",
        }
    ],
    "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    "no_match": False,
    "abstain_recommended": False,
    "abstain_reason": None,
    "query_confidence": 0.51,
    "grounding": {
        "status": "grounded",
        "reason": "The best result shares words with the query or is near to it in meaning.",
        "subject_anchors": ["Ada"],
    },
    "evidence_ids": [_MEMORY],
    "safety_contract_version": SAFETY_CONTRACT,
    "scores_calibrated": False,
    "degraded": False,
    "degraded_reasons": [],
}

OPERATIONS = (
    Flow(
        name="search.reason",
        method="POST",
        path="/v1/search/reason",
        load=load,
        handler=reason,
        body=ReasonBody,
        response=ReasonReply,
        idempotency=Idempotency.CACHED,
        credits=10,
        summary="Answer a question from memories",
        description="With verbatim citations. `answer` is null where nothing stored supports one. "
        "Without a language model, or when it "
        "fails, the answer is the best sentence itself.",
        example={"query": "Where does Ada keep the spare key?", "include_steps": False},
        example_reply=_EXAMPLE_REPLY,
    ),
)
