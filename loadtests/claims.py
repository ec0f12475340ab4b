"""What smart ingestion claims of real conversations: a random sample, to be judged by reading.

    python loadtests/claims.py --data locomo10.json [--claims 200] [--seed 1]

The file has conversations as LoCoMo has them. The sessions are read one by one, as they are
ingested without a language model; a sample is drawn of the claims that become relationships of the
graph, and printed with the words that each was read in and who said them. What the sample says is
for whoever reads it to judge:

    right   it says what the turn says
    thin    true, but of little use by itself: clipped, vague, or of a moment
    wrong   the turn does not say so
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from plugins.ingestion.classification import UNRELATED
from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import Fact, Said
from runtime.inference import MiniLmEmbedder


def sessions(path: Path) -> Iterator[tuple[int, list[Said]]]:
    """When each session was, in Unix milliseconds, and what was said."""
    for sample in json.loads(path.read_text()):
        told = sample["conversation"]
        for name, turns in told.items():
            if name.startswith("session_") and isinstance(turns, list):
                when = datetime.strptime(told[f"{name}_date_time"], "%I:%M %p on %d %B, %Y")
                at = int(when.replace(tzinfo=UTC).timestamp() * 1000)
                yield at, [Said(each["speaker"], each["text"], role="user") for each in turns]


def claims(path: Path) -> list[tuple[Fact, Said]]:
    """Every claim that becomes a relationship, with the turn it was read in."""

    async def read(directory: str) -> list[tuple[Fact, Said]]:
        embedder = MiniLmEmbedder(Path(directory), timeout_seconds=600)
        engine, found = RuleEngine(embedder.read_language), []
        for at, said in sessions(path):
            facts = (await engine.extract(said, at, None)).facts
            found += [(fact, said[fact.source]) for fact in facts]
        await embedder.close()
        return found

    with tempfile.TemporaryDirectory(prefix="mneme-claims-") as directory:
        return [
            (fact, said)
            for fact, said in asyncio.run(read(directory))
            if fact.relates and fact.predicate not in UNRELATED
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, metavar="FILE")
    parser.add_argument("--claims", type=int, default=200, help="of the sample (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = claims(asked.data)
    print(f"{len(found)} claims; {dict(Counter(f.predicate for f, _ in found).most_common(40))}")
    chosen = random.Random(asked.seed).sample(found, min(asked.claims, len(found)))
    for number, (fact, said) in enumerate(chosen, 1):
        polarity = "" if fact.polarity == "holds" else f" ({fact.polarity})"
        print(
            f"{number:3} {fact.subject} | {fact.predicate} | {fact.object}{polarity}"
            f"   [{said.speaker}: {' '.join(said.content[fact.start : fact.end].split())}]"
        )


if __name__ == "__main__":
    main()
