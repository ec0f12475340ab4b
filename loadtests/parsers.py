"""Damaged files for every parser of documents, each in the box of the service; prints what became
of them, and what may not be.

    python -m loadtests.parsers [--seconds 600] [--first 1] [--cases N] [--only NAME] [--keep DIR]

A case is a seed: which sample is damaged, and how (tests/support/mutated_files.py). What is held:
a parser ends within its time and memory, and with a text whose blocks are in order or with a
refusal that docs/guides/documents.md names; sniffing the file and cutting its text into chunks end
in time as well. A decoder that ends by a signal is confined and its document `parser_crashed`; it
is counted. Files of what was broken are kept in DIR. Exit status 1 when something was.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import msgspec

from plugins.documents.chunking import chunked
from plugins.documents.limits import PARSER_OUTPUT_BYTES_MAX
from plugins.documents.parsing import formats
from plugins.documents.parsing.extraction import Extraction, ParserReply
from plugins.documents.parsing.limits import EXTRACTED_CHARS_MAX
from plugins.documents.settings import DocumentsSettings
from tests.support.forked_parsers import ROOT, Ended, ForkedParsers
from tests.support.mutated_files import Sample, mutated, samples

SECONDS_MAX = 10  # of the processor, for a file of a megabyte at most
OUTSIDE_SECONDS_MAX = 2.0  # of sniffing and of chunking, each
_NO_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


class Broken(Exception):
    """What may not be, in a few words."""


class Case(NamedTuple):
    sample: Sample
    content: bytes


def documented() -> set[str]:
    """The reasons that the guide lists."""
    text = (ROOT / "docs/guides/documents.md").read_text()
    return set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))


def case(seed: int, corpus: list[Sample]) -> Case:
    chance = random.Random(seed)
    sample, donor = chance.choice(corpus), chance.choice(corpus)
    return Case(sample, mutated(sample, donor.content, chance))


def outcome(tried: Case, ended: Ended, reasons: set[str]) -> str:
    """`read` or the reason of a refusal. Raises Broken."""
    if ended.status is None or ended.seconds >= SECONDS_MAX:
        raise Broken(f"hangs ({ended.seconds:.1f} s)")
    if len(ended.output) > PARSER_OUTPUT_BYTES_MAX:
        raise Broken(f"answers {len(ended.output)} bytes")
    if ended.status < 0:
        return f"parser_crashed, signal {-ended.status}"
    if ended.status != 0:
        raise Broken(f"ends with status {ended.status}")
    answer = msgspec.msgpack.decode(ended.output, type=ParserReply)
    if answer.failure is not None:
        if answer.failure.reason not in reasons:
            raise Broken(f"is refused as {answer.failure.reason}, which no document names")
        return answer.failure.reason
    if answer.extraction is not None:
        check(answer.extraction)
    return "read"


def check(extraction: Extraction) -> None:
    """What all that use a text rely on. Raises Broken."""
    text, end = extraction.text, 0
    if len(text) > EXTRACTED_CHARS_MAX or _NO_CHARACTER.search(text):
        raise Broken("its text is too long, or has what is no character")
    for block in extraction.blocks:
        if not end <= block.start < block.end <= len(text) or text[end : block.start].strip():
            raise Broken(f"its blocks are out of order at {block.start}")
        end = block.end
    begun = time.process_time()
    chunked(extraction)
    if time.process_time() - begun > OUTSIDE_SECONDS_MAX:
        raise Broken("is cut into chunks too slowly")


def sniff(tried: Case) -> None:
    """What a gateway does with the head of an upload. Raises Broken."""
    begun = time.process_time()
    formats.media_type_of(tried.content[:65_536], str(tried.sample.order["filename"]))
    if time.process_time() - begun > 0.1:
        raise Broken("is sniffed too slowly")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="at most so many")
    parser.add_argument("--only", default="", help="samples whose names have this in them")
    parser.add_argument("--keep", type=Path, help="a directory for the files that broke something")
    asked = parser.parse_args()
    corpus = [sample for sample in samples() if asked.only in sample.name]
    reasons, settings = documented(), DocumentsSettings()
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    most = Ended(b"", 0, 0.0, 0)
    begun, seed, broken = time.monotonic(), asked.first, 0
    bounds = (settings.parser_memory_bytes, SECONDS_MAX, PARSER_OUTPUT_BYTES_MAX)
    with ForkedParsers(*bounds) as parsers:
        while time.monotonic() - begun < asked.seconds and seed - asked.first < asked.cases:
            tried = case(seed, corpus)
            ended = parsers.run(tried.sample.order, tried.content)
            most = most._replace(
                seconds=max(most.seconds, ended.seconds),
                resident_bytes=max(most.resident_bytes, ended.resident_bytes),
            )
            try:
                sniff(tried)
                outcomes[tried.sample.name][outcome(tried, ended, reasons)] += 1
            except Broken as what:
                broken += 1
                print(f"seed {seed}, {tried.sample.name}: {what}", flush=True)
                if asked.keep is not None:
                    (asked.keep / f"{seed}").write_bytes(tried.content)
            seed += 1
    for name, counted in outcomes.items():
        told = ", ".join(f"{count} {what}" for what, count in counted.most_common())
        print(f"{name:20} {told}")
    print(
        f"{seed - asked.first} cases from {asked.first} in {time.monotonic() - begun:.0f} s, "
        f"{broken} broken; at most {most.seconds:.1f} s of the processor and "
        f"{most.resident_bytes / 2**20:.0f} MiB resident"
    )
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
