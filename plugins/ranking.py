"""How well a memory answers a query: pure functions over aligned NumPy columns, no storage and no I/O.

A search first collects candidates from its channels. Their neighbours in the same session join them in one *pool*, because
evidence often stands next to the words that find it: the answer to a question, the second half of a thought. Every feature is
an absolute number, comparable between queries, and the score is their weighted sum. Absolute additive scores beat rank fusion
wherever one channel is weak, and they say how good the best match is, not only which one it is.

    lexical      BM25 over a window: twice the memory, once each neighbour; divided by what the query could reach at most
    semantic     cosine with the memory's vector blended with half of each neighbour's
    exact        cosine with the memory's own vector
    session      the best *own match*, half cosine and half BM25, among the candidates of the same session
    answer       the own match of the memory before, when that is a question: what follows it may answer it
    speaker      the query names this memory's speaker (+½), or only another one (−½)
    personal     the same, by how much the memory speaks in the first person: who says "I" speaks of themselves
    date         how near the memory happened to a time that the query names (plugins/query_dates.py)
    time         the query asks when, and the memory says when
    number       the query asks how many, and the memory has a number
    place        the query asks where, and the memory has names in it
    length       log of the search terms: a longer memory carries more
    question     the memory is itself a question, so it asks more than it tells
    address      the memory speaks to somebody more than it tells: "you", "your"
    names        the memory has capitalised names inside its sentences
    dated        the memory has a time expression, whatever is asked

A feature without input (no session, no speaker) is 0, so plain notes lose nothing. Weights are settings.

A question may also be put to the wrong person: "What did Bob paint?" when Ann painted. `subject_conflict` then shows, because the
best matches are hers; the score itself hides it, since it prefers the memories of whoever the query names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

K1, B = 1.2, 0.75
WINDOW_OWN = 2.0
NEIGHBOUR = 0.5
LENGTH_LOG_MAX = 3.5
PERSONS_FULL = 1 / 8  # a memory of so many first- or second-person words among all its words is wholly personal
NAMES_FULL = 3
CONFLICT_BEST = 3  # matches of each side whose mean is compared

FEATURES = (
    "lexical", "semantic", "exact", "session", "answer", "speaker", "personal", "date", "time", "number", "place", "length", "question",
    "address", "names", "dated",
)  # fmt: skip
SIGNED = ("speaker", "personal")  # from −½ to ½; the others from 0 to 1

_ASKS_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|since when|until when)\b", re.IGNORECASE
)
_ASKS_WHERE = re.compile(
    r"^\W*(?:\w+\W+){0,2}where\b|\b(?:which|what) (?:city|town|village|country|state|place|region|island|street|venue|restaurant|park)\b",
    re.IGNORECASE,
)
_ASKS_COUNT = re.compile(r"\b(?:how many|how much|how often|how old|number of|what age)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """What the query brings.

    idf       (t,) of its distinct terms; `ceiling` is what a memory could reach at most
    vector    (d,) unit, or None when there is none (lexical only)
    average_length  mean terms per memory of the tenant
    """

    idf: np.ndarray
    ceiling: float
    average_length: float
    vector: np.ndarray | None
    asks_when: bool = False
    asks_count: bool = False
    asks_where: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """p memories: the candidates and their neighbours. frequencies (t, p), lengths (p,), vectors (p, d) unit rows or zeros."""

    frequencies: np.ndarray
    lengths: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True, slots=True)
class Columns:
    """n candidates, aligned. `at`, `previous` and `following` index into the pool; −1 where there is no neighbour.

    answers   (n,) whether the memory before is a question
    session   (n,) a number per session, −1 for none
    speaker   (n,) 1 when the query names its speaker, −1 when it names another one, else 0
    date      (n,) 0 to 1, how near it happened to a time that the query names
    first_person, second_person   (n,) 0 to 1, share of such words among all words
    names     (n,) capitalised words inside sentences
    """

    at: np.ndarray
    previous: np.ndarray
    following: np.ndarray
    answers: np.ndarray
    session: np.ndarray
    speaker: np.ndarray
    is_question: np.ndarray
    has_time: np.ndarray
    has_number: np.ndarray
    content_words: np.ndarray
    date: np.ndarray
    first_person: np.ndarray
    second_person: np.ndarray
    names: np.ndarray


def asks_when(query: str) -> bool:
    """Whether the query asks for a time."""
    return _ASKS_WHEN.search(query) is not None


def asks_count(query: str) -> bool:
    """Whether the query asks for a number."""
    return _ASKS_COUNT.search(query) is not None


def asks_where(query: str) -> bool:
    """Whether the query asks for a place."""
    return _ASKS_WHERE.search(query) is not None


def score(found: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray:
    """The weighted sum of the features, (n,)."""
    return np.sum([weights[name] * found[name] for name in FEATURES], axis=0)


def reachable(weights: Mapping[str, float]) -> float:
    """What a perfect memory scores; normalised scores are shares of it."""
    return sum(max(weight, 0.0) * (0.5 if name in SIGNED else 1.0) for name, weight in weights.items())


def logistic(x: float) -> float:
    """0 to 1, one half at 0."""
    return 0.5 + 0.5 * math.tanh(x / 2)


def subject_conflict(found: Mapping[str, np.ndarray], scores: np.ndarray, weights: Mapping[str, float]) -> float:
    """How much better the named speaker's best memories match than other speakers', by scores without the preference for the named.

    Below 0, what is asked of one person fits another better. 0 when the query names nobody, or only one side has memories.
    """
    named = found["speaker"]
    if not (named > 0).any() or not (named < 0).any():
        return 0.0
    impartial = scores - sum(weights[name] * found[name] for name in SIGNED)
    theirs, others = (np.sort(impartial[side])[-CONFLICT_BEST:] for side in (named > 0, named < 0))
    return float(theirs.mean() - others.mean())


def idf(documents: int, containing: np.ndarray) -> np.ndarray:
    """ln(1 + (N − df + ½) / (df + ½)); ln(1 + N / ½) for a term in no document."""
    return np.log1p(np.where(containing > 0, (documents - containing + 0.5) / (containing + 0.5), documents / 0.5)).astype(np.float32)


def bm25(frequencies: np.ndarray, lengths: np.ndarray, idf: np.ndarray, average_length: float) -> np.ndarray:
    """(t, n) term frequencies, (n,) lengths -> (n,) BM25 (Robertson and Zaragoza, 2009)."""
    norm = K1 * (1 - B + B * lengths / max(average_length, 1e-9))
    return idf @ (frequencies * (K1 + 1) / (frequencies + norm))


def features(query: Query, pool: Pool, columns: Columns) -> dict[str, np.ndarray]:
    """name -> (n,) float32, unweighted."""
    nothing = np.zeros(len(columns.at), dtype=np.float32)
    found = dict.fromkeys(FEATURES, nothing)
    words = np.zeros(len(pool.lengths), dtype=np.float32)
    cosine = np.zeros(len(pool.lengths), dtype=np.float32)
    if len(query.idf):
        ceiling = max(query.ceiling, 1e-9)
        words = bm25(pool.frequencies, pool.lengths, query.idf, query.average_length) / ceiling
        windowed, lengths = _window(pool, columns)
        found["lexical"] = bm25(windowed, lengths, query.idf, query.average_length * (WINDOW_OWN + 2)) / ceiling
    if query.vector is not None:
        cosine = np.maximum(pool.vectors @ query.vector, 0)
        found["exact"] = cosine[columns.at]
        found["semantic"] = np.maximum(_blended_cosine(query.vector, pool.vectors, columns), 0)
    own = 0.5 * cosine + 0.5 * words
    found["session"] = _best_of_session(own[columns.at], columns.session)
    found["answer"] = np.where(columns.answers, own[columns.previous], 0)
    _add_cues(found, query, columns)
    return {name: values.astype(np.float32, copy=False) for name, values in found.items()}


def _add_cues(found: dict[str, np.ndarray], query: Query, columns: Columns) -> None:
    """The features that come from the memory alone."""
    names = np.minimum(columns.names / NAMES_FULL, 1)
    found["speaker"] = 0.5 * columns.speaker
    found["personal"] = found["speaker"] * np.minimum(columns.first_person / PERSONS_FULL, 1)
    found["address"] = np.minimum(columns.second_person / PERSONS_FULL, 1)
    found["date"] = columns.date
    found["dated"] = columns.has_time
    found["names"] = names
    for asked, name, values in (
        (query.asks_when, "time", columns.has_time),
        (query.asks_count, "number", columns.has_number),
        (query.asks_where, "place", names),
    ):
        if asked:
            found[name] = values
    found["length"] = np.minimum(np.log1p(columns.content_words), LENGTH_LOG_MAX) / LENGTH_LOG_MAX
    found["question"] = columns.is_question


def _window(pool: Pool, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Term frequencies and lengths of each candidate's window."""
    frequencies = WINDOW_OWN * pool.frequencies[:, columns.at]
    lengths = WINDOW_OWN * pool.lengths[columns.at].astype(np.float32)
    for side in (columns.previous, columns.following):
        present = side >= 0
        frequencies[:, present] += pool.frequencies[:, side[present]]
        lengths[present] += pool.lengths[side[present]]
    return frequencies, lengths


def _blended_cosine(vector: np.ndarray, vectors: np.ndarray, columns: Columns) -> np.ndarray:
    blend = vectors[columns.at]
    for side in (columns.previous, columns.following):
        present = side >= 0
        blend[present] += NEIGHBOUR * vectors[side[present]]
    norms = np.linalg.norm(blend, axis=1)
    return (blend @ vector) / np.maximum(norms, 1e-9)


def _best_of_session(own: np.ndarray, session: np.ndarray) -> np.ndarray:
    """Each candidate's best session mate (itself included); a candidate without a session has only itself."""
    best = own.astype(np.float32)
    grouped = session >= 0
    if grouped.any():
        top = np.full(int(session.max()) + 1, -np.inf, dtype=np.float32)
        np.maximum.at(top, session[grouped], best[grouped])
        best[grouped] = top[session[grouped]]
    return best
