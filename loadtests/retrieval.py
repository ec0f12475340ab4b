"""How well searches find evidence, and what each feature gives: python loadtests/retrieval.py
[--base-url URL --key KEY] [--json FILE]

Fills a service with the conversations of retrieval/ (loadtests/evidence.py explains the format),
asks all their questions and prints, by kind of question, the share of the evidence among the first
5, 10 and 20 results and the reciprocal rank of the first. Questions without an answer show whether
`query_confidence` knows: AUROC is how often an answerable question gets the higher one.

The ablation runs the same questions again without one group of features each time: the weights of
the group are 0 in every profile. Without the window, what its neighbours gave goes to the memory
itself; BM25 keeps its window, which is no setting. A running service cannot be given other
settings, so its table has only what a request chooses.

The set is small (some 230 questions that have an answer): a point is within chance, three hold. It
is a guard against getting worse, not a claim about other people's conversations.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Answer, Installation, Remote
from loadtests.evidence import ANSWERABLE, SET, UNANSWERABLE, Conversation, auroc, mean, read_set
from plugins.search import RankingSettings
from plugins.search.ranking import NARROW, narrowed
from serve_app import Settings

PROFILES = ("ranking", "ranking_notes", "ranking_fast")
WITHOUT = {
    "late interaction": ("words", "nearby"),
    "session": ("session", "answer"),
    "speaker": ("speaker", "personal"),
    "dates": ("date", "time", "dated"),
    "semantic": ("semantic", "exact"),
    "lexical": ("lexical",),
    "other cues": ("number", "place", "length", "question", "address", "names"),
}
REQUESTS = {
    "full": {},
    "fast": {"fast": True},
    "bm25 only": {"search_type": "bm25"},
    "vector only": {"search_type": "vector"},
}


def silenced(features: tuple[str, ...]) -> dict[str, float]:
    """Settings in which these features have no weight."""
    return {f"{profile}.{feature}": 0.0 for profile in PROFILES for feature in features}


def without_window() -> dict[str, float]:
    """Settings in which the neighbours in the session have no weight, and the memory itself has
    theirs.
    """
    own = {profile: narrowed(ranking_of(profile).weights) for profile in PROFILES}
    return {
        f"{profile}.{feature}": own[profile][feature]
        for profile in PROFILES
        for feature in (*NARROW, *NARROW.values())
    }


def ranking_of(profile: str) -> RankingSettings:
    """The defaults of a profile."""
    return getattr(Settings.load(), profile)


def by_kind(answers: list[Answer]) -> dict[str, dict[str, float]]:
    """Kind -> number of questions and figures; `all` of the answerable ones together."""
    kinds = {
        kind: [answer for answer in answers if answer.question.kind == kind] for kind in ANSWERABLE
    }
    kinds["all"] = [answer for answer in answers if answer.question.answerable]
    return {
        kind: {"n": len(asked), **mean(answer.figures for answer in asked)}
        for kind, asked in kinds.items()
        if asked
    }


def abstention(answers: list[Answer]) -> dict[str, float]:
    """AUROC of the confidence for each kind without an answer, and how often abstaining was
    recommended for whom.
    """
    answerable = [answer for answer in answers if answer.question.answerable]
    told = {"abstained answerable": fmean(answer.abstained for answer in answerable)}
    for kind in UNANSWERABLE:
        asked = [answer for answer in answers if answer.question.kind == kind]
        if asked:
            told[f"AUROC {kind}"] = auroc(
                [answer.confidence for answer in answerable],
                [answer.confidence for answer in asked],
            )
            told[f"abstained {kind}"] = fmean(answer.abstained for answer in asked)
    return told


def row(answers: list[Answer]) -> dict[str, float]:
    """One line of the ablation table."""
    return by_kind(answers)["all"] | abstention(answers)


def ablate(
    service: Installation, conversations: list[Conversation], collections: Mapping[str, str]
) -> dict[str, dict[str, float]]:
    """What is left out -> its line."""
    rows = {}
    for name, changed in {
        **{name: silenced(group) for name, group in WITHOUT.items()},
        "window": without_window(),
    }.items():
        service.configure(changed)
        rows[f"without {name}"] = row(service.ask(conversations, collections))
    return rows


def withheld(conversations: list[Conversation]) -> dict[str, float]:
    """The line of a service that is told neither speakers nor sessions, and so ranks everything as
    notes.
    """
    with Installation() as service:
        return row(service.ask(conversations, service.fill(conversations, withheld=True)))


def measure(service: Remote, conversations: list[Conversation], *, apart: bool) -> dict[str, Any]:
    """Everything this script reports."""
    collections = service.fill(conversations, apart=apart)
    asked = {
        name: service.ask(conversations, collections, **request)
        for name, request in REQUESTS.items()
    }
    rows = {name: row(answers) for name, answers in asked.items()}
    if isinstance(service, Installation):
        rows |= ablate(service, conversations, collections) | {
            "no speakers or sessions": withheld(conversations)
        }
    return {
        "kinds": by_kind(asked["full"]),
        "abstention": abstention(asked["full"]),
        "ablation": rows,
    }


def shown(title: str, rows: Mapping[str, Mapping[str, float]], columns: tuple[str, ...]) -> str:
    """A Markdown table of shares in percent and other figures as they are."""
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, figures in rows.items():
        cells = [_cell(column, figures.get(column)) for column in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return ""
    if column == "n":
        return str(value)
    return (
        f"{100 * value:.1f}"
        if column.startswith(("R@", "abstained"))
        else f"{value:.3f}".lstrip("0")
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base-url", help="a running service; without it, one is made in this process"
    )
    parser.add_argument("--key", help="API key or access token for --base-url")
    parser.add_argument(
        "--set", type=Path, default=SET, help="a directory or file of conversations"
    )
    parser.add_argument(
        "--apart",
        action="store_true",
        help="a collection for each conversation, instead of one for all",
    )
    parser.add_argument("--json", type=Path, help="also write every figure to this file")
    options = parser.parse_args()
    conversations = read_set(options.set)
    begun = time.perf_counter()
    with (
        Remote.at(options.base_url, options.key or "")
        if options.base_url
        else Installation() as service
    ):
        told = measure(service, conversations, apart=options.apart)
    turns = sum(len(conversation.turns) for conversation in conversations)
    found = ("R@5", "R@10", "R@20", "MRR")
    doubts = tuple(f"{what} {kind}" for what in ("AUROC", "abstained") for kind in UNANSWERABLE)
    print(
        f"{len(conversations)} conversations, {turns} memories, {time.perf_counter() - begun:.0f} "
        "s\n"
    )
    print(shown("questions", told["kinds"], ("n", *found)), end="\n\n")
    print(
        shown("no answer", {"full": told["abstention"]}, (*doubts, "abstained answerable")),
        end="\n\n",
    )
    print(shown("ablation", told["ablation"], (*found, *doubts[: len(UNANSWERABLE)])))
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
