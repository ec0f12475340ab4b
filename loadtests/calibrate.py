"""Learn when a search should be believed: python loadtests/calibrate.py [--set PATH]

Asks the questions of a set (loadtests/evidence.py) under each ranking profile and prints settings
that follow from the answers:

    <profile>.confidence_middle, confidence_slope, conflict_weight
        logistic regression of whether a question can be answered on its best score and its conflict
        of subjects. Both sides weigh the same; of the unanswerable, a quarter of the weight is with
        those to the wrong person, who are rarely asked. A small set says little about the weight of
        the conflict, so it is drawn to one that more questions agreed on.
    <profile>.conflict_min
        the conflict that 95 % of the answerable questions stay above
    search.cosine_min
        the cosine that 95 % of the answerable questions reach with their best evidence, unless that
        shares words with them

Each question is asked twice, in a collection of its conversation alone and in one of all
conversations, as real ones are either. Profile ranking_notes gets the same texts without speakers
and sessions. It cannot notice that a question is put to the wrong person, so those questions are
left out there.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Answer, Installation
from loadtests.evidence import SET, Conversation, auroc, read_set
from loadtests.retrieval import ranking_of
from plugins.search import SEARCH_ITEMS_MAX

KEPT = 0.95
WRONG_PERSON_SHARE = 0.25
CONFLICT_WEIGHT_EXPECTED = 2.5
CONFLICT_PULL = 0.01  # loss of one unit squared that conflict_weight moves
CONFIDENCE_CLIP = 1e-6  # confidences come in six digits
PROFILES = {"ranking": {}, "ranking_fast": {"fast": True}, "ranking_notes": {}}
# A confidence that shows what it is made of: its logit is the best score plus the conflict, less
# the middle.
BARE = {"confidence_middle": 1.0, "confidence_slope": 1.0, "conflict_weight": 1.0}


def asked(
    service: Installation, conversations: list[Conversation], profile: str, **search: Any
) -> Iterator[Answer]:
    """Answers in both arrangements, of questions that this profile ranks."""
    withheld = profile == "ranking_notes"
    mine = (
        conversations
        if withheld
        else [conversation for conversation in conversations if conversation.told]
    )
    for apart in (False, True):
        collections = service.fill(mine, apart=apart, withheld=withheld)
        yield from service.ask(mine, collections, **search)


def evidence_of(answers: list[Answer]) -> np.ndarray:
    """(n, 2) best score and conflict (0 or below) of answers under BARE settings."""
    scores = np.array([answer.hits[0]["score"] for answer in answers])
    sure = np.clip([answer.confidence for answer in answers], CONFIDENCE_CLIP, 1 - CONFIDENCE_CLIP)
    conflict = np.log(sure / (1 - sure)) + BARE["confidence_middle"] - scores
    return np.stack([scores, np.minimum(conflict, 0)], axis=1)


def fitted(
    evidence: np.ndarray, answerable: np.ndarray, shares: np.ndarray
) -> tuple[float, float, float]:
    """(middle, slope, conflict weight) of the logistic curve. shares: how much each question
    counts, 1 in total.
    """

    def loss(guess: np.ndarray) -> float:
        middle, slope_log, weight = guess
        logit = math.exp(slope_log) * (evidence @ (1, weight) - middle)
        misfit = shares @ np.logaddexp(0, np.where(answerable, -logit, logit))
        return misfit + CONFLICT_PULL * (weight - CONFLICT_WEIGHT_EXPECTED) ** 2

    start = (float(np.median(evidence[:, 0])), math.log(5), CONFLICT_WEIGHT_EXPECTED)
    middle, slope_log, weight = minimize(
        loss, start, method="Nelder-Mead", options={"maxiter": 5_000, "xatol": 1e-4, "fatol": 1e-8}
    ).x
    return middle, math.exp(slope_log), max(weight, 0.0)


def calibrate(
    service: Installation, conversations: list[Conversation], profile: str
) -> dict[str, float]:
    """Settings of one profile, and the AUROCs that they give."""
    answers = [
        answer
        for answer in asked(service, conversations, profile, **PROFILES[profile])
        if answer.hits
    ]
    if profile == "ranking_notes":
        answers = [answer for answer in answers if answer.question.kind != "wrong_person"]
    kinds = np.array(
        [answer.question.kind if not answer.question.answerable else "" for answer in answers]
    )
    answerable = kinds == ""
    unanswerable = sorted(set(kinds) - {""})
    shares = np.where(answerable, 0.5 / answerable.sum(), 0.0)
    for kind in unanswerable:
        part = (
            1.0
            if len(unanswerable) == 1
            else WRONG_PERSON_SHARE
            if kind == "wrong_person"
            else 1 - WRONG_PERSON_SHARE
        )
        shares[kinds == kind] = 0.5 * part / (kinds == kind).sum()
    evidence = evidence_of(answers)
    middle, slope, weight = fitted(evidence, answerable, shares)
    learned = {"confidence_middle": round(middle, 2), "confidence_slope": round(slope, 1)}
    if profile != "ranking_notes":
        learned |= {
            "conflict_weight": round(weight, 1),
            "conflict_min": round(float(np.quantile(evidence[answerable, 1], 1 - KEPT)), 2),
        }
    sure = evidence @ (1, learned.get("conflict_weight", 0.0))
    return learned | {
        f"AUROC {kind}": round(auroc(list(sure[answerable]), list(sure[kinds == kind])), 3)
        for kind in unanswerable
    }


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
    conversations = read_set(parser.parse_args().set)
    for profile in PROFILES:
        with Installation(
            **{f"{profile}.{name}": value for name, value in BARE.items()}
        ) as service:
            for name, value in calibrate(service, conversations, profile).items():
                print(f"{profile}.{name}: {value}", flush=True)
    with Installation() as service:
        print(f"search.cosine_min: {cosine_min(service, conversations)}")


if __name__ == "__main__":
    main()
