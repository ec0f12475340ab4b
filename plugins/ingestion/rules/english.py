"""English for the rules engine: what people say of themselves and of others."""

from __future__ import annotations

from plugins.ingestion.rules.patterns import NAME, Language, Pattern, Rule, rule, words

_RELATIVES = {
    "sister": "sister", "brother": "brother", "mother": "mother", "mom": "mother", "mum": "mother",
    "father": "father", "dad": "father", "daughter": "daughter", "son": "son", "wife": "married_to",
    "husband": "married_to", "spouse": "married_to", "partner": "partner_of",
    "girlfriend": "partner_of", "boyfriend": "partner_of", "fiancé": "engaged_to",
    "fiancée": "engaged_to", "fiance": "engaged_to", "friend": "friend", "colleague": "colleague",
    "coworker": "colleague", "co-worker": "colleague", "boss": "boss", "manager": "boss",
    "neighbor": "neighbor", "neighbour": "neighbor", "grandmother": "grandmother",
    "grandma": "grandmother", "grandfather": "grandfather", "grandpa": "grandfather",
    "aunt": "aunt", "uncle": "uncle", "cousin": "cousin", "roommate": "roommate",
    "flatmate": "roommate", "dentist": "dentist", "doctor": "doctor", "landlord": "landlord",
    "landlady": "landlord", "therapist": "therapist", "accountant": "accountant",
    "hairdresser": "hairdresser",
}  # fmt: skip
_PETS = (
    "dog|cat|puppy|kitten|rabbit|parrot|hamster|horse|tortoise|turtle|guinea\\s+pig|goldfish|"
    "lizard|budgie|pony|ferret|snake"
)
_REL = "|".join(_RELATIVES)
_OCCUPATION = (
    r"\p{L}*(?:er|or|ist|ian|ant|ent|medic|nurse|chef|cook|pilot|judge|clerk|architect|coach|vet|"
    r"scientist|analyst|artist|guide|mechanic|"
    r"electrician|plumber|carpenter|surgeon|attorney|librarian|translator|monk|midwife|potter|"
    r"florist|barista|baker|farmer|"
    r"apprentice|intern)"
)
_AM = r"(?i:\s+(?:am|is|are)|['’](?:m|s))"
_SUBJECT = (
    rf"(?<![\p{{L}}’'])(?:(?P<me>I|[Ww]e)\b|(?P<kin>(?<=(?i:\b(?:my|our)\s+(?:(?:older|younger|little|"
    r"big|twin|best|new|"
    rf"old)\s+)?))(?i:{_REL}))(?:,?\s+(?P<kinname>{NAME}),?)?(?![\p{{L}}’'])"
    rf"|(?P<pron>(?i:he|she))\b|(?P<name>{NAME}))"
)
_ADVERBS = (
    r"(?i:\s+(?:also|now|just|currently|still|really|actually|recently|finally|usually|always|"
    r"already|only|both|even|honestly|totally|"
    r"absolutely|officially|mostly|sometimes|often|secretly))*"
)
_HAVE = r"(?i:(?:\s+(?:have|has|had)|['’](?:ve|s|d))?)"
_TITLE = r"(?:(?:Dr|Mr|Mrs|Ms|Prof)\b\.?\s+)?"
_PLACE, _NAMED = rf"(?P<o>(?i:the\s+)?{NAME})", rf"(?P<o>{NAME})"
_THING = r"(?P<o>[^,;:()]{2,90})"
_VERBS = (
    r"work|works|live|lives|love|loves|like|likes|play|plays|speak|speaks|study|studies|hate|hates|"
    r"have|has|bought|sold|joined|"
    r"moved|am|started|adopted|quit|prefer|prefers|use|"
    r"uses|enjoy|enjoys|own|owns|got|became|married|learn|learns"
)
_S = _SUBJECT + _HAVE + _ADVERBS


def _with_verb(predicate: str, verb: str, thing: str, **further: bool) -> Rule:
    """subject, verb and object, in this order; the verb ignores case."""
    return rule(predicate, rf"{_S}\s*(?i:{verb}){_ADVERBS}\s+{thing}", **further)


def _being(predicate: str, what: str, thing: str, **further: bool) -> Rule:
    """subject, a form of to be, and what it says."""
    return rule(
        predicate,
        rf"{_SUBJECT}{_AM}(?i:\s+(?:not|no\s+longer))?{_ADVERBS}\s*(?i:{what})\s*{thing}",
        **further,
    )


_STOPPED = (
    r"(?i:(?:have\s+|has\s+)?(?:finally\s+|just\s+)?"
    r"(?:quit|quits|stopped|stop|gave\s+up|given\s+up|am\s+done\s+with))"
)
_NOT = r"(?:(?:don['’]?t|doesn['’]?t|do\s+not|does\s+not|no\s+longer|never)\s+)?"
_RULES = (
    # names and people
    rule(
        "named",
        r"(?i:\bmy\s+(?:full\s+)?name\s+is|\bmy\s+name['’]s|"
        rf"\b(?:please\s+)?call\s+me)(?P<me>)?\s+{_NAMED}",
    ),
    rule(
        "",
        r"(?i:\bmy|\bour)(?P<me>\s)(?i:(?:older|younger|little|big|twin|best|new|old|good|dear|"
        r"elder|eldest|youngest|late)\s+)*"
        rf"(?P<rel>(?i:{_REL}))(?:(?i:\s+is|['’]s\s+name\s+is|\s+is\s+(?:called|named)|\s+called|"
        rf"\s+named|,)\s+|\s+)(?P<o>{_TITLE}{NAME})",
    ),
    rule(
        "",
        r"(?P<me>\bI)(?i:\s+(?:have|['’]ve\s+got|got)\s+an?\s+)(?i:(?:older|younger|little|big|"
        rf"twin|new)\s+)?(?P<rel>(?i:{_REL}))"
        rf"(?i:\s*,?\s+(?:called|named|who\s+is\s+called)?\s*){_NAMED}",
    ),
    rule(
        "",
        rf"(?P<o>{NAME})(?i:\s+is\s+)(?P<me>(?i:my))(?i:\s+(?:older|younger|little|big|twin|best|"
        rf"new|old)\s*)*\s+(?P<rel>(?i:{_REL}))\b",
    ),
    _with_verb(
        "married_to",
        r"married|got\s+married\s+to|am\s+married\s+to|is\s+married\s+to",
        _NAMED,
        changes=True,
    ),
    _being("married_to", r"married\s+to", _NAMED),
    _being("engaged_to", r"engaged\s+to", _NAMED),
    rule("engaged_to", rf"{_S}\s*(?i:got\s+engaged\s+to)\s+{_NAMED}", changes=True),
    rule(
        "married_to",
        rf"{_S}\s*(?i:divorced|got\s+divorced\s+from|separated\s+from)\s+{_NAMED}",
        ends=True,
        dated=True,
    ),
    rule(
        "has_pet",
        rf"(?i:\bmy|\bour)(?P<me>\s)(?i:(?:new|old|little|beloved)\s+)?(?P<kind>(?i:{_PETS}))"
        rf"(?:(?i:\s+is\s+(?:called|named)|['’]s\s+name\s+is|\s+called|\s+named|,)\s+|\s+){_NAMED}",
    ),
    rule(
        "has_pet",
        rf"{_S}\s*(?i:have|has|got|adopted|bought|own|owns|"
        rf"rescued)(?i:\s+an?)(?i:\s+\p{{L}}+)?\s+(?P<kind>(?i:{_PETS}))"
        rf"(?i:\s*,?\s+(?:called|named|who\s+is\s+called|whose\s+name\s+is)\s+){_NAMED}",
        changes=True,
    ),
    # places
    rule(
        "lives_in",
        rf"{_S}\s*(?i:moved|relocated|am\s+moving|moves)(?i:\s+back)?(?i:\s+(?:from|"
        rf"away\s+from)\s+(?P<before>(?-i:{NAME})))?"
        rf"(?i:\s+(?:to|into))\s+{_PLACE}",
        changes=True,
        alone=True,
    ),
    rule(
        "lives_in",
        rf"{_S}\s*(?i:moved\s+(?:out\s+of|away\s+from)|left|"
        rf"used\s+to\s+live\s+in)\s+{_PLACE}(?i:(?=\s*(?:for\s+good|$|in\b|last|"
        rf"and|because)))",
        ends=True,
        dated=True,
    ),
    rule(
        "lives_in",
        rf"{_S}\s*(?i:{_NOT}(?:live|lives|living|reside|resides|settled|"
        rf"settled\s+down)){_ADVERBS}(?i:\s+(?:in|at|on))\s+{_PLACE}",
    ),
    rule(
        "lives_in",
        rf"{_SUBJECT}{_AM}(?i:\s+(?:not|no\s+longer))?{_ADVERBS}\s*(?i:living|based|settled|"
        rf"residing)(?i:\s+(?:in))\s+{_PLACE}",
    ),
    rule("lives_in", rf"{_S}\s*(?i:grew\s+tired\s+of)\s+{_PLACE}(?!.)", ends=True),
    rule(
        "born_in",
        rf"{_SUBJECT}(?i:\s+(?:was|were))(?i:\s+(?:born|born\s+and\s+raised))(?i:\s+in)\s+{_PLACE}",
    ),
    _being("comes_from", r"(?:originally\s+)?from", _PLACE),
    _with_verb("comes_from", r"(?:come|comes|hail|hails)\s+(?:originally\s+)?from", _PLACE),
    # work and study
    rule(
        "works_at",
        rf"{_S}\s*(?i:{_NOT}(?:work|works|worked|working)){_ADVERBS}(?i:\s+(?:at|for))\s+{_PLACE}",
    ),
    _being("works_at", r"(?:working|employed)\s+(?:at|for|by)", _PLACE),
    rule(
        "works_at",
        rf"{_S}\s*(?i:started\s+(?:working\s+|a\s+(?:new\s+)?job\s+|my\s+(?:new\s+)?job\s+|"
        r"her\s+(?:new\s+)?job\s+|"
        rf"his\s+(?:new\s+)?job\s+)?"
        r"(?:at|with|for)|got\s+(?:a|the)\s+(?:new\s+)?(?:job|position|offer)\s+(?:at|with|from)|"
        r"joined|was\s+hired\s+by|"
        rf"moved\s+over\s+to|took\s+a\s+job\s+(?:at|with)|got\s+hired\s+(?:at|by))\s+{_PLACE}",
        changes=True,
    ),
    rule(
        "works_at",
        rf"{_S}\s*(?i:left|quit|quit\s+(?:my|her|his)\s+job\s+at|resigned\s+from|"
        r"was\s+laid\s+off\s+(?:by|from)|"
        r"got\s+laid\s+off\s+(?:by|from)|stopped\s+working\s+(?:at|for)|used\s+to\s+work\s+(?:at|"
        rf"for))\s+{_PLACE}",
        ends=True,
        dated=True,
    ),
    rule(
        "works_as",
        rf"{_S}\s*(?i:work|works|working|started|started\s+working){_ADVERBS}(?i:\s+as\s+(?:an?|"
        rf"the)\s+)(?P<o>[\p{{L}} -]{{3,40}})",
    ),
    rule(
        "works_as",
        rf"{_SUBJECT}{_AM}{_ADVERBS}(?i:\s+an?\s+)(?!(?i:vegetarian|pescatarian))(?P<o>(?i:(?:[\p{{L}}-]+\s+){{0,"
        rf"2}}{_OCCUPATION}))\b(?!\s+of)",
    ),
    rule(
        "works_as",
        rf"{_S}\s*(?i:got\s+promoted\s+to|was\s+promoted\s+to|became|become)(?i:\s+(?:an?|the)\s+|"
        r"\s+)"
        rf"(?P<o>(?i:(?:[\p{{L}}-]+\s+){{0,2}}(?:{_OCCUPATION}|lead|head\s+of\s+\p{{L}}+|"
        r"partner)))\b",
        changes=True,
    ),
    rule(
        "studies",
        rf"{_S}\s*(?i:{_NOT}(?:study|studies|major\s+in|majors\s+in|am\s+studying|is\s+studying|"
        rf"started\s+studying)){_ADVERBS}\s+"
        r"(?P<o>(?!(?i:at|in|for|hard|abroad)\b)[\p{L} &]{3,40}?)(?=(?i:\s+(?:at|in)\b)|[,.;]|$)",
    ),
    _being(
        "studies",
        r"studying",
        r"(?P<o>(?!(?i:at|in|for|hard|abroad)\b)[\p{L} &]{3,40}?)(?=(?i:\s+(?:at|in)\b)|[,.;]|$)",
    ),
    rule(
        "studies_at",
        rf"{_S}\s*(?i:study|studies|studying|started|enrolled|graduated)(?:\s+[\p{{L}} "
        rf"]{{3,30}}?)?(?i:\s+(?:at|from))\s+{_PLACE}",
    ),
    _being("studies_at", r"studying(?:\s+[\p{L} ]{3,30}?)?\s+at", _PLACE),
    # abilities
    rule(
        "speaks",
        rf"{_S}\s*(?i:{_NOT}(?:speak|speaks))\s+(?:(?i:fluent|some|a\s+little|a\s+bit\s+of|good|"
        rf"basic)\s+)*(?P<o>{NAME}(?:(?:,\s*|"
        rf"\s+and\s+){NAME})*)",
        listed=True,
    ),
    rule(
        "learns",
        rf"{_S}\s*(?i:started\s+learning|started\s+to\s+learn|am\s+learning|is\s+learning|learn|"
        r"learns|"
        rf"(?:am\s+|is\s+)?tak(?:e|es|ing)|started)\s+(?P<o>(?i:[\p{{L}} "
        rf"-]{{3,30}}?))(?i:\s+(?:lessons|classes))",
        changes=True,
    ),
    rule(
        "learns",
        rf"{_S}\s*(?i:started\s+learning|started\s+to\s+learn|learn|learns|learning|"
        rf"picked\s+up)\s+{_THING}",
        changes=True,
    ),
    _being("learns", r"learning(?:\s+(?:to\s+play|how\s+to))?", _THING),
    rule(
        "plays",
        rf"{_S}\s*(?i:{_NOT}(?:play|plays|took\s+up|started\s+playing))\s+{_THING}",
        listed=True,
    ),
    rule(
        "plays",
        rf"{_S}\s*{_STOPPED}(?i:\s+playing)(?i:\s+the)?\s+{_THING}",
        ends=True,
        dated=True,
        alone=True,
    ),
    rule(
        "plays",
        rf"{_S}\s*{_STOPPED}(?i:\s+the)?\s+(?P<o>(?i:piano|guitar|violin|cello|drums|flute|trumpet|"
        r"saxophone|tennis|football|soccer|basketball|golf|chess))\b",
        ends=True,
        dated=True,
        alone=True,
    ),
    rule(
        "learns",
        rf"{_S}\s*{_STOPPED}(?i:\s+learning)\s+{_THING}",
        ends=True,
        dated=True,
        alone=True,
    ),
    rule(
        "studies_at",
        rf"{_S}\s*(?i:dropped\s+out\s+of)\s+{_PLACE}",
        ends=True,
        dated=True,
    ),
    # tastes
    rule(
        "likes",
        rf"{_S}\s*(?i:no\s+longer\s+(?:likes?|loves?|enjoys?))\s+{_THING}",
        ends=True,
        alone=True,
    ),
    rule(
        "likes",
        rf"{_S}\s*(?i:(?:don['’]?t|doesn['’]?t|do\s+not|does\s+not)\s+(?:really\s+)?"
        r"(?:like|love|enjoy))\s+(?P<o>[^,;:()]{2,60}?)(?i:\s+(?:any\s*more|any\s+longer))(?=[.;,]|$)",
        ends=True,
        alone=True,
    ),
    rule(
        "prefers",
        rf"{_S}\s*(?i:{_NOT}(?:prefer|prefers))\s+(?P<o>[^,;:()]{{2,60}}?)(?=(?i:\s+(?:over|to|"
        r"rather|instead|than)\b)|[,.;]|$)",
        alone=True,
    ),
    rule(
        "favorite",
        r"(?i:\bmy)(?P<me>\s)(?i:(?:all[- ]time\s+)?favou?rite)\s+(?P<kind>[\p{L} "
        r"]{3,30}?)(?i:\s+(?:is|are|has\s+always\s+been))(?i:\s+(?:now|currently))?\s+"
        + _THING
        + r"(?i:,?\s+(?:and\s+)?(?:not|no\s+longer)\s+(?P<before>[\p{L} -]{2,40}?)"
        r"(?:\s+(?:any\s*more|any\s+longer))?(?=[.;,]|$))?",
        alone=True,
    ),
    rule(
        "favorite",
        rf"(?P<o>{NAME})(?i:\s+is)(?P<me>\s)(?i:my\s+(?:all[- "
        rf"]time\s+)?favou?rite)\s+(?P<kind>[\p{{L}}]{{3,30}})",
        alone=True,
    ),
    rule(
        "dislikes",
        rf"{_S}\s*(?i:hate|hates|dislike|dislikes|detest|detests|loathe|loathes|can['’]?t\s+stand|"
        r"cannot\s+stand|can['’]?t\s+bear|"
        rf"(?:don['’]?t|doesn['’]?t|do\s+not|does\s+not)\s+(?:{_ADVERBS}\s*)(?:like|enjoy|"
        rf"care\s+for))\s+{_THING}",
        listed=True,
        alone=True,
    ),
    rule(
        "likes",
        rf"{_S}\s*(?i:love|loves|like|likes|enjoy|enjoys|adore|adores|am\s+into|is\s+into|"
        r"am\s+a\s+(?:big|huge)\s+fan\s+of|"
        r"is\s+a\s+(?:big|huge)\s+fan\s+of|fell\s+in\s+love\s+with|"
        r"can['’]?t\s+get\s+enough\s+of)\s+(?!(?i:to\s+(?:see|know|hear|"
        rf"say|think)\b|it\b|that\b|"
        rf"your|you\b|this\b|how\b|when\b)){_THING}",
        listed=True,
    ),
    _being(
        "likes",
        r"(?:really\s+)?(?:into|fond\s+of|crazy\s+about|a\s+(?:big\s+|huge\s+)?fan\s+of)",
        _THING,
        listed=True,
    ),
    # health and habits
    rule(
        "habit",
        rf"{_S}\s*{_STOPPED}\s+(?P<o>(?i:smoking|vaping|drinking|gambling))\b",
        ends=True,
        dated=True,
        alone=True,
    ),
    rule(
        "habit",
        rf"{_S}\s*(?i:{_NOT})(?P<o>(?i:smokes?|vapes?|gambles?))\b",
    ),
    rule(
        "habit",
        rf"{_SUBJECT}{_AM}{_ADVERBS}\s+(?i:an?\s+)(?P<o>(?i:smoker|vaper|gambler))\b",
    ),
    _being("allergic_to", r"(?:\p{L}+ly\s+)?allergic\s+to", _THING, listed=True),
    _being(
        "is",
        r"(?:an?\s+)?(?:strict\s+)?",
        r"(?P<o>(?i:vegan|vegetarian|pescatarian|gluten[- ]free|lactose[- ]intolerant|left[- "
        r"]handed|"
        r"colou?r[- ]?blind|single|divorced|pregnant|retired|diabetic|unemployed))\b",
    ),
    rule(
        "is",
        rf"{_S}\s*{_STOPPED}\s+(?i:being\s+(?:an?\s+)?)(?P<o>(?i:vegan|vegetarian|pescatarian|single))"
        r"\b",
        ends=True,
        dated=True,
        alone=True,
    ),
    rule(
        "is",
        rf"{_S}\s*(?i:became|become|went|turned)\s+(?i:an?\s+)?(?P<o>(?i:vegan|vegetarian|"
        r"pescatarian|single|pregnant|diabetic))\b",
        changes=True,
    ),
    rule("is", rf"{_S}\s*(?i:retired)\b(?P<o>(?<=(?i:retired)))(?!.)"),
    rule(
        "has_condition",
        rf"{_S}\s*(?i:was\s+diagnosed\s+with|got\s+diagnosed\s+with|suffer\s+from|"
        rf"suffers\s+from)\s+{_THING}",
        changes=True,
    ),
    rule(
        "has_condition",
        rf"{_S}\s*(?i:have|has|had)\s+(?P<o>(?i:(?:type\s+\d\s+)?diabetes|asthma|migraines?|"
        r"celiac\s+disease|coeliac\s+disease|"
        r"high\s+blood\s+pressure|insomnia|adhd|epilepsy|arthritis|hay\s+fever))\b",
    ),
    rule(
        "age", rf"{_SUBJECT}{_AM}{_ADVERBS}\s+(?P<o>\d{{1,3}})(?=(?i:\s+(?:years\s+old|now)|\s*$))"
    ),
    rule("age", rf"{_S}\s*(?i:turned|just\s+turned|turn|turns)\s+(?P<o>\d{{1,3}})\b", changes=True),
    rule(
        "born_on",
        r"(?i:\bmy\s+birthday\s+is)(?P<me>\s)(?i:on\s+)?(?P<o>[\p{L}\d ,]{4,30})",
        whole=True,
    ),
    # things
    rule(
        "uses",
        rf"{_S}\s*(?i:{_NOT}(?:use|uses|switched\s+to|started\s+using))\s+{_THING}",
        listed=True,
    ),
    rule(
        "owns",
        rf"{_S}\s*(?i:bought|own|owns|purchased|inherited)(?i:\s+(?:myself|herself|himself|"
        r"ourselves))?\s+(?P<o>(?i:an?|the|two|"
        rf"three|my)\s+[^,;:()]{{2,60}})",
        changes=True,
    ),
    rule(
        "owns",
        rf"{_S}\s*(?i:got)(?i:\s+(?:myself|herself|himself))?\s+(?P<o>(?i:an?)\s+(?i:new\s+|"
        rf"used\s+)[^,;:()]{{2,60}})",
        changes=True,
    ),
    rule(
        "owns",
        rf"{_S}\s*(?i:have|has)\s+(?P<o>(?i:an?)\s+(?i:(?:[\p{{L}}-]+\s+){{0,2}}(?:car|bike|"
        r"bicycle|motorcycle|house|boat|van|piano|"
        rf"guitar|cello|violin|"
        r"telescope|camera|garden|allotment|apartment|flat|cabin|laptop|printer|tesla|vespa))\b)",
    ),
    rule(
        "owns",
        rf"{_S}\s*(?i:sold|gave\s+away|got\s+rid\s+of|lost)\s+(?P<o>(?i:my|the|her|his|our)\s+[^,"
        rf";:()]{{2,60}})",
        ends=True,
        dated=True,
    ),
    # what is to come, and what happened
    rule(
        "plans",
        rf"{_SUBJECT}(?:{_AM}{_ADVERBS}\s*(?i:(?:going|planning|hoping|about)\s+to|flying\s+to|"
        r"travelling\s+to|traveling\s+to)|"
        rf"{_ADVERBS}\s*(?i:plan\s+to|plans\s+to|will|intend\s+to|intends\s+to|want\s+to|"
        r"wants\s+to|signed\s+up\s+for|booked|['’]ll))\s+"
        r"(?P<o>(?!(?i:be\s+(?:fine|ok|okay|there|back|honest)|see\b|think\b|let\b|say\b|"
        r"try\s+that|never|ask\b|tell\b|know\b|"
        r"check\b|get\s+back))[^;:()]{4,90})",
        dated=True,
        whole=True,
    ),
    rule(
        "did",
        rf"{_S}\s*(?P<o>(?i:visited|attended|ran|finished|graduated|won|climbed|hiked|completed|"
        r"went\s+to|travelled\s+to|"
        rf"traveled\s+to|met|broke|saw|"
        r"passed|celebrated|started\s+running|had\s+surgery|gave\s+birth|performed|published|"
        rf"wrote)\b[^;:()]{{2,90}})",
        dated=True,
        whole=True,
    ),
)

ENGLISH = Language(
    code="en",
    small_words=words(
        "a am an and are at do for have he her his i in is it it's my not of she that the they "
        "this to was we with you our their they your from because any been were now just when "
        "what who can by has off out up since after before there here longer i'm i've i'd i'll "
        "you're we're we've they're he's she's that's there's don't doesn't didn't isn't aren't "
        "wasn't can't won't haven't hasn't couldn't "
        # What is done to "me", which is a small word of other languages.
        "asked called dumped fired gave helped left showed taught told",
    ),
    rules=_RULES,
    cut=Pattern(
        r",?\s+(?:but|because|although|so|while|though|whereas|since\s+(?=(?:I|he|she|we|"
        r"my)\b))\s+|;\s*|\s+[–—-]\s+"
        rf"|,?\s+and\s+(?=(?:(?i:I|he|she|we|they)(?:['’]\p{{L}}+)?|(?i:my|our)\s+\p{{L}}+|"
        rf"\p{{Lu}}\p{{L}}+(?:['’]s)?\s+(?i:is|has|"
        rf"lives|works|loves|hates|likes|moved|plays))\b)"
        rf"|,\s+(?=(?:I|he|she|we|my|our)\b)|,?\s+and\s+(?=(?i:{_VERBS})\b)|,?\s+and\s+then\s+"
    ),
    unsure=Pattern(
        r"(?i)\b(?:if|unless|maybe|perhaps|might|may(?=\s+\p{L}+\s+(?:to|be|in|at))|would|"
        r"wouldn['’]t|could|couldn['’]t|should|"
        r"imagine|suppose|"
        r"wish|wonder|wondering|hypothetically|pretend|let['’]s\s+say|said\s+(?:that\s+)?(?:he|she|"
        r"they)\s+(?:was|were)|not\s+sure|"
        r"no\s+idea|"
        r"in\s+(?:the|a|my)\s+(?:novel|story|dream|book|film|movie|game)|dreamed|dreamt|joking|"
        r"kidding|almost|nearly|never\s+said|"
        r"supposedly|"
        r"heard\s+that|rumou?rs?|what\s+if|as\s+if|i\s+(?:think|guess|believe|"
        r"doubt)\s+(?:that\s+)?(?:he|she|they|\p{Lu})|"
        r"ask(?:ed)?\s+(?:me\s+)?(?:whether|if)|neither|"
        r"left\s+\S+\s+(?:at|by|early|late|before|around)(?!\s+the\s+age)|"
        r"(?:\p{L}+n['’]t|not|never)\s(?:[^,]*\s)?(?:(?:only|just|always|every|all(?<!at\s+all)|"
        r"usually|often)|on\s+\p{L}+days|in\s+the\s+(?:morning|evening|afternoon)s?|at\s+night|"
        r"with\s+(?:my|his|her|our)|as\s+\p{L}+\s+as))\b"
    ),
    ended=Pattern(
        r"(?i)\b(?:no\s+longer|any\s*more|any\s+longer|not\s+\p{L}+\s+any\s*more|used\s+to|stopped|"
        r"quit|gave\s+up)\b"
    ),
    denied=Pattern(
        r"(?i)\b(?:don['’]?t|doesn['’]?t|do\s+not|does\s+not|didn['’]?t|did\s+not|isn['’]t|"
        r"am\s+not|['’]m\s+not|is\s+not|never|not|"
        r"haven['’]t|hasn['’]t)\b"
    ),
    since=Pattern(r"(?i)\b(?:since|from|as\s+of|starting)\b"),
    tail=Pattern(
        r"(?i)(?:\s+|^)(?:since|because|when|while|after|before|until|for\s+(?:a|an|the|\d+|two|"
        r"three|four|five|six|ten|many|some|"
        r"about|over|almost|nearly|years|ages|my|now|fun|work)\b|"
        r"in\s+(?:the\s+(?:morning|evening|summer|winter|spring|autumn|fall|afternoon|past|future|"
        r"end|meantime)|\d{4}|january|"
        r"february|march|april|may|june|july|august|september|"
        r"october|november|december|general|particular|my\s+(?:free|spare)\s+time)|"
        r"on\s+(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekends?|"
        r"the\s+(?:weekend|side)|\p{L}+day)|last|next|"
        r"this\s+(?:year|month|week|spring|summer|"
        r"autumn|fall|winter|morning)|every|each|again|now|nowadays|these\s+days|anymore|"
        r"any\s+more|any\s+longer|too|as\s+well|"
        r"either|a\s+lot|so\s+much|very\s+much|these|yesterday|"
        r"today|tomorrow|recently|lately|at\s+(?:night|home|the\s+moment|work)|with\s+(?:my|her|"
        r"his|a|the|our|\p{L}+)|from\s+(?:my|"
        r"her|his|a|the)|and\s+(?=\p{L}+(?:ed|s)\b)|more\s+than|most\s+of|"
        r"though|actually|instead|already|right|just|only|who|which|that|where|as\s+a|ago|"
        r"two\s+\p{L}+\s+ago|\p{L}+\s+(?:weeks?|"
        r"months?|years?|days?)\s+ago|all|of\s+all)\b.*$"
    ),
    end=Pattern(
        r"(?i)(?:,?\s+(?:which|because|since|although|though|but|so\s+that|if|and\s+(?:it|I|he|she|"
        r"we)\b).*)$"
    ),
    article=Pattern(
        r"(?i)^(?:(?:the|a|an|my|her|his|our|to|some|really|very|both|play(?:ing)?\s+the|all)\s+)+"
    ),
    enumeration=Pattern(r"(?i),\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+"),
    introduction=Pattern(
        r"(?i:\b(?:my|our))\s+(?i:(?:older|younger|little|big|twin|best|new|old|"
        rf"good)\s+)*(?P<rel>(?i:{_REL}))"
        r"(?:(?i:\s+is|['’]s\s+name\s+is|\s+is\s+(?:called|named)|\s+called|\s+named|,)\s+|"
        rf"\s+)(?P<o>{NAME})"
    ),
    relatives=_RELATIVES,
    i="I",
    joint=Pattern(r"(?i)\b(?:and|but)\s+$"),
    elided=Pattern(rf"(?i)(?:{_VERBS})\b"),
    pronouns={"she": "f", "he": "m"},
    no_names=words(
        "a actually after also an and april at august before but by december everybody everyone "
        "february for friday from",
        "he hello hey hi how i in it january july june last march may monday my next no nobody "
        "november now october oh",
        "ok okay on our people saturday september she since so someone sorry sunday thank thanks "
        "that the then there",
        "they this thursday to today tomorrow tuesday we wednesday well what when who why yes "
        "yesterday you",
    ),
    no_objects=words(
        "anything everything her here him it lot me myself nothing one ones so something stuff "
        "that them there things",
        "this us you",
    ),
)
