"""Patterns: facts of conversations by what sentences look like, for what no trees are read of.

A message is cut into sentences and clauses, quotations and questions left out. Each clause is held
against the patterns of its language (english.py, german.py and the others beside this), which say
what the subject, the verb and the object of a predicate look like. The engine does the rest, the
same for all languages: it resolves the subject (the speaker, a named person, "my sister", a pronoun
for whoever was last spoken of), trims the object to what it names, notices what is ended or denied,
and dates the claim.

It is made to be right rather than complete: a clause that wonders, wishes, quotes or asks gives
nothing.

What is injected into conversations from memory is cut out first (without_recalled): what was
recalled is not said anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import regex as re

from plugins.ingestion.facts import PREDICATES, RELATIVES, Fact, Said
from plugins.ingestion.rules.dates import resolve
from plugins.ingestion.rules.dutch import DUTCH
from plugins.ingestion.rules.english import ENGLISH
from plugins.ingestion.rules.french import FRENCH
from plugins.ingestion.rules.german import GERMAN
from plugins.ingestion.rules.italian import ITALIAN
from plugins.ingestion.rules.patterns import Language, Rule
from plugins.ingestion.rules.portuguese import PORTUGUESE
from plugins.ingestion.rules.spanish import SPANISH
from plugins.ingestion.sentences import around, is_quoted_line, sentences

LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH)
}
_SPOKEN_BY = {  # small word -> the languages that have it
    word: tuple(code for code, language in LANGUAGES.items() if word in language.small_words)
    for word in frozenset().union(*(language.small_words for language in LANGUAGES.values()))
}
_RECALLED = re.compile(
    r"(?i)<(?P<closes>/?)(?P<tag>memory|memories|recalled_memories)\b[^<>]{0,200}>"
)
_SENTENCE = re.compile(
    r"[^.!?\n。！？]+(?:\.(?=[^\s.!?])[^.!?\n。！？]*|[.](?<=\b(?:Dr|Mr|Mrs|Ms|St|"
    r"Prof)[.])[^.!?\n。！？]*)*[.!?。！？…]*"
)
_QUOTED = re.compile(r"[\"“„«][^\"”“»\n]{1,400}[\"”“»]")
SENTENCE_CHARS_MAX = 500  # what goes on for longer without a full stop is no sentence
_WORD = re.compile(r"[\p{L}']+")


@dataclass(slots=True)
class Talk:
    """What one conversation has established so far: who "my sister" is, and whom a pronoun
    means.
    """

    at: int
    relatives: dict[tuple[str, str], str] = field(
        default_factory=dict
    )  # (speaker, relation) -> name
    last: dict[str, str] = field(default_factory=dict)  # pronoun gender, or "any" -> name
    subject: str = ""  # of the clause before


def read_patterns(one: Said, index: int, talk: Talk) -> Iterator[list[Fact]]:
    """What the patterns of its language find in a message, clause by clause."""
    language = LANGUAGES[language_of(one.content)]
    for start, end in clauses(one.content, language):
        yield _read(one, index, start, end, language, talk)


def in_whole_sentences(facts: Sequence[Fact], said: Sequence[Said]) -> list[Fact]:
    """The facts with the sentence that each was read in for its text: verbatim, but for the name
    that a clause of it has in the place of a pronoun.
    """
    spans = {fact.source: sentences(said[fact.source].content) for fact in facts}
    places = [(fact.source, *around(spans[fact.source], fact.start, fact.end)) for fact in facts]
    named: dict[tuple[int, int, int], dict[tuple[int, int], str]] = {}
    for fact, place in zip(facts, places, strict=True):
        clause = said[fact.source].content[fact.start : fact.end]
        # A clause without a subject of its own was read with one; nobody said it.
        if not fact.text.endswith(clause):
            kept = _ending_alike(fact.text, clause)
            pronoun = (fact.start, fact.end - kept)
            named.setdefault(place, {})[pronoun] = fact.text[: len(fact.text) - kept]
    texts = {}
    for source, low, high in places:
        text = said[source].content
        for (start, end), name in sorted(named.get((source, low, high), {}).items())[::-1]:
            text = text[:start] + name + text[end:]
        grown = len(text) - len(said[source].content)
        texts[(source, low, high)] = text[low : high + grown]
    return [replace(fact, text=texts[place]) for fact, place in zip(facts, places, strict=True)]


def _ending_alike(one: str, other: str) -> int:
    """How many characters at their ends two texts have in common."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def language_of(text: str) -> str:
    """The language most of whose small words the text has; English when none stands out."""
    counts = dict.fromkeys(LANGUAGES, 0)
    for word in _WORD.findall(text[:2_000].casefold().replace("’", "'")):
        for code in _SPOKEN_BY.get(word, ()):
            counts[code] += 1
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    return best if counts[best] > 0 else "en"


# --- sentences and clauses ------------------------------------------------------------------------


def clauses(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Spans of what is stated: sentences that ask or are quoted are left out, the others cut where
    a new subject begins.
    """
    text = without_recalled(text)
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for sentence in _SENTENCE.finditer(text):
        start, end = sentence.span()
        if (
            end - start > SENTENCE_CHARS_MAX
            or any(low < end and start < high for low, high in quoted)
            or is_quoted_line(text, start, end)
            or text[start:end].rstrip().endswith(("?", "？"))
        ):
            continue
        cuts = [start]
        for cut in language.cut.compiled.finditer(text, start, end):
            cuts += [cut.start(), cut.end()]
        cuts.append(end)
        for low, high in zip(cuts[::2], cuts[1::2], strict=True):
            low, high = _trimmed(text, low, high)
            if low < high:
                yield low, high


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in ")'’+#"):
        end -= 1
    return start, end


def without_recalled(text: str) -> str:
    """The text with every block of recalled memories, tags included, blanked out; what is left
    stays where it was.
    """
    kept, place, opened = [], 0, None
    for found in _RECALLED.finditer(text):
        if opened is None and not found["closes"]:
            opened = found
        elif (
            opened is not None
            and found["closes"]
            and found["tag"].casefold() == opened["tag"].casefold()
        ):
            kept += [text[place : opened.start()], "\n" * (found.end() - opened.start())]
            place, opened = found.end(), None
    return "".join([*kept, text[place:]])


# --- one clause -----------------------------------------------------------------------------------


def _read(
    one: Said, index: int, start: int, end: int, language: Language, talk: Talk
) -> list[Fact]:
    clause = one.content[start:end]
    _note_relatives(clause, one.speaker, language, talk)
    if language.unsure.compiled.search(clause):
        return []
    spoken = _with_subject(clause, one, start, language, talk)
    found: list[Fact] = []
    for rule in language.rules:
        matched = False
        for match in rule.pattern.compiled.finditer(spoken):
            for fact in _facts(rule, match, spoken, one, language, talk):
                matched = True
                found.append(replace(fact, source=index, start=start, end=end))
        if matched and rule.alone:
            break
    return found


def _with_subject(clause: str, one: Said, start: int, language: Language, talk: Talk) -> str:
    """A clause that begins with its verb ("… and work at Acme") gets the subject of the clause
    before it.
    """
    if not language.elided.compiled.match(clause) or not language.joint.compiled.search(
        one.content[:start]
    ):
        return clause
    return (
        f"{language.i if talk.subject == one.speaker else talk.subject} {clause}"
        if talk.subject
        else clause
    )


def _facts(
    rule: Rule, match: re.Match[str], clause: str, one: Said, language: Language, talk: Talk
) -> Iterator[Fact]:
    """The facts of one match in a clause; where they stand is for the caller to say."""
    groups = match.groupdict()
    subject, relative = _subject(groups, one.speaker, language, talk)
    if subject is None:
        return
    talk.subject = subject
    text = _text(clause, groups, match, subject)
    ahead = rule.predicate == "plans"
    since = resolve(clause, talk.at, language.code, ahead=ahead)
    predicate = rule.predicate or language.relatives.get((groups.get("rel") or "").casefold(), "")
    if predicate not in PREDICATES:
        return
    polarity = (
        "ended"
        if rule.ends or language.ended.compiled.search(clause)
        else "denied"
        if language.denied.compiled.search(clause)
        else "holds"
    )
    if groups.get("before"):
        polarity = "holds"  # what is over is the other one
    owner = one.speaker if relative else None
    common = {
        "subject": subject,
        "relative": relative,
        "owner": owner,
        "text": text,
        "source": 0,
        "start": 0,
        "end": 0,
    }
    for thing in _objects(rule, groups["o"], language):
        changes = rule.changes and polarity == "holds"
        dated = (
            since
            if changes
            or rule.dated
            or polarity == "ended"
            or language.since.compiled.search(clause)
            else None
        )
        yield Fact(
            predicate=predicate,
            object=thing,
            polarity=polarity,
            valid_from=dated if polarity == "holds" else None,
            valid_to=dated if polarity == "ended" else None,
            detail=groups.get("kind"),
            **common,
        )
    before = groups.get("before")
    if before and polarity == "holds":
        for thing in _objects(rule, before, language):
            yield Fact(
                predicate=predicate, object=thing, polarity="ended", valid_to=since, **common
            )


def _subject(
    groups: dict[str, str | None], speaker: str, language: Language, talk: Talk
) -> tuple[str | None, str | None]:
    """(name, relation by which alone the subject is known); (None, None) when it is unclear who is
    meant.
    """
    if groups.get("me") is not None:
        return speaker, None
    if kin := groups.get("kin"):
        relation = language.relatives.get(kin.casefold(), "")
        name = groups.get("kinname") or talk.relatives.get((speaker, relation))
        if name:
            talk.last["any"] = talk.last[language.genders.get(relation, "any")] = name
            return name, None
        name = f"{speaker}'s {relation or kin.casefold()}"
        talk.last["any"] = talk.last[language.genders.get(relation, "any")] = name
        return (name, relation) if relation else (None, None)
    if pronoun := groups.get("pron"):
        gender = language.pronouns.get(pronoun.casefold())
        name = talk.last.get(gender or "any") or talk.last.get("any")
        relation = name.partition("'s ")[2] if name and name.startswith(f"{speaker}'s ") else None
        return name, relation or None
    name = groups.get("name")
    if name is None or not language.no_names.isdisjoint(name.casefold().split()):
        return None, None
    talk.last["any"] = name
    for gender in ("f", "m"):
        talk.last.setdefault(gender, name)
    return name, None


def _note_relatives(clause: str, speaker: str, language: Language, talk: Talk) -> None:
    """ "my sister Clara": from now on, "my sister" is Clara."""
    for match in language.introduction.compiled.finditer(clause):
        relation = language.relatives.get(match["rel"].casefold(), "")
        if relation in RELATIVES and match["o"].casefold() not in language.no_names:
            talk.relatives[(speaker, relation)] = match["o"]
            gender = language.genders.get(relation, "any")
            talk.last["any"] = talk.last[gender] = match["o"]


def _text(clause: str, groups: dict[str, str | None], match: re.Match[str], subject: str) -> str:
    """The memory's text: the clause, with the name in the place of a pronoun that leads it."""
    if groups.get("pron") and match.start("pron") == 0:
        return subject + clause[match.end("pron") :]
    return clause


def _objects(rule: Rule, text: str, language: Language) -> list[str]:
    """What the object names: trimmed of times and trailing words, and one of each in an
    enumeration.
    """
    text = (
        language.tail.compiled.sub("", language.article.compiled.sub("", text.strip()))
        if not rule.whole
        else language.end.compiled.sub("", text.strip())
    )
    parts = language.enumeration.compiled.split(text) if rule.listed else [text]
    things = []
    for part in parts:
        part = language.article.compiled.sub("", part.strip(" ,;:-–—\"'"))
        if part and part.casefold() not in language.no_objects and len(part) <= 120:
            things.append(part)
    return things
