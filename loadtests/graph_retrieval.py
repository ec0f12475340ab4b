"""What candidates of the knowledge graph give to hybrid search: python loadtests/graph_retrieval.py
[--set DIR]

Fills a service in this process with the conversations of retrieval/, has each of them ingested too,
so that the graph knows what the rules find in it, and asks every question with and without the
graph's candidates. What ingestion stores beside the turns counts as found evidence for nobody, in
both rounds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtests.asking import Answer, Installation
from loadtests.evidence import SET, Conversation, read_set
from loadtests.retrieval import row, shown
from plugins.search import SearchBody

MESSAGES_PER_REQUEST = 100


def ingest(
    service: Installation, conversations: list[Conversation], collections: dict[str, str]
) -> int:
    """Have all turns read for facts; -> memories that this made."""
    made = 0
    for conversation in conversations:
        turns = conversation.turns
        for start in range(0, len(turns), MESSAGES_PER_REQUEST):
            said = [
                {"role": "user", "name": turn.speaker or "me", "content": turn.text}
                for turn in turns[start : start + MESSAGES_PER_REQUEST]
            ]
            body = {
                "messages": said,
                "infer": True,
                "collection_id": collections[conversation.name],
                "metadata": {"turn": ""},
            }
            made += service.post("/v1/memories", body)["created_count"]
    return made


def differing(one: list[Answer], other: list[Answer]) -> int:
    """Questions whose first ten results are not the same ones."""
    return sum(set(a.found[:10]) != set(b.found[:10]) for a, b in zip(one, other, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set", type=Path, default=SET, help="a directory or file of conversations"
    )
    conversations = read_set(parser.parse_args().set)
    with Installation() as service:
        collections = service.fill(conversations)
        made = ingest(service, conversations, collections)
        answers = {}
        for name, asked in (("with the graph", True), ("without", False)):
            with patch.object(SearchBody, "asks", lambda body, retriever, asked=asked: asked):
                answers[name] = service.ask(conversations, collections)
    print(
        f"{made} memories by ingestion; the first ten differ for {differing(*answers.values())} of "
        f"{len(answers['without'])} questions\n"
    )
    print(
        shown(
            "candidates",
            {name: row(found) for name, found in answers.items()},
            ("R@5", "R@10", "R@20", "MRR"),
        )
    )


if __name__ == "__main__":
    main()
