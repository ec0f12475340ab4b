"""Sentences and quotations, cut and found as they always were, whatever marks stand in a row."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as some

from plugins.answers.quotes import best_quotes, sentences, verify

# What both meant before they were made to take time in proportion to the text.
ONCE = re.compile(r"[^\s].*?(?:[.!?…。！？]+[\"'”’)\]]*(?=\s|$)|(?=\n)|$)", re.DOTALL)
CURLY = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})

texts = some.text(some.sampled_from("ab中.!?…。！？\"'”’)] \n\t\u00a0"), max_size=40)


def found_once(quote: str, content: str) -> tuple[int, int] | None:
    wanted = re.sub(r"\s+", " ", quote.translate(CURLY)).strip().strip("\"'")
    match = (
        re.search(r"\s+".join(map(re.escape, wanted.split(" "))), content.translate(CURLY))
        if wanted
        else None
    )
    return match and match.span()


@given(texts)
@example("!! a.")
@example("“Yes!” he said. No…\nNever")
def test_sentences_end_where_they_always_did(text: str) -> None:
    assert sentences(text) == [match[0] for match in ONCE.finditer(text)]


@given(texts, some.data())
def test_a_quotation_is_found_where_it_always_was(content: str, data: some.DataObject) -> None:
    start = data.draw(some.integers(0, len(content)))
    quote = data.draw(
        some.sampled_from(
            [
                content[start : start + 9],
                content[start : start + 9].translate(CURLY).replace("\n", "  "),
                content,
            ]
        )
    )
    found = verify(quote, content, 0)
    assert (found and (found.start, found.end)) == found_once(quote, content)
    assert found is None or found.quote == content[found.start : found.end]


def test_what_stands_at_the_end_of_a_long_memory_is_quoted() -> None:
    filler = "In the evening we played cards on the terrace. The map of the city was new. "
    told = "The treasure map was buried under the lighthouse stairs."
    content = filler * 1_000 + told
    (quote,) = best_quotes(
        "where is the treasure map", [{"content": content, "normalized_score": 0.5}]
    )
    assert quote.quote == told == content[quote.start : quote.end]
