"""Learn when a search should be believed: python loadtests/calibrate.py [--set PATH] [--chats FILE]

Asks questions with and without an answer under each ranking profile, and prints settings that
follow:

    <profile>.confidence_middle, confidence_slope, confidence_rarity, confidence_searched,
    conflict_weight
        logistic regression of whether a question can be answered on what confidence looks at
        (plugins/search/judging.py). Each development set weighs the same, and in it both sides do;
        of its unanswerable questions, a quarter of the weight is with those to the wrong person,
        who are rarely asked. A small set says little about the weight of the conflict, so it is
        drawn to one that more questions agreed on.
    search.cosine_min
        the cosine that 95 % of the answerable questions reach with their best evidence, unless that
        shares words with them

The development sets are the project's own conversations (--set), each question asked in a
collection of its conversation alone and in one of all, and, with --chats, chats with an assistant
(loadtests/chats.py), in parts of three sizes. Profile ranking_notes gets the same texts without
speakers and sessions. It cannot notice that a question is put to the wrong person, so those
questions are left out there. Without --chats all is learned from a few hundred memories, and says
little about thousands.

The protocol is blind. Each set has two folds, by conversation or history, and all figures are of
questions asked of weights that the other folds taught: AUROC by set and kind, its difference from
the score and the conflict alone with a paired 95 % bootstrap interval, and a table of how often
questions of a given confidence can be answered. What a release is judged by is none of the sets.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Installation
from loadtests.chats import SIZES, Chats, parts
from loadtests.evidence import SET, Conversation, auroc, read_set
from loadtests.retrieval import ranking_of
from plugins.search import SEARCH_ITEMS_MAX
from plugins.search.judging import SEARCHED_MIN

KEPT = 0.95
WRONG_PERSON_SHARE = 0.25
CONFLICT_WEIGHT_EXPECTED = 4.0
CONFLICT_PULL = 0.01  # loss of one unit squared that conflict_weight moves
CONFIDENCE_CLIP = 1e-6  # confidences come in six digits
BOOTSTRAPS, SEED = 1_000, 1
BINS = 10
EMBEDDING_SECONDS_MAX = 300
PROFILES = {"ranking": {}, "ranking_fast": {"fast": True}, "ranking_notes": {}}
# Settings under which a confidence shows one of the things it is made of: its logit is the best
# score less the middle, and the named one on top.
BARE = {
    "confidence_middle": 1.0,
    "confidence_slope": 1.0,
    "confidence_rarity": 0.0,
    "confidence_searched": 0.0,
    "conflict_weight": 0.0,
}
SHOWN = {"score": {}, "conflict": {"conflict_weight": 1.0}, "rarity": {"confidence_rarity": 0.1}}
AS_SCORE = 1e-3  # a logit further from the score's is of a question that words alone decide

Ask = Callable[[], Iterator[tuple["Case", dict[str, Any]]]]


@dataclass(frozen=True)
class Case:
    """One question of a development set. kind: "" when it can be answered."""

    set: str
    fold: int
    kind: str
    searched: int


@dataclass(frozen=True)
class Seen:
    """What confidence looks at, of a question. conflict: 0 or below; searched: ln."""

    case: Case
    score: float
    conflict: float
    rarity: float
    searched: float


def own(
    service: Installation,
    conversations: list[Conversation],
    collections: list[dict[str, str]],
    search: dict[str, Any],
) -> Iterator[tuple[Case, dict[str, Any]]]:
    """The project's own questions in both arrangements."""
    everything = sum(len(conversation.turns) for conversation in conversations)
    for apart, named in enumerate(collections):
        for number, conversation in enumerate(conversations):
            searched = len(conversation.turns) if apart else everything
            for question in conversation.questions:
                kind = "" if question.answerable else question.kind
                body = {"query": question.text, "collection_id": named[conversation.name]}
                case = Case("own", number % 2, kind, searched)
                yield case, service.post("/v1/search", body | search)


def strange(chats: Chats, search: dict[str, Any]) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Questions of the chats in parts of each size."""
    for name, size in SIZES.items():
        for part in parts(chats.halves, size):
            asked = [(history, "") for history in part.histories if history.answerable]
            asked += [(history, "foreign") for history in part.strange]
            for history, kind in asked:
                case = Case(f"chats, {name}", part.fold, kind, chats.searched(part))
                yield case, chats.ask(part, history, **search)


def seen(service: Installation, profile: str, asks: list[Ask]) -> list[Seen]:
    """All questions, asked once for each thing that confidence looks at; without those that have no
    result, or whose language lets words decide.
    """
    told: list[list[tuple[Case, dict[str, Any]]]] = []
    for shown in SHOWN.values():
        bare = {f"{profile}.{name}": value for name, value in (BARE | shown).items()}
        service.configure({"embedder.timeout_seconds": EMBEDDING_SECONDS_MAX, **bare})
        told.append([answer for ask in asks for answer in ask()])
    found = []
    for (case, plain), (_, conflict), (_, rarity) in zip(*told, strict=True):
        if not plain["results"] or (profile == "ranking_notes" and case.kind == "wrong_person"):
            continue
        score = plain["results"][0]["score"]
        base, with_conflict, with_rarity = map(_logit, (plain, conflict, rarity))
        if abs(base + BARE["confidence_middle"] - score) < AS_SCORE:
            rarity_nats = (with_rarity - base) / SHOWN["rarity"]["confidence_rarity"]
            searched = math.log(max(case.searched, SEARCHED_MIN))
            found.append(Seen(case, score, min(with_conflict - base, 0.0), rarity_nats, searched))
    return found


def _logit(reply: dict[str, Any]) -> float:
    sure = min(max(reply["query_confidence"], CONFIDENCE_CLIP), 1 - CONFIDENCE_CLIP)
    return math.log(sure / (1 - sure))


# --- learning -------------------------------------------------------------------------------------


def shares(found: list[Seen]) -> np.ndarray:
    """How much each question counts: each set 1, half of it for either side."""
    kinds: dict[str, dict[str, int]] = {}
    for one in found:
        counts = kinds.setdefault(one.case.set, {})
        counts[one.case.kind] = counts.get(one.case.kind, 0) + 1

    def share(case: Case) -> float:
        counts = kinds[case.set]
        part = 1.0
        if case.kind and "wrong_person" in counts and len(counts) > 2:
            is_wrong = case.kind == "wrong_person"
            part = WRONG_PERSON_SHARE if is_wrong else 1 - WRONG_PERSON_SHARE
        return 0.5 * part / counts[case.kind]

    return np.array([share(one.case) for one in found]) / len(kinds)


def matrix(found: list[Seen]) -> np.ndarray:
    """(n, 4) score, conflict, rarity, −searched."""
    return np.array([[one.score, one.conflict, one.rarity, -one.searched] for one in found])


def learned(found: list[Seen], *, plain: bool = False) -> np.ndarray:
    """(middle, slope, weight of conflict, of rarity, of searched); plain: the last two are 0."""
    evidence, weights = matrix(found), shares(found)
    sign = np.array([1.0 if one.case.kind else -1.0 for one in found])

    def whole(guess: np.ndarray) -> np.ndarray:
        middle, slope_log, conflict, *rest = guess
        return np.array([middle, math.exp(slope_log), conflict, *(rest or (0.0, 0.0))])

    def loss(guess: np.ndarray) -> float:
        misfit = weights @ np.logaddexp(0, sign * logits(evidence, whole(guess)))
        return misfit + CONFLICT_PULL * (guess[2] - CONFLICT_WEIGHT_EXPECTED) ** 2

    start = [float(np.median(evidence[:, 0])), math.log(4), CONFLICT_WEIGHT_EXPECTED]
    start += [] if plain else [0.02, 0.1]
    guess = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=[(None, None)] * 2 + [(0, None)] * (len(start) - 2),  # no weight of evidence against
        options={"maxiter": 10_000, "xatol": 1e-5, "fatol": 1e-9},
    ).x
    return whole(guess)


def logits(evidence: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n,) what the logistic curve is taken of."""
    return weights[1] * (evidence @ np.array([1.0, *weights[2:]]) - weights[0])


def twofold(found: list[Seen], *, plain: bool = False) -> np.ndarray:
    """(n,) logits of each question by weights that the other folds taught."""
    folds = np.array([one.case.fold for one in found])
    judged = np.zeros(len(found))
    for fold in (0, 1):
        weights = learned([one for one in found if one.case.fold != fold], plain=plain)
        judged[folds == fold] = logits(matrix(found), weights)[folds == fold]
    return judged


# --- figures --------------------------------------------------------------------------------------


def report(found: list[Seen]) -> Iterator[str]:
    """Lines of two tables, of two-fold figures."""
    sure, plain = twofold(found), twofold(found, plain=True)
    names = np.array([one.case.set for one in found])
    kinds = np.array([one.case.kind for one in found])
    yield "| set | without an answer | n | AUROC | score and conflict alone | difference |"
    yield "|---" * 6 + "|"
    for name in dict.fromkeys(names.tolist()):
        for kind in sorted(set(kinds[names == name]) - {""}):
            yes, no = ((names == name) & (kinds == each) for each in ("", kind))
            both = [auroc(list(by[yes]), list(by[no])) for by in (sure, plain)]
            low, high = difference((sure, plain), np.flatnonzero(yes), np.flatnonzero(no))
            counts = f"{yes.sum()} and {no.sum()}"
            figures = f"{both[0]:.3f} | {both[1]:.3f} | {both[0] - both[1]:+.3f}"
            yield f"| {name} | {kind} | {counts} | {figures} [{low:+.3f}, {high:+.3f}] |"
    yield ""
    yield "| confidence | questions | mean confidence | can be answered |"
    yield "|---" * 4 + "|"
    asked = kinds != "wrong_person"
    weights, confidence = shares(found), 1 / (1 + np.exp(-sure))
    for low in np.arange(BINS) / BINS:
        there = asked & (confidence >= low) & (confidence < low + 1 / BINS)
        if there.any():
            part = weights[there] / weights[there].sum()
            told = f"{part @ confidence[there]:.2f} | {part @ (kinds[there] == ''):.2f}"
            yield f"| {low:.1f} to {low + 1 / BINS:.1f} | {there.sum()} | {told} |"


def difference(
    by: tuple[np.ndarray, np.ndarray], yes: np.ndarray, no: np.ndarray
) -> tuple[float, float]:
    """95 % bootstrap interval of the difference of two AUROCs on the same questions."""
    above = [(one[yes][:, None] > one[no]) + 0.5 * (one[yes][:, None] == one[no]) for one in by]
    gain, chance = above[0] - above[1], np.random.default_rng(SEED)
    drawn = []
    for _ in range(BOOTSTRAPS):
        rows, columns = (chance.integers(0, size, size) for size in gain.shape)
        drawn.append(gain[rows][:, columns].mean())
    return float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def calibrate(profile: str, conversations: list[Conversation], chats: Path | None) -> Iterator[str]:
    """Figures and settings of one profile."""
    withheld = profile == "ranking_notes"
    mine = [one for one in conversations if withheld or one.told]
    with Installation(**{"embedder.timeout_seconds": EMBEDDING_SECONDS_MAX}) as service:
        filled = [service.fill(mine, apart=apart, withheld=withheld) for apart in (False, True)]
        asks: list[Ask] = [lambda: own(service, mine, filled, PROFILES[profile])]
        if chats is not None:
            stored = Chats(service, chats, withheld=withheld)
            asks.append(lambda: strange(stored, PROFILES[profile]))
        found = seen(service, profile, asks)
    yield from report(found)
    yield ""
    middle, slope, conflict, rarity, searched = learned(found)
    yield f"{profile}.confidence_middle: {middle:.3f}"
    yield f"{profile}.confidence_slope: {slope:.1f}"
    yield f"{profile}.confidence_rarity: {rarity:.3f}"
    yield f"{profile}.confidence_searched: {searched:.3f}"
    if not withheld:
        yield f"{profile}.conflict_weight: {conflict:.1f}"


def cosine_min(service: Installation, conversations: list[Conversation]) -> float:
    """The cosine that most answerable questions reach with their best evidence, unless that shares
    words with them and stands anyway.
    """
    weight = ranking_of("ranking_fast").exact
    reached = []
    for apart in (False, True):
        collections = service.fill(conversations, apart=apart)
        shown = {
            "fast": True,
            "explain": True,
            "include_low_confidence": True,
            "limit": SEARCH_ITEMS_MAX,
        }
        for answer in service.ask(conversations, collections, **shown):
            if answer.question.answerable:
                told = [
                    hit["explanation"]
                    for hit in answer.hits
                    if hit["metadata"]["turn"] in answer.question.evidence
                ]
                reached.append(
                    max(
                        (1.0 if why["lexical"] else why["exact"] / weight for why in told),
                        default=0.0,
                    )
                )
    return round(float(np.quantile(reached, 1 - KEPT)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--set", type=Path, default=SET, help="a directory or file of conversations"
    )
    parser.add_argument("--chats", type=Path, help="histories in the format of LongMemEval")
    options = parser.parse_args()
    conversations = read_set(options.set)
    for profile in PROFILES:
        print(f"{profile}\n", flush=True)
        for line in calibrate(profile, conversations, options.chats):
            print(line, flush=True)
        print(flush=True)
    with Installation() as service:
        print(f"search.cosine_min: {cosine_min(service, conversations)}")


if __name__ == "__main__":
    main()
