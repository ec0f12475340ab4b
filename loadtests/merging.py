"""Which restatements ingestion merges: precision and recall on loadtests/facts/paraphrases.json, by
the least cosine of a merge.

    .venv/bin/python loadtests/merging.py [--verbose]

Each pair is said by a speaker of its own, one sentence after the other, to a service in this
process with the shipped model and the rules. The second is right when it is merged and says the
same, or is stored and does not. `held_out` was written before plugins/ingestion/duplicates.py met
it. Pairs of which the rules find nothing in one sentence are left out and counted. Below the table
comes what is merged by meaning while the conversations of tuned.json and held_out.json are
ingested, all of it, to be judged by a reader.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from plugins.ingestion import duplicates as fact_merging
from runtime.inference import MiniLmEmbedder, Models
from tests.support.shard_harness import ShardHarness

FACTS = Path(__file__).parent / "facts"
COSINES = (0.85, 0.9, 0.92, fact_merging.MEANING_COSINE_MIN, 0.95)
SAID_AT = "2023-05-08T10:00:00Z"


@contextmanager
def harness() -> Iterator[tuple[ShardHarness, str]]:
    """A service and an account of it."""
    with tempfile.TemporaryDirectory() as directory:
        model = MiniLmEmbedder(
            Path(directory) / "model",
            threads=1,
            timeout_seconds=60,
            queue_max=1_000,
            cache_entries=0,
        )
        made = ShardHarness(Path(directory), serve_app.PLUGINS, Models(model))
        try:
            yield made, made.register()
        finally:
            made.run(model.close())
            made.close()


def hear(
    service: ShardHarness, me: str, said: list[list[str]], at: str, user_id: str
) -> list[dict[str, Any]]:
    """What became of each statement of a conversation, as its job tells it."""
    roles = [
        {"role": "assistant" if who == "assistant" else "user", "name": who, "content": text}
        for who, text in said
    ]
    body = {"messages": roles, "occurred_at": at, "user_id": user_id, "infer": True}
    job = service("memories.create", body, who=me).body["job_id"]
    return service("memories.jobs.get", who=me, job_id=job).body["result"]["events"]


def judge(
    service: ShardHarness, me: str, groups: list[dict[str, Any]], run: int
) -> Iterator[tuple[str, bool, bool | None, str]]:
    """(set, whether they say the same, whether they were merged or None where nothing was found,
    the pair)
    """
    for place, group in enumerate(groups):
        for number, (first, second) in enumerate(group["pairs"]):
            user = f"u{run}-{place}-{number}"
            events = [
                hear(service, me, [[f"Ada{user}", text]], SAID_AT, user) for text in (first, second)
            ]
            merged = all(event["event"] == "NOOP" for event in events[1]) if all(events) else None
            yield group["set"], group["same"], merged, f"{first} | {second}"


def table(groups: list[dict[str, Any]], verbose: bool) -> None:
    print(
        "| least cosine | set | merged, the same | merged, not the same | stored, the same | "
        "precision | recall | nothing found |"
    )
    print("|---|---|---|---|---|---|---|---|")
    with harness() as (service, me):
        for run, cosine in enumerate(COSINES):
            with patch.object(fact_merging, "MEANING_COSINE_MIN", cosine):
                judged = list(judge(service, me, groups, run))
            for name in ("tuned", "held_out"):
                own = [(same, merged) for kind, same, merged, _ in judged if kind == name]
                right, wrong, missed = (
                    own.count((True, True)),
                    own.count((False, True)),
                    own.count((True, False)),
                )
                left = sum(merged is None for _, merged in own)
                precision, recall = right / max(1, right + wrong), right / max(1, right + missed)
                print(
                    f"| {cosine} | {name} | {right} | {wrong} | {missed} | {precision:.3f} | "
                    f"{recall:.3f} | {left} |"
                )
            if verbose and cosine == fact_merging.MEANING_COSINE_MIN:
                print(
                    "\n".join(
                        f"  {'missed' if same else 'WRONG'}: {pair}"
                        for _, same, merged, pair in judged
                        if merged is not None and merged != same
                    )
                )


def merged_in_conversations() -> None:
    statements = 0
    with harness() as (service, me):
        for name in ("tuned", "held_out"):
            for talk in json.loads((FACTS / f"{name}.json").read_text()):
                events = hear(service, me, talk["messages"], talk["at"], "everybody")
                statements += len(events)
                for event in events:
                    if "cosine" in event["reason"]:
                        kept = service("memories.get", who=me, id=event["memory_id"]).body[
                            "content"
                        ]
                        print(
                            f"  merged in {name}/{talk['id']}: {event['memory']} -> {kept}: "
                            f"{event['reason']}"
                        )
    print(f"{statements} statements of 51 conversations")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="name what was judged wrongly at the cosine that is set",
    )
    options = parser.parse_args()
    table(json.loads((FACTS / "paraphrases.json").read_text()), options.verbose)
    merged_in_conversations()


if __name__ == "__main__":
    main()
