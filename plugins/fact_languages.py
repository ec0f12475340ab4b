"""German, French, Spanish, Italian, Portuguese and Dutch for the rules engine: fewer rules than English has, of the same kind."""

from __future__ import annotations

import regex as re

from plugins.fact_patterns import NAME, Language, Rule, related, rule, words

_THING = r"(?P<o>[^,;:()]{2,70})"
_NAMED = rf"(?P<o>{NAME})"
_NEVER = re.compile(r"(?!)")


def _subject(me: str, my: str, relatives: str, pronouns: str) -> str:
    """The speaker (`me` is "" where the verb alone says so), somebody's relative, a pronoun, or a name."""
    return (
        rf"(?:(?P<me>(?i:\b(?:{me})\b))|(?P<kin>(?<=(?i:\b(?:{my})\s+))(?i:{relatives}))(?:,?\s+(?P<kinname>{NAME}),?)?(?![\p{{L}}])"
        rf"|(?P<pron>(?i:\b(?:{pronouns})\b))|(?P<name>{NAME}))"
    )


def _language(code: str, small_words: str, rules: tuple[Rule, ...], **parts: str | dict[str, str]) -> Language:
    """A Language from patterns given as text; matching ignores case, except in rules."""

    def pattern(name: str) -> re.Pattern[str]:
        text = parts.get(name, "")
        return re.compile(f"(?i){text}", re.VERSION1) if text else _NEVER

    relatives, pronouns = parts["relatives"], parts["pronouns"]
    return Language(
        code=code,
        small_words=words(small_words),
        rules=rules,
        cut=re.compile(parts["cut"], re.VERSION1),
        unsure=pattern("unsure"),
        ended=pattern("ended"),
        denied=pattern("denied"),
        since=pattern("since"),
        tail=pattern("tail"),
        end=_NEVER,
        article=pattern("article"),
        enumeration=pattern("enumeration"),
        introduction=re.compile(parts["introduction"], re.VERSION1),
        relatives=relatives,
        i=parts["i"],
        joint=pattern("joint"),
        elided=pattern("elided"),
        pronouns=pronouns,
        no_names=words(parts["no_names"]),
        no_objects=words("es das la le lo ça o a het dat"),
    )


# --- German -----------------------------------------------------------------------------------------------------------

_DE_RELATIVES = related(
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
_DE_REL, _DE_MY = "|".join(_DE_RELATIVES), r"mein|meine|meiner|unser|unsere"
_DE = _subject("ich", _DE_MY, _DE_REL, "er|sie") + r"(?i:\s+(?:bin|ist|habe|hat))?"
_DE_ADV = (
    r"(?i:\s+(?:jetzt|auch|gerade|immer|noch|sehr|derzeit|aktuell|inzwischen|wirklich|am\s+liebsten|gern|gerne|nun|"
    r"nicht\s+mehr|seit\s+[\p{L}\d]+(?:\s+\d{4})?))*"
)
_DE_I = rf"(?P<me>(?i:\bich\b)){_DE_ADV}"
_DE_AM_I, _DE_GAP, _DE_MOVED = r"(?i:\bbin\s+)(?P<me>(?i:ich))", r"(?i:(?:\s+[^,.;]{0,40}?)?)", r"(?i:\s+(?:um)?gezogen)"
_GERMAN = _language(
    "de",
    "ich und der die das ist nicht ein eine mein meine in im mit bin habe wir auf zu den seit für von bei sie er heißt jetzt",
    (
        rule("named", rf"(?P<me>\b(?i:mein\s+name\s+ist|ich\s+heiße))\s+{_NAMED}"),
        rule("", rf"\b(?P<me>(?i:{_DE_MY}))(?i:\s+(?:ältere|jüngere|kleine|große|kleiner|großer|älterer|"
                 rf"jüngerer)){{0,1}}\s+(?P<rel>(?i:{_DE_REL}))"
                 rf"(?i:\s+heißt|\s+ist|,)?\s+{_NAMED}"),
        rule("lives_in", rf"{_DE}{_DE_GAP}\s+(?i:von\s+)(?P<before>{NAME})(?i:\s+nach\s+){_NAMED}{_DE_MOVED}", changes=True, alone=True),
        rule(
            "lives_in",
            rf"{_DE_AM_I}{_DE_GAP}\s+(?i:von\s+)(?P<before>{NAME})(?i:\s+nach\s+){_NAMED}{_DE_MOVED}",
            changes=True,
            alone=True,
        ),
        rule("lives_in", rf"{_DE}{_DE_GAP}(?i:\s+nach\s+){_NAMED}{_DE_MOVED}", changes=True, alone=True),
        rule("lives_in", rf"{_DE_AM_I}{_DE_GAP}(?i:\s+nach\s+){_NAMED}{_DE_MOVED}", changes=True, alone=True),
        rule("lives_in", rf"{_DE}\s+(?i:wohne|wohnt|lebe|lebt){_DE_ADV}(?i:\s+in\s+){_NAMED}"),
        rule("lives_in", rf"(?i:\b(?:wohne|lebe))\s+{_DE_I}(?i:\s+in\s+){_NAMED}"),
        rule("comes_from", rf"{_DE}\s+(?i:komme|kommt|stamme|stammt){_DE_ADV}(?i:\s+(?:ursprünglich\s+)?aus\s+){_NAMED}"),
        rule("works_at", rf"{_DE}\s+(?i:arbeite|arbeitet){_DE_ADV}(?i:\s+(?:\w+\s+)?(?:bei|für)\s+(?:der\s+|dem\s+)?){_NAMED}"),
        rule("works_at", rf"(?i:\barbeite)\s+{_DE_I}(?i:\s+(?:bei|für)\s+(?:der\s+|dem\s+)?){_NAMED}"),
        rule("works_as", rf"{_DE}\s+(?i:arbeite|arbeitet|bin|ist){_DE_ADV}(?i:\s+als\s+)(?P<o>\p{{Lu}}[\p{{L}}-]+)"),
        rule("works_as", r"(?P<me>\b(?i:ich\s+bin))\s+(?:von\s+Beruf\s+)?(?P<o>\p{Lu}\p{L}+(?:in|er|ist|istin|ärztin|arzt|eur|eurin|"
                         r"ent|entin))\b(?=\s*(?:$|[,.]|und|bei|in|seit))"),
        rule("studies", rf"{_DE}\s+(?i:studiere|studiert){_DE_ADV}\s+(?P<o>\p{{Lu}}[\p{{L}}-]+)"),
        rule("allergic_to", rf"{_DE}\s+(?i:(?:bin\s+|ist\s+)?allergisch\s+(?:gegen|auf)\s+){_THING}", listed=True),
        rule("is", rf"{_DE}(?:\s+(?i:bin|ist))?\s+(?i:jetzt\s+|seit\s+\p{{L}}+\s+)?(?P<o>(?i:vegan|vegetarisch|Veganer(?:in)?|"
                   rf"Vegetarier(?:in)?|schwanger|geschieden))\b"),
        rule("dislikes", rf"{_DE}\s+(?i:hasse|hasst|mag|mögen)(?i:\s+(?:überhaupt\s+)?(?:kein|keine|"
                         rf"keinen))\s+{_THING}", listed=True, alone=True),
        rule("dislikes", rf"{_DE}\s+(?i:hasse|hasst)\s+{_THING}", listed=True, alone=True),
        rule("likes", rf"{_DE}\s+(?i:liebe|liebt|mag)(?!\s+(?i:kein|keine|keinen|es))\s+{_THING}", listed=True),
        rule("likes", rf"{_DE}\s+(?i:esse|trinke|höre|lese|spiele)(?i:\s+(?:sehr\s+)?(?:gern|gerne|"
                      rf"am\s+liebsten))\s+{_THING}", listed=True),
        rule("favorite", r"(?P<me>(?i:\bmein|\bmeine))\s+(?i:lieblings)(?P<kind>\p{L}+)(?i:\s+ist)\s+" + _THING, alone=True),
        rule("speaks", rf"{_DE}\s+(?i:spreche|spricht)\s+(?i:fließend\s+|etwas\s+|gut\s+)?(?P<o>\p{{Lu}}\p{{L}}+(?:(?:,\s*|"
                       rf"\s+und\s+)\p{{Lu}}\p{{L}}+)*)", listed=True),
        rule("learns", rf"{_DE}\s+(?i:lerne|lernt){_DE_ADV}\s+(?P<o>\p{{Lu}}\p{{L}}+)", changes=True),
        rule("has_pet", rf"\b(?P<me>(?i:{_DE_MY}))\s+(?P<kind>(?i:Hund|Katze|Kater|Hündin|Kaninchen|Hamster|Papagei|"
                        rf"Pferd))(?i:\s+heißt|,)?\s+{_NAMED}"),
        rule("has_pet", rf"{_DE}\s*(?i:\s*(?:einen|eine|ein))\s+(?P<kind>(?i:Hund|Katze|Kater|Hündin|Kaninchen|Hamster|Papagei|"
                        rf"Pferd))(?i:\s+namens)\s+{_NAMED}"),
        rule("married_to", rf"{_DE}(?i:\s+(?:bin\s+|ist\s+)?(?:seit\s+\d{{4}}\s+)?mit)\s+{_NAMED}(?i:\s+verheiratet)"),
        rule("age", rf"{_DE}(?:\s+(?i:bin|ist))?\s+(?P<o>\d{{1,3}})(?i:\s+Jahre\s+alt)"),
        rule("owns", rf"{_DE}(?i:(?:\s+(?:mir|sich))?(?:\s+[^,.;]{{0,25}}?)?)\s+(?P<o>(?i:einen|eine|"
                     rf"ein)\s+[^,;.]{{3,40}}?)(?i:\s+gekauft)", changes=True),
        rule("plans", rf"{_DE}\s+(?i:werde|wird|will|möchte|plane)\s+(?P<o>[^;:()]{{5,80}})", dated=True),
        rule("did", r"(?P<me>(?i:\bich\b))(?i:\s+(?:habe|bin|war))\s+(?P<o>[^;:()]{5,80}?(?i:besucht|gelaufen|gewonnen|bestanden|"
                    r"gewesen|gereist|geflogen|gewandert|gefeiert))", dated=True),
    ),
    cut=r"(?i),\s+(?:und|aber|weil|denn|obwohl)\s+|\s+(?:aber|weil|denn|obwohl)\s+|,?\s+und\s+(?=(?:ich|er|sie|wir|meine?|bin|habe|"
        r"arbeite|arbeitet|wohne|wohnt|lebe|lebt|lerne|mag|spreche|spricht|studiert)\b)|;\s*",
    unsure=r"\b(?:wenn|falls|vielleicht|würde|könnte|hätte|wäre|angeblich|möglicherweise)\b",
    ended=r"\b(?:nicht\s+mehr|kein\p{L}*\s+\p{L}+\s+mehr|früher|aufgehört)\b",
    denied=r"\b(?:nicht|kein|keine|keinen|nie)\b",
    since=r"\b(?:seit|ab)\b",
    tail=r"\s+(?:seit|weil|wenn|als|mit|für|am|im|letzte\p{L}*|nächste\p{L}*|jeden|jede|sehr|gern|gerne|nicht|mehr|heute|gestern|"
         r"auch|überhaupt|über\s+alles|beim|bei)\b.*$",
    article=r"^(?:der|die|das|den|dem|ein|eine|einen|mein|meine)\s+",
    enumeration=r",\s*|\s+(?:und|oder)\s+",
    introduction=rf"(?i:\b(?:{_DE_MY}))\s+(?P<rel>(?i:{_DE_REL}))(?i:\s+heißt|\s+ist|,)?\s+(?P<o>{NAME})",
    relatives=_DE_RELATIVES,
    i="ich",
    joint=r"\b(?:und|aber)\s+$",
    elided=r"(?:bin|habe|hat|ist|arbeite|arbeitet|wohne|wohnt|lebe|lebt|lerne|lernt|mag|spreche|spricht|studiere|studiert)\b",
    pronouns={"er": "m", "sie": "f"},
    no_names="ich seit im am heute gestern morgen mein meine der die das wir und letzten letzte früher jetzt ja nein hallo danke also dann",
)  # fmt: skip


# --- the Romance languages ----------------------------------------------------------------------------------------------

_FR_RELATIVES = related(
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
_ES_RELATIVES = related(
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
_IT_RELATIVES = related(
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
_PT_RELATIVES = related(
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
_NL_RELATIVES = related(
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


# What a rule says beside its verb: a place or name, a thing, several things, one word.
_OBJECTS = {
    "name": (_NAMED, {}),
    "thing": (_THING, {}),
    "things": (_THING, {"listed": True}),
    "word": (r"(?P<o>[\p{L}'’-]{2,30})", {}),
    "number": (r"(?P<o>\d{1,3})(?i:\s+(?:ans|años|anni|anos|jaar))", {}),
    "state": (
        r"(?i:(?:une?|un[ao]?|uma?|een)\s+)?(?P<o>(?i:vég[aé]tarien(?:ne)?|végane?|vegetarian[oa]|vegan[oa]|vegetarisch|"
        r"veganist(?:isch)?|divorcée?|divorciad[oa]|"
        r"divorziat[oa]|divorciad[oa]|gescheiden|enceinte|embarazada|incinta|grávida|zwanger|jubilad[oa]|retraitée?))(?!\p{L})",
        {},
    ),
    "job": (
        r"(?i:(?:une?|un[ao]?|uma?|een)\s+)?(?P<o>(?i:infirmi(?:er|ère)|professeure?|ingénieure?|médecin|boulang(?:er|ère)|avocate?|"
        r"architecte?|cuisini(?:er|ère)|"
        r"enfermer[oa]|profesora?|ingenier[oa]|médic[oa]|abogad[oa]|arquitect[oa]|cociner[oa]|periodista|infermier[ae]|"
        r"professore(?:ssa)?|insegnante|ingegnere|medico|avvocato|"
        r"architetto|cuoc[oa]|enfermeir[oa]|professora?|engenheir[oa]|advogad[oa]|arquitet[oa]|cozinheir[oa]|jornalista|"
        r"verpleegkundige|lera(?:ar|res)|ingenieur|arts|bakker|"
        r"advocaat|kok|journaliste?))(?!\p{L})",
        {},
    ),
    "rest": (r"(?P<o>[^;:()]{4,80})", {"dated": True}),
}
Row = tuple[str, str, str, str, str, str]


def _rules(me: str, my: str, relatives: dict[str, str], pronouns: str, adverbs: str, rows: tuple[Row, ...]) -> tuple[Rule, ...]:
    """Rules from rows of (predicate, first person, third person, what follows the verb, kind of object, flags).

    `me` is the pronoun with what may stand between it and its verb, all optional; a row's third person may be empty.
    """
    third = (
        rf"(?:(?P<kin>(?<=(?i:\b(?:{my})\s+))(?i:{'|'.join(relatives)}))(?:,?\s+(?P<kinname>{NAME}),?)?"
        rf"|(?P<pron>(?i:\b(?:{pronouns})\b))|(?P<name>{NAME}))(?i:\s+(?:ne\s+|n['’]|no\s+|non\s+|não\s+|ya\s+no\s+))?"
    )
    rules = []
    for predicate, first, other, follows, kind, flags in rows:
        thing, options = _OBJECTS[kind]
        others = rf"|{third}\s*(?i:\b(?:{other}))" if other else ""
        subject = rf"(?:(?P<me>(?<!\p{{L}})(?i:{me}(?:{first})))(?!\p{{L}}){others}(?!\p{{L}}))(?i:{adverbs})"
        marks = dict.fromkeys(flags.split(), True)
        rules.append(rule(predicate, rf"{subject}(?i:{follows})\s*{thing}", **options, **marks))
    return tuple(rules)


def _kin(my: str, relatives: dict[str, str], is_called: str) -> str:
    """ "my sister Clara", "my sister is called Clara"."""
    return rf"\b(?P<me>(?i:{my}))\s+(?P<rel>(?i:{'|'.join(relatives)}))(?i:\s+(?:{is_called})|,)?\s+(?P<o>{NAME})"


_FR_MY, _FR_CALLED = r"mon|ma|notre", r"s['’]appelle|est"
_FRENCH = _language(
    "fr",
    "je j'ai suis et le la les un une est dans à mon ma pas de des du en avec pour nous elle il qui que ne",
    (
        rule("", _kin(_FR_MY, _FR_RELATIVES, _FR_CALLED)),
        *_rules(
            r"(?:je\s+(?:ne\s+)?|j['’]|je\s+n['’])",
            _FR_MY,
            _FR_RELATIVES,
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
                ("works_at", r"ai\s+commencé", r"a\s+commencé", r"\s+(?:à\s+travailler\s+)?chez", "name", "changes"),
                ("works_as", r"travaille|suis", r"travaille", r"\s+comme", "word", ""),
                ("works_as", r"suis", "", r"", "job", ""),
                ("studies", r"étudie", r"étudie", r"\s+(?:la\s+|le\s+|l['’]|les\s+)?", "word", ""),
                ("likes", r"aime|adore", r"aime|adore", "", "things", ""),
                ("dislikes", r"déteste", r"déteste", "", "things", "alone"),
                ("speaks", r"parle", r"parle", r"(?:\s+couramment)?(?:\s+l['’]|\s+le)?", "word", ""),
                ("learns", r"apprends", r"apprend", r"(?:\s+à\s+jouer\s+du|\s+le|\s+la|\s+l['’])?", "thing", ""),
                ("plays", r"joue", r"joue", r"\s+(?:du|de\s+la|au|de\s+l['’])", "thing", ""),
                ("allergic_to", r"suis\s+allergique", r"est\s+allergique", r"\s+(?:aux|au|à\s+la|à\s+l['’]|à)", "things", ""),
                ("is", r"suis", r"est", r"(?:\s+devenue?)?", "state", ""),
                ("age", r"ai", r"a", r"", "number", ""),
                ("owns", r"ai\s+acheté", r"a\s+acheté", "", "thing", "changes"),
                ("plans", r"vais|compte|prévois\s+de", r"va|compte", "", "rest", ""),
            ),
        ),
        rule(
            "has_pet",
            rf"\b(?P<me>(?i:{_FR_MY}))\s+(?P<kind>(?i:chien|chienne|chat|chatte|lapin|perroquet|cheval))(?i:\s+s['’]appelle|,)?\s+{_NAMED}",
        ),
    ),
    cut=r"(?i),?\s+(?:mais|parce\s+que|car|donc|alors)\s+|,?\s+et\s+(?=(?:je|j['’]|il|elle|nous|ma|mon|travaille|habite|vit|adore|"
    r"aime|déteste|étudie|parle|joue)\b)|;\s*|,\s+(?=(?:je|j['’]|ma|mon)\b)",
    unsure=r"\b(?:si|peut-être|aimerais|aimerait|voudrais|pourrais|serait|aurait)\b",
    ended=r"\b(?:ne|n['’])\s*\p{L}+\s+plus\b",
    denied=r"\b(?:pas|jamais|aucune?)\b",
    since=r"\b(?:depuis|dès)\b",
    tail=r"\s+(?:depuis|parce|quand|en\s+\p{L}+|avec|pour|le\s+\p{L}+di|chaque|tous|toutes|maintenant|beaucoup|aussi|plus|dernière?|"
    r"hier|de\s+mon|de\s+ma|comme|au|à)\b.*$",
    article=r"^(?:(?:le|la|les|un|une|des|du|de|mon|ma)\s+|l['’]|d['’])",
    enumeration=r",\s*|\s+(?:et|ou)\s+",
    introduction=_kin(_FR_MY, _FR_RELATIVES, _FR_CALLED),
    relatives=_FR_RELATIVES,
    i="je",
    joint=r"\b(?:et|mais)\s+$",
    elided=r"(?:travaille|habite|vis|vit|adore|aime|déteste|étudie|parle|apprends?|joue|suis)\b",
    pronouns={"il": "m", "elle": "f"},
    no_names="je il elle nous mon ma en depuis hier oui non bonjour salut merci le la les un une et mais",
)

_ES_MY, _ES_CALLED = r"mi|nuestra|nuestro", r"se\s+llama|es"
_SPANISH = _language(
    "es",
    "yo el la los las un una es y en mi me no de del con por para que soy estoy tengo se ella muy pero",
    (
        rule("", _kin(_ES_MY, _ES_RELATIVES, _ES_CALLED)),
        *_rules(
            r"(?:yo\s+)?(?:ya\s+)?(?:no\s+)?",
            _ES_MY,
            _ES_RELATIVES,
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
                ("works_at", r"empecé\s+a\s+trabajar|he\s+empezado\s+a\s+trabajar", r"empezó\s+a\s+trabajar", r"\s+en", "name", "changes"),
                ("works_as", r"trabajo", r"trabaja", r"\s+como", "word", ""),
                ("works_as", r"soy", "", "", "job", ""),
                ("studies", r"estudio", r"estudia", "", "word", ""),
                ("likes", r"(?:a\s+mí\s+)?me\s+(?:gustan?|encantan?)|amo", r"adora|ama", "", "things", ""),
                ("dislikes", r"odio|detesto", r"odia|detesta", "", "things", "alone"),
                ("speaks", r"hablo", r"habla", "", "word", ""),
                ("learns", r"aprendo|estoy\s+aprendiendo", r"aprende|está\s+aprendiendo", r"(?:\s+a\s+tocar)?", "thing", ""),
                ("plays", r"toco|juego\s+al?", r"toca|juega\s+al?", "", "thing", ""),
                ("allergic_to", r"soy\s+alérgic[oa]", r"es\s+alérgic[oa]", r"\s+a", "things", ""),
                ("is", r"soy|me\s+hice", r"es|se\s+hizo", "", "state", ""),
                ("age", r"tengo", r"tiene", "", "number", ""),
                ("owns", r"(?:me\s+)?compré|he\s+comprado|me\s+he\s+comprado", r"(?:se\s+)?compró", "", "thing", "changes"),
                ("plans", r"voy\s+a|pienso|planeo", r"va\s+a|piensa", "", "rest", ""),
            ),
        ),
        rule("has_pet", rf"\b(?P<me>(?i:{_ES_MY}))\s+(?P<kind>(?i:perr[oa]|gat[oa]|conejo|loro|caballo))(?i:\s+se\s+llama|,)?\s+{_NAMED}"),
    ),
    cut=r"(?i),?\s+(?:pero|porque|aunque|así\s+que)\s+|,?\s+y\s+(?=(?:yo|él|ella|mi|me|vivo|trabajo|tengo|soy|hablo|estudio|no|vive|"
    r"trabaja|tiene|habla|estudia)\b)|;\s*|,\s+(?=(?:mi|me|yo)\b)",
    unsure=r"\b(?:si|quizás?|tal\s+vez|gustaría|quisiera|podría|sería|ojalá)\b",
    ended=r"\b(?:ya\s+no|dejé\s+de|antes)\b",
    denied=r"\b(?:no|nunca)\b",
    since=r"\b(?:desde)\b",
    tail=r"\s+(?:desde|porque|cuando|en\s+\p{L}+|con|para|el\s+\p{L}+|cada|todos|todas|ahora|mucho|también|hace|pasad[oa]|que|como|"
    r"de\s+mi)\b.*$",
    article=r"^(?:el|la|los|las|un|una|unos|unas|mi)\s+",
    enumeration=r",\s*|\s+(?:y|e|o)\s+",
    introduction=_kin(_ES_MY, _ES_RELATIVES, _ES_CALLED),
    relatives=_ES_RELATIVES,
    i="yo",
    joint=r"\b(?:y|pero)\s+$",
    elided=r"(?:vivo|vive|trabajo|trabaja|tengo|tiene|soy|hablo|habla|estudio|estudia)\b",
    pronouns={"él": "m", "ella": "f"},
    no_names="yo él ella mi me en desde ayer sí no hola gracias el la los las un una y pero hace ya",
)

_IT_MY, _IT_CALLED = r"mia|mio|nostra|nostro", r"si\s+chiama|è"
_ITALIAN = _language(
    "it",
    "io il la gli le un una è e in mi mio mia non di del con per che sono ho si anche ma da a al alla",
    (
        rule("", _kin(_IT_MY, _IT_RELATIVES, _IT_CALLED)),
        *_rules(
            r"(?:io\s+)?(?:non\s+)?",
            _IT_MY,
            _IT_RELATIVES,
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
                ("learns", r"sto\s+imparando|imparo", r"sta\s+imparando", r"(?:\s+a\s+suonare)?", "thing", ""),
                ("plays", r"suono|gioco\s+a", r"suona|gioca\s+a", "", "thing", ""),
                ("allergic_to", r"sono\s+allergic[oa]", r"è\s+allergic[oa]", r"\s+(?:alle|ai|al|alla|agli|a)", "things", ""),
                ("is", r"sono|sono\s+diventat[oa]", r"è|è\s+diventat[oa]", "", "state", ""),
                ("age", r"ho", r"ha", "", "number", ""),
                ("owns", r"ho\s+comprato|mi\s+sono\s+comprat[oa]", r"ha\s+comprato", "", "thing", "changes"),
            ),
        ),
        rule("has_pet", rf"\b(?P<me>(?i:{_IT_MY}))\s+(?P<kind>(?i:cane|gatto|gatta|coniglio|cavallo))(?i:\s+si\s+chiama|,)?\s+{_NAMED}"),
    ),
    cut=r"(?i),?\s+(?:ma|perché|però|quindi)\s+|,?\s+e\s+(?=(?:io|lui|lei|mi|mia|mio|vivo|lavoro|ho|sono|non|vive|lavora|studio|"
    r"studia|parla|adoro|suono)\b)|;\s*|,\s+(?=(?:mi|mia|mio)\b)",
    unsure=r"\b(?:se|forse|vorrei|potrei|sarebbe|magari)\b",
    ended=r"\b(?:non\s+\p{L}+\s+più|ho\s+smesso)\b",
    denied=r"\b(?:non|mai)\b",
    since=r"\b(?:da(?:l)?|dal)\b",
    tail=r"\s+(?:dal?|perché|quando|in\s+\p{L}+|a\s+\p{L}+io|con|per|ogni|ora|adesso|molto|anche|più|scors[oa]|che|come|lo)\b.*$",
    article=r"^(?:(?:il|la|lo|i|gli|le|un|una|uno|mio|mia)\s+|l['’]|un['’])",
    enumeration=r",\s*|\s+(?:e|ed|o)\s+",
    introduction=_kin(_IT_MY, _IT_RELATIVES, _IT_CALLED),
    relatives=_IT_RELATIVES,
    i="io",
    joint=r"\b(?:e|ma)\s+$",
    elided=r"(?:vivo|vive|lavoro|lavora|studio|studia|ho|sono|parlo|parla|adoro|suono|mi\s)\b",
    pronouns={"lui": "m", "lei": "f"},
    no_names="io lui lei mio mia mi in da ieri sì no ciao grazie il la un una e ma non sono",
)

_PT_MY, _PT_CALLED = r"meu|minha|nosso|nossa", r"se\s+chama|é"
_PORTUGUESE = _language(
    "pt",
    "eu o a os as um uma é e em meu minha não de do da com por para que sou estou tenho se ela muito mas moro",
    (
        rule("", _kin(_PT_MY, _PT_RELATIVES, _PT_CALLED)),
        *_rules(
            r"(?:eu\s+)?(?:já\s+)?(?:não\s+)?",
            _PT_MY,
            _PT_RELATIVES,
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
                ("likes", r"gosto\s+(?:muito\s+)?d[eoa]s?|adoro|amo", r"gosta\s+d[eoa]s?|adora|ama", "", "things", ""),
                ("dislikes", r"odeio|detesto", r"odeia|detesta", "", "things", "alone"),
                ("speaks", r"falo", r"fala", "", "word", ""),
                ("learns", r"estou\s+aprendendo|estou\s+a\s+aprender", r"está\s+aprendendo", r"(?:\s+a\s+tocar)?", "thing", ""),
                ("plays", r"toco|jogo", r"toca|joga", "", "thing", ""),
                ("allergic_to", r"sou\s+alérgic[oa]", r"é\s+alérgic[oa]", r"\s+(?:a|ao|à|aos|às)", "things", ""),
                ("is", r"sou|virei", r"é|virou", "", "state", ""),
                ("age", r"tenho", r"tem", "", "number", ""),
                ("owns", r"comprei", r"comprou", "", "thing", "changes"),
            ),
        ),
        rule("has_pet", rf"\b(?P<me>(?i:{_PT_MY}))\s+(?P<kind>(?i:cachorr[oa]|cão|gat[oa]|coelho|cavalo))(?i:\s+se\s+chama|,)?\s+{_NAMED}"),
    ),
    cut=r"(?i),?\s+(?:mas|porque|embora|então)\s+|,?\s+e\s+(?=(?:eu|ele|ela|meu|minha|moro|trabalho|tenho|sou|não|gosto|mora|"
    r"trabalha|estudo|falo)\b)|;\s*|,\s+(?=(?:minha|meu|eu)\b)",
    unsure=r"\b(?:se|talvez|gostaria|queria|poderia|seria)\b",
    ended=r"\b(?:não\s+\p{L}+\s+mais|já\s+não|parei\s+de)\b",
    denied=r"\b(?:não|nunca)\b",
    since=r"\b(?:desde)\b",
    tail=r"\s+(?:desde|porque|quando|em\s+\p{L}+|no\s+\p{L}+|com|para|todos|todas|agora|muito|também|mais|há|passad[oa]|que|como)\b.*$",
    article=r"^(?:o|a|os|as|um|uma|meu|minha)\s+",
    enumeration=r",\s*|\s+(?:e|ou)\s+",
    introduction=_kin(_PT_MY, _PT_RELATIVES, _PT_CALLED),
    relatives=_PT_RELATIVES,
    i="eu",
    joint=r"\b(?:e|mas)\s+$",
    elided=r"(?:moro|mora|trabalho|trabalha|tenho|sou|gosto|gosta|estudo|estuda|falo|fala)\b",
    pronouns={"ele": "m", "ela": "f"},
    no_names="eu ele ela meu minha em desde ontem sim não olá oi obrigado obrigada o a um uma e mas",
)

_NL_MY, _NL_CALLED = r"mijn|onze|ons", r"heet|is"
_DUTCH = _language(
    "nl",
    "ik en de het een is in mijn niet van met voor op ben heb dat te ook naar zij hij sinds maar woon",
    (
        rule("", _kin(_NL_MY, _NL_RELATIVES, _NL_CALLED)),
        rule(
            "lives_in",
            rf"(?P<me>\b(?i:ik))\s+(?i:ben)(?i:(?:\s+[^,.;]{{0,40}}?)?)(?i:\s+van\s+(?P<before>(?-i:{NAME})))?"
            rf"(?i:\s+naar)\s+{_NAMED}(?i:\s+verhuisd)",
            changes=True,
            alone=True,
        ),
        *_rules(
            r"ik\s+",
            _NL_MY,
            _NL_RELATIVES,
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
        rule("has_pet", rf"\b(?P<me>(?i:{_NL_MY}))\s+(?P<kind>(?i:hond|kat|poes|konijn|paard|papegaai))(?i:\s+heet|,)?\s+{_NAMED}"),
    ),
    cut=r"(?i),?\s+(?:maar|omdat|want|dus)\s+|,?\s+en\s+(?=(?:ik|hij|zij|mijn|werk|woon|heb|ben|werkt|woont|hou|houdt|speelt)\b)|"
    r";\s*|,\s+(?=(?:ik|mijn)\b)",
    unsure=r"\b(?:als|misschien|zou|zouden|wellicht)\b",
    ended=r"\b(?:niet\s+meer|geen\s+\p{L}+\s+meer|vroeger|gestopt)\b",
    denied=r"\b(?:niet|geen|nooit)\b",
    since=r"\b(?:sinds|vanaf)\b",
    tail=r"\s+(?:sinds|omdat|toen|in\s+\p{L}+|met|voor|op\s+\p{L}+|elke|nu|heel|graag|ook|niet|meer|vorige?|gisteren|die|dat)\b.*$",
    article=r"^(?:de|het|een|mijn)\s+",
    enumeration=r",\s*|\s+(?:en|of)\s+",
    introduction=_kin(_NL_MY, _NL_RELATIVES, _NL_CALLED),
    relatives=_NL_RELATIVES,
    i="ik",
    joint=r"\b(?:en|maar)\s+$",
    elided=r"(?:werk|werkt|woon|woont|hou|houdt|speel|speelt|spreek|heb|ben)\b",
    pronouns={"hij": "m", "zij": "f", "ze": "f"},
    no_names="ik hij zij mijn in sinds gisteren ja nee hallo dank de het een en maar",
)

FURTHER: tuple[Language, ...] = (_GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
