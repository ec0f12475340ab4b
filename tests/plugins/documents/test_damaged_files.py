"""Damaged files for every parser: a share of what `python -m loadtests.parsers` tries for as long
as one likes.
"""

from __future__ import annotations

import re

import msgspec
import pytest

from loadtests.parsers import SECONDS_MAX, Broken, Case, case, check, documented, outcome, sniff
from plugins.documents.limits import PARSER_OUTPUT_BYTES_MAX
from plugins.documents.parsing.extraction import Block, Extraction, Failure, ParserReply
from plugins.documents.settings import DocumentsSettings
from tests.support import ROOT
from tests.support.forked_parsers import Ended, ForkedParsers
from tests.support.mutated_files import Sample, samples

BOUNDS = (DocumentsSettings().parser_memory_bytes, SECONDS_MAX, PARSER_OUTPUT_BYTES_MAX)


@pytest.fixture(scope="module")
def corpus() -> list[Sample]:
    return samples()


def test_sound_files_of_every_kind_are_read(corpus: list[Sample]) -> None:
    with ForkedParsers(*BOUNDS) as parsers:
        for sample in corpus:
            ended = parsers.run(sample.order, sample.content)
            expected = "encrypted" if sample.name == "secret.pdf" else "read"
            assert outcome(Case(sample, sample.content), ended, {"encrypted"}) == expected, sample


@pytest.mark.parametrize("cases", [15, pytest.param(4_000, marks=pytest.mark.long)])
def test_a_damaged_file_is_read_or_refused_within_its_bounds(
    cases: int, corpus: list[Sample], seed: int
) -> None:
    reasons = documented()
    with ForkedParsers(*BOUNDS) as parsers:
        for number in range(seed, seed + cases):
            tried = case(number, corpus)
            sniff(tried)
            ended = parsers.run(tried.sample.order, tried.content)
            try:
                outcome(tried, ended, reasons)
            except Broken as what:
                pytest.fail(f"case {number}, {tried.sample.name}: {what}")


def test_the_guide_lists_the_reasons_that_there_are() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "plugins/documents").rglob("*.py"))
    raised = re.findall(r'(?:ParseFailed|Failure|fail)\(\s*(?:ctx, row, )?"(\w+)"', sources)
    assert documented() == set(raised)


@pytest.mark.parametrize(
    "ended",
    [
        Ended(b"", None, 1.0, 0),
        Ended(b"", -24, SECONDS_MAX + 0.1, 0),
        Ended(bytes(PARSER_OUTPUT_BYTES_MAX + 1), 0, 1.0, 0),
        Ended(b"", 1, 1.0, 0),
        Ended(msgspec.msgpack.encode(ParserReply(Failure("odd", "Odd."))), 0, 1.0, 0),
        Ended(msgspec.msgpack.encode(ParserReply(extraction=Extraction("a\x00"))), 0, 1.0, 0),
    ],
)
def test_what_may_not_be_is_told(ended: Ended, corpus: list[Sample]) -> None:
    with pytest.raises(Broken):
        outcome(Case(corpus[0], b""), ended, {"damaged"})


def test_blocks_that_overlap_or_leave_something_out_are_told() -> None:
    check(Extraction("one two", [Block(0, 3), Block(4, 7)]))
    for blocks in ([Block(0, 3), Block(2, 7)], [Block(0, 2), Block(4, 7)], [Block(0, 8)]):
        with pytest.raises(Broken):
            check(Extraction("one two", blocks))
