"""How well long memories are found by what stands at their end: recall of one fact among long
notes, with and without passages.

Each note is a page of talk about other things with one fact in it: at the beginning, in the middle
or at the end. The questions share no content word with their fact, so that only meaning can find
it. The same notes are stored once with a vector of their beginning alone and once with one of each
passage.

    python loadtests/long_memories.py [--notes 200] [--sentences 40]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import serve_app
from loadtests.conversations import memories
from plugins.memories import BATCH_ITEMS_MAX
from plugins.memories import indexing as memory_indexing
from plugins.memories.limits import PASSAGES_PER_MEMORY_MAX
from runtime.inference import Models, load_models
from serve_app import Settings
from tests.support.shard_harness import CHEAP, ShardHarness

FACTS = (
    ("Our family physician moved her surgery to the old brewery.", "Where do I go when I am ill?"),
    (
        "The puppy swallowed a sock and had to be operated on.",
        "What health trouble did the pet have?",
    ),
    ("I handed in my notice at the bank.", "Did I quit my employer?"),
    ("The twins were born on a snowy evening.", "When did the babies arrive?"),
    ("We painted the nursery yellow.", "Which colour are the walls of the children's bedroom?"),
    ("Grandmother's soup has far too much garlic for me.", "Which dish do I dislike?"),
    ("My car broke down on the motorway near the border.", "What went wrong with the vehicle?"),
    ("She plays the cello in an amateur orchestra.", "What instrument does my friend perform on?"),
    (
        "The landlord raised what we pay for the flat by a tenth.",
        "How much more expensive has the rent become?",
    ),
    ("I broke my ankle while skiing.", "Which injury did I get doing winter sports?"),
    ("The wifi router is hidden behind the piano.", "Where is the internet box?"),
    ("He proposed to her on top of the lighthouse.", "Where did they get engaged?"),
    ("I am afraid of flying and always take the train.", "Why do I avoid aeroplanes?"),
    ("The roof leaks above the attic window.", "Where does rain come into the house?"),
    ("Our cat is called Pudding.", "What is the name of the kitty?"),
    ("She became a vegetarian after visiting a slaughterhouse.", "Why does she eat no meat?"),
    ("The thief took my wallet in the underground.", "Where was I robbed of my money?"),
    ("I speak Portuguese because my mother grew up in Porto.", "Which foreign language do I know?"),
    ("The exam results were better than I had feared.", "How did my test turn out?"),
    ("We planted an apple tree when our son was born.", "What grows in honour of the child?"),
)


def notes(count: int, sentences: int, place: float, seed: int = 7) -> list[str]:
    """`count` notes of so many sentences, the first of which hold a fact each, `place` (0 to 1) of
    the way down.
    """
    talk = [turn["content"] for turn in memories(count * sentences, seed)]
    random.Random(seed).shuffle(talk)
    found = []
    for i in range(count):
        own = talk[i * sentences : (i + 1) * sentences]
        if i < len(FACTS):
            own.insert(round(place * sentences), FACTS[i][0])
        found.append(" ".join(own))
    return found


def recall(models: Models, passages_max: int, texts: list[str]) -> dict[int, float]:
    """k -> share of the facts whose note is among the first k results."""
    memory_indexing.PASSAGES_PER_MEMORY_MAX = passages_max
    with tempfile.TemporaryDirectory() as directory:
        harness = ShardHarness(
            Path(directory),
            serve_app.PLUGINS,
            models,
            Settings.load({**CHEAP, "billing": {"default_tier": "enterprise"}}),
        )
        token = harness.register()
        ids: list[str] = []
        for start in range(0, len(texts), BATCH_ITEMS_MAX // 4):
            items = [{"content": text} for text in texts[start : start + BATCH_ITEMS_MAX // 4]]
            ids += harness(
                "memories.create_batch", {"memories": items, "wait_for_index": True}, who=token
            ).body["memory_ids"]
        places = []
        for (_, question), memory in zip(FACTS, ids, strict=False):
            found = harness(
                "search.search",
                {"query": question, "limit": 100, "include_low_confidence": True},
                who=token,
            ).body["evidence_ids"]
            places.append(found.index(memory) if memory in found else len(ids))
        harness.run(harness.shard.close())
    return {k: sum(place < k for place in places) / len(FACTS) for k in (1, 5, 10)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notes", type=int, default=200)
    parser.add_argument("--sentences", type=int, default=40)
    asked = parser.parse_args()
    models = load_models(Settings(), Path(tempfile.gettempdir()) / "mneme-models")
    print("| fact | vectors | R@1 | R@5 | R@10 |\n|---|---|---|---|---|")
    for name, place in (("at the beginning", 0.0), ("in the middle", 0.5), ("at the end", 1.0)):
        texts = notes(asked.notes, asked.sentences, place)
        for kind, passages_max in (("beginning", 1), ("every passage", PASSAGES_PER_MEMORY_MAX)):
            found = recall(models, passages_max, texts)
            print(
                f"| {name} | {kind} | "
                + " | ".join(f"{100 * found[k]:.0f}" for k in (1, 5, 10))
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
