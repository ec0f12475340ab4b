"""French for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, kin, language, verb_rules

_RELATIVES = related(
    sister="sœur soeur",
    brother="frère",
    mother="mère",
    father="père",
    daughter="fille",
    son="fils",
    married_to="femme mari",
    partner_of="copine copain",
    friend="ami amie",
    colleague="collègue",
    boss="chef",
    neighbor="voisin voisine",
    aunt="tante",
    uncle="oncle",
)
_MY, _CALLED = r"mon|ma|notre", r"s['’]appelle|est"
FRENCH = language(
    "fr",
    "je j'ai suis et le la les un une est dans à mon ma pas de des du en avec pour nous elle il "
    "qui que ne",
    (
        rule("", kin(_MY, _RELATIVES, _CALLED)),
        *verb_rules(
            r"(?:je\s+(?:ne\s+)?|j['’]|je\s+n['’])",
            _MY,
            _RELATIVES,
            "il|elle",
            r"(?:\s+(?:plus|pas|maintenant|aussi|toujours|déjà|beaucoup|vraiment|actuellement))*",
            (
                ("named", r"m['’]appelle", "", "", "name", ""),
                (
                    "lives_in",
                    r"ai\s+déménagé|suis\s+parti[e]?\s+vivre",
                    r"a\s+déménagé|est\s+partie?\s+vivre",
                    rf"(?:\s+de\s+(?P<before>(?-i:{NAME})))?\s+à",
                    "name",
                    "changes alone",
                ),
                ("lives_in", r"habite|vis", r"habite|vit", r"\s+(?:à|en|au)", "name", ""),
                ("comes_from", r"viens", r"vient", r"\s+(?:de|d['’]|du)", "name", ""),
                ("works_at", r"travaille", r"travaille", r"\s+(?:chez|pour|à)", "name", ""),
                (
                    "works_at",
                    r"ai\s+commencé",
                    r"a\s+commencé",
                    r"\s+(?:à\s+travailler\s+)?chez",
                    "name",
                    "changes",
                ),
                ("works_as", r"travaille|suis", r"travaille", r"\s+comme", "word", ""),
                ("works_as", r"suis", "", r"", "job", ""),
                ("studies", r"étudie", r"étudie", r"\s+(?:la\s+|le\s+|l['’]|les\s+)?", "word", ""),
                ("likes", r"aime|adore", r"aime|adore", "", "things", ""),
                ("dislikes", r"déteste", r"déteste", "", "things", "alone"),
                (
                    "speaks",
                    r"parle",
                    r"parle",
                    r"(?:\s+couramment)?(?:\s+l['’]|\s+le)?",
                    "word",
                    "",
                ),
                (
                    "learns",
                    r"apprends",
                    r"apprend",
                    r"(?:\s+à\s+jouer\s+du|\s+le|\s+la|\s+l['’])?",
                    "thing",
                    "",
                ),
                ("plays", r"joue", r"joue", r"\s+(?:du|de\s+la|au|de\s+l['’])", "thing", ""),
                (
                    "allergic_to",
                    r"suis\s+allergique",
                    r"est\s+allergique",
                    r"\s+(?:aux|au|à\s+la|à\s+l['’]|à)",
                    "things",
                    "",
                ),
                ("is", r"suis", r"est", r"(?:\s+devenue?)?", "state", ""),
                ("age", r"ai", r"a", r"", "number", ""),
                ("owns", r"ai\s+acheté", r"a\s+acheté", "", "thing", "changes"),
                ("plans", r"vais|compte|prévois\s+de", r"va|compte", "", "rest", ""),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:chien|chienne|chat|chatte|lapin|perroquet|"
            rf"cheval))(?i:\s+s['’]appelle|,)?\s+{NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:mais|parce\s+que|car|donc|alors)\s+|,?\s+et\s+(?=(?:je|j['’]|il|elle|nous|ma|"
    r"mon|travaille|habite|vit|adore|"
    r"aime|déteste|étudie|parle|joue)\b)|;\s*|,\s+(?=(?:je|j['’]|ma|mon)\b)",
    unsure=r"\b(?:si|peut-être|aimerais|aimerait|voudrais|pourrais|serait|aurait)\b",
    ended=r"\b(?:ne|n['’])\s*\p{L}+\s+plus\b",
    denied=r"\b(?:pas|jamais|aucune?)\b",
    since=r"\b(?:depuis|dès)\b",
    tail=r"\s+(?:depuis|parce|quand|en\s+\p{L}+|avec|pour|le\s+\p{L}+di|chaque|tous|toutes|"
    r"maintenant|beaucoup|aussi|plus|dernière?|"
    r"hier|de\s+mon|de\s+ma|comme|au|à)\b.*$",
    article=r"^(?:(?:le|la|les|un|une|des|du|de|mon|ma)\s+|l['’]|d['’])",
    enumeration=r",\s*|\s+(?:et|ou)\s+",
    introduction=kin(_MY, _RELATIVES, _CALLED),
    relatives=_RELATIVES,
    i="je",
    joint=r"\b(?:et|mais)\s+$",
    elided=r"(?:travaille|habite|vis|vit|adore|aime|déteste|étudie|parle|apprends?|joue|suis)\b",
    pronouns={"il": "m", "elle": "f"},
    no_names=(
        "je il elle nous mon ma en depuis hier oui non bonjour salut merci le la les un une et mais"
    ),
)
