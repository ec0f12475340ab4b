"""What smart ingestion keeps of statements by other hands, which facts it reads in them, and what
it takes to be over: through a real shard with the shipped model, without a language model.

    .venv/bin/python loadtests/understanding.py [CORPUS.jsonl …] [--verbose]

Without a corpus it reads those of loadtests/statements, whose README has the format.

kept      of the statements to keep and of the others, the share that a memory holds
facts     found: claims with an expected subject and polarity, whose object shares at least half of
          the words of the expected one, over the expected; claims: all that were made
endings   of the pairs that end something and of the others, the share in which a memory of the
          first statement was superseded
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from plugins.ingestion.engine import RuleEngine
from plugins.ingestion.facts import RELATIVES, Fact, Said, key_words
from runtime.inference import MiniLmEmbedder, Models
from runtime.timestamps import parse
from tests.support.shard_harness import ShardHarness

STATEMENTS = Path(__file__).parent / "statements"
SAID_AT, SOON, LATER = "2024-03-01T10:00:00Z", "2024-03-01T10:01:00Z", "2024-06-10T10:00:00Z"


class Account:
    """An account that hears statements, each user's apart."""

    def __init__(self, service: ShardHarness, model: MiniLmEmbedder):
        self.service, self.me, self.users = service, service.register(), 0
        self.rules = RuleEngine(model.read_language)

    def claims(self, speaker: str, text: str) -> list[Fact]:
        """What the rules read in a statement."""
        said = [Said(speaker, text, role="user")]
        return self.service.run(self.rules.extract(said, parse(SAID_AT), None)).facts

    def hear(self, speaker: str, text: str, user_id: str, at: str = SAID_AT) -> dict[str, Any]:
        """The job's result."""
        said = {"role": "user", "name": speaker, "content": text}
        body = {"messages": [said], "occurred_at": at, "user_id": user_id, "infer": True}
        job = self.service("memories.create", body, who=self.me).body["job_id"]
        return self.service("memories.jobs.get", who=self.me, job_id=job).body["result"]

    def fresh(self) -> str:
        self.users += 1
        return f"u{self.users}"


@contextmanager
def account() -> Iterator[Account]:
    with tempfile.TemporaryDirectory() as directory:
        model = MiniLmEmbedder(
            Path(directory) / "model", threads=1, timeout_seconds=60, queue_max=1_000,
            cache_entries=0,
        )  # fmt: skip
        service = ShardHarness(Path(directory), serve_app.PLUGINS, Models(model))
        try:
            yield Account(service, model)
        finally:
            service.run(model.close())
            service.close()


def is_found(expected: dict[str, Any], claim: Fact) -> bool:
    """Whether a claim is the expected one, as far as words tell. That Ana is Beth's sister is told
    of either.
    """
    if (claim.polarity == "holds") == expected["negated"]:
        return False
    subject, thing = (set(key_words(expected[name])) for name in ("subject", "object"))
    about, what = set(key_words(claim.subject)), set(key_words(claim.object))
    if claim.predicate in RELATIVES and subject == what and about <= thing:
        return True
    return subject == about and 2 * len(thing & what) >= max(1, len(thing))


def judge(known: Account, lines: list[dict[str, Any]], verbose: bool) -> Counter[str]:
    count: Counter[str] = Counter()
    for line in lines:
        user = known.fresh()
        if line["kind"] == "statement":
            name = "keep" if line["keep"] else "leave"
            events = known.hear(line["speaker"], line["text"], user)["events"]
            count[name] += 1
            count[f"{name}, kept"] += bool(events)
            if verbose and bool(events) != line["keep"]:
                print(f"{'lost' if line['keep'] else 'kept'}: {line['text']}")
            made = known.claims(line["speaker"], line["text"])
            found = [each for each in line["facts"] if any(is_found(each, one) for one in made)]
            count["facts"] += len(line["facts"])
            count["facts, found"] += len(found)
            count["claims"] += len(made)
        elif line["kind"] == "pair":
            known.hear(line["speaker"], line["first"], user)
            then = SOON if line.get("soon") else LATER
            events = known.hear(line["speaker"], line["second"], user, then)["events"]
            ended = any(event.get("previous_memory_id") for event in events)
            name = "ends" if line["ends"] else "stands"
            count[name] += 1
            count[f"{name}, ended"] += ended
            if verbose and ended != line["ends"]:
                print(f"{'wrongly' if ended else 'not'} ended: {line['first']} | {line['second']}")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", type=Path, help="files of one JSON object a line")
    parser.add_argument("--verbose", action="store_true", help="name what went wrong")
    options = parser.parse_args()
    print("| corpus | kept of what tells | kept of what does not | facts found | claims | endings "
          "found | wrong endings |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for path in options.corpora or sorted(STATEMENTS.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        with account() as known:
            n = judge(known, lines, options.verbose)
        print(
            f"| {path.stem} | {n['keep, kept']} of {n['keep']} | {n['leave, kept']} of "
            f"{n['leave']} | {n['facts, found']} of {n['facts']} | {n['claims']} | "
            f"{n['ends, ended']} of {n['ends']} | {n['stands, ended']} of {n['stands']} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
