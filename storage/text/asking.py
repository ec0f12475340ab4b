"""What of a query is looked up: the words that only ask are left out, and so is what only holds the
others together in scripts that write words without spaces.

A text keeps these words; a query for "多少" (how much) would otherwise come upon whatever else has
an amount, and "房租多少" upon a pair of characters across the two words, which no text has. So a
run of Chinese, Japanese or Korean is cut at them, and what is between two cuts gives its pairs, or
its one character.

- Chinese is cut at question words, pronouns and particles; a few words that begin or end like one
  are left whole.
- Japanese as well. A particle is cut off where it follows a character that is no Hiragana, or ends
  the Hiragana; two Hiragana that follow a Kanji are an ending, and no pair.
- Korean loses the particle or ending of each word, where two syllables are left.

Data and patterns; storage/text/analysis.py knows what a token is and how it becomes terms.
"""

from __future__ import annotations

import re

import regex

from storage.text.stop_words import word_set

# Words that ask, by language; elsewhere, in a text, they may carry meaning.
QUESTION_WORDS: dict[str, frozenset[str]] = {
    language: word_set(words)
    for language, words in {
        "german": """wem wen wessen welch welche welchem welchen welcher welches wieviel wieviele
            viel viele vielen wohin woher womit wofür wogegen wovor wozu woran worauf worin worum
            worüber wodurch weshalb wieso""",
        "spanish": """cuál cuáles cuánto cuánta cuántos cuántas adónde quiénes cual cuales cuanto
            cuanta cuantos cuantas quienes hay""",
        "french": """combien lequel laquelle lesquels lesquelles est-ce qu'est-ce""",
        "portuguese": """quanto quanta quantos quantas quais aonde""",
        "italian": """quanti quante quali quant'è dov'è cos'è""",
        "dutch": """welk welke hoeveel waarheen waarmee waarvoor waarop""",
        "russian": """сколько скольких скольки какое какие какого какому каким каких какую почем
            почём зачем отчего откуда кого кому кем чему чём чьи чья чьё часто""",
        "arabic": """كم بكم مم مما ممن لمن بم عم عمن لم فيم علام إلام متي حتام""",
        "hindi": """कितना कितनी कितने किस किसे किसने किसका किसकी किसके किसको किससे किन किनको
            कौनसा कौनसी सा सी से पास कहां क्यूँ आता आती आते जाता जाती जाते""",
    }.items()
}  # fmt: skip

_LATIN = ("german", "spanish", "french", "portuguese", "italian", "dutch")
_ASKING_IN_LATIN = frozenset().union(*(QUESTION_WORDS[language] for language in _LATIN))
_CHINESE_KEPT = "目的|的士|了解|是非|几何|在线|存在|现在|多少年"
_CHINESE = (
    "为什么|為什麼|什么时候|什麼時候|什么时间|什么样|什么|什麼|甚麼|怎么样|怎么|怎麼|怎样|为何|為何|"
    "多少|多久|多长时间|多长|多大|多远|多高|哪里|哪裡|哪儿|哪个|哪個|哪些|哪家|哪天|请问|請問|"
    "我们|我們|你们|他们|她们|咱们|是不是|有没有|有沒有|是否|时候|時候|"
    "[的了吗嗎呢吧啊是我你您他她它谁誰哪几幾在]"
)
_JAPANESE = (
    "何ですか|何|誰|いつまでに|いつまで|いつから|いつ|どこ|どの|どれ|どんな|どう|だれ|なぜ|なに|なん|"
    "いくら|いくつ|ありますか|いますか|しますか|されますか|ましたか|でしたか|でしょうか|ますか|ですか|"
    "ですよね|です|ます|ました|でした|でしょう|ありますよね|あります|います|している|されている|ている|"
    "ていた|ていい|てある|という|といった|について|とは|には|では|からは|までに|まで|から|より|"
    "されたのは|したのは|のは|のが|のを|するの|したの|されて|された|される|して|した|する|だった|"
    "もの|こと|とき|ください|ない|だけ|って|ある|いる|の[？?]?$|か$"
)
_PARTICLES = "はがをにのでともへやかだ"
_CUTS = regex.compile(
    rf"({_CHINESE_KEPT})|{_JAPANESE}|{_CHINESE}|"
    rf"(?<=[^\p{{Hiragana}}])[{_PARTICLES}]|[{_PARTICLES}](?=[^\p{{Hiragana}}]|$|{_JAPANESE})"
)
_HIRAGANA = regex.compile(r"\p{Hiragana}")
_ENDING = regex.compile(r"\p{Hiragana}{2}")
_EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー々〆]+")
_HANGUL = regex.compile(r"\p{Hangul}+")

_KOREAN_ASKING = re.compile(
    "(?:뭐|무엇|무얼|뭘|언제|어디|누구|누가|누굴|얼마|얼마나|얼마씩|얼마쯤|몇|왜|어떻게|무슨|어느|어떤|어땠)"
    "(?:에서|에게|까지|부터|에|로|를|을|가|이|의|서|씩|쯤|나|라고|인가요|이에요|예요|야|지|이지|였지|더라|니){0,3}|"
    "나|내|내가|나는|나의|제|제가|저는|우리|우리는|있어|있어요|있나요|있지|있더라|있니|해|해요|하지|하나요|"
    "했지|했어|했나요|돼|되지|되나요|됐어|것|것은|것이|게|건|거|때|때는"
)
_KOREAN_ENDINGS = (
    "에서는|에게서|이라고|으로는|에서|에게|한테|까지|부터|이나|이랑|으로|처럼|보다|마다|밖에|"
    "이었지|였지|인가요|이에요|예요|이야|이지|했나요|했어요|했지|했어|하나요|해요|하지|되나요|됐어|"
    "나요|어요|아요|은|는|이|가|을|를|에|의|도|로|와|과|랑|만|께|야|지|요|니|어|아"
)  # the longer first
_KOREAN_ENDING = re.compile(rf"(?:{_KOREAN_ENDINGS})$")


def is_asking(word: str, language: str) -> bool:
    """Whether a normalised word of a query only asks."""
    return word in QUESTION_WORDS.get(language, ())


def asking_language(words: list[str]) -> str | None:
    """The language in Latin script whose question words are among these, where it is one."""
    if _ASKING_IN_LATIN.isdisjoint(words):
        return None
    found = {language for language in _LATIN if not QUESTION_WORDS[language].isdisjoint(words)}
    return found.pop() if len(found) == 1 else None


def is_east_asian(run: str) -> bool:
    """Whether a normalised run is nothing but Chinese, Japanese and Korean characters."""
    return _EAST_ASIAN.fullmatch(run) is not None


def asked_terms(run: str) -> tuple[str, ...]:
    """The terms that a query looks up of such a run; none when it only asks."""
    if _HANGUL.fullmatch(run):
        return () if _KOREAN_ASKING.fullmatch(run) else tuple(_pairs(_korean_stem(run)))
    found: list[str] = []
    start = 0
    for cut in _CUTS.finditer(run):
        if cut[1]:
            continue
        found += _part(run[start : cut.start()])
        start = cut.end()
    return (*found, *_part(run[start:]))


def _part(part: str) -> list[str]:
    """Pairs of what is between two cuts, without the endings of a Kanji; a lone character as it
    is.
    """
    pairs = _pairs(part)
    if _HIRAGANA.match(part):
        return pairs
    return [pair for pair in pairs if not _ENDING.fullmatch(pair)]


def _korean_stem(word: str) -> str:
    stem = _KOREAN_ENDING.sub("", word)
    return stem if len(stem) > 1 else word


def _pairs(run: str) -> list[str]:
    """Pair neighbours; a lone character as it is."""
    return [run[at : at + 2] for at in range(len(run) - 1)] or ([run] if run else [])
