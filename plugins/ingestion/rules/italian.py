"""Italian for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, kin, language, verb_rules

_RELATIVES = related(
    sister="sorella",
    brother="fratello",
    mother="madre mamma",
    father="padre papà",
    daughter="figlia",
    son="figlio",
    married_to="moglie marito",
    partner_of="ragazza ragazzo",
    friend="amica amico",
    colleague="collega",
    grandmother="nonna",
    grandfather="nonno",
    aunt="zia",
    uncle="zio",
)
_MY, _CALLED = r"mia|mio|nostra|nostro", r"si\s+chiama|è"
ITALIAN = language(
    "it",
    "io il la gli le un una è e in mi mio mia non di del con per che sono ho si anche ma da a al "
    "alla",
    (
        rule("", kin(_MY, _RELATIVES, _CALLED)),
        *verb_rules(
            r"(?:io\s+)?(?:non\s+)?",
            _MY,
            _RELATIVES,
            "lui|lei",
            r"(?:\s+(?:ora|adesso|anche|sempre|molto|più|attualmente))*",
            (
                ("named", r"mi\s+chiamo", "", "", "name", ""),
                (
                    "lives_in",
                    r"mi\s+sono\s+trasferit[oa]",
                    r"si\s+è\s+trasferit[oa]",
                    rf"(?:\s+da\s+(?P<before>(?-i:{NAME})))?\s+a",
                    "name",
                    "changes alone",
                ),
                ("lives_in", r"vivo|abito", r"vive|abita", r"\s+(?:a|in)", "name", ""),
                ("works_at", r"lavoro", r"lavora", r"\s+(?:per|alla|in|da|presso)", "name", ""),
                ("works_as", r"lavoro", r"lavora", r"\s+come", "word", ""),
                ("works_as", r"faccio|sono", r"fa", r"(?:\s+il|\s+la|\s+l['’])?", "job", ""),
                ("studies", r"studio", r"studia", "", "word", ""),
                ("likes", r"mi\s+piac(?:e|ciono)|adoro|amo", r"adora|ama", "", "things", ""),
                ("dislikes", r"odio|detesto", r"odia|detesta", "", "things", "alone"),
                ("speaks", r"parlo", r"parla", "", "word", ""),
                (
                    "learns",
                    r"sto\s+imparando|imparo",
                    r"sta\s+imparando",
                    r"(?:\s+a\s+suonare)?",
                    "thing",
                    "",
                ),
                ("plays", r"suono|gioco\s+a", r"suona|gioca\s+a", "", "thing", ""),
                (
                    "allergic_to",
                    r"sono\s+allergic[oa]",
                    r"è\s+allergic[oa]",
                    r"\s+(?:alle|ai|al|alla|agli|a)",
                    "things",
                    "",
                ),
                ("is", r"sono|sono\s+diventat[oa]", r"è|è\s+diventat[oa]", "", "state", ""),
                ("age", r"ho", r"ha", "", "number", ""),
                (
                    "owns",
                    r"ho\s+comprato|mi\s+sono\s+comprat[oa]",
                    r"ha\s+comprato",
                    "",
                    "thing",
                    "changes",
                ),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:cane|gatto|gatta|coniglio|"
            rf"cavallo))(?i:\s+si\s+chiama|,)?\s+{NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:ma|perché|però|quindi)\s+|,?\s+e\s+(?=(?:io|lui|lei|mi|mia|mio|vivo|lavoro|"
    r"ho|sono|non|vive|lavora|studio|"
    r"studia|parla|adoro|suono)\b)|;\s*|,\s+(?=(?:mi|mia|mio)\b)",
    unsure=r"\b(?:se|forse|vorrei|potrei|sarebbe|magari)\b",
    ended=r"\b(?:non\s+\p{L}+\s+più|ho\s+smesso)\b",
    denied=r"\b(?:non|mai)\b",
    since=r"\b(?:da(?:l)?|dal)\b",
    tail=(
        r"\s+(?:dal?|perché|quando|in\s+\p{L}+|a\s+\p{L}+io|con|per|ogni|ora|adesso|molto|anche|"
        r"più|scors[oa]|che|come|lo)\b.*$"
    ),
    article=r"^(?:(?:il|la|lo|i|gli|le|un|una|uno|mio|mia)\s+|l['’]|un['’])",
    enumeration=r",\s*|\s+(?:e|ed|o)\s+",
    introduction=kin(_MY, _RELATIVES, _CALLED),
    relatives=_RELATIVES,
    i="io",
    joint=r"\b(?:e|ma)\s+$",
    elided=r"(?:vivo|vive|lavoro|lavora|studio|studia|ho|sono|parlo|parla|adoro|suono|mi\s)\b",
    pronouns={"lui": "m", "lei": "f"},
    no_names="io lui lei mio mia mi in da ieri sì no ciao grazie il la un una e ma non sono",
)
