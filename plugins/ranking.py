"""How well a memory answers a query: pure functions over aligned NumPy columns, no storage and no I/O.

A search first collects candidates from its channels. Their neighbours in the same session join them in one *pool*, because
evidence often stands next to the words that find it: the answer to a question, the second half of a thought. Every feature is
an absolute number, comparable between queries, and the score is their weighted sum. Absolute additive scores beat rank fusion
wherever one channel is weak, and they say how good the best match is, not only which one it is.

    lexical      BM25 over a window: twice the memory, once each neighbour; divided by what the query could reach at most
    semantic     cosine with the memory's vector blended with half of each neighbour's
    exact        cosine with the memory's own vector
    session      the best half-and-half of cosine and BM25 among the candidates of the same session
    speaker      the query names this memory's speaker (+½), or only another one (−½)
    time         the query asks when, and the memory says when
    number       the query asks how many, and the memory has a number
    length       log of the search terms: a longer memory carries more
    question     the memory is itself a question, so it asks more than it tells

A feature without input (no session, no speaker) is 0, so plain notes lose nothing. Weights are settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

K1, B = 1.2, 0.75
WINDOW_OWN = 2.0
NEIGHBOUR = 0.5
LENGTH_LOG_MAX = 3.5

FEATURES = ("lexical", "semantic", "exact", "session", "speaker", "time", "number", "length", "question")

_ASKS_WHEN = re.compile(
    r"\b(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|since when|until when)\b", re.IGNORECASE
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


@dataclass(frozen=True, slots=True)
class Pool:
    """p memories: the candidates and their neighbours. frequencies (t, p), lengths (p,), vectors (p, d) unit rows or zeros."""

    frequencies: np.ndarray
    lengths: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True, slots=True)
class Columns:
    """n candidates, aligned. `at`, `previous` and `following` index into the pool; −1 where there is no neighbour.

    session   (n,) a number per session, −1 for none
    speaker   (n,) 1 when the query names its speaker, −1 when it names another one, else 0
    """

    at: np.ndarray
    previous: np.ndarray
    following: np.ndarray
    session: np.ndarray
    speaker: np.ndarray
    is_question: np.ndarray
    has_time: np.ndarray
    has_number: np.ndarray
    content_words: np.ndarray


def asks_when(query: str) -> bool:
    """Whether the query asks for a time."""
    return _ASKS_WHEN.search(query) is not None


def asks_count(query: str) -> bool:
    """Whether the query asks for a number."""
    return _ASKS_COUNT.search(query) is not None


def score(found: Mapping[str, np.ndarray], weights: Mapping[str, float]) -> np.ndarray:
    """The weighted sum of the features, (n,)."""
    return np.sum([weights[name] * found[name] for name in FEATURES], axis=0)


def reachable(weights: Mapping[str, float]) -> float:
    """What a perfect memory scores; normalised scores are shares of it."""
    return sum(max(weight, 0.0) * (0.5 if name == "speaker" else 1.0) for name, weight in weights.items())


def bm25(frequencies: np.ndarray, lengths: np.ndarray, idf: np.ndarray, average_length: float) -> np.ndarray:
    """(t, n) term frequencies, (n,) lengths -> (n,) BM25 (Robertson and Zaragoza, 2009)."""
    norm = K1 * (1 - B + B * lengths / max(average_length, 1e-9))
    return idf @ (frequencies * (K1 + 1) / (frequencies + norm))


def features(query: Query, pool: Pool, columns: Columns) -> dict[str, np.ndarray]:
    """name -> (n,) float32, unweighted."""
    n = len(columns.at)
    found = {name: np.zeros(n, dtype=np.float32) for name in FEATURES}
    own = np.zeros(n, dtype=np.float32)
    if len(query.idf):
        ceiling = max(query.ceiling, 1e-9)
        own = bm25(pool.frequencies[:, columns.at], pool.lengths[columns.at], query.idf, query.average_length) / ceiling
        windowed, lengths = _window(pool, columns)
        found["lexical"] = bm25(windowed, lengths, query.idf, query.average_length * (WINDOW_OWN + 2)) / ceiling
    if query.vector is not None:
        found["exact"] = np.maximum(pool.vectors[columns.at] @ query.vector, 0)
        found["semantic"] = np.maximum(_blended_cosine(query.vector, pool.vectors, columns), 0)
    found["session"] = _best_of_session(0.5 * found["exact"] + 0.5 * own, columns.session)
    found["speaker"] = 0.5 * columns.speaker
    if query.asks_when:
        found["time"] = columns.has_time.astype(np.float32)
    if query.asks_count:
        found["number"] = columns.has_number.astype(np.float32)
    found["length"] = np.minimum(np.log1p(columns.content_words), LENGTH_LOG_MAX) / LENGTH_LOG_MAX
    found["question"] = columns.is_question.astype(np.float32)
    return found


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
