"""What the language heads read of texts: tags, trees, names, kinds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.inference import Embedding, MiniLmEmbedder, Models, language, packaged_files
from runtime.inference.language.heads import heads
from runtime.inference.language.parse import Parse
from runtime.inference.language.segmentation import read_sentences
from runtime.inference.language.states import word_states
from runtime.inference.language.windows import to_read
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.onnx import GraphMiniLm
from storage.text import content_words
from tests.support import ROOT

# word/TAG>relation of each word.
TREES = [
    "My/PRON sister/NOUN>nsubj moved/VERB>root to/ADP>case Berlin/PROPN>obl last/ADJ>amod "
    "year/NOUN>obl:unmarked ./PUNCT",
    "She/PRON>nsubj does/AUX>aux n't/PART>advmod like/VERB>root her/PRON>nmod:poss job/NOUN>obj "
    "./PUNCT",
    "I/PRON>nsubj bought/VERB>root a/DET>det red/ADJ>amod bicycle/NOUN>obj and/CCONJ>cc "
    "sold/VERB>conj my/PRON>nmod:poss car/NOUN>obj ./PUNCT",
    "Where/ADV>advmod do/AUX>aux you/PRON>nsubj live/VERB>root ?/PUNCT",
    "The/DET>det letter/NOUN>nsubj:pass was/AUX>aux:pass written/VERB>root by/ADP>case "
    "Maria/PROPN>obl:agent ./PUNCT",
    "My/PRON>nmod:poss brother/NOUN>nsubj is/AUX>cop a/DET>det doctor/NOUN>root in/ADP>case "
    "Madrid/PROPN>nmod ./PUNCT",
    "We/PRON>nsubj want/VERB>root to/PART>mark visit/VERB>xcomp Japan/PROPN>obj in/ADP>case "
    "April/PROPN>obl ./PUNCT",
    "If/SCONJ>mark it/PRON rains/VERB>advcl ,/PUNCT we/PRON>nsubj will/AUX>aux stay/VERB>root "
    "home/ADV>advmod ./PUNCT",
    "i/PRON>nsubj love/VERB>root my/PRON>nmod:poss new/ADJ>amod camera/NOUN>obj",
    "He/PRON>nsubj said/VERB>root that/SCONJ>mark he/PRON>nsubj had/AUX>aux lost/VERB>ccomp "
    "his/PRON>nmod:poss keys/NOUN>obj ./PUNCT",
]  # fmt: skip
HEADS_OF = [
    [1, 2, -1, 4, 2, 6, 2, 2],
    [3, 3, 3, -1, 5, 3, 3],
    [1, -1, 4, 4, 1, 6, 1, 8, 6, 1],
    [3, 3, 3, -1, 3],
    [1, 3, 3, -1, 5, 3, 3],
    [1, 4, 4, 4, -1, 6, 4, 4],
    [1, -1, 3, 1, 3, 6, 3, 1],
    [2, 2, 6, 6, 6, 6, -1, 6, 6],
    [1, -1, 4, 4, 1],
    [1, -1, 5, 5, 5, 1, 7, 5, 1],
]
NAMES = {
    "Anna Becker works for Siemens in Munich.": {
        ("Anna Becker", "person"),
        ("Siemens", "organization"),
        ("Munich", "place"),
    },
    "We met David in Paris on Monday.": {
        ("David", "person"),
        ("Paris", "place"),
        ("Monday", "time"),
    },
    "i saw emma in london": {("emma", "person"), ("london", "place")},
}
KINDS = {
    "Where is my coat?": "question",
    "Please close the door.": "command",
    "She lives in Oslo.": "statement",
    "Wow!": "exclamation",
    "Two tickets.": "fragment",
}
LEMMAS = {
    "The children went home.": ["the", "child", "go", "home", "."],
    "Anna's cities are better.": ["Anna", "'s", "city", "be", "good", "."],
    "I can't swim": ["I", "can", "not", "swim"],
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(directory: Path) -> MiniLm:
    return MiniLm.load(directory)


@pytest.fixture(scope="module")
def embedder(directory: Path) -> MiniLmEmbedder:
    return MiniLmEmbedder(directory, timeout_seconds=120)


def reading(embedder: MiniLmEmbedder, texts: Sequence[str]) -> list[language.Reading]:
    return asyncio.run(Models(embedder).read_language(texts))


def parses(model: MiniLm, texts: Sequence[str]) -> list[Parse]:
    found: list[Parse] = []
    for text in texts:
        _, asked = to_read(text, read_sentences(text))
        (tokens,) = model.encode([text])
        _, (layers,) = model.embed_with_layers([tokens])
        found += heads().parse(asked.sentences, word_states(layers, tokens.offsets, asked.spans))
    return found


def test_tags_and_trees(embedder: MiniLmEmbedder) -> None:
    wanted = [[word.rpartition("/") for word in tree.split()] for tree in TREES]
    texts = [" ".join(word for word, _, _ in words) for words in wanted]
    texts = [text.replace(" n't", "n't") for text in texts]
    right = {"tags": 0, "heads": 0, "relations": 0}
    words = related = 0
    for text, tree, gold, read in zip(
        texts, wanted, HEADS_OF, reading(embedder, texts), strict=True
    ):
        (sentence,) = read.sentences
        assert [text[each.start : each.end] for each in sentence.tokens] == [w for w, _, _ in tree]
        assert sum(each.head == language.ROOT for each in sentence.tokens) == 1
        for token, (_, _, said), head in zip(sentence.tokens, tree, gold, strict=True):
            tag, _, relation = said.partition(">")
            words += 1
            related += bool(relation)
            right["tags"] += token.tag == tag
            right["heads"] += token.head == head
            right["relations"] += bool(relation) and token.relation == relation
            assert 0 <= token.certainty <= 1
    assert right["tags"] >= 0.97 * words
    assert right["heads"] >= 0.93 * words
    assert right["relations"] >= 0.93 * related


@pytest.mark.parametrize("text", NAMES)
def test_names(embedder: MiniLmEmbedder, text: str) -> None:
    ((sentence,),) = reading(embedder, [text])[0]
    found = {
        (text[sentence.tokens[s.first].start : sentence.tokens[s.last - 1].end], s.kind)
        for s in sentence.spans
    }
    assert found == NAMES[text]


def test_kinds_of_sentences(embedder: MiniLmEmbedder) -> None:
    readings = reading(embedder, list(KINDS))
    assert [each.sentences[0].kind for each in readings] == list(KINDS.values())


def test_lemmas_and_features(embedder: MiniLmEmbedder) -> None:
    readings = reading(embedder, list(LEMMAS))
    found = [[token.lemma for token in each.sentences[0].tokens] for each in readings]
    assert found == list(LEMMAS.values())
    children, went = readings[0].sentences[0].tokens[1:3]
    assert "Number=Plur" in children.features and "Tense=Past" in went.features


def test_both_ways_to_run_the_model_read_the_same(model: MiniLm, directory: Path) -> None:
    other = MiniLm.load(directory)
    other.network = GraphMiniLm.load(directory, packaged_files(), 1)
    texts = [" ".join(word.rpartition("/")[0] for word in tree.split()) for tree in TREES]
    pairs = list(zip(parses(model, texts), parses(other, texts), strict=True))
    words = sum(len(one.tags) for one, _ in pairs)
    assert sum((one.tags == two.tags).sum() for one, two in pairs) >= 0.99 * words
    assert sum((one.tree == two.tree).sum() for one, two in pairs) >= 0.97 * words


def test_a_sentence_is_read_alike_in_any_company(embedder: MiniLmEmbedder) -> None:
    text = "My sister moved to Berlin."
    alone, beside = (
        reading(embedder, texts)[-1] for texts in ([text], ["We talked for hours.", text])
    )
    assert alone == beside


def test_one_run_embeds_a_text_and_reads_it(embedder: MiniLmEmbedder) -> None:
    texts = [
        "My sister Ana moved to Berlin. We talked for hours.",
        " Anna's, with white space around it. ",
        "Моя сестра переехала.",
        "This is a sentence. " * 80,
    ]
    words = [[(word.start, word.end) for word in content_words(text)] for text in texts]

    async def both() -> tuple[list[tuple[Embedding, language.Reading]], list[Embedding], float]:
        runs = embedder.stats()["texts_total"]
        found = await embedder.embed_read(texts[:1], words[:1])
        runs = embedder.stats()["texts_total"] - runs
        found += await embedder.embed_read(texts[1:], words[1:])
        return found, await embedder.embed_words(texts, words), runs

    found, embedded, runs = asyncio.run(both())
    assert runs == 1
    assert [read for _, read in found] == reading(embedder, texts)
    for (one, _), other in zip(found, embedded, strict=True):
        assert (one.vector == other.vector).all() and one.words is not None
        assert (one.words == other.words).all()


def test_a_long_text_is_read_whole(embedder: MiniLmEmbedder) -> None:
    text = "I saw, and I went, " * 120 + "home. " + "This is a sentence. " * 80 + "zq" * 300
    (read,) = reading(embedder, [text])
    words = [(token.start, token.end) for each in read.sentences for token in each.tokens]
    assert words == [word for each in read_sentences(text) for word in each.words]


def test_what_is_not_english_has_sentences_without_tokens(embedder: MiniLmEmbedder) -> None:
    texts = ["Моя сестра переехала. Да.", "", "12:30 ..."]
    assert reading(embedder, texts) == [language.unread(text) for text in texts]
    assert len(language.unread(texts[0]).sentences) == 2


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pieces=st.lists(st.sampled_from(["I saw ", "a", "'", "\ud83d", "😂", "\n", ". ", "-"])))
def test_anything_can_be_read(embedder: MiniLmEmbedder, pieces: list[str]) -> None:
    text = "".join(pieces)
    (read,) = reading(embedder, [text])
    for sentence in read.sentences:
        assert sentence.start < sentence.end and text[sentence.start : sentence.end].strip()
        heads_ = [token.head for token in sentence.tokens]
        assert not heads_ or heads_.count(language.ROOT) == 1


def test_a_service_that_reads_nothing_loads_no_heads() -> None:
    script = (
        "from runtime.inference import MiniLmEmbedder, language\n"
        "import sys; assert 'runtime.inference.language.heads' not in sys.modules\n"
        "assert 'runtime.inference.language.kernels' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, cwd=ROOT)
