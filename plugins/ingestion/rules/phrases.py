"""What the further languages are put together from: fewer rules than English has, of the same kind.

Most of their rules are rows (verb_rules): a predicate, its verb for the speaker and for others, and
what follows it.
"""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, Language, Pattern, Rule, rule, words

THING = r"(?P<o>[^,;:()]{2,70})"
NAMED = rf"(?P<o>{NAME})"
NEVER = Pattern(r"(?!)")


def subject_of(me: str, my: str, relatives: str, pronouns: str) -> str:
    """The speaker (`me` is "" where the verb alone says so), somebody's relative, a pronoun, or a
    name.
    """
    return (
        rf"(?:(?P<me>(?i:\b(?:{me})\b))|(?P<kin>(?<=(?i:\b(?:{my})\s+))(?i:{relatives}))(?:,"
        rf"?\s+(?P<kinname>{NAME}),?)?(?![\p{{L}}])"
        rf"|(?P<pron>(?i:\b(?:{pronouns})\b))|(?P<name>{NAME}))"
    )


def language(
    code: str,
    small_words: str,
    rules: tuple[Rule, ...],
    *,
    relatives: dict[str, str],
    pronouns: dict[str, str],
    cut: str,
    introduction: str,
    i: str,
    no_names: str,
    **parts: str,
) -> Language:
    """A Language from patterns given as text; matching ignores case, except in rules."""

    def pattern(name: str) -> Pattern:
        text = parts.get(name, "")
        return Pattern(f"(?i){text}") if text else NEVER

    return Language(
        code=code,
        small_words=words(small_words),
        rules=rules,
        cut=Pattern(cut),
        unsure=pattern("unsure"),
        ended=pattern("ended"),
        denied=pattern("denied"),
        since=pattern("since"),
        tail=pattern("tail"),
        end=NEVER,
        article=pattern("article"),
        enumeration=pattern("enumeration"),
        introduction=Pattern(introduction),
        relatives=relatives,
        i=i,
        joint=pattern("joint"),
        elided=pattern("elided"),
        pronouns=pronouns,
        no_names=words(no_names),
        no_objects=words("es das la le lo ça o a het dat"),
    )


# What a rule says beside its verb: a place or name, a thing, several things, one word.
_OBJECTS = {
    "name": (NAMED, {}),
    "thing": (THING, {}),
    "things": (THING, {"listed": True}),
    "word": (r"(?P<o>[\p{L}'’-]{2,30})", {}),
    "number": (r"(?P<o>\d{1,3})(?i:\s+(?:ans|años|anni|anos|jaar))", {}),
    "state": (
        r"(?i:(?:une?|un[ao]?|uma?|een)\s+)?(?P<o>(?i:vég[aé]tarien(?:ne)?|végane?|vegetarian[oa]|"
        r"vegan[oa]|vegetarisch|"
        r"veganist(?:isch)?|divorcée?|divorciad[oa]|"
        r"divorziat[oa]|divorciad[oa]|gescheiden|enceinte|embarazada|incinta|grávida|zwanger|"
        r"jubilad[oa]|retraitée?))(?!\p{L})",
        {},
    ),
    "job": (
        r"(?i:(?:une?|un[ao]?|uma?|een)\s+)?(?P<o>(?i:infirmi(?:er|ère)|professeure?|ingénieure?|"
        r"médecin|boulang(?:er|ère)|avocate?|"
        r"architecte?|cuisini(?:er|ère)|"
        r"enfermer[oa]|profesora?|ingenier[oa]|médic[oa]|abogad[oa]|arquitect[oa]|cociner[oa]|"
        r"periodista|infermier[ae]|"
        r"professore(?:ssa)?|insegnante|ingegnere|medico|avvocato|"
        r"architetto|cuoc[oa]|enfermeir[oa]|professora?|engenheir[oa]|advogad[oa]|arquitet[oa]|"
        r"cozinheir[oa]|jornalista|"
        r"verpleegkundige|lera(?:ar|res)|ingenieur|arts|bakker|"
        r"advocaat|kok|journaliste?))(?!\p{L})",
        {},
    ),
    "rest": (r"(?P<o>[^;:()]{4,80})", {"dated": True}),
}
Row = tuple[str, str, str, str, str, str]


def verb_rules(
    me: str, my: str, relatives: dict[str, str], pronouns: str, adverbs: str, rows: tuple[Row, ...]
) -> tuple[Rule, ...]:
    """Rules from rows of (predicate, first person, third person, what follows the verb, kind of
    object, flags).

    `me` is the pronoun with what may stand between it and its verb, all optional; a row's third
    person may be empty.
    """
    third = (
        rf"(?:(?P<kin>(?<=(?i:\b(?:{my})\s+))(?i:{'|'.join(relatives)}))(?:,"
        rf"?\s+(?P<kinname>{NAME}),?)?"
        rf"|(?P<pron>(?i:\b(?:{pronouns})\b))|(?P<name>{NAME}))(?i:\s+(?:ne\s+|n['’]|no\s+|non\s+|"
        r"não\s+|ya\s+no\s+))?"
    )
    rules = []
    for predicate, first, other, follows, kind, flags in rows:
        thing, options = _OBJECTS[kind]
        others = rf"|{third}\s*(?i:\b(?:{other}))" if other else ""
        subject = (
            rf"(?:(?P<me>(?<!\p{{L}})(?i:{me}(?:{first})))(?!\p{{L}}){others}(?!\p{{L}}))"
            rf"(?i:{adverbs})"
        )
        marks = dict.fromkeys(flags.split(), True)
        rules.append(rule(predicate, rf"{subject}(?i:{follows})\s*{thing}", **options, **marks))
    return tuple(rules)


def kin(my: str, relatives: dict[str, str], is_called: str) -> str:
    """ "my sister Clara", "my sister is called Clara"."""
    return (
        rf"\b(?P<me>(?i:{my}))\s+(?P<rel>(?i:{'|'.join(relatives)}))(?i:\s+(?:{is_called})|,"
        rf")?\s+(?P<o>{NAME})"
    )
