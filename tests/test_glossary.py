"""The glossary gives each word one meaning, and names only what there is."""

from __future__ import annotations

import re
from collections import Counter

from tests.support import ROOT

ROWS = re.findall(
    r"^\| \*\*(.+?)\*\* \| (.+) \|$", (ROOT / "GLOSSARY.md").read_text(), re.MULTILINE
)


def test_no_word_is_defined_twice_and_words_are_in_order() -> None:
    words = [word for word, _ in ROWS]
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert words == sorted(words, key=str.casefold)


def test_what_the_glossary_names_is_in_the_sources() -> None:
    named = {name for _, meaning in ROWS for name in re.findall(r"`([^`]+)`", meaning)}
    sources = "\n".join(
        path.read_text()
        for floor in ("storage", "runtime", "plugins")
        for path in (ROOT / floor).rglob("*.py")
    )
    assert named
    assert [name for name in sorted(named) if name not in sources] == []
