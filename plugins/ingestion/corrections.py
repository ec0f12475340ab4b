"""What takes back or corrects the statement before it: "forget that", "I meant Tuesday, not
Monday", "no wait, her birthday is in May".

Here is only what the words say; which statement was before, and which of its claims is meant, is
found when it is stored (plugins/ingestion/taking_back.py). A sentence has to open with a word that
corrects, or to name both what is right and what is not: likeness to what was said is no reason.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex as re

from plugins.ingestion.facts import CORRECTS, TAKES_BACK, Fact, Said
from plugins.ingestion.sentences import first_sentence, is_quoted_line

SENTENCE_CHARS_MAX = 200  # a longer one tells a story
THAT = "that"  # the object of what takes back the whole statement

_OPENING = r"(?:(?:please|ok|okay|oh|oops|actually|no|sorry|hm+|um)[,.! ]{1,3}){0,3}"
# "Forget that.", "scratch that, …": not "forget that I said so", "I forget that".
_BACK = re.compile(
    rf"(?i){_OPENING}(?:forget|ignore|disregard|scratch|scrap|strike)"
    r" (?:that|what i (?:just )?(?:said|told you|wrote)|my last message)(?: please)?"
    r"(?: about (?:the |my |our )?(?P<about>[\p{L}\p{N} '’-]{1,40}))?(?: again)?"
    r"(?:[.!]*$|[,;:–—-] ?)"
)
# What opens a correction, and is none of the sentence that it corrects.
_CUE = re.compile(
    r"(?i)(?:(?:oh|oops|ah)[,! ]{1,2})?(?:no,? wait|wait,? no|actually,? no|no,? actually"
    r"|no,? sorry|sorry,? no|wait|correction|my mistake|my bad|oops|sorry|actually|no)"
    r"(?:[,:;.!–—-] ?| )"
)
_NAME = r"[\p{Lu}\p{N}][\p{L}\p{N}.'’:/%-]*(?: [\p{Lu}\p{N}][\p{L}\p{N}.'’:/%-]*){0,3}"
_WORDS = r"[\p{L}\p{N}][\p{L}\p{N}.'’:/%-]*(?: [\p{L}\p{N}.'’:/%-]+){0,3}"
_AT = r"(?:(?:on|in|at|to|for|from|the|an?) ){0,2}"
# Both what is right and what is not: alike as names are, or after "I meant".
_IS = r"(?:(?:it|that)(?:['’]s| is) )?"
_BOTH = tuple(
    re.compile(rf"{told}[.!]{{0,3}}")
    for told in (
        rf"(?i:i meant? (?:to say )?{_AT})(?P<now>{_WORDS}),? (?:and )?not {_AT}(?P<then>{_WORDS})",
        rf"(?i:{_IS}{_AT})(?P<now>{_NAME}),? (?:and )?not {_AT}(?P<then>{_NAME})",
        rf"(?i:{_IS}not {_AT})(?P<then>{_NAME}),? (?:but )?{_AT}(?P<now>{_NAME})",
    )
)
_NUMBERS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon|midnight"
_TIME = (
    r"(?:(?:next|this) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april"
    rf"|may|june|july|august|september|october|november|december|{_NUMBERS}|\d[\d:.,]*)"
    r"(?: \p{L}{1,10}| \d[\d:.,]*){0,3}"
)
_IT = re.compile(rf"(?i)(?:it(?:['’]s| is)|i meant?) {_AT}(?P<now>{_TIME})[.!]{{0,3}}")
_WHOSE = re.compile(
    rf"(?i:(?:his|her|their|its) (?P<noun>[\p{{L}}-]+(?: [\p{{L}}-]+)?) is (?:now )?{_AT})"
    rf"(?P<now>{_WORDS})[.!]{{0,3}}"
)


def read_corrections(one: Said, source: int) -> Iterator[Fact]:
    """What a message takes back, or corrects of what was said before it, by its first sentence: the
    others follow on words of its own.
    """
    if (first := first_sentence(one.content)) is not None:
        start, end = first
        text = one.content[start:end]
        if len(text) > SENTENCE_CHARS_MAX or is_quoted_line(one.content, start, end):
            return
        back = _BACK.match(text)
        if back is not None:
            about = back["about"] or THAT
            yield _fact(one, source, start, end, TAKES_BACK, about)
            return
        cue = _CUE.match(text)
        told = text[cue.end() :] if cue is not None else text
        found = next((each for form in _BOTH if (each := form.fullmatch(told))), None)
        if found is not None:
            now, then = (found[name].rstrip(".") for name in ("now", "then"))
            yield _fact(one, source, start, end, CORRECTS, now, then)
        elif cue is not None and (found := _IT.fullmatch(told) or _WHOSE.fullmatch(told)):
            noun = found.groupdict().get("noun")
            yield _fact(one, source, start, end, CORRECTS, found["now"].rstrip("."), None, noun)


def without_cues(text: str) -> str:
    """The text with what opens a correction blanked out; what is left stays where it was."""
    if (first := first_sentence(text)) is not None:
        start, end = first
        told = text[start:end]
        cue = _BACK.match(told) or _CUE.match(told)
        if cue is not None and cue.end() < len(told):
            return text[:start] + " " * cue.end() + text[start + cue.end() :]
    return text


def _fact(
    one: Said, source: int, start: int, end: int, predicate: str, thing: str,
    then: str | None = None, noun: str | None = None,
) -> Fact:  # fmt: skip
    text = one.content[start:end]
    return Fact(one.speaker, predicate, thing, text, source, start, end, "ended",
                detail=noun, by=then, relates=False)  # fmt: skip
