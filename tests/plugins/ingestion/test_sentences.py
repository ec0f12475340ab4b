"""Where sentences begin and end, in texts that are mostly marks."""

from __future__ import annotations

import time

from plugins.ingestion.sentences import sentences


def test_marks_without_words_lead_to_the_next_sentence() -> None:
    assert sentences("\n\n...\n I live in Leeds. \n! \n") == [(2, 23)]
    assert sentences("... Yes.\n\n") == [(0, 8)]


def test_marks_alone_take_no_longer_the_more_there_are() -> None:
    begun = time.process_time()
    assert sentences("\n" * 200_000) == []
    assert time.process_time() - begun < 5
