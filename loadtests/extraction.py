"""How well facts are found in conversations: precision and recall on loadtests/facts, by the rules
or by any language model.

    .venv/bin/python loadtests/extraction.py .venv/bin/python loadtests/extraction.py --llm-base-url
    http://127.0.0.1:11434/v1 --llm-model qwen3 --verbose

tuned.json is what the rules were made with; held_out.json was written before they met it, and is
reported apart. A fact found counts when subject, predicate and polarity are those expected, one
object holds the other, and, where the expectation names a month or year, the claim begins in it.
Whatever else is found counts against precision.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Engine, Fact, Said, key_words
from plugins.ingestion.language_model import ModelEngine
from runtime.inference import MiniLmEmbedder
from runtime.inference.openai_chat import OpenAiLanguageModel
from runtime.timestamps import iso, parse

FACTS = Path(__file__).parent / "facts"
SETS = ("tuned", "held_out")


@dataclass
class Score:
    """Counts over conversations; missed and wrong hold lines for people."""

    expected: int = 0
    found: int = 0
    right: int = 0
    degraded: int = 0  # chunks that the rules read because the model failed
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.expected if self.expected else 1.0


def said_in(conversation: dict[str, Any]) -> list[Said]:
    """The messages; an assistant's are nobody's own words."""
    return [
        Said(speaker, content, told=speaker != "assistant")
        for speaker, content in conversation["messages"]
    ]


def _day(at: int | None) -> str | None:
    return None if at is None else iso(at)[:10]


def matches(expected: list[str], fact: Fact) -> bool:
    """Whether the fact is the expected one: [subject, predicate, object, polarity?, beginning?]."""
    subject, predicate, thing, polarity, begins = [*expected, *("holds", "")[len(expected) - 3 :]]
    if (subject.casefold(), predicate, polarity) != (
        fact.subject.casefold(),
        fact.predicate,
        fact.polarity,
    ):
        return False
    one, other = set(key_words(thing)), set(key_words(fact.object))
    if not (one <= other or other <= one):
        return False
    return not begins or (fact.valid_from is not None and iso(fact.valid_from).startswith(begins))


async def evaluate(engine: Engine, conversations: list[dict[str, Any]]) -> Score:
    score = Score()
    for conversation in conversations:
        extraction = await engine.extract(said_in(conversation), parse(conversation["at"]), None)
        found, score.degraded = extraction.facts, score.degraded + len(extraction.degraded)
        left = list(found)
        for expected in conversation["facts"]:
            hit = next((fact for fact in left if matches(expected, fact)), None)
            if hit is None:
                score.missed.append(f"{conversation['id']}: {expected}")
            else:
                left.remove(hit)
                score.right += 1
        score.expected += len(conversation["facts"])
        score.found += len(found)
        score.wrong += [
            f"{conversation['id']}: "
            f"{[f.subject, f.predicate, f.object, f.polarity, _day(f.valid_from)]}"
            for f in left
        ]
    return score


async def judge(options: argparse.Namespace, conversations: list[dict[str, Any]]) -> Score:
    """By the rules, with or without trees, or by the language model that the options name."""
    if options.llm_base_url is None and options.patterns:
        return await evaluate(RuleEngine(), conversations)
    if options.llm_base_url is None:
        with tempfile.TemporaryDirectory() as directory:
            embedder = MiniLmEmbedder(Path(directory), timeout_seconds=60)
            try:
                return await evaluate(RuleEngine(embedder.read_language), conversations)
            finally:
                await embedder.close()
    key = os.environ.get("LLM_API_KEY")
    model = OpenAiLanguageModel(
        options.llm_base_url, key, options.llm_model, timeout_seconds=options.llm_timeout_seconds
    )
    try:
        return await evaluate(ModelEngine(model), conversations)
    finally:
        await model.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--verbose", action="store_true", help="name what was missed and what was wrong"
    )
    parser.add_argument("--set", choices=SETS, action="append", help="only this set")
    parser.add_argument(
        "--patterns", action="store_true", help="by patterns alone, no trees being read"
    )
    parser.add_argument(
        "--llm-base-url",
        help="ask this OpenAI-compatible endpoint instead of the rules; its key is $LLM_API_KEY",
    )
    parser.add_argument("--llm-model", default="default", help="the model's name (%(default)s)")
    parser.add_argument(
        "--llm-timeout-seconds",
        type=float,
        default=120.0,
        help="what one answer may take (%(default)s)",
    )
    options = parser.parse_args()
    worst = 0
    for name in options.set or SETS:
        conversations = json.loads((FACTS / f"{name}.json").read_text())
        score = asyncio.run(judge(options, conversations))
        print(
            f"{name}: {len(conversations)} conversations, {score.expected} facts expected, "
            f"{score.found} found, {score.right} right;"
            f" precision {score.precision:.3f}, recall {score.recall:.3f}"
        )
        if score.degraded:
            print(f"  the model failed {score.degraded} times; the rules read what it did not")
        worst |= score.precision < 0.85 or score.recall < 0.6
        if options.verbose:
            print(
                "\n".join(
                    [f"  missed {line}" for line in score.missed]
                    + [f"  wrong  {line}" for line in score.wrong]
                )
            )
    return int(worst)


if __name__ == "__main__":
    sys.exit(main())
