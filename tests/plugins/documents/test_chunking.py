from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from plugins.documents import chunking
from plugins.documents.chunking import chunked, tokens_of
from plugins.documents.limits import CHUNK_OVERLAP_TOKENS, CHUNK_TOKENS_MAX
from plugins.documents.parsing.extraction import Extraction, TextBuilder

# What ended a sentence before it was made to take time in proportion to the text.
ONCE = re.compile(r"(?:[.!?…]+[\"'”’)\]]*\s+|[。！？]+[」』”’)]*\s*|\n+)")
SENTENCE = "The lighthouse keeper counts the ships that pass in the night. "

words = some.text(some.sampled_from("abc déя中 \n.!?。\t"), max_size=400)
pages = some.lists(some.lists(some.tuples(words, some.integers(0, 2)), max_size=6), max_size=5)


def extraction(made: list[list[tuple[str, int]]]) -> Extraction:
    builder = TextBuilder()
    for number, blocks in enumerate(made, 1):
        builder.turn_to(number)
        for text, heading in blocks:
            builder.add(text, heading=heading)
    return builder.done()


@given(pages)
def test_chunks_cover_the_text_and_never_span_pages(made: list[list[tuple[str, int]]]) -> None:
    read = extraction(made)
    chunks = chunked(read)
    assert chunks == chunked(read), "the same text gives the same chunks"
    covered: set[int] = set()
    for before, chunk in zip([None, *chunks], chunks, strict=False):
        assert 0 <= chunk.start < chunk.end <= len(read.text)
        assert read.text[chunk.start : chunk.end].strip()
        assert before is None or (before.start < chunk.start and before.end < chunk.end)
        assert tokens_of(read.text[chunk.start : chunk.end].strip()) <= CHUNK_TOKENS_MAX
        covered.update(range(chunk.start, chunk.end))
        on = {
            block.page
            for block in read.blocks
            if block.start < chunk.end and block.end > chunk.start
        }
        assert on == {chunk.page}
    assert covered == (set(range(len(read.text))) if read.text.strip() else set())


def test_neighbours_overlap_inside_a_section_and_not_across() -> None:
    read = extraction([[("First", 1), (SENTENCE * 40, 0), ("Second", 1), (SENTENCE * 2, 0)]])
    chunks = chunked(read)
    assert [chunk.heading for chunk in chunks] == ["First"] * (len(chunks) - 1) + ["Second"]
    for one, two in pairwise(chunks[:-1]):
        shared = read.text[two.start : one.end]
        assert shared.strip() and tokens_of(shared) <= CHUNK_OVERLAP_TOKENS
        assert read.text[two.start :].startswith("The lighthouse")
    assert chunks[-1].start == chunks[-2].end


def test_headings_that_follow_each_other_open_one_section() -> None:
    (chunk,) = chunked(extraction([[("Part", 1), ("Chapter", 2), ("It begins.", 0)]]))
    assert chunk.heading == "Chapter"


def test_a_text_without_any_space_is_cut_all_the_same() -> None:
    read = extraction([[("x" * 5_000, 0)], [("漢" * 1_000, 0)]])
    chunks = chunked(read)
    assert all(
        tokens_of(read.text[chunk.start : chunk.end].strip()) <= CHUNK_TOKENS_MAX
        for chunk in chunks
    )
    assert len(chunks) >= 5_000 // (4 * CHUNK_TOKENS_MAX) + 1_000 // CHUNK_TOKENS_MAX


def test_times_go_from_the_first_cue_to_the_last() -> None:
    builder = TextBuilder()
    for second in range(200):
        builder.add(SENTENCE, gap="\n", begins=float(second), ends=second + 0.5)
    chunks = chunked(builder.done())
    assert chunks[0].begins == 0.0 and chunks[-1].ends == 199.5
    for one, two in pairwise(chunks):
        assert one.begins < two.begins and one.ends < two.ends


@given(some.text(some.sampled_from("ab中.!?…。！\"'”’」)] \n\t"), max_size=60))
def test_a_sentence_ends_where_it_always_did(text: str) -> None:
    assert [found.span() for found in chunking.SENTENCE_END.finditer(text)] == [
        found.span() for found in ONCE.finditer(text)
    ]
