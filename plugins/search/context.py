"""Context: what the memories know of a question, as one block for a model's prompt.

A search chooses; here the memories that it found become a text that fits a budget of tokens. The
best come first into the budget. Of a long memory those passages are shown that have most of the
question's words. Memories that say the same are one line, which cites them all. The block then
tells what was noted for itself before what was said in conversations, and these in their order in
time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import Field

from plugins.memories import MemoryRow, note_accesses, rows_at
from plugins.search import search
from plugins.search.dates import reference_day
from plugins.search.events import completed
from plugins.search.folding import outdated
from plugins.search.judging import above_threshold, judged
from plugins.search.layout import (
    NOTICE,
    Line,
    Part,
    Style,
    in_one_line,
    laid_out,
    short,
)
from plugins.search.limits import CONTEXT_TOKENS_DEFAULT, CONTEXT_TOKENS_MAX, CONTEXT_TOKENS_MIN
from plugins.search.models import (
    EXAMPLE_REPLY,
    Grounding,
    QuestionBody,
    SearchBody,
    reply_of,
)
from plugins.search.question import Question, ask
from plugins.search.universe import is_heavy, universe
from runtime.api.context import ReadContext
from runtime.api.operation import Call, Read, View
from runtime.inference import Models, count_tokens
from storage.text import analyze, estimated_tokens, passages

MEMORIES_READ_MAX = 100
PASSAGE_TOKENS = 64
LONG_TOKENS = 160  # what is longer is shown in passages
PASSAGES_READ_MAX = 64
PASSAGES_SHOWN_MAX = 2
LINE_TOKENS = 6  # marker and speaker
SECTION_TOKENS = 8
LEFT_MIN = 16  # with less left, no further memory is looked at
SAME_SHARE = 0.9  # of the terms that two memories have together, when they say the same


class ContextBody(QuestionBody):
    token_budget: int = Field(
        default=CONTEXT_TOKENS_DEFAULT,
        strict=True,
        ge=CONTEXT_TOKENS_MIN,
        le=CONTEXT_TOKENS_MAX,
        description="The block has at most so many tokens, as the embedding model's tokenizer "
        "counts them; those of most language models find fewer.",
    )
    style: Style = Field(
        default="markdown", description="Whether the block is a text or a JSON object."
    )

    @property
    def searched(self) -> SearchBody:
        """The search for it."""
        given = {name: getattr(self, name) for name in QuestionBody.model_fields}
        return SearchBody.model_construct(**given)


class ContextCitation(View):
    marker: str = Field(description="How the block names the memory.")
    memory_id: str
    start: int = Field(description="First code point of what is shown of the memory's content.")
    end: int = Field(description="The code point after its last.")


class ContextSection(View):
    title: str
    memory_ids: list[str] = Field(description="What it shows, in its order.")


class ContextReply(View):
    query: str
    context: str | dict[str, Any] = Field(
        description="The block; an object in style json. Empty when nothing stored answers."
    )
    tokens: int = Field(description="How many tokens the block is.")
    citations: list[ContextCitation]
    sections: list[ContextSection]
    no_match: bool = Field(description="Nothing stored stands as an answer.")
    abstain_recommended: bool = Field(description="Better not to answer from this.")
    abstain_reason: str | None = None
    query_confidence: float
    grounding: Grounding
    evidence_ids: list[str] = Field(description="The memories in the block, best first.")
    safety_contract_version: str
    scores_calibrated: bool
    degraded: bool
    degraded_reasons: list[str]


@dataclass(slots=True)
class Chosen:
    """A memory of the block.

    terms  what a search finds it by
    spans  what is shown of its content
    same   others that say the same
    """

    row: MemoryRow
    terms: frozenset[str]
    spans: list[tuple[int, int]]
    same: list[MemoryRow] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What is shown of it."""
        return " … ".join(self.row.content[start:end].strip() for start, end in self.spans)

    def says(self, other: MemoryRow, terms: frozenset[str]) -> bool:
        """Whether another memory of these terms says the same."""
        if self.row.speaker != other.speaker or self.row.role != other.role:
            return False
        together = len(self.terms | terms)
        return len(self.terms & terms) >= SAME_SHARE * together if together else False

    def cited(self) -> Iterator[tuple[MemoryRow, int, int]]:
        """(memory, start, end) of all that its line stands for."""
        for start, end in self.spans:
            yield self.row, start, end
        for row in self.same:
            yield row, 0, len(row.content)


def load(ctx: ReadContext, body: ContextBody) -> search.Loaded:
    """As the search's."""
    return search.load(ctx, body.searched)


async def prepare(call: Call, loaded: search.Loaded, models: Models) -> search.Prepared:
    """As the search's."""
    return await search.prepare(replace(call, body=call.body.searched), loaded, models)


def prefetch(ctx: ReadContext, body: ContextBody) -> Question:
    """As the search's."""
    return search.prefetch(ctx, body.searched)


def context(ctx: ReadContext, body: ContextBody) -> dict[str, Any]:
    """Search, choose what fits into the budget, lay it out."""
    asked, prepared = body.searched, ctx.prepared
    question: Question = ctx.prefetched or ask(ctx, asked, prepared.named, universe(ctx, asked))
    ranked = search.ranked_among(ctx, question, prepared, asked)
    places = above_threshold(ctx, ranked, asked)
    found = ranked.ordinals[places[:MEMORIES_READ_MAX]]
    rarity = dict(zip(question.terms, question.measure.idf.tolist(), strict=True))
    chosen = choose(ctx, found, rarity, body.token_budget, is_now=asked.as_of is None)
    block = fitting(chosen, body.style, body.token_budget)
    note_accesses(ctx, [each.row.ordinal for each in chosen])
    envelope = reply_of(
        body.query,
        hits=[],
        total=len(places),
        search_type=asked.search_type,
        judged=judged(ctx, ranked, int(places[0]) if len(places) else None),
        grounded=bool(len(places)) and bool(ranked.is_relevant[places[0]]),
        names=prepared.named.words,
        degraded=prepared.degraded,
        took_ms=(time.perf_counter() - prepared.started) * 1000,
    )
    envelope["evidence_ids"] = [each.row.id for each in chosen]
    completed(ctx, envelope)
    safety = {name: envelope[name] for name in ContextReply.model_fields if name in envelope}
    return {
        "context": block.made,
        "tokens": block.tokens,
        "citations": [
            {"marker": line.marker, "memory_id": row.id, "start": start, "end": end}
            for line, each in block.lines()
            for row, start, end in each.cited()
        ],
        "sections": [
            {"title": part.title, "memory_ids": [each.row.id for each in members]}
            for part, members in block.parts
        ],
        **safety,
    }


# --- choosing -------------------------------------------------------------------------------------


def choose(
    ctx: ReadContext,
    found: np.ndarray,
    rarity: Mapping[str, float],
    token_budget: int,
    *,
    is_now: bool,
) -> list[Chosen]:
    """What the budget holds of the memories found (ordinals, best first); one that does not fit is
    passed over. A search finds what stands beside a turn that says little by itself, too.

    is_now  whether what was superseded is left out of them
    """
    chosen: list[Chosen] = []
    told: set[tuple[int, str | None]] = set()
    left = token_budget - count_tokens(NOTICE)
    rows = rows_at(ctx, found)
    over = outdated(ctx, rows) if is_now else {}
    for row in rows:
        terms = frozenset(analyze(row.content))
        twin = next((other for other in chosen if other.says(row, terms)), None)
        if twin is not None:
            twin.same.append(row)
            continue
        section = (row.number, row.session_id)
        room = left - LINE_TOKENS - SECTION_TOKENS * (section not in told)
        spans = excerpt(row.content, rarity, min(LONG_TOKENS, room))
        each = Chosen(row, terms, standing(row.content, spans, over.get(row.ordinal, ())))
        tokens = count_tokens(each.text)
        if each.spans and tokens <= room:
            chosen.append(each)
            told.add(section)
            left = room - tokens
        if left < LEFT_MIN:
            break
    return chosen


def excerpt(content: str, rarity: Mapping[str, float], tokens_max: int) -> list[tuple[int, int]]:
    """What is shown of a content: all, or where it is longer the passages with most of what is
    asked, in their order; [] when there is no room for one.
    """
    if estimated_tokens(content) <= tokens_max:
        return [(0, len(content))]
    count = min(PASSAGES_SHOWN_MAX, tokens_max // PASSAGE_TOKENS)
    if count < 1:
        return []
    spans = passages(content, PASSAGE_TOKENS, PASSAGES_READ_MAX)
    shown: list[tuple[int, int]] = []
    missing = dict(rarity)
    for _ in range(count):
        best = max(
            (span for span in spans if span not in shown),
            key=lambda span: _asked_in(content[span[0] : span[1]], missing),
        )
        if shown and not _asked_in(content[best[0] : best[1]], missing):
            break
        shown.append(best)
        for term in analyze(content[best[0] : best[1]]):
            missing.pop(term, None)
    return sorted(shown)


def standing(
    content: str, spans: list[tuple[int, int]], over: Iterable[Mapping[str, Any]]
) -> list[tuple[int, int]]:
    """The spans without what has been superseded."""
    for each in sorted(over, key=lambda each: each["start"]):
        first, last = each["start"], each["end"]
        spans = [
            part
            for start, end in spans
            for part in ((start, min(end, first)), (max(start, last), end))
            if content[slice(*part)].strip()
        ]
    return spans


def _asked_in(text: str, rarity: Mapping[str, float]) -> float:
    return sum(rarity.get(term, 0.0) for term in frozenset(analyze(text)))


# --- laying out -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """parts: each section with the memories of its lines."""

    made: str | dict[str, Any]
    tokens: int
    parts: list[tuple[Part, list[Chosen]]]

    def lines(self) -> Iterator[tuple[Line, Chosen]]:
        for part, members in self.parts:
            yield from zip(part.lines, members, strict=True)


def fitting(chosen: list[Chosen], style: Style, token_budget: int) -> Block:
    """The block of the memories; the last ones are taken out of the list while it is too long."""
    while chosen:
        parts = sections(chosen)
        made, tokens = laid_out([part for part, _ in parts], style)
        if tokens <= token_budget:
            return Block(made, tokens, parts)
        chosen.pop()
    return Block({} if style == "json" else "", 0, [])


def sections(chosen: Sequence[Chosen]) -> list[tuple[Part, list[Chosen]]]:
    """Notes, best first, then each session, all in the order of time."""
    notes = [each for each in chosen if each.row.session_id is None]
    sessions: dict[tuple[int, str], list[Chosen]] = {}
    for each in sorted(chosen, key=lambda each: (each.row.occurred_at, each.row.ordinal)):
        if each.row.session_id is not None:
            sessions.setdefault((each.row.number, each.row.session_id), []).append(each)
    titled = [("Notes", notes)] if notes else []
    titled += [(f"Session {session}", members) for (_, session), members in sessions.items()]
    parts, count = [], 0
    for title, members in titled:
        days = [reference_day(each.row.occurred_at) for each in members]
        lines = [
            Line(
                str(number),
                day,
                short(each.row.speaker or each.row.role or "") or None,
                in_one_line(each.text, day),
            )
            for number, (day, each) in enumerate(zip(days, members, strict=True), count + 1)
        ]
        count += len(lines)
        day = days[0] if members is not notes and len(set(days)) == 1 else None
        parts.append((Part(short(title), day, lines), members))
    return parts


_MEMORY = EXAMPLE_REPLY["evidence_ids"][0]
_EXAMPLE_REPLY = {
    "context": f"{NOTICE}\n\n## 2026-05-08\n- [1] Ada: The spare key is under the blue flowerpot.",
    "tokens": 40,
    "citations": [{"marker": "1", "memory_id": _MEMORY, "start": 0, "end": 42}],
    "sections": [{"title": "Session kitchen", "memory_ids": [_MEMORY]}],
} | {name: EXAMPLE_REPLY[name] for name in ContextReply.model_fields if name in EXAMPLE_REPLY}

OPERATIONS = (
    Read(
        name="search.context",
        method="POST",
        path="/v1/context",
        load=load,
        prepare=prepare,
        prefetch=prefetch,
        batch=search.scan_together,
        handler=context,
        heavy=is_heavy,
        body=ContextBody,
        response=ContextReply,
        rate="search",
        credits=2,
        stability="beta",
        summary="What is known of a question, for a prompt",
        description="The memories that answer it as one block that fits a budget of tokens: notes "
        "before conversations, these in the order of time, what says the same once, with the days "
        "that relative times mean and a marker to cite each memory by.",
        example={"query": EXAMPLE_REPLY["query"], "token_budget": 500},
        example_reply=_EXAMPLE_REPLY,
    ),
)
