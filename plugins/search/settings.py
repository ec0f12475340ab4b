"""How a search finds and ranks: the sections `search`, `ranking`, `ranking_notes` and
`ranking_fast` of the settings.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model

from plugins.search.limits import CANDIDATES_MAX
from runtime.settings import Section, Settings


class SearchSettings(Section, frozen=True):
    follows = "memory"

    candidates: int = Field(
        default=60,
        ge=10,
        le=CANDIDATES_MAX,
        description=(
            "Candidates that each channel proposes, more where a page ends further down; a hybrid "
            "search adds their neighbours in the session."
        ),
    )
    embedding_wait_ms: int = Field(
        default=2_000,
        ge=1,
        le=60_000,
        description=(
            "Milliseconds a search waits for its embedding before it goes on by words alone."
        ),
    )
    oov_cosine_min: float = Field(
        default=0.55,
        ge=0,
        le=1,
        description=(
            "The same for a query of nothing but words that the embedding model never met, such as "
            "random letters."
        ),
    )
    archived_penalty: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description=(
            "Share of the highest possible score by which archived memories are ranked lower."
        ),
    )
    cosine_min: float = Field(
        default=0.2,
        ge=0,
        le=1,
        description="Cosine from which a result without any of the query's words stands.",
    )
    words_min: float = Field(
        default=0.6,
        ge=0,
        le=1,
        description=(
            "How near its words come to the query's, by late interaction, from which a result "
            "without any of them stands."
        ),
    )
    clear_words_min: float = Field(
        default=0.42,
        ge=0,
        le=1,
        description="The same for the one result whose words clearly come nearest.",
    )
    abstain_below: float = Field(
        default=0.15,
        ge=0,
        le=1,
        description="query_confidence below which abstaining is recommended.",
    )
    relevance: Literal["strict", "balanced", "all"] = Field(
        default="balanced",
        description=(
            "How far below the best result others may stand in a search that does not say."
        ),
    )
    interactions: int = Field(
        default=100,
        ge=0,
        le=1_000,
        description=(
            "Candidates whose words are compared with the query's, best first; 0 leaves late "
            "interaction out."
        ),
    )

    @property
    def embedding_wait_seconds(self) -> float:
        return self.embedding_wait_ms / 1000

    def candidates_for(self, end: int) -> list[int]:
        """How many candidates each channel proposes, and then, twice as many each time, until they
        suffice for a page that ends with result number `end`.
        """
        counts = [self.candidates]
        while counts[-1] < min(end, CANDIDATES_MAX):
            counts.append(min(2 * counts[-1], CANDIDATES_MAX))
        return counts


class RankingSettings(Section, frozen=True):
    """Weights of the ranking features (plugins/search/ranking.py says what each means) and how sure
    a score makes us.

    Learned on questions with known answers about conversations between two people, with the former
    weights as a prior (loadtests/learn_ranking.py). What confidence and conflict mean is learned on
    other texts: the project's own conversations and notes, and chats with an assistant
    (loadtests/calibrate.py).
    """

    follows = "memory"

    words: float = Field(
        default=0.17,
        description="Weight of how near the memory's words come to each word of the query.",
    )
    nearby: float = Field(
        default=0.66,
        description="The same, counting the words of its neighbours in the session too.",
    )
    lexical: float = Field(
        default=0.17, description="Weight of the words of a memory and its neighbours."
    )
    semantic: float = Field(
        default=0.36, description="Weight of the meaning of a memory and its neighbours."
    )
    exact: float = Field(default=-0.05, description="Weight of the meaning of the memory alone.")
    session: float = Field(
        default=0.76, description="Weight of the best memory of the same session."
    )
    answer: float = Field(
        default=0.3,
        description="Weight of how well a question matches that the memory directly follows.",
    )
    speaker: float = Field(
        default=0.23,
        description="Weight of whether the query names the memory's speaker, or another.",
    )
    personal: float = Field(default=0.12, description="The same for a memory in the first person.")
    date: float = Field(
        default=0.48,
        description="Weight of how near the memory happened to a time that the query names.",
    )
    time: float = Field(
        default=0.17, description="Weight of a time expression when the query asks when."
    )
    number: float = Field(
        default=0.05, description="Weight of a number when the query asks how many."
    )
    place: float = Field(
        default=0.17, description="Weight of names in the memory when the query asks where."
    )
    length: float = Field(default=0.07, description="Weight of the number of content words.")
    question: float = Field(
        default=-0.06, description="Weight of the memory being a question itself."
    )
    address: float = Field(
        default=-0.04, description="Weight of second-person words in the memory."
    )
    names: float = Field(
        default=0.08, description="Weight of names in the memory, whatever is asked."
    )
    dated: float = Field(
        default=0.03, description="Weight of a time expression in the memory, whatever is asked."
    )
    confidence_middle: float = Field(
        default=0.573, description="Evidence at which query_confidence is one half."
    )
    confidence_slope: float = Field(
        default=3.6, gt=0, description="How steeply query_confidence rises with the evidence."
    )
    confidence_rarity: float = Field(
        default=0.034,
        ge=0,
        description=(
            "Evidence added to the best score for each nat of rarity of the query's words that the "
            "best result has itself."
        ),
    )
    confidence_searched: float = Field(
        default=0.147,
        ge=0,
        description="Taken off for each e-fold of memories that were searched.",
    )
    conflict_weight: float = Field(
        default=3.7,
        ge=0,
        description="By how much of a conflict of subjects the evidence falls.",
    )

    @property
    def weights(self) -> dict[str, float]:
        """Ranking feature -> weight."""
        return _weights(self)


@lru_cache(maxsize=8)
def _weights(ranking: RankingSettings) -> dict[str, float]:
    return {
        name: value for name, value in ranking if not name.startswith(("confidence_", "conflict_"))
    }


def _profile(name: str, **defaults: float) -> type[RankingSettings]:
    """RankingSettings with other defaults."""
    known = RankingSettings.model_fields
    own: dict[str, Any] = {
        field: (
            Annotated[(float, Field(description=known[field].description), *known[field].metadata)],
            value,
        )
        for field, value in defaults.items()
    }
    return create_model(name, __base__=RankingSettings, **own)


# Weights that are not named here are those of conversations.
class RankingFastSettings(
    _profile(
        "RankingFastWeights",
        words=0.0,
        nearby=0.0,
        lexical=1.0,
        semantic=0.8,
        exact=0.25,
        session=0.8,
        answer=0.2,
        speaker=0.4,
        personal=0.1,
        date=0.4,
        time=0.18,
        number=0.06,
        place=0.15,
        length=0.2,
        question=-0.08,
        address=-0.1,
        names=0.08,
        dated=0.04,
        confidence_middle=0.499,
        confidence_slope=2.9,
        confidence_rarity=0.039,
        confidence_searched=0.198,
        conflict_weight=3.9,
    ),
    frozen=True,
):
    pass


class RankingNotesSettings(
    _profile(
        "RankingNotesWeights",
        words=0.22,
        nearby=0.71,
        lexical=0.15,
        semantic=0.41,
        exact=0.0,
        session=0.0,
        answer=0.0,
        speaker=0.0,
        personal=0.0,
        time=0.18,
        number=0.07,
        place=0.19,
        length=-0.02,
        question=-0.1,
        address=-0.16,
        dated=0.02,
        confidence_middle=0.41,
        confidence_slope=6.6,
        confidence_rarity=0.013,
        confidence_searched=0.092,
    ),
    frozen=True,
):
    pass


PROFILES: dict[str, type[RankingSettings]] = {
    "ranking": RankingSettings,
    "ranking_notes": RankingNotesSettings,
    "ranking_fast": RankingFastSettings,
}


def ranking_profile(settings: Settings, name: str) -> RankingSettings:
    """Weights and thresholds of one profile, by the name of its section."""
    return PROFILES[name].of(settings)
