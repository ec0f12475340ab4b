"""What verbs and nouns of English say under the names of facts.PREDICATES, and which say that
something is over. Other verbs go by their own name.
"""

from __future__ import annotations

import regex as re

from storage.text import word_set

# (verb with its particle, preposition) -> predicate; "" where the object is direct.
LASTING: dict[tuple[str, str], str] = {
    ("live", "in"): "lives_in", ("live", "at"): "lives_in", ("reside", "in"): "lives_in",
    ("base", "in"): "lives_in", ("stay", "in"): "stays_in", ("settle", "in"): "lives_in",
    ("work", "at"): "works_at", ("work", "for"): "works_at", ("employ", "by"): "works_at",
    ("employ", "at"): "works_at", ("work", "as"): "works_as", ("study", ""): "studies",
    ("major", "in"): "studies", ("study", "at"): "studies_at", ("speak", ""): "speaks",
    ("learn", ""): "learns", ("play", ""): "plays", ("love", ""): "likes", ("like", ""): "likes",
    ("enjoy", ""): "likes", ("adore", ""): "likes", ("hate", ""): "dislikes",
    ("dislike", ""): "dislikes", ("detest", ""): "dislikes", ("loathe", ""): "dislikes",
    ("prefer", ""): "prefers", ("own", ""): "owns", ("have", ""): "has", ("use", ""): "uses",
    ("come", "from"): "comes_from", ("suffer", "from"): "has_condition",
    ("report", "to"): "boss",
}  # fmt: skip
# The same, of what begins by it.
CHANGING: dict[tuple[str, str], str] = {
    ("move", "to"): "lives_in", ("move", "into"): "lives_in", ("move back", "to"): "lives_in",
    ("move", "in"): "lives_in", ("relocate", "to"): "lives_in", ("settle", "in"): "lives_in",
    ("settle", "into"): "lives_in", ("come back", "to"): "stays_in", ("return", "to"): "stays_in",
    ("go back", "to"): "stays_in",
    ("join", ""): "works_at", ("hire", "by"): "works_at", ("hire", "at"): "works_at",
    ("marry", ""): "married_to", ("engage", "to"): "engaged_to", ("marry", "to"): "married_to",
    ("adopt", ""): "has_pet", ("rescue", ""): "has_pet",
    ("buy", ""): "owns", ("purchase", ""): "owns", ("inherit", ""): "owns",
    ("diagnose", "with"): "has_condition", ("promote", "to"): "works_as",
    ("switch", "to"): "uses", ("take up", ""): "plays", ("enrol", "at"): "studies_at",
    ("enroll", "at"): "studies_at", ("enroll", "in"): "studies", ("bear", "in"): "born_in",
    ("bear", "on"): "born_on", ("grow up", "in"): "grew_up_in", ("turn", ""): "age",
}  # fmt: skip
# Verbs after which a person or thing is something: what it becomes.
BECOMING = word_set("become turn get go")
JOBS = word_set("job position role post internship")
GETTING = word_set("get start take land accept find")
# Where somebody learns, and the verbs that tell so.
SCHOOLS = word_set(
    """school university uni college nursery kindergarten preschool academy primary elementary
    secondary gymnasium polytechnic creche"""
)
SCHOOLING = frozenset({("go", "to"), ("attend", ""), ("be", "at"), ("transfer", "to")})
# Verbs that say that something is over, and of what: () for whatever there is to be ended.
ENDING: dict[tuple[str, str], tuple[str, ...]] = {
    ("sell", ""): (), ("give away", ""): (), ("lose", ""): ("owns", "has", "works_as"),
    ("get rid", "of"): (), ("cancel", ""): (), ("chuck", ""): (), ("scrap", ""): (),
    ("leave", ""): ("works_at", "studies_at", "lives_in"), ("drop", ""): (),
    ("resign", "from"): ("works_at",), ("fire", "by"): ("works_at",), 
    ("fire", "from"): ("works_at",),
    ("lay off", "by"): ("works_at",), ("lay off", "from"): ("works_at",),
    ("divorce", ""): ("married_to",), ("separate", "from"): ("married_to", "partner_of"),
    ("divorce", "from"): ("married_to",), ("drop out", "of"): ("studies_at",),
    ("drop", "of"): ("studies_at",), ("move out", "of"): ("lives_in",),
    ("move", "of"): ("lives_in",), ("move away", "from"): ("lives_in",),
    ("move", "from"): ("lives_in",), ("break up", "with"): ("partner_of", "engaged_to", "date"),
    ("split up", "with"): ("partner_of", "engaged_to", "date"),
    ("give up", ""): (), ("give up", "on"): (), ("quit", ""): (), ("stop", ""): (),
    ("cut out", ""): (), ("unsubscribe", "from"): (), ("discontinue", ""): (),
    ("throw out", ""): (), ("throw away", ""): (), ("ditch", ""): (), ("trade in", ""): (),
    ("hand over", ""): (), ("hand back", ""): (), ("pack in", ""): (), ("uninstall", ""): (),
    ("bin", ""): (), ("donate", ""): (), ("come off", ""): ("take", "is_on"),
    ("go", "off"): ("likes", "drink", "eat"),
}  # fmt: skip
# The same where nothing is named: what somebody has one of.
GONE = {
    "move out": ("lives_in",), "resign": ("works_at",), "fire": ("works_at",),
    "lay off": ("works_at",), "retire": ("works_at", "works_as", "works_in"),
    "drop out": ("studies_at",),
}  # fmt: skip
# Verb -> its forms with a particle that may be read as an adverb: "traded my phone in".
_WITH_PARTICLE = (*(verb for verb, _ in (*CHANGING, *ENDING)), *GONE, "look forward")
PARTED_VERBS = {
    verb: frozenset(name for name in _WITH_PARTICLE if name.startswith(f"{verb} "))
    for verb in (name.split()[0] for name in _WITH_PARTICLE if " " in name)
}
# What somebody is of whom these are told without anybody else.
STATUS = {"marry": "married", "engage": "engaged", "divorce": "divorced"}
SOLD = frozenset({"sell", "give away", "get rid", "lose"})
# What somebody belongs to, which has one name at a time.
CIRCLES = word_set(
    """club band team choir society league gym guild committee board council union orchestra church
    congregation group squad troupe co-op cooperative"""
)
# Nouns that a clause "my … is …" answers.
OWNED = {
    "name": "named", "birthday": "born_on", "hometown": "comes_from", "age": "age",
    "job": "works_as", "employer": "works_at",
}  # fmt: skip
# Adjectives and participles with a preposition.
STATES = {
    ("allergic", "to"): "allergic_to", ("married", "to"): "married_to",
    ("marry", "to"): "married_to",
    ("engaged", "to"): "engaged_to", ("engage", "to"): "engaged_to", ("based", "in"): "lives_in",
    ("fond", "of"): "likes", ("into", ""): "likes", ("crazy", "about"): "likes",
    ("terrified", "of"): "fears", ("scared", "of"): "fears", ("afraid", "of"): "fears",
}  # fmt: skip
# Adjectives that tell of more than the moment.
CONDITIONS = word_set(
    """vegan vegetarian veggie pescatarian coeliac celiac gluten-free intolerant diabetic asthmatic
    single married engaged divorced widowed retired pregnant unemployed self-employed blind deaf
    left-handed right-handed colour-blind colorblind bilingual dyslexic autistic allergic
    mandatory deprecated dead obsolete"""
)
FAVOURITE = word_set("favourite favorite fav fave")
# Of a thing, that it has one of at a time: when and where it is, and how much.
WHEN, WHERE, MUCH = "takes_place", "located_in", "measures"

ANIMALS = word_set(
    """dog cat puppy kitten rabbit parrot hamster horse tortoise turtle goldfish lizard budgie pony
    ferret snake pup kitty beagle lurcher retriever terrier spaniel poodle labrador collie
    guinea-pig"""
)
# Of whom and of what somebody may well have several: a new one takes the place of none.
SEVERAL = word_set(
    """student pupil patient client customer tenant lodger housemate flatmate roommate teammate
    classmate workmate colleague coworker co-worker intern trainee apprentice recruit hire mentee
    employee assistant friend neighbour neighbor guest member recipe book song tattoo plant game
    app hobby project course"""
)
# What somebody takes who is "on" it, by how such names end.
_MEDICINE = re.compile(
    r"(?i)\p{L}{2,}(?:pril|sartan|statin|olol|azole|cillin|mycin|cycline|formin|oxetine|aline|apine"
    r"|azine|tidine|roxine|phine|profen|zepam|zolam|xaban|farin|triptan|gliptin|mab|parin|trexate"
    r"|steroid|biotic|depressant|histamine|inhibitor)s?"
)
_MEDICINES = word_set(
    """insulin pill medication medicine meds statin steroid antibiotic antidepressant painkiller
    beta-blocker inhaler hrt lithium citalopram aspirin paracetamol"""
)
_NO_MEDICINES = word_set("magazine magazines adrenaline saline")  # that end as those do
_WORK = re.compile(
    r"(?i)\p{L}*(?:er|or|ist|ian|medic|nurse|chef|cook|pilot|judge|clerk|architect|coach|vet|analyst"
    r"|guide|mechanic|accountant|assistant|consultant|student|agent|surgeon|attorney|apprentice|"
    r"intern|carpenter|barista)"
)
# What ends as those do and is no work.
_NO_WORK = word_set(
    """vegetarian pescatarian winner lover member believer fighter supporter owner follower sister
    brother mother father daughter partner neighbor neighbour number matter reminder survivor
    beginner helper other answer wonder hater eater sucker christian smoker drinker bachelor gamer
    reader newcomer getter go-getter leader foreigner minor senior junior loner planner disaster
    monster treasurer center
    killer bummer blocker power honor color colour favor error horror major letter paper summer
    winter offer order river corner water weather"""
)


def is_medicine(lemma: str) -> bool:
    small = lemma.casefold()
    return small in _MEDICINES or (
        small not in _NO_MEDICINES and _MEDICINE.fullmatch(small) is not None
    )


def is_work(lemma: str) -> bool:
    """Whether to be this is to have it for a job, as far as the word tells."""
    small = lemma.casefold()
    return small not in _NO_WORK and _WORK.fullmatch(small) is not None
