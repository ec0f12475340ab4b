"""German for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, THING, language, subject_of

_RELATIVES = related(
    sister="schwester",
    brother="bruder",
    mother="mutter mama",
    father="vater papa",
    daughter="tochter",
    son="sohn",
    married_to="frau mann ehemann ehefrau",
    partner_of="freundin freund",
    colleague="kollegin kollege",
    boss="chefin chef",
    grandmother="oma",
    grandfather="opa",
    aunt="tante",
    uncle="onkel",
    neighbor="nachbarin nachbar",
    cousin="cousine",
)
_REL, _MY = "|".join(_RELATIVES), r"mein|meine|meiner|unser|unsere"
_WHO = subject_of("ich", _MY, _REL, "er|sie") + r"(?i:\s+(?:bin|ist|habe|hat))?"
_ADV = (
    r"(?i:\s+(?:jetzt|auch|gerade|immer|noch|sehr|derzeit|aktuell|inzwischen|wirklich|"
    r"am\s+liebsten|gern|gerne|nun|"
    r"nicht\s+mehr|seit\s+[\p{L}\d]+(?:\s+\d{4})?))*"
)
_I = rf"(?P<me>(?i:\bich\b)){_ADV}"
_AM_I, _GAP, _MOVED = (
    r"(?i:\bbin\s+)(?P<me>(?i:ich))",
    r"(?i:(?:\s+[^,.;]{0,40}?)?)",
    r"(?i:\s+(?:um)?gezogen)",
)
GERMAN = language(
    "de",
    "ich und der die das ist nicht ein eine mein meine in im mit bin habe wir auf zu den seit für "
    "von bei sie er heißt jetzt",
    (
        rule("named", rf"(?P<me>\b(?i:mein\s+name\s+ist|ich\s+heiße))\s+{NAMED}"),
        rule(
            "",
            rf"\b(?P<me>(?i:{_MY}))(?i:\s+(?:ältere|jüngere|kleine|große|kleiner|großer|älterer|"
            rf"jüngerer)){{0,1}}\s+(?P<rel>(?i:{_REL}))"
            rf"(?i:\s+heißt|\s+ist|,)?\s+{NAMED}",
        ),
        rule(
            "lives_in",
            rf"{_WHO}{_GAP}\s+(?i:von\s+)(?P<before>{NAME})(?i:\s+nach\s+){NAMED}{_MOVED}",
            changes=True,
            alone=True,
        ),
        rule(
            "lives_in",
            rf"{_AM_I}{_GAP}\s+(?i:von\s+)(?P<before>{NAME})(?i:\s+nach\s+){NAMED}{_MOVED}",
            changes=True,
            alone=True,
        ),
        rule("lives_in", rf"{_WHO}{_GAP}(?i:\s+nach\s+){NAMED}{_MOVED}", changes=True, alone=True),
        rule("lives_in", rf"{_AM_I}{_GAP}(?i:\s+nach\s+){NAMED}{_MOVED}", changes=True, alone=True),
        rule("lives_in", rf"{_WHO}\s+(?i:wohne|wohnt|lebe|lebt){_ADV}(?i:\s+in\s+){NAMED}"),
        rule("lives_in", rf"(?i:\b(?:wohne|lebe))\s+{_I}(?i:\s+in\s+){NAMED}"),
        rule(
            "comes_from",
            rf"{_WHO}\s+(?i:komme|kommt|stamme|"
            rf"stammt){_ADV}(?i:\s+(?:ursprünglich\s+)?aus\s+){NAMED}",
        ),
        rule(
            "works_at",
            rf"{_WHO}\s+(?i:arbeite|arbeitet){_ADV}(?i:\s+(?:\w+\s+)?(?:bei|für)\s+(?:der\s+|"
            rf"dem\s+)?){NAMED}",
        ),
        rule("works_at", rf"(?i:\barbeite)\s+{_I}(?i:\s+(?:bei|für)\s+(?:der\s+|dem\s+)?){NAMED}"),
        rule(
            "works_as",
            rf"{_WHO}\s+(?i:arbeite|arbeitet|bin|"
            rf"ist){_ADV}(?i:\s+als\s+)(?P<o>\p{{Lu}}[\p{{L}}-]+)",
        ),
        rule(
            "works_as",
            r"(?P<me>\b(?i:ich\s+bin))\s+(?:von\s+Beruf\s+)?(?P<o>\p{Lu}\p{L}+(?:in|er|ist|istin|"
            r"ärztin|arzt|eur|eurin|"
            r"ent|entin))\b(?=\s*(?:$|[,.]|und|bei|in|seit))",
        ),
        rule("studies", rf"{_WHO}\s+(?i:studiere|studiert){_ADV}\s+(?P<o>\p{{Lu}}[\p{{L}}-]+)"),
        rule(
            "allergic_to",
            rf"{_WHO}\s+(?i:(?:bin\s+|ist\s+)?allergisch\s+(?:gegen|auf)\s+){THING}",
            listed=True,
        ),
        rule(
            "is",
            rf"{_WHO}(?:\s+(?i:bin|ist))?\s+(?i:jetzt\s+|seit\s+\p{{L}}+\s+)?(?P<o>(?i:vegan|"
            r"vegetarisch|Veganer(?:in)?|"
            rf"Vegetarier(?:in)?|schwanger|geschieden))\b",
        ),
        rule(
            "dislikes",
            rf"{_WHO}\s+(?i:hasse|hasst|mag|mögen)(?i:\s+(?:überhaupt\s+)?(?:kein|keine|"
            rf"keinen))\s+{THING}",
            listed=True,
            alone=True,
        ),
        rule("dislikes", rf"{_WHO}\s+(?i:hasse|hasst)\s+{THING}", listed=True, alone=True),
        rule(
            "likes",
            rf"{_WHO}\s+(?i:liebe|liebt|mag)(?!\s+(?i:kein|keine|keinen|es))\s+{THING}",
            listed=True,
        ),
        rule(
            "likes",
            rf"{_WHO}\s+(?i:esse|trinke|höre|lese|spiele)(?i:\s+(?:sehr\s+)?(?:gern|gerne|"
            rf"am\s+liebsten))\s+{THING}",
            listed=True,
        ),
        rule(
            "favorite",
            r"(?P<me>(?i:\bmein|\bmeine))\s+(?i:lieblings)(?P<kind>\p{L}+)(?i:\s+ist)\s+" + THING,
            alone=True,
        ),
        rule(
            "speaks",
            rf"{_WHO}\s+(?i:spreche|spricht)\s+(?i:fließend\s+|etwas\s+|"
            rf"gut\s+)?(?P<o>\p{{Lu}}\p{{L}}+(?:(?:,\s*|"
            rf"\s+und\s+)\p{{Lu}}\p{{L}}+)*)",
            listed=True,
        ),
        rule("learns", rf"{_WHO}\s+(?i:lerne|lernt){_ADV}\s+(?P<o>\p{{Lu}}\p{{L}}+)", changes=True),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:Hund|Katze|Kater|Hündin|Kaninchen|Hamster|"
            r"Papagei|"
            rf"Pferd))(?i:\s+heißt|,)?\s+{NAMED}",
        ),
        rule(
            "has_pet",
            rf"{_WHO}\s*(?i:\s*(?:einen|eine|ein))\s+(?P<kind>(?i:Hund|Katze|Kater|Hündin|Kaninchen|"
            r"Hamster|Papagei|"
            rf"Pferd))(?i:\s+namens)\s+{NAMED}",
        ),
        rule(
            "married_to",
            rf"{_WHO}(?i:\s+(?:bin\s+|"
            rf"ist\s+)?(?:seit\s+\d{{4}}\s+)?mit)\s+{NAMED}(?i:\s+verheiratet)",
        ),
        rule("age", rf"{_WHO}(?:\s+(?i:bin|ist))?\s+(?P<o>\d{{1,3}})(?i:\s+Jahre\s+alt)"),
        rule(
            "owns",
            rf"{_WHO}(?i:(?:\s+(?:mir|sich))?(?:\s+[^,.;]{{0,25}}?)?)\s+(?P<o>(?i:einen|eine|"
            rf"ein)\s+[^,;.]{{3,40}}?)(?i:\s+gekauft)",
            changes=True,
        ),
        rule(
            "plans",
            rf"{_WHO}\s+(?i:werde|wird|will|möchte|plane)\s+(?P<o>[^;:()]{{5,80}})",
            dated=True,
        ),
        rule(
            "did",
            r"(?P<me>(?i:\bich\b))(?i:\s+(?:habe|bin|war))\s+(?P<o>[^;:()]{5,80}?(?i:besucht|"
            r"gelaufen|gewonnen|bestanden|"
            r"gewesen|gereist|geflogen|gewandert|gefeiert))",
            dated=True,
        ),
    ),
    cut=r"(?i),\s+(?:und|aber|weil|denn|obwohl)\s+|\s+(?:aber|weil|denn|obwohl)\s+|,"
    r"?\s+und\s+(?=(?:ich|er|sie|wir|meine?|bin|habe|"
    r"arbeite|arbeitet|wohne|wohnt|lebe|lebt|lerne|mag|spreche|spricht|studiert)\b)|;\s*",
    unsure=r"\b(?:wenn|falls|vielleicht|würde|könnte|hätte|wäre|angeblich|möglicherweise)\b",
    ended=r"\b(?:nicht\s+mehr|kein\p{L}*\s+\p{L}+\s+mehr|früher|aufgehört)\b",
    denied=r"\b(?:nicht|kein|keine|keinen|nie)\b",
    since=r"\b(?:seit|ab)\b",
    tail=r"\s+(?:seit|weil|wenn|als|mit|für|am|im|letzte\p{L}*|nächste\p{L}*|jeden|jede|sehr|gern|"
    r"gerne|nicht|mehr|heute|gestern|"
    r"auch|überhaupt|über\s+alles|beim|bei)\b.*$",
    article=r"^(?:der|die|das|den|dem|ein|eine|einen|mein|meine)\s+",
    enumeration=r",\s*|\s+(?:und|oder)\s+",
    introduction=rf"(?i:\b(?:{_MY}))\s+(?P<rel>(?i:{_REL}))(?i:\s+heißt|\s+ist|,)?\s+(?P<o>{NAME})",
    relatives=_RELATIVES,
    i="ich",
    joint=r"\b(?:und|aber)\s+$",
    elided=(
        r"(?:bin|habe|hat|ist|arbeite|arbeitet|wohne|wohnt|lebe|lebt|lerne|lernt|mag|spreche|"
        r"spricht|studiere|studiert)\b"
    ),
    pronouns={"er": "m", "sie": "f"},
    no_names=(
        "ich seit im am heute gestern morgen mein meine der die das wir und letzten letzte früher "
        "jetzt ja nein hallo danke also dann"
    ),
)
