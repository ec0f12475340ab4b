"""What a ranking is worth: which of its results stand, how sure the best one makes us, and when it
is better not to answer.

`query_confidence` is a logistic curve over four things, whose weights are settings of the ranking's
profile, learned from questions with and without an answer (loadtests/calibrate.py):

    score      of the best result
    conflict   how much better what is asked of one speaker fits another one
    rarity     Σ idf, in nats, of the words of the query that the best result has itself: that a
               memory has them all by chance is as unlikely as e to the power of −rarity
    searched   ln of the number of memories: among more of them one fits better by chance

In a script that the embedder was not taught, the share of the words alone tells, and in a language
that it was not taught, meaning alone makes nobody sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from plugins.search import ranking
from plugins.search.dates import Stretch, within
from plugins.search.models import SearchBody
from plugins.search.settings import SearchSettings, ranking_profile
from runtime.api.context import ReadContext
from storage.indexes import BOOL, FLOAT32, in_array, kernel, out_array

COMPANY_GAP = 0.2  # how far below the best that is relevant by itself others are good company
SEARCHED_MIN = 20  # of fewer memories it is not known what they make sure
LIKELY = 0.7  # without a conflict; one that makes the opposite of it as likely is told

Doubt = Literal["weak_evidence", "subject_conflict"]


@dataclass(slots=True)
class Ranked:
    """n candidates by score, descending, with what each feature contributed and which are
    relevant: near enough to the query by themselves.

    later      (n,) where a page takes more candidates than the first: from how many takings on each
               is there, by which they stand before score; None where all are there from the first
    rarities   (n,) nats, how rare together the words of the query are that each one has
    facts      ordinal -> those of the facts that are shown as that memory
    rarity     the same of all words of the query
    searched   memories that were searched
    retrievers weights of the retrievers whose scores count in it
    is_whole   whether it is a ranking by words and meaning, of a query that the embedder can read
    foreign    whether the embedder was not taught the query's language; unread: nor its script
    """

    ordinals: np.ndarray
    scores: np.ndarray
    normalized: np.ndarray
    contributions: dict[str, np.ndarray]
    is_relevant: np.ndarray
    rarities: np.ndarray
    facts: Mapping[int, Sequence[int]] = field(default_factory=dict)
    rarity: float = 0.0
    searched: int = 0
    conflict: float = 0.0
    profile: str = "ranking_fast"
    retrievers: Mapping[str, float] = field(default_factory=dict)
    is_whole: bool = False
    foreign: bool = False
    unread: bool = False
    later: np.ndarray | None = None

    def at(self, places: np.ndarray) -> Ranked:
        """The candidates at these places, in this order."""
        return replace(
            self,
            ordinals=self.ordinals[places],
            scores=self.scores[places],
            normalized=self.normalized[places],
            contributions={name: values[places] for name, values in self.contributions.items()},
            is_relevant=self.is_relevant[places],
            rarities=self.rarities[places],
            later=None if self.later is None else self.later[places],
        )

    def in_turn(self) -> Ranked:
        """Those of a later taking after those of the ones before, else in the order they have."""
        return self if self.later is None else self.at(np.argsort(self.later, kind="stable"))


def judged(ctx: ReadContext, ranked: Ranked, best: int | None) -> tuple[float, Doubt | None]:
    """query_confidence of an answer whose first result is at place `best`, and why one had better
    not give it; (0, None) where there is no result.

    A search of one channel alone is never sure, so that little confidence says nothing there; a
    conflict of subjects does.
    """
    if best is None:
        return 0.0, None
    sure = agreed = _confidence(ctx, ranked, best, ranked.conflict)
    if ranked.conflict < 0:
        agreed = _confidence(ctx, ranked, best, 0.0)
    least = SearchSettings.of(ctx.settings).abstain_below
    if (agreed >= LIKELY and sure <= 1 - LIKELY) or agreed >= least > sure:
        return sure, "subject_conflict"
    return sure, "weak_evidence" if ranked.is_whole and sure < least else None


def _confidence(ctx: ReadContext, ranked: Ranked, best: int, conflict: float) -> float:
    rarity = float(ranked.rarities[best])
    by_words = 1.0
    if ranked.foreign or ranked.unread:
        by_words = ranking.sure_of_words(rarity / max(ranked.rarity, 1e-9))
    if ranked.unread:
        return by_words
    profile = ranking_profile(ctx.settings, ranked.profile)
    evidence = (
        float(ranked.scores[best])
        + profile.conflict_weight * min(conflict, 0.0)
        + profile.confidence_rarity * rarity
        - profile.confidence_searched * math.log(max(ranked.searched, SEARCHED_MIN))
    )
    sure = ranking.logistic(profile.confidence_slope * (evidence - profile.confidence_middle))
    # In a language that the embedder was not taught, meaning alone makes nobody sure.
    return min(sure, max(by_words, 0.5))


def relevant(
    ctx: ReadContext, found: ranking.Features, dates: Sequence[Stretch], *, unmet: bool
) -> np.ndarray:
    """(n,) bool: which candidates are near enough to the query by themselves: by a word in common,
    here or beside it in the session, by meaning as a whole, by the meaning of single words, or by
    when they happened.

    dates  that the query names
    unmet  whether the embedder never met any of the query's words. It gives random letters a
           meaning too: what is relevant then has to come much nearer
    """
    settings = SearchSettings.of(ctx.settings)
    return ranking.near_enough(
        found,
        near=settings.oov_cosine_min if unmet else settings.cosine_min,
        words_min=settings.words_min,
        clear_words_min=None if unmet else settings.clear_words_min,
        date_min=within(dates),
    )


def in_company(is_relevant: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(n,) bool: those that are relevant by themselves, and those whose score comes as near as
    COMPANY_GAP to that of the best of these: what stands beside them in the session, who said it
    and when speak for them too.
    """
    found = is_relevant.copy()
    _bring_company(scores, found)
    return found


@kernel(in_array(FLOAT32), out_array(BOOL), brief=True)
def _bring_company(scores, found):
    best = -1
    for place in range(scores.shape[0]):
        if found[place] and (best < 0 or scores[place] > scores[best]):
            best = place
    if best >= 0:
        for place in range(scores.shape[0]):
            found[place] |= scores[place] >= scores[best] - np.float32(COMPANY_GAP)


def above_threshold(ctx: ReadContext, ranked: Ranked, body: SearchBody) -> np.ndarray:
    """Places of the results that may be shown, best first: relevant, and not too far below the best
    of them.
    """
    # As a float32, what the scores are, a small threshold would be zero.
    reached = ranked.normalized >= np.float64(body.score_min)
    shown = (ranked.is_relevant | body.include_low_confidence) & reached
    places = np.flatnonzero(shown)
    if not len(places) or body.include_low_confidence:
        return places
    asked = body.relevance_or(SearchSettings.of(ctx.settings).relevance)
    scores, gap = ranked.scores[places], ranking.SCORE_GAPS[asked]
    if asked == "balanced" and ranking.asks_several(body.query):
        gap = ranking.SEVERAL_GAP
    return places[scores >= scores.max() - gap]


def page_of(ranked: Ranked, places: np.ndarray, body: SearchBody) -> np.ndarray:
    """The places of one page, best first."""
    page = places[body.offset : body.offset + body.limit]
    return page[np.argsort(-ranked.scores[page], kind="stable")]
