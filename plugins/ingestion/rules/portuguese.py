"""Portuguese for the rules engine."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, related, rule
from plugins.ingestion.rules.phrases import NAMED, kin, language, verb_rules

_RELATIVES = related(
    sister="irmã",
    brother="irmão",
    mother="mãe",
    father="pai",
    daughter="filha",
    son="filho",
    married_to="esposa mulher marido",
    partner_of="namorada namorado",
    friend="amiga amigo",
    boss="chefe",
    grandmother="avó",
    grandfather="avô",
    aunt="tia",
    uncle="tio",
    neighbor="vizinha vizinho",
)
_MY, _CALLED = r"meu|minha|nosso|nossa", r"se\s+chama|é"
PORTUGUESE = language(
    "pt",
    "eu o a os as um uma é e em meu minha não de do da com por para que sou estou tenho se ela "
    "muito mas moro",
    (
        rule("", kin(_MY, _RELATIVES, _CALLED)),
        *verb_rules(
            r"(?:eu\s+)?(?:já\s+)?(?:não\s+)?",
            _MY,
            _RELATIVES,
            "ele|ela",
            r"(?:\s+(?:agora|também|sempre|muito|atualmente|mais))*",
            (
                ("named", r"(?:me\s+chamo|chamo-me)", "", "", "name", ""),
                (
                    "lives_in",
                    r"(?:me\s+mudei|mudei-me|mudei)",
                    r"(?:se\s+mudou|mudou-se|mudou)",
                    rf"(?:\s+d[eoa]\s+(?P<before>(?-i:{NAME})))?\s+para(?:\s+[oa])?",
                    "name",
                    "changes alone",
                ),
                ("lives_in", r"moro|vivo", r"mora|vive", r"\s+(?:em|no|na)", "name", ""),
                ("works_at", r"trabalho", r"trabalha", r"\s+(?:na|no|em|para)", "name", ""),
                ("works_as", r"trabalho", r"trabalha", r"\s+como", "word", ""),
                ("works_as", r"sou", "", "", "job", ""),
                ("studies", r"estudo", r"estuda", "", "word", ""),
                (
                    "likes",
                    r"gosto\s+(?:muito\s+)?d[eoa]s?|adoro|amo",
                    r"gosta\s+d[eoa]s?|adora|ama",
                    "",
                    "things",
                    "",
                ),
                ("dislikes", r"odeio|detesto", r"odeia|detesta", "", "things", "alone"),
                ("speaks", r"falo", r"fala", "", "word", ""),
                (
                    "learns",
                    r"estou\s+aprendendo|estou\s+a\s+aprender",
                    r"está\s+aprendendo",
                    r"(?:\s+a\s+tocar)?",
                    "thing",
                    "",
                ),
                ("plays", r"toco|jogo", r"toca|joga", "", "thing", ""),
                (
                    "allergic_to",
                    r"sou\s+alérgic[oa]",
                    r"é\s+alérgic[oa]",
                    r"\s+(?:a|ao|à|aos|às)",
                    "things",
                    "",
                ),
                ("is", r"sou|virei", r"é|virou", "", "state", ""),
                ("age", r"tenho", r"tem", "", "number", ""),
                ("owns", r"comprei", r"comprou", "", "thing", "changes"),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_MY}))\s+(?P<kind>(?i:cachorr[oa]|cão|gat[oa]|coelho|"
            rf"cavalo))(?i:\s+se\s+chama|,)?\s+{NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:mas|porque|embora|então)\s+|,?\s+e\s+(?=(?:eu|ele|ela|meu|minha|moro|"
    r"trabalho|tenho|sou|não|gosto|mora|"
    r"trabalha|estudo|falo)\b)|;\s*|,\s+(?=(?:minha|meu|eu)\b)",
    unsure=r"\b(?:se|talvez|gostaria|queria|poderia|seria)\b",
    ended=r"\b(?:não\s+\p{L}+\s+mais|já\s+não|parei\s+de)\b",
    denied=r"\b(?:não|nunca)\b",
    since=r"\b(?:desde)\b",
    tail=(
        r"\s+(?:desde|porque|quando|em\s+\p{L}+|no\s+\p{L}+|com|para|todos|todas|agora|muito|"
        r"também|mais|há|passad[oa]|que|como)\b.*$"
    ),
    article=r"^(?:o|a|os|as|um|uma|meu|minha)\s+",
    enumeration=r",\s*|\s+(?:e|ou)\s+",
    introduction=kin(_MY, _RELATIVES, _CALLED),
    relatives=_RELATIVES,
    i="eu",
    joint=r"\b(?:e|mas)\s+$",
    elided=r"(?:moro|mora|trabalho|trabalha|tenho|sou|gosto|gosta|estudo|estuda|falo|fala)\b",
    pronouns={"ele": "m", "ela": "f"},
    no_names=(
        "eu ele ela meu minha em desde ontem sim não olá oi obrigado obrigada o a um uma e mas"
    ),
)
