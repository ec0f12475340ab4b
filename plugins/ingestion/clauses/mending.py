"""Readings mended where people write otherwise than treebanks do: clauses that follow one another
by a comma alone, "'s" for "has", a value after a colon, parents called by what they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.inference import language
from storage.text import word_set

Tokens = tuple[language.Token, ...]

_CLITICS = ("'s", "’s")
_SUBJECTS = ("nsubj", "nsubj:pass")
# By these a clause that follows a comma may hang on the one before it, as a reading takes it.
_MISREAD = frozenset(
    {"ccomp", "xcomp", "obl", "obl:unmarked", "obj", "nmod", "nmod:unmarked", "advcl", "dep",
     "list", "appos", "conj", "acl", "advmod"}
)  # fmt: skip
_SUBORDINATE = word_set(
    """if when while as since because although though once unless until till after before whether
    whenever wherever where than lest whereas"""
)
# Verbs after which a clause without a mark is what somebody thinks or says.
_TELLING = word_set(
    """think guess believe suppose imagine wish hope doubt wonder pretend dream expect seem hear say
    tell ask claim assume feel suggest bet swear promise know mean remember forget realise realize
    find see mention reckon figure fear worry warn explain insist admit agree decide text write
    joke shout read go texted reply answer email message post tweet sing type tease lie"""
)
_UNSURE = word_set("would could might may should must ought shall will")
_NAMING = word_set("call name give pay teach show offer tell send ask")
_STATES = word_set("divorce marry engage separate retire")
_PARENTS = word_set(
    """mum mom mam mummy mommy mother dad daddy father nan nana gran granny grandma grandmother
    grandad granddad grandpa grandfather"""
)
_HEADINGS = word_set(
    """note notes reminder update decision question answer summary outcome result results list
    example agenda todo fact news thing things point points plan idea reason problem issue rule
    step option topic subject title headline warning ps fyi"""
)
_RELATIVE = word_set("who which that what")
_VALUES = ("NOUN", "PROPN", "NUM", "SYM", "X")
_BE = {"lemma": "be", "tag": "AUX", "features": frozenset({"Tense=Pres", "VerbForm=Fin"})}


def mended(text: str, sentence: language.Sentence, tokens: Tokens) -> Tokens:
    """The tokens as they are to be taken."""
    if not tokens:
        return tokens
    tokens = _with_parents(text, tokens)
    tokens = _with_perfect(text, tokens)
    tokens = _with_gerunds(tokens)
    if not any(token.relation == "cop" for token in tokens):
        tokens = _with_value(text, tokens)
    return _in_clauses(text, sentence, tokens)


def _relabelled(tokens: Tokens, changed: Mapping[int, language.Token]) -> Tokens:
    return tuple(changed.get(n, token) for n, token in enumerate(tokens)) if changed else tokens


def _word(text: str, token: language.Token) -> str:
    return text[token.start : token.end]


def _below(tokens: Tokens, place: int) -> list[int]:
    return [n for n, token in enumerate(tokens) if token.head == place]


def _with_parents(text: str, tokens: Tokens) -> Tokens:
    """ "Mum has moved", whose "Mum" is read as a name, is about a mother."""
    changed = {}
    for place, token in enumerate(tokens):
        small = _word(text, token).casefold()
        if token.tag != "PROPN" or small not in _PARENTS or token.relation in ("flat", "compound"):
            continue
        around = [tokens[n] for n in (place - 1, place + 1) if 0 <= n < len(tokens)]
        if not any(each.tag == "PROPN" for each in around):
            changed[place] = token._replace(tag="NOUN", lemma=small)
    return _relabelled(tokens, changed)


def _with_perfect(text: str, tokens: Tokens) -> Tokens:
    """ "Mum's moved to Stoke", "Yasmin's left Dean": "'s" is "has" before what somebody did."""
    changed: dict[int, language.Token] = {}
    for place, token in enumerate(tokens):
        after = place + 1
        if _word(text, token) not in _CLITICS or not 0 < place < len(tokens) - 1:
            continue
        while after < len(tokens) - 1 and tokens[after].tag == "ADV":
            after += 1
        verb = tokens[after]
        own = [n for n in _below(tokens, after) if tokens[n].relation in _SUBJECTS and n < place]
        if verb.tag != "VERB" or "Tense=Past" not in verb.features or not own:
            continue
        has_object = any(tokens[n].relation == "obj" for n in _below(tokens, after))
        if verb.lemma in _NAMING or (verb.lemma in _STATES and not has_object):
            continue  # "Tom's called Tommy", "Tom's divorced"
        is_had = token.relation in ("aux", "case") and token.tag in ("AUX", "PART")
        is_had &= token.head in (after, own[0])
        is_had |= token.relation == "aux:pass" and has_object
        if is_had:
            changed[place] = token._replace(head=after, relation="aux", **(_BE | {"lemma": "have"}))
            changed[own[0]] = tokens[own[0]]._replace(relation="nsubj")
    return _relabelled(tokens, changed)


def _with_gerunds(tokens: Tokens) -> Tokens:
    """ "I'm at the office doing the accounts", whose "doing" may be read as its subject; "it turns
    out I'm allergic", which is a clause of its own.
    """
    changed = {
        place: token._replace(relation="ccomp")
        for place, token in enumerate(tokens)
        if token.relation == "xcomp"
        and {"nsubj", "cop"} <= {tokens[n].relation for n in _below(tokens, place)}
    }
    changed |= {
        place: token._replace(relation="advcl")
        for place, token in enumerate(tokens)
        if token.relation == "csubj"
        and place > token.head >= 0
        and any(
            tokens[n].relation in _SUBJECTS and _says_who(tokens[n])
            for n in _below(tokens, token.head)
        )
    }
    return _relabelled(tokens, changed)


def _says_who(token: language.Token) -> bool:
    return token.tag in ("NOUN", "PROPN") or token.lemma in ("I", "we", "he", "she", "they")


def _with_value(text: str, tokens: Tokens) -> Tokens:
    """ "Log retention for EU tenants: 30 days" tells what it is, as with "is"."""
    mark = next((n for n, token in enumerate(tokens) if _word(text, token) == ":"), 0)
    if not 0 < mark < len(tokens) - 1 or tokens[mark + 1].start == tokens[mark].end:
        return tokens
    if any(token.tag in ("VERB", "AUX", "PUNCT", "PRON") and token.relation != "nmod:poss"
           for token in tokens[:mark]):  # fmt: skip
        return tokens
    heads = [n for n in range(mark) if not 0 <= tokens[n].head < mark]
    end = next((n for n in range(mark + 1, len(tokens)) if tokens[n].tag == "PUNCT"), len(tokens))
    values = [n for n in range(mark + 1, end) if not mark < tokens[n].head < end]
    if len(heads) != 1 or len(values) != 1:
        return tokens
    (head,), (value,) = heads, values
    if tokens[head].tag != "NOUN" or tokens[head].lemma in _HEADINGS or (
        tokens[value].tag not in _VALUES
    ):  # fmt: skip
        return tokens
    if any(token.tag in ("VERB", "AUX") for token in tokens[mark + 1 : end]) or any(
        tokens[n].relation == "conj" for n in _below(tokens, value)
    ):
        return tokens
    changed = {
        n: tokens[n]._replace(head=value, relation="parataxis")
        for n in _below(tokens, head) if n > mark and n != value
    }  # fmt: skip
    changed[head] = tokens[head]._replace(head=value, relation="nsubj")
    changed[mark] = tokens[mark]._replace(head=value, relation="cop", **_BE)
    changed[value] = tokens[value]._replace(head=language.ROOT, relation="root")
    return _relabelled(tokens, changed)


def _in_clauses(text: str, sentence: language.Sentence, tokens: Tokens) -> Tokens:
    """ "Dad died in 2019, mum's in a home now" is two clauses, and so is what goes on with "so",
    whatever the second one is read to be of the first.
    """
    if sentence.kind == "question" or _word(text, tokens[0]).casefold() in _SUBORDINATE:
        return tokens
    tokens = _with_clitics(text, tokens)
    changed: dict[int, language.Token] = {}
    for place, token in enumerate(tokens):
        is_so = token.lemma == "so" and token.tag in ("SCONJ", "ADV", "CCONJ")
        if not (is_so or _word(text, token) in (",", ";")) or place == 0:
            continue
        head = _next_clause(text, tokens, place)
        if head is None or tokens[head].relation not in _MISREAD:
            continue
        outer = tokens[head].head
        while 0 <= outer < place and tokens[outer].relation != "root" and (
            not _is_clause(text, tokens, outer)
        ):  # fmt: skip
            outer = tokens[outer].head
        if not 0 <= outer < place or not _is_clause(text, tokens, outer):
            continue
        is_told = tokens[outer].lemma in _TELLING or _word(text, tokens[outer]) in _TELLING
        if is_told or any(tokens[n].relation == "mark" for n in _below(tokens, outer)):
            continue
        is_thus = is_so or tokens[place + 1].lemma == "so"
        if is_thus and any(tokens[n].lemma in _UNSURE for n in _below(tokens, outer)):
            continue  # "Ana might leave, so Luis is my manager then"
        relation = "conj" if is_so else "parataxis"
        changed[head] = tokens[head]._replace(head=outer, relation=relation)
        if is_so:  # "she left, so Luis is my manager now"
            changed[place] = token._replace(head=head, relation="cc", tag="CCONJ")
        for n in range(place + 1, len(tokens)):  # what a reading tears from it
            beside = tokens[n]
            if n != head and beside.head == outer and beside.relation == "advmod":
                changed[n] = beside._replace(head=head)
    return _relabelled(tokens, changed)


def _with_clitics(text: str, tokens: Tokens) -> Tokens:
    """ "toaster's on its way out", whose "'s" is read as that of an owner."""
    changed = {}
    for place, token in enumerate(tokens):
        owner = place - 1
        if owner < 1 or token.tag != "AUX" or token.relation != "case" or token.head != owner:
            continue
        head = tokens[owner].head
        if tokens[owner].relation == "nsubj" and head > place and _word(text, token) in _CLITICS:
            changed[place] = token._replace(head=head, relation="cop")
    return _relabelled(tokens, changed)


def _next_clause(text: str, tokens: Tokens, mark: int) -> int | None:
    """The head of the clause that has its subject right after a mark."""
    for place in range(mark + 1, min(mark + 6, len(tokens))):
        token = tokens[place]
        if token.tag in ("PUNCT", "SCONJ", "CCONJ", "VERB") or token.relation == "mark":
            return None
        if token.relation in _SUBJECTS:
            head = token.head
            is_whole = (
                head > place
                and 0 <= tokens[head].head < mark
                and token.lemma not in _RELATIVE
                and not any(
                    tokens[n].relation in ("mark", "cc") and n != mark for n in _below(tokens, head)
                )
            )
            return head if is_whole and _is_clause(text, tokens, head) else None
    return None


def _is_clause(text: str, tokens: Tokens, head: int) -> bool:
    """Whether a token has a subject and a verb that tells when it is."""
    below = _below(tokens, head)
    helping = [n for n in below if tokens[n].relation in ("aux", "aux:pass")]
    told_of = [*below, *(n for each in helping for n in _below(tokens, each))]  # "Ben got" "hired"
    if not any(tokens[n].relation in _SUBJECTS for n in told_of):
        return False
    return "VerbForm=Fin" in tokens[head].features or any(
        tokens[n].relation in ("cop", "aux", "aux:pass")
        or (tokens[n].tag == "AUX" and _word(text, tokens[n]) in _CLITICS)
        for n in below
    )
