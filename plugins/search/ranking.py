"""How well a memory answers a query: pure functions over aligned NumPy columns, no storage and no
I/O.

A search first collects candidates from its channels. Their neighbours in the same session join them
in one *pool*, because evidence often stands next to the words that find it: the answer to a
question, the second half of a thought. Every feature is an absolute number, comparable between
queries, and the score is their weighted sum. Absolute additive scores beat rank fusion wherever one
channel is weak, and they say how good the best match is, not only which one it is.

    words        late interaction: how near the memory comes to each content word of the query in
                 context, rare words counting more
    nearby       the same, where a neighbour in the session may come near instead, for four fifths
    lexical      BM25 over a window: twice the memory, once each neighbour; divided by what the
                 query could reach at most
    semantic     cosine with the memory's vector blended with half of each neighbour's
    exact        cosine with the memory's own vector
    session      the best *own match*, half cosine and half BM25, among the candidates of the same
                 session
    answer       the own match of the memory before, when that is a question: what follows it may
                 answer it
    speaker      the query names this memory's speaker (+½), or only another one (−½); where it says
                 "I", the user is meant, and the assistant where it recalls what "you" said
    personal     the same, by how much the memory speaks in the first person: who says "I" speaks of
                 themselves
    date         how near the memory happened to a time that the query names
                 (plugins/search/dates.py)
    time         the query asks when, and the memory says when
    number       the query asks how many, and the memory has a number
    place        the query asks where, and the memory has names in it
    length       log of the search terms: a longer memory carries more
    question     the memory is itself a question, so it asks more than it tells
    address      the memory speaks to somebody more than it tells: "you", "your"
    names        the memory has capitalised names inside its sentences
    dated        the memory has a time expression, whatever is asked

`answer`, `time`, `number`, `place`, `names` and `dated` count in full up to FEATURE_WORDS search
terms and less the longer a memory is: whatever is asked, a long reply has some of it.

A feature without input (no session, no speaker) is 0, so plain notes lose nothing. Weights are
settings, in three profiles: for conversations, for notes that have neither session nor speaker, and
for searches without late interaction, which also choose the candidates that are worth it.

A question may also be put to the wrong person: "What did Bob paint?" when Ann painted.
`subject_conflict` then shows, because the best matches are hers; the score itself hides it, since
it prefers the memories of whoever the query names, and since his words beside hers count as near to
what she said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from plugins.memories import TextFeatures
from plugins.search.neighbours import STORED
from storage.indexes import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    UINT16,
    UINT64,
    in_array,
    kernel,
    out_array,
)

K1, B = 1.2, 0.75
# How far below the best score a result may be. On conversations, chats with an assistant and notes
# `balanced` costs a sixth of a point of recall@10 at most; `strict` costs 4 to 6 points and leaves
# 5 to 7 results of ten.
SCORE_GAPS = {"strict": 0.3, "balanced": 0.65, "all": math.inf}
SEVERAL_GAP = 1.0  # the same of `balanced` where several things are asked for
WINDOW_OWN = 2.0
NEIGHBOUR = 0.5
NEIGHBOUR_WORDS = 0.8
LENGTH_LOG_MAX = 3.5
PERSONS_FULL = (
    1 / 8
)  # a memory of so many first- or second-person words among all its words is wholly personal
NAMES_FULL = 3
SCORE_DIGITS = 5  # what float32 adds up to surely
FEATURE_WORDS = 30  # search terms up to which what a text shows counts in full
WORDS_MET_MIDDLE = 0.55  # more than one of two words that are equally rare
WORDS_MET_SLOPE = 8.0
WORDS_LEAD = 0.08  # by which the words of one memory are clearly nearer than those of the next
SAID = 0.85  # of what is asked, by words in any form, from which a memory says it
CONFLICT_BEST = 3  # matches of each side that are compared
CONFLICT_DECAY = 0.7  # what each of them counts, of the one before
_COUNTS = CONFLICT_DECAY ** np.arange(CONFLICT_BEST)

FEATURES = (
    "words", "nearby", "lexical", "semantic", "exact", "session", "answer", "speaker", "personal",
    "date", "time", "number", "place", "length", "question", "address", "names", "dated",
)  # fmt: skip
_in_order = itemgetter(*FEATURES)
_ROWS = {name: row for row, name in enumerate(FEATURES)}
(
    _WORDS, _NEARBY, _LEXICAL, _SEMANTIC, _EXACT, _SESSION, _ANSWER, _SPEAKER, _PERSONAL, _DATE,
    _TIME, _NUMBER, _PLACE, _LENGTH, _QUESTION, _ADDRESS, _NAMES, _DATED,
) = range(len(FEATURES))  # fmt: skip
SIGNED = ("speaker", "personal")  # from −½ to ½; the others from 0 to 1
NARROW = {
    "nearby": "words",
    "semantic": "exact",
}  # a feature that counts neighbours -> the same without them

_ASKS_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|since "
    r"when|until when)\b",
    re.IGNORECASE,
)
_ASKS_WHERE = re.compile(
    r"^\W*(?:\w+\W+){0,2}where\b|\b(?:which|what) (?:(?!t(?:ook|akes?) )\w+ )?"
    r"(?:cit(?:y|ies)|countr(?:y|ies)|beach(?:es)?|(?:town|village|state|place|region|island|street|"
    r"venue|restaurant|park|area|location|continent|shop|store|museum)s?)\b",
    re.IGNORECASE,
)
_ASKS_COUNT = re.compile(
    r"\b(?:how many|how much|how often|how old|number of|what age)\b", re.IGNORECASE
)
_AUXILIARY = (
    r"(?:am|are|be|been|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|"
    r"will|would)\b"
)
_ASKS_SEVERAL = re.compile(
    rf"\b(?:what|which)\s+(?:(?!{_AUXILIARY})[\w'’]+\s+){{0,2}}"
    rf"(?!{_AUXILIARY}|(?:his|its|this)\b)\w\w+(?<![su'i])s\b"
    rf"|\b(?:what|which|where|who)\s+(?:(?!{_AUXILIARY})[\w'’]+\s+){{0,2}}ha(?:s|ve)\b(?!\s+to\b)"
    r"|\b(?:how many|all|both|each|every|list)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Query:
    """What the query brings.

    idf       (t,) of its distinct terms; `ceiling` is what a memory could reach at most
    average_length  mean terms per memory of the tenant
    """

    idf: np.ndarray
    ceiling: float
    average_length: float
    asks_when: bool = False
    asks_count: bool = False
    asks_where: bool = False


class Features(Mapping[str, np.ndarray]):
    """Name -> (n,) float32, unweighted: rows of one matrix in the order of FEATURES, 0 until they
    are written.
    """

    def __init__(self, count: int):
        self.matrix = np.zeros((len(FEATURES), count), np.float32)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.matrix[_ROWS[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(FEATURES)

    def __len__(self) -> int:
        return len(FEATURES)


@dataclass(frozen=True, slots=True)
class Pool:
    """p memories: the n candidates, then those of their neighbours that are none.

    frequencies (t, p) float32, lengths (p,) uint16, cosines (p,) float32 with the query
    """

    frequencies: np.ndarray
    lengths: np.ndarray
    cosines: np.ndarray


@dataclass(frozen=True, slots=True)
class Columns:
    """n candidates, aligned. `previous` and `following` (int32) index into the pool; −1 where there
    is no neighbour.

    blended   (n,) float32, cosine with the memory's vector + NEIGHBOUR of each neighbour's
    answers   (n,) bool, whether the memory before is a question
    speaker   (n,) float32, 1 when the query names its speaker, −1 when it names another one, else 0
    date      (n,) float32, 0 to 1, how near it happened to a time that the query names
    text_features      (n,) of MEMORY_FEATURES, in its layout
    """

    previous: np.ndarray
    following: np.ndarray
    blended: np.ndarray
    answers: np.ndarray
    speaker: np.ndarray
    date: np.ndarray
    text_features: np.ndarray


def asks_when(query: str) -> bool:
    """Whether the query asks for a time."""
    return _ASKS_WHEN.search(query) is not None


def asks_count(query: str) -> bool:
    """Whether the query asks for a number."""
    return _ASKS_COUNT.search(query) is not None


def asks_where(query: str) -> bool:
    """Whether the query asks for a place."""
    return _ASKS_WHERE.search(query) is not None


def asks_several(query: str) -> bool:
    """Whether the query asks for several things, in English."""
    return _ASKS_SEVERAL.search(query) is not None


def score(found: Features, weights: Mapping[str, float]) -> np.ndarray:
    """The weighted sum of the features, (n,), to SCORE_DIGITS.

    Equal memories have equal scores wherever they stand: each adds up its features in their order.
    """
    scores = np.empty(found.matrix.shape[1], np.float32)
    _score(np.array(_in_order(weights), np.float32), found.matrix, scores)
    return scores


@kernel(in_array(FLOAT32), in_array(FLOAT32, 2), out_array(FLOAT32), reorders=False, brief=True)
def _score(weights, matrix, scores):
    for memory in range(scores.shape[0]):
        scores[memory] = weights[0] * matrix[0, memory]
    for row in range(1, weights.shape[0]):
        for memory in range(scores.shape[0]):
            scores[memory] += weights[row] * matrix[row, memory]
    digits = np.float32(10**SCORE_DIGITS)
    for memory in range(scores.shape[0]):
        scores[memory] = np.rint(scores[memory] * digits) / digits


def reachable(weights: Mapping[str, float]) -> float:
    """What a perfect memory scores; normalised scores are shares of it."""
    return sum(
        max(weight, 0.0) * (0.5 if name in SIGNED else 1.0) for name, weight in weights.items()
    )


def logistic(x: float) -> float:
    """0 to 1, one half at 0."""
    return 0.5 + 0.5 * math.tanh(x / 2)


def rarity_met(pool: Pool, idf: np.ndarray, count: int) -> np.ndarray:
    """(n,) Σ idf, in nats, of the query's words that each of the `count` candidates has itself.

    idf  (t,) of the query's terms
    """
    met = np.zeros(count, np.float32)
    _rarity_met(pool.frequencies, idf, met)
    return met


@kernel(in_array(FLOAT32, 2), in_array(FLOAT32), out_array(FLOAT32), brief=True)
def _rarity_met(frequencies, idf, met):
    for term in range(idf.shape[0]):
        for memory in range(met.shape[0]):
            met[memory] += idf[term] if frequencies[term, memory] > 0 else np.float32(0)


def sure_of_words(met: float) -> float:
    """query_confidence where the model was not taught the query's script, so that nothing but words
    can tell: it passes one half when more than half of what is asked, by rarity, is met.
    """
    return logistic(WORDS_MET_SLOPE * (met - WORDS_MET_MIDDLE))


def near_enough(
    found: Features,
    *,
    near: float,
    words_min: float,
    clear_words_min: float | None,
    date_min: float,
) -> np.ndarray:
    """(n,) bool: which candidates have a word of the query, themselves or beside them in the
    session, or a cosine of `near`, or words that come as near to the query's as words_min, or
    happened as near as date_min to a time that it names; besides, where a number is given, the one
    whose words come nearest, if that near and by WORDS_LEAD more than all others'.
    """
    is_near = np.empty(found.matrix.shape[1], np.bool_)
    leads = clear_words_min is not None
    least = near, words_min, date_min
    _near_enough(found.matrix, *least, leads, clear_words_min or 0.0, is_near)
    return is_near


@kernel(in_array(FLOAT32, 2), FLOAT32, FLOAT32, FLOAT32, BOOL, FLOAT32, out_array(BOOL), brief=True)
def _near_enough(found, near, words_min, date_min, leads, clear_words_min, is_near):
    words = found[_WORDS]
    best = 0
    for memory in range(is_near.shape[0]):
        is_near[memory] = (
            found[_LEXICAL, memory] > 0
            or found[_EXACT, memory] >= near
            or words[memory] >= words_min
            or found[_DATE, memory] >= date_min
        )
        if words[memory] > words[best]:
            best = memory
    if not leads or not is_near.shape[0] or words[best] < clear_words_min:
        return
    follows = words[best] - np.float32(WORDS_LEAD)
    for memory in range(is_near.shape[0]):
        if memory != best and words[memory] > follows:
            return
    is_near[best] = True


def narrowed(weights: Mapping[str, float]) -> dict[str, float]:
    """The same weights with all that neighbours in the session give given to the memory itself."""
    own = dict(weights)
    for wide, narrow in NARROW.items():
        own[narrow] += own[wide]
        own[wide] = 0.0
    return own


def subject_conflict(found: Features, weights: Mapping[str, float], met: np.ndarray) -> float:
    """How much better the named speaker's best memories match than other speakers', judged without
    the preference for the named, and by what each memory says itself.

    Below 0, what is asked of one person fits another better. 0 when the query names nobody, or only
    one side has memories, or the named has said it too: another one may have as well.

    met  (n,) the share of the query's words, by rarity, that each memory has itself
    """
    impartial = score(found, {**narrowed(weights), **dict.fromkeys(SIGNED, 0.0)})
    best = np.zeros((2, CONFLICT_BEST), np.float32)
    counts = np.zeros(3, np.int64)
    _best_of_sides(found.matrix, impartial, met, best, counts)
    theirs, others, said = counts.tolist()
    if not theirs or not others:
        return 0.0
    conflict = _mean(best[0, :theirs]) - _mean(best[1, :others])
    return max(conflict, 0.0) if said else conflict


def _mean(best: np.ndarray) -> float:
    """Of scores, best first, the higher counting more."""
    counts = _COUNTS[: len(best)]
    return float(best @ counts / counts.sum())


@kernel(
    in_array(FLOAT32, 2), in_array(FLOAT32), in_array(FLOAT32), out_array(FLOAT32, 2),
    out_array(INT64), brief=True,
)  # fmt: skip
def _best_of_sides(found, scores, met, best, counts):
    """Fill `best` with the highest scores of those the query names and of the others, and `counts`
    with how many there are of each, and how many of those it names have said it.
    """
    for memory in range(scores.shape[0]):
        speaker = found[_SPEAKER, memory]
        if speaker == 0:
            continue
        side = 0 if speaker > 0 else 1
        if side == 0 and max(found[_WORDS, memory], met[memory]) >= np.float32(SAID):
            counts[2] += 1
        place = counts[side]
        if place == best.shape[1]:
            if scores[memory] <= best[side, place - 1]:
                continue
            place -= 1
        else:
            counts[side] += 1
        while place > 0 and best[side, place - 1] < scores[memory]:
            best[side, place] = best[side, place - 1]
            place -= 1
        best[side, place] = scores[memory]


def idf(documents: int, containing: np.ndarray) -> np.ndarray:
    """ln(1 + (N − df + ½) / (df + ½)); ln(1 + N / ½) for a term in no document."""
    return np.log1p(
        np.where(
            containing > 0, (documents - containing + 0.5) / (containing + 0.5), documents / 0.5
        )
    ).astype(np.float32)


def features(query: Query, pool: Pool, columns: Columns) -> Features:
    """All but `words` and `nearby`, which are late interaction's."""
    found = Features(len(columns.previous))
    measure = query.idf, np.float32(query.average_length), np.float32(max(query.ceiling, 1e-9))
    asked = np.array([query.asks_when, query.asks_count, query.asks_where], np.float32)
    beside = columns.previous, columns.following, columns.blended, columns.answers
    _features(
        pool.frequencies,
        pool.lengths,
        pool.cosines,
        *measure,
        *beside,
        columns.speaker,
        columns.date,
        columns.text_features,
        asked,
        found.matrix,
    )
    return found


@kernel(
    in_array(FLOAT32, 2), in_array(UINT16), in_array(FLOAT32), FLOAT32, FLOAT32,
    in_array(INT32), in_array(INT32), out_array(FLOAT32), out_array(FLOAT32),
)  # fmt: skip
def _match(frequencies, lengths, idf, average_length, ceiling, previous, following, own, windowed):
    """BM25 (Robertson and Zaragoza, 2009) of each memory of the pool, and of the window around each
    candidate, over the ceiling.
    """
    flat, slope = (
        np.float32(K1 * (1 - B)),
        np.float32(K1 * B) / max(average_length, np.float32(1e-9)),
    )
    for memory in range(own.shape[0]):
        norm = flat + slope * lengths[memory]
        total = np.float32(0)
        for term in range(idf.shape[0]):
            total += idf[term] * frequencies[term, memory] / (frequencies[term, memory] + norm)
        own[memory] = np.float32(K1 + 1) * total / ceiling
    for memory in range(windowed.shape[0]):
        before, after = previous[memory], following[memory]
        length = np.float32(WINDOW_OWN) * lengths[memory]
        if before >= 0:
            length += lengths[before]
        if after >= 0:
            length += lengths[after]
        norm = flat + slope * length / np.float32(WINDOW_OWN + 2)
        total = np.float32(0)
        for term in range(idf.shape[0]):
            frequency = np.float32(WINDOW_OWN) * frequencies[term, memory]
            if before >= 0:
                frequency += frequencies[term, before]
            if after >= 0:
                frequency += frequencies[term, after]
            total += idf[term] * frequency / (frequency + norm)
        windowed[memory] = np.float32(K1 + 1) * total / ceiling


@kernel(in_array(UINT64), out_array(FLOAT32))
def _share_best(session, best):
    """Raise each value to the highest of its session, by a hash table of twice as many places."""
    size = 2
    while size < 2 * session.shape[0]:
        size *= 2
    sessions = np.zeros(size, np.uint64)
    tops = np.empty(size, np.float32)
    places = np.empty(session.shape[0], np.int64)
    for i in range(session.shape[0]):
        if session[i] == 0:
            continue
        place = np.int64(session[i] & np.uint64(size - 1))
        while sessions[place] != 0 and sessions[place] != session[i]:
            place = (place + 1) & (size - 1)
        if sessions[place] == 0:
            sessions[place] = session[i]
            tops[place] = best[i]
        else:
            tops[place] = max(tops[place], best[i])
        places[i] = place
    for i in range(session.shape[0]):
        if session[i] != 0:
            best[i] = tops[places[i]]


_IS_DATED, _IS_QUESTION, _HAS_NUMBER = (
    TextFeatures.TIME,
    TextFeatures.QUESTION,
    TextFeatures.NUMBER,
)


@kernel(
    in_array(FLOAT32, 2), in_array(UINT16), in_array(FLOAT32), in_array(FLOAT32), FLOAT32, FLOAT32,
    in_array(INT32), in_array(INT32), in_array(FLOAT32),
    in_array(BOOL), in_array(FLOAT32), in_array(FLOAT32), in_array(STORED),
    in_array(FLOAT32), out_array(FLOAT32, 2), brief=True,
)  # fmt: skip
def _features(
    frequencies,
    lengths,
    cosines,
    idf,
    average_length,
    ceiling,
    previous,
    following,
    blended,
    answers,
    speaker,
    date,
    text_features,
    asked,
    found,
):
    """One call for all rows of `found`: of some thirty each would cost more than what it does.
    asked: (3,) when, how many, where.
    """
    own, none = np.empty(cosines.shape[0], np.float32), np.float32(0)
    session = np.empty(text_features.shape[0], np.uint64)
    _match(
        frequencies,
        lengths,
        idf,
        average_length,
        ceiling,
        previous,
        following,
        own,
        found[_LEXICAL],
    )
    for memory in range(own.shape[0]):
        own[memory] = np.float32(0.5) * (own[memory] + max(cosines[memory], none))
    for memory in range(text_features.shape[0]):
        stored = text_features[memory]
        share = min(
            np.float32(FEATURE_WORDS) / max(np.float32(stored.content_words), np.float32(1)),
            np.float32(1),
        )
        session[memory] = stored.session
        found[_SESSION, memory] = own[memory]
        found[_EXACT, memory] = max(cosines[memory], none)
        found[_SEMANTIC, memory] = max(blended[memory], none)
        found[_ANSWER, memory] = share * own[previous[memory]] if answers[memory] else none
        found[_SPEAKER, memory] = np.float32(0.5) * speaker[memory]
        found[_PERSONAL, memory] = found[_SPEAKER, memory] * min(
            stored.first_person / np.float32(255 * PERSONS_FULL), np.float32(1)
        )
        found[_ADDRESS, memory] = min(
            stored.second_person / np.float32(255 * PERSONS_FULL), np.float32(1)
        )
        found[_NAMES, memory] = share * min(stored.capitals / np.float32(NAMES_FULL), np.float32(1))
        found[_LENGTH, memory] = min(
            np.float32(math.log1p(stored.content_words)) / np.float32(LENGTH_LOG_MAX), np.float32(1)
        )
        found[_DATE, memory] = date[memory]
        found[_DATED, memory] = share * np.float32(stored.flags & _IS_DATED > 0)
        found[_QUESTION, memory] = stored.flags & _IS_QUESTION > 0
        found[_TIME, memory] = asked[0] * found[_DATED, memory]
        found[_NUMBER, memory] = asked[1] * share * np.float32(stored.flags & _HAS_NUMBER > 0)
        found[_PLACE, memory] = asked[2] * found[_NAMES, memory]
    _share_best(session, found[_SESSION])
