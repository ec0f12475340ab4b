"""SECURITY.md says of each requirement of ASVS 4.0.3, levels 1 and 2, what holds it, or why nothing
does. That the files it names exist, tests/test_promises.py says.
"""

from __future__ import annotations

import re

from tests.support import ROOT

# Of each section: how far its numbers go, less those that were dropped or are of level 3.
LAST = {
    "1.1": 7, "1.2": 4, "1.4": 5, "1.5": 4, "1.6": 4, "1.7": 2, "1.8": 2, "1.9": 2, "1.10": 1,
    "1.11": 2, "1.12": 2, "1.14": 6,
    "2.1": 12, "2.2": 3, "2.3": 3, "2.4": 6, "2.5": 7, "2.6": 3, "2.7": 6, "2.8": 7, "2.9": 3,
    "2.10": 4,
    "3.1": 1, "3.2": 4, "3.3": 4, "3.4": 5, "3.5": 3, "3.7": 1,
    "4.1": 5, "4.2": 2, "4.3": 3,
    "5.1": 5, "5.2": 8, "5.3": 10, "5.4": 3, "5.5": 4,
    "6.1": 3, "6.2": 6, "6.3": 2, "6.4": 2,
    "7.1": 4, "7.2": 2, "7.3": 4, "7.4": 3,
    "8.1": 4, "8.2": 3, "8.3": 8,
    "9.1": 3, "9.2": 4,
    "10.2": 2, "10.3": 3,
    "11.1": 8,
    "12.1": 3, "12.2": 1, "12.3": 6, "12.4": 2, "12.5": 2, "12.6": 1,
    "13.1": 5, "13.2": 6, "13.3": 2, "13.4": 2,
    "14.1": 4, "14.2": 6, "14.3": 3, "14.4": 7, "14.5": 4,
}  # fmt: skip
LEFT_OUT = {"1.4.2", "1.4.3", "1.12.1", "4.1.4", "7.3.2", "13.1.2", "13.2.4", "14.3.1"}
ROW = re.compile(r"^\| (\d[\d., –]*) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def rows() -> list[tuple[list[str], str]]:
    """[(numbers of requirements, what is said of them)]"""
    found = []
    for numbers, said in ROW.findall((ROOT / "SECURITY.md").read_text()):
        named = []
        for each in numbers.split(", "):
            first, _, last = each.partition("–")
            section, _, number = first.rpartition(".")
            until = int((last or first).rpartition(".")[2])
            named += [f"{section}.{one}" for one in range(int(number), until + 1)]
        found.append((named, said))
    return found


def test_every_requirement_is_answered_once() -> None:
    asked = {
        f"{section}.{number}" for section, last in LAST.items() for number in range(1, last + 1)
    }
    answered = [number for numbers, _ in rows() for number in numbers]
    assert sorted(answered) == sorted(asked - LEFT_OUT)


def test_an_answer_names_a_test_or_says_why_there_is_none() -> None:
    for numbers, said in rows():
        held = re.search(r"`tests/[^`]+`", said)
        assert held or said.startswith(("open", "does not apply: ")), (numbers, said)
