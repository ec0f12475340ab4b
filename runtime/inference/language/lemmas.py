"""Dictionary forms: a word's ending taken off and another put on, or a list of words that go their
own way.
"""

from __future__ import annotations

import regex

# What no verb of the treebanks' ends with as a dictionary form; such endings come of an e too few.
_WITHOUT_E = regex.compile(
    r"(?:v|[rd]g|[cvs]id|[unr]c|iz|[bcdfgkptz]l|actic|[bcdfghjklmnprstvwxyz][aeio]k)$"
)
_COMPLETE = frozenset(["quiz", "finesse", "sync", "rev", "arc", "trek", "wok"])
_DOUBLED = regex.compile(r"(?<=..)([pmg])\1$")


def edit_of(word: str, lemma: str) -> str:
    """The edit that makes the word the lemma: "<letters taken off>+<letters put on>", such as
    "3+y" for "cities" and "city".
    """
    common = 0
    while common < min(len(word), len(lemma)) and word[common] == lemma[common]:
        common += 1
    return f"{len(word) - common}+{lemma[common:]}"


def edited(word: str, edit: str) -> str:
    """The word after an edit; as it is where it is too short for it."""
    taken, _, put = edit.partition("+")
    left = len(word) - int(taken)
    return word[:left] + put if left > 0 or (left == 0 and put) else word


def completed(verb: str) -> str:
    """A verb's dictionary form that an edit left without its e, or with one too many: "reliv" is
    "relive", "expresse" is "express".
    """
    if verb in _COMPLETE:
        return verb
    if _WITHOUT_E.search(verb):
        return verb + "e"
    return verb[:-1] if verb.endswith("sse") or _DOUBLED.search(verb) else verb
