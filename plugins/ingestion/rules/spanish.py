"""Spanish for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, kin, language, verb_rules

_RELATIVES = related(
    sister="hermana",
    brother="hermano",
    mother="madre mamá",
    father="padre papá",
    daughter="hija",
    son="hijo",
    married_to="esposa mujer marido esposo",
    partner_of="novia novio",
    friend="amiga amigo",
    boss="jefa jefe",
    grandmother="abuela",
    grandfather="abuelo",
    aunt="tía",
    uncle="tío",
    cousin="prima primo",
    neighbor="vecina vecino",
)
_MY, _CALLED = r"mi|nuestra|nuestro", r"se\s+llama|es"
SPANISH = language(
    "es",
    "yo el la los las un una es y en mi me no de del con por para que soy estoy tengo se ella muy "
    "pero",
    (
        rule("", kin(_MY, _RELATIVES, _CALLED)),
        *verb_rules(
            r"(?:yo\s+)?(?:ya\s+)?(?:no\s+)?",
            _MY,
            _RELATIVES,
            "él|ella",
            r"(?:\s+(?:ahora|también|siempre|mucho|actualmente|ya))*",
            (
                ("named", r"me\s+llamo|mi\s+nombre\s+es", "", "", "name", ""),
                (
                    "lives_in",
                    r"me\s+mudé|me\s+he\s+mudado",
                    r"se\s+mudó|se\s+ha\s+mudado",
                    rf"(?:\s+de\s+(?P<before>(?-i:{NAME})))?\s+a",
                    "name",
                    "changes alone",
                ),
                ("lives_in", r"vivo", r"vive", r"\s+en", "name", ""),
                ("comes_from", r"soy", r"es", r"\s+de", "name", ""),
                ("works_at", r"trabajo", r"trabaja", r"\s+(?:en|para)", "name", ""),
                (
                    "works_at",
                    r"empecé\s+a\s+trabajar|he\s+empezado\s+a\s+trabajar",
                    r"empezó\s+a\s+trabajar",
                    r"\s+en",
                    "name",
                    "changes",
                ),
                ("works_as", r"trabajo", r"trabaja", r"\s+como", "word", ""),
                ("works_as", r"soy", "", "", "job", ""),
                ("studies", r"estudio", r"estudia", "", "word", ""),
                (
                    "likes",
                    r"(?:a\s+mí\s+)?me\s+(?:gustan?|encantan?)|amo",
                    r"adora|ama",
                    "",
                    "things",
                    "",
                ),
                ("dislikes", r"odio|detesto", r"odia|detesta", "", "things", "alone"),
                ("speaks", r"hablo", r"habla", "", "word", ""),
                (
                    "learns",
                    r"aprendo|estoy\s+aprendiendo",
                    r"aprende|está\s+aprendiendo",
                    r"(?:\s+a\s+tocar)?",
                    "thing",
                    "",
                ),
                ("plays", r"toco|juego\s+al?", r"toca|juega\s+al?", "", "thing", ""),
                ("allergic_to", r"soy\s+alérgic[oa]", r"es\s+alérgic[oa]", r"\s+a", "things", ""),
                ("is", r"soy|me\s+hice", r"es|se\s+hizo", "", "state", ""),
                ("age", r"tengo", r"tiene", "", "number", ""),
                (
                    "owns",
                    r"(?:me\s+)?compré|he\s+comprado|me\s+he\s+comprado",
                    r"(?:se\s+)?compró",
                    "",
                    "thing",
                    "changes",
                ),
                ("plans", r"voy\s+a|pienso|planeo", r"va\s+a|piensa", "", "rest", ""),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:perr[oa]|gat[oa]|conejo|loro|"
            rf"caballo))(?i:\s+se\s+llama|,)?\s+{NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:pero|porque|aunque|así\s+que)\s+|,?\s+y\s+(?=(?:yo|él|ella|mi|me|vivo|"
    r"trabajo|tengo|soy|hablo|estudio|no|vive|"
    r"trabaja|tiene|habla|estudia)\b)|;\s*|,\s+(?=(?:mi|me|yo)\b)",
    unsure=r"\b(?:si|quizás?|tal\s+vez|gustaría|quisiera|podría|sería|ojalá)\b",
    ended=r"\b(?:ya\s+no|dejé\s+de|antes)\b",
    denied=r"\b(?:no|nunca)\b",
    since=r"\b(?:desde)\b",
    tail=r"\s+(?:desde|porque|cuando|en\s+\p{L}+|con|para|el\s+\p{L}+|cada|todos|todas|ahora|mucho|"
    r"también|hace|pasad[oa]|que|como|"
    r"de\s+mi)\b.*$",
    article=r"^(?:el|la|los|las|un|una|unos|unas|mi)\s+",
    enumeration=r",\s*|\s+(?:y|e|o)\s+",
    introduction=kin(_MY, _RELATIVES, _CALLED),
    relatives=_RELATIVES,
    i="yo",
    joint=r"\b(?:y|pero)\s+$",
    elided=r"(?:vivo|vive|trabajo|trabaja|tengo|tiene|soy|hablo|habla|estudio|estudia)\b",
    pronouns={"él": "m", "ella": "f"},
    no_names=(
        "yo él ella mi me en desde ayer sí no hola gracias el la los las un una y pero hace ya"
    ),
)
