"""What is asked for once and for all: "always answer in bullet points", "never use emojis", "from
now on call me Liz".
"""

from __future__ import annotations

from collections.abc import Iterator

import regex as re

from plugins.ingestion.clauses.phrases import Claim, whole
from plugins.ingestion.clauses.stating import SUBJECT
from plugins.ingestion.clauses.tree import Tree
from storage.text import word_set

# What an assistant does; people tell one another to keep promises and to look after themselves.
_ANSWERING = word_set(
    "answer reply respond write use explain format summarise summarize translate call address"
)
_ALWAYS = word_set("always never")
_LEADING = word_set("please pls plz just and so ok okay also but btw")
_FROM_NOW_ON = ("from now on", "going forward", "in future", "in the future")
# What follows by itself may be who said so: "always answer in bullet points, she said".
_NO_ORDER = ("aux", "aux:pass", "cop", "advcl", "compound:prt", "parataxis", "vocative")
_ONCE_AND_FOR_ALL = re.compile(rf"(?i),? (?:{'|'.join(_FROM_NOW_ON)})$")
_YOURS = word_set("you your yourself it this that them him her there us")
# What an assistant can be told to use; whoever else is to use something is told of gloves.
_USED = word_set(
    """unit emoji emojis language english spelling tone register bullet markdown table list format
    word sentence paragraph tab space celsius fahrenheit pronoun heading header header code comment
    exclamation jargon slang abbreviation acronym example quote comma dash hashtag capital letter
    point clock date style type library function"""
)
_ME = word_set("me i my")


def ordered(tree: Tree) -> Iterator[Claim]:
    """What the speaker wants done each time."""
    verb = next((n for n, token in enumerate(tree.tokens) if token.head < 0), None)
    if (
        verb is None
        or tree.tokens[verb].lemma not in _ANSWERING
        or tree.sentence.kind == "question"
    ):
        return
    if tree.first(verb, *SUBJECT, *_NO_ORDER) is not None:
        return
    if tree.has(verb, "VerbForm=Ger") or tree.has(verb, "Tense=Past"):
        return
    told = tree.text[tree.sentence.start : tree.sentence.end].casefold()
    always = [each for each in tree.of(verb, "advmod") if tree.tokens[each].lemma in _ALWAYS]
    lead = [tree.tokens[each].lemma.casefold() for each in range(verb) if each not in always]
    said = told.strip(" .!…\n")
    is_standing = bool(always) or said.startswith(_FROM_NOW_ON) or said.endswith(_FROM_NOW_ON[:2])
    if any(mark in said for mark in "\"“”'‘") or not _is_for_an_assistant(tree, verb, said):
        return
    if not is_standing or not set(lead) <= _LEADING | {"from", "now", "on", ",", "in", "future"}:
        return
    thing = _ONCE_AND_FOR_ALL.sub("", whole(tree, verb)).removeprefix("on ")
    words = set(thing.casefold().split())
    if " " in thing and words.isdisjoint(_YOURS):
        never = any(tree.tokens[each].lemma == "never" for each in always)
        yield Claim("prefers", verb, f"never {thing}" if never else thing, relates=False)


def _is_for_an_assistant(tree: Tree, verb: int, said: str) -> bool:
    """Whether it is how to talk or write to the speaker: "always use the stairs" is for anybody."""
    lemma, thing = tree.tokens[verb].lemma, tree.first(verb, "obj")
    if not _ME.isdisjoint(said.split()):
        return True
    if lemma in ("call", "address"):
        return False
    if lemma == "use":
        named = () if thing is None else (thing, *tree.of(thing, "compound", "conj"))
        return any(tree.tokens[each].lemma.casefold() in _USED for each in named)
    if lemma in ("answer", "reply", "respond"):  # "the door", "to strangers"
        cases = [case for each in tree.of(verb, "obl") for case in tree.of(each, "case")]
        return thing is None and not any(tree.tokens[case].lemma == "to" for case in cases)
    return True
