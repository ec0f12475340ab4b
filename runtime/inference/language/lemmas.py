"""Dictionary forms: a word's ending taken off and another put on, or a list of words that go their
own way.
"""

from __future__ import annotations

import regex

# What no verb of the treebanks' ends with as a dictionary form; such endings come of an e too few.
_WITHOUT_E = regex.compile(
    r"(?:v|u|c|[rd]g|..ag|[cvsu]id|iz|[bcdfgkptz]l|dul|[bcdfghjklmnprstvwxyz][aeio]k"
    r"|..[cdgklnprtviu]at|(?:gr|tr|v|su)ad|(?:xpl|rr|er|nc|ec)od|(?:cl|ll|tr)ud|vit|(?:m|v|qu)ot"
    r"|(?:mm|mp|ec|rib|tit|ll)ut|[rlnoi]s|(?:s|st|f)um|.(?:[mbflv]|ag)in|(?:pl|st|gn|sc|ad|sn)or"
    r"|[gstj]ur|tpon|(?:mp|ep|cl|gl|fl|sh|qu)ar|(?:[pthsfwdm]|qu)ir|typ)$"
)
_WITH_E = regex.compile(r"(?:sh|(?:ea|oa|[rniut])ch|x|ck|nk|rk|rm|pt|ct|nt|rd)e$")
_COMPLETE = frozenset(
    (
        *("quiz", "finesse", "sync", "rev", "arc", "trek", "wok", "mimic", "panic", "picnic"),
        *("traffic", "frolic", "cc", "squat", "concat", "stir", "whir", "sum", "drag", "brag"),
        *("flag", "snag", "stag", "ebb", "putt", "butt", "boycott", "axe"),
    )
)
_DOUBLED = regex.compile(r"(?<=..)([pmgbtn])\1$")


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
    """A verb's dictionary form that an edit left without its e, or with a letter too many: "reliv"
    is "relive", "migrat" is "migrate", "expresse" is "express", "chatt" is "chat".
    """
    if verb in _COMPLETE:
        return verb
    if _WITHOUT_E.search(verb):
        return verb + "e"
    if verb.endswith("sse") or _WITH_E.search(verb) or _DOUBLED.search(verb):
        return verb[:-1]
    return verb
