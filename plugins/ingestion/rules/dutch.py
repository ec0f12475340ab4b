"""Dutch for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, kin, language, verb_rules

_RELATIVES = related(
    sister="zus zusje",
    brother="broer",
    mother="moeder",
    father="vader",
    daughter="dochter",
    son="zoon",
    married_to="vrouw man",
    partner_of="vriendin vriend",
    colleague="collega",
    boss="baas",
    grandmother="oma",
    grandfather="opa",
    aunt="tante",
    uncle="oom",
    neighbor="buurman buurvrouw",
)
_MY, _CALLED = r"mijn|onze|ons", r"heet|is"
DUTCH = language(
    "nl",
    "ik en de het een is in mijn niet van met voor op ben heb dat te ook naar zij hij sinds maar "
    "woon",
    (
        rule("", kin(_MY, _RELATIVES, _CALLED)),
        rule(
            "lives_in",
            rf"(?P<me>\b(?i:ik))\s+(?i:ben)(?i:(?:\s+[^,.;]{{0,"
            rf"40}}?)?)(?i:\s+van\s+(?P<before>(?-i:{NAME})))?"
            rf"(?i:\s+naar)\s+{NAMED}(?i:\s+verhuisd)",
            changes=True,
            alone=True,
        ),
        *verb_rules(
            r"ik\s+",
            _MY,
            _RELATIVES,
            "hij|zij|ze",
            r"(?:\s+(?:nu|ook|altijd|niet\s+meer|niet|heel|graag|momenteel|sinds\s+\p{L}+|al))*",
            (
                ("named", r"heet", "", "", "name", ""),
                ("lives_in", r"woon", r"woont", r"\s+in", "name", ""),
                ("works_at", r"werk", r"werkt", r"\s+(?:bij|voor)(?:\s+de)?", "name", ""),
                ("works_as", r"werk|ben", r"werkt", r"\s+als", "word", ""),
                ("works_as", r"ben", "", r"", "job", ""),
                ("studies", r"studeer", r"studeert", "", "word", ""),
                ("likes", r"hou", r"houdt", r"\s+van", "things", ""),
                ("dislikes", r"haat", r"haat", "", "things", "alone"),
                ("speaks", r"spreek", r"spreekt", "", "word", ""),
                ("learns", r"leer", r"leert", "", "thing", ""),
                ("plays", r"speel", r"speelt", "", "thing", ""),
                ("allergic_to", r"ben\s+allergisch", r"is\s+allergisch", r"\s+voor", "things", ""),
                ("is", r"ben", r"is", "", "state", ""),
                ("age", r"ben", r"is", "", "number", ""),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:hond|kat|poes|konijn|paard|"
            rf"papegaai))(?i:\s+heet|,)?\s+{NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:maar|omdat|want|dus)\s+|,?\s+en\s+(?=(?:ik|hij|zij|mijn|werk|woon|heb|ben|"
    r"werkt|woont|hou|houdt|speelt)\b)|"
    r";\s*|,\s+(?=(?:ik|mijn)\b)",
    unsure=r"\b(?:als|misschien|zou|zouden|wellicht)\b",
    ended=r"\b(?:niet\s+meer|geen\s+\p{L}+\s+meer|vroeger|gestopt)\b",
    denied=r"\b(?:niet|geen|nooit)\b",
    since=r"\b(?:sinds|vanaf)\b",
    tail=(
        r"\s+(?:sinds|omdat|toen|in\s+\p{L}+|met|voor|op\s+\p{L}+|elke|nu|heel|graag|ook|niet|meer|"
        r"vorige?|gisteren|die|dat)\b.*$"
    ),
    article=r"^(?:de|het|een|mijn)\s+",
    enumeration=r",\s*|\s+(?:en|of)\s+",
    introduction=kin(_MY, _RELATIVES, _CALLED),
    relatives=_RELATIVES,
    i="ik",
    joint=r"\b(?:en|maar)\s+$",
    elided=r"(?:werk|werkt|woon|woont|hou|houdt|speel|speelt|spreek|heb|ben)\b",
    pronouns={"hij": "m", "zij": "f", "ze": "f"},
    no_names="ik hij zij mijn in sinds gisteren ja nee hallo dank de het een en maar",
)
