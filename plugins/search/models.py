"""What a search looks like on the wire: request, envelope, one result. No ranking happens here.

The envelope keeps its word: result ids are unique, `evidence_ids` are the results' ids in order,
scores fall, and `no_match` means no results, no evidence and confidence 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool

from plugins.memories import MemoryRow, ScopeName
from plugins.search.limits import (
    BUDGET_TOKENS_MAX,
    QUERY_CHARS_MAX,
    SEARCH_ITEMS_DEFAULT,
    SEARCH_ITEMS_MAX,
    SEARCH_OFFSET_MAX,
)
from runtime.api.operation import Body, Query, View, not_blank
from runtime.api.plugin import RETRIEVERS_TOO, Retriever
from runtime.timestamps import EndTimestamp, Timestamp, iso
from storage.text import Matcher, estimated_tokens

SAFETY_CONTRACT = "search-safety-v1"
HIGHLIGHTS_MAX = 50
HIGHLIGHT_CHARS_MAX = 20_000

CHANNELS = ("hybrid", "vector", "bm25")  # what a search may go by; beside them any one retriever

Relevance = Literal["strict", "balanced", "all"]


class AskedBody(Body):
    """What a search looks for."""

    query: Annotated[str, AfterValidator(not_blank)] = Field(
        min_length=1, max_length=QUERY_CHARS_MAX, description="What to look for, in plain words."
    )


class SearchedMemories(Body):
    """Which memories a search may return."""

    collection_id: str | None = Field(
        default=None, min_length=1, description="Search this collection only."
    )
    user_id: ScopeName | None = Field(
        default=None,
        description="Only memories of this end user.",
    )
    agent_id: ScopeName | None = Field(
        default=None,
        description="Only memories of this agent.",
    )
    run_id: ScopeName | None = Field(
        default=None,
        description="Only memories of this run.",
    )
    app_id: ScopeName | None = Field(
        default=None,
        description="Only memories of this application.",
    )
    session_id: ScopeName | None = Field(
        default=None,
        description="Only memories of this session.",
    )
    filters: dict[str, Any] | None = Field(
        default=None, description="Conditions on fields, with AND, OR and NOT."
    )


class QuestionBody(SearchedMemories, AskedBody):
    """A question, and which memories may answer it."""

    as_of: EndTimestamp | None = Field(
        default=None,
        description="Search what was known at this instant (of a date without a time, at the end "
        "of that day): memories stored by then, superseded ones too when that happened later. "
        "They are searched with the content they have now.",
    )
    reference_date: Timestamp | None = Field(
        default=None,
        description="What yesterday, last week and the like count from; as_of or else now when "
        "absent.",
    )


class SearchBody(QuestionBody):
    search_type: str = Field(
        default="hybrid",
        json_schema_extra={"enum": [*CHANNELS], RETRIEVERS_TOO: True},
        description="Which channels propose candidates.",
    )
    fast: StrictBool = Field(
        default=False,
        description="Leave out late interaction, which compares word by word: sooner, and less "
        "exact.",
    )
    limit: int = Field(
        default=SEARCH_ITEMS_DEFAULT,
        strict=True,
        ge=1,
        le=SEARCH_ITEMS_MAX,
        description="At most so many results.",
    )
    offset: int = Field(
        default=0, strict=True, ge=0, le=SEARCH_OFFSET_MAX, description="Skip so many results."
    )
    threshold: float | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=1,
        description="Leave out results whose normalized_score is lower.",
    )
    min_score: float | None = Field(
        default=None,
        strict=True,
        ge=0,
        le=1,
        description="Another name for threshold; of two, the higher one counts.",
    )
    token_budget: int | None = Field(
        default=None,
        strict=True,
        ge=1,
        le=BUDGET_TOKENS_MAX,
        description="Keep of the page's results, best first, those whose contents fit into so "
        "many tokens "
        "together; one that does not "
        "fit is left out. A token is estimated as four ASCII characters, or one other.",
    )
    include_superseded: StrictBool = Field(
        default=False, description="Also search memories that a newer one replaced."
    )
    include_low_confidence: StrictBool = Field(
        default=False, description="Also return weak results, flagged, instead of no_match."
    )
    relevance: Relevance | None = Field(
        default=None,
        description="How far below the best result others may stand: strict keeps few and surer "
        "ones, balanced more, and more yet where several things are asked for, all every one that "
        "stands; balanced, unless the installation says otherwise, when absent from a hybrid "
        "search, else all. include_low_confidence counts as all.",
    )
    explain: StrictBool = Field(
        default=False, description="Say what each feature contributed to each score."
    )
    debug: StrictBool = Field(default=False, description="Another name for explain.")
    view: Literal["compact", "full"] = Field(
        default="full",
        description="compact leaves out metadata, tags, highlights and explanations.",
    )

    @property
    def explained(self) -> bool:
        return self.explain or self.debug

    @property
    def keeps_parts(self) -> bool:
        """Whether what each feature contributes is asked for after ranking."""
        return self.explained

    @property
    def by_words(self) -> bool:
        """Whether what has words of the query is a candidate."""
        return self.search_type in ("hybrid", "bm25")

    @property
    def by_meaning(self) -> bool:
        """Whether what is near to the query in meaning is a candidate."""
        return self.search_type in ("hybrid", "vector")

    @property
    def measures_words(self) -> bool:
        """Whether words count in ranking. A retriever's candidates are ranked by all there is."""
        return self.search_type != "vector"

    @property
    def measures_meaning(self) -> bool:
        """Whether meaning does."""
        return self.search_type != "bm25"

    def asks(self, retriever: Retriever) -> bool:
        """Whether a retriever of another plugin is to propose candidates."""
        return self.search_type == retriever.name or (
            self.search_type == "hybrid" and retriever.in_hybrid
        )

    def relevance_or(self, usual: Relevance) -> Relevance:
        """How far below the best result others may stand; `usual` in a hybrid search that does not
        say. One channel alone does not tell how much better another result is.
        """
        return self.relevance or (usual if self.search_type == "hybrid" else "all")

    @property
    def score_min(self) -> float:
        """normalized_score below which a result is left out."""
        return max(self.threshold or 0.0, self.min_score or 0.0)


class SimilarQuery(Query):
    limit: int = Field(
        default=SEARCH_ITEMS_DEFAULT,
        ge=1,
        le=SEARCH_ITEMS_MAX,
        description="At most so many results.",
    )
    collection_id: str | None = Field(
        default=None, min_length=1, description="Only memories of this collection."
    )
    min_score: float | None = Field(
        default=None, ge=0, le=1, description="Leave out results whose normalized_score is lower."
    )


class Highlight(View):
    start: int = Field(description="First code point of a matching word in `content`.")
    end: int = Field(description="The code point after its last.")


class HitEvidence(View):
    memory_id: str = Field(description="The turn, which is the result.")
    start: int = Field(description="First code point of what the fact was read in.")
    end: int = Field(description="The code point after its last.")
    fact_id: str = Field(description="The memory of the fact.")


class Newer(View):
    id: str
    content: str
    speaker: str | None
    occurred_at: str


class Outdated(View):
    start: int = Field(description="First code point of what has been superseded.")
    end: int = Field(description="The code point after its last.")
    fact_id: str = Field(description="The memory of the fact that was read in it.")
    superseded_by: Newer | None = Field(description="The memory of what was said since.")


class Hit(View):
    id: str = Field(description="The memory's id.")
    memory_id: str = Field(description="The same id.")
    content: str
    score: float = Field(
        description="Weighted sum of the ranking features; a ranking signal, not a probability."
    )
    normalized_score: float = Field(
        description="The score as a share of the best reachable, 0 to 1."
    )
    rank: int = Field(description="From 1 (from offset + 1 with an offset).")
    collection_id: str
    metadata: dict[str, Any] | None = None
    tags: list[str] | None = None
    speaker: str | None
    session_id: str | None
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    app_id: str | None
    occurred_at: str
    created_at: str
    updated_at: str
    tier: str
    low_confidence: bool = Field(description="Whether the result is too weak to stand on its own.")
    highlights: list[Highlight] | None = None
    explanation: dict[str, float] | None = Field(
        default=None, description="Contribution of each feature, with `explain`."
    )
    evidence: list[HitEvidence] | None = Field(
        default=None,
        description="Facts that are no results of their own beside the turn that they rest on.",
    )
    outdated: list[Outdated] | None = Field(
        default=None,
        description="Where the content says what has been superseded since; the rest of it stands.",
    )


class Grounding(View):
    status: Literal["grounded", "weak", "no_grounded_match"]
    reason: str
    subject_anchors: list[str] = Field(description="Speakers the query names.")


class SearchReply(View):
    query: str
    results: list[Hit]
    total: int = Field(
        description=(
            "How many memories passed the threshold, before offset and limit, of those that were "
            "looked at: each channel proposes `search.candidates`, or as many as offset and limit "
            "ask for where that is more, 1,000 at most."
        )
    )
    search_type: str
    processing_time_ms: float
    no_match: bool = Field(
        description="Nothing stored stands as an answer; there are no results then."
    )
    abstain_recommended: bool = Field(description="Better not to answer from these results.")
    abstain_reason: Literal["no_match", "weak_evidence", "subject_conflict"] | None = Field(
        default=None,
        description="Why. subject_conflict: what the query asks of one speaker fits another one "
        "better.",
    )
    query_confidence: float = Field(
        description="0 to 1; how likely the results hold an answer. It ranks queries; it is no "
        "probability."
    )
    grounding: Grounding
    evidence_ids: list[str]
    safety_contract_version: str
    scores_calibrated: bool = Field(
        description="Always false: scores rank, they are no probabilities."
    )
    ranking_profile: Literal["ranking", "ranking_notes", "ranking_fast"] | None = Field(
        default=None,
        description="With `explain`: the section of the settings whose weights were used.",
    )
    reranker_applied: bool
    degraded: bool = Field(
        description="Whether a channel was missing; degraded_reasons says which."
    )
    degraded_reasons: list[str]
    query_entities: list[str]


def hit(
    row: MemoryRow,
    *,
    rank: int,
    score: float,
    normalized: float,
    is_relevant: bool,
    matcher: Matcher,
    occurrences: Mapping[str, int] | None,
    explanation: dict[str, float] | None,
    compact: bool,
    evidence: list[dict[str, int | str]] | None,
    outdated: list[dict[str, Any]] | None,
) -> dict[str, Any]:
    """One result; a compact one has no metadata, tags, highlights or explanation. occurrences: as
    `highlights` has it. evidence: where the facts that it is shown for stand in it, if there are
    any; outdated: where it says what has been superseded, if anywhere.
    """
    created_at = iso(row.created_at)
    view = {
        "id": row.id,
        "memory_id": row.id,
        "content": row.content,
        "score": score,
        "normalized_score": normalized,
        "rank": rank,
        "collection_id": row.collection_id,
        "speaker": row.speaker,
        "session_id": row.session_id,
        "user_id": row.user_id,
        "agent_id": row.agent_id,
        "run_id": row.run_id,
        "app_id": row.app_id,
        "occurred_at": created_at if row.occurred_at == row.created_at else iso(row.occurred_at),
        "created_at": created_at,
        "updated_at": created_at if row.updated_at == row.created_at else iso(row.updated_at),
        "tier": row.tier,
        "low_confidence": not is_relevant,
    }
    if evidence is not None:
        view["evidence"] = evidence
    if outdated is not None:
        view["outdated"] = outdated
    if not compact:
        view |= {
            "metadata": row.metadata,
            "tags": row.tags,
            "highlights": highlights(row.content, matcher, occurrences),
        }
        if explanation is not None:
            view["explanation"] = explanation
    return view


def packed(hits: list[dict[str, Any]], token_budget: int | None) -> list[dict[str, Any]]:
    """The hits, in their order, that fit into the budget beside those before them; ranked without
    gaps. All without a budget.
    """
    if token_budget is None:
        return hits
    kept, left = [], token_budget
    for hit in hits:
        tokens = estimated_tokens(hit["content"])
        if tokens <= left:
            kept.append({**hit, "rank": hits[0]["rank"] + len(kept)})
            left -= tokens
    return kept


def highlights(
    content: str, matcher: Matcher, occurrences: Mapping[str, int] | None = None
) -> list[dict[str, int]]:
    """Where what is looked for stands in the content: code point ranges, in order, without overlap.

    occurrences  how often the content gives each term that it gives, where that is known
    """
    found: list[dict[str, int]] = []
    if occurrences and len(content) > HIGHLIGHT_CHARS_MAX:
        occurrences = None  # some are beyond
    for start, end in sorted(matcher.spans(content[:HIGHLIGHT_CHARS_MAX], occurrences)):
        if found and start < found[-1]["end"]:
            found[-1]["end"] = max(found[-1]["end"], end)
        elif len(found) < HIGHLIGHTS_MAX:
            found.append({"start": start, "end": end})
        else:
            break
    return found


def reply_of(
    query: str,
    *,
    hits: list[dict[str, Any]],
    total: int,
    search_type: str,
    judged: tuple[float, str | None],
    grounded: bool,
    names: list[str],
    degraded: list[str],
    took_ms: float,
    profile: str | None = None,
    reranked: bool = False,
) -> dict[str, Any]:
    """The envelope around one page of results. `total` 0 means no_match; `grounded`: whether the
    best result is relevant; `judged`: query_confidence, and why one had better not answer;
    `reranked`: whether a reranker ordered it."""
    no_match, (confidence, doubt) = total == 0, judged
    if not grounded:
        doubt = "no_match" if no_match else "weak_evidence"
    status = "no_grounded_match" if no_match else "grounded" if grounded else "weak"
    return {
        "query": query,
        "results": hits,
        "total": total,
        "search_type": search_type,
        "processing_time_ms": round(took_ms, 3),
        "no_match": no_match,
        "abstain_recommended": doubt is not None,
        "abstain_reason": doubt,
        "query_confidence": 0.0 if no_match else round(confidence, 6),
        "grounding": {"status": status, "reason": _REASONS[status], "subject_anchors": names},
        "evidence_ids": [shown["id"] for shown in hits],
        "safety_contract_version": SAFETY_CONTRACT,
        "scores_calibrated": False,
        **({} if profile is None else {"ranking_profile": profile}),
        "reranker_applied": reranked,
        "degraded": bool(degraded),
        "degraded_reasons": degraded,
        "query_entities": names,
    }


_REASONS = {
    "grounded": "The best result shares words with the query or is near to it in meaning.",
    "weak": "No result shares a word with the query or is near to it in meaning.",
    "no_grounded_match": "Nothing stored shares a word with the query or is near to it in meaning.",
}

EXAMPLE_QUERY = {"query": "Where does Ada keep the spare key?", "limit": 3}
EXAMPLE_REPLY = {
    "query": "Where does Ada keep the spare key?",
    "results": [
        {
            "id": "mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g",
            "memory_id": "mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g",
            "content": "The spare key is under the blue flowerpot.",
            "score": 1.72,
            "normalized_score": 0.51,
            "rank": 1,
            "collection_id": "col_01kaeqz5yb2t9w8r5n3v7x1y4b6d8f0g",
            "metadata": {},
            "tags": ["home"],
            "speaker": "Ada",
            "session_id": "kitchen",
            "user_id": "ada",
            "agent_id": None,
            "run_id": None,
            "app_id": None,
            "occurred_at": "2026-05-08T13:56:00.000Z",
            "created_at": "2026-05-08T13:56:00.000Z",
            "updated_at": "2026-05-08T13:56:00.000Z",
            "tier": "short_term",
            "low_confidence": False,
            "highlights": [{"start": 4, "end": 13}],
        }
    ],
    "total": 1,
    "search_type": "hybrid",
    "processing_time_ms": 2.8,
    "no_match": False,
    "abstain_recommended": False,
    "abstain_reason": None,
    "query_confidence": 0.51,
    "grounding": {
        "status": "grounded",
        "reason": "The best result shares words with the query or is near to it in meaning.",
        "subject_anchors": ["Ada"],
    },
    "evidence_ids": ["mem_01kaeqz6hc2t9w8r5n3v7x1y4b6d8f0g"],
    "safety_contract_version": "search-safety-v1",
    "scores_calibrated": False,
    "reranker_applied": False,
    "degraded": False,
    "degraded_reasons": [],
    "query_entities": ["Ada"],
}
