"""The embedded model beside the one that reads other languages: one vector of both, whichever way a
text comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from runtime.inference.minilm.weights import WIDTH, ModelUnusable
from runtime.inference.models import checkpoint_of, load_worker
from runtime.inference.multilingual import (
    LANGUAGES,
    SHARE_ASKED,
    SHARE_MAX,
    SHARE_MIN,
    MultilingualEmbedder,
)
from tests.support.checkpoints import save_checkpoint
from tests.support.worlds import settings

# "My sister plays the violin.", "The train to the coast is late.", "He does not eat nuts."
SAID = {
    "english": (
        "My sister plays the violin.",
        "The train to the coast is late.",
        "He does not eat nuts.",
    ),
    "arabic": ("أختي تعزف على الكمان.", "القطار إلى الساحل متأخر.", "هو لا يأكل المكسرات."),
    "chinese": ("我姐姐拉小提琴。", "去海边的火车晚点了。", "他不吃坚果。"),
    "dutch": (
        "Mijn zus speelt viool.",
        "De trein naar de kust heeft vertraging.",
        "Hij eet geen noten.",
    ),
    "french": (
        "Ma sœur joue du violon.",
        "Le train pour la côte est en retard.",
        "Il ne mange pas de noix.",
    ),
    "german": (
        "Meine Schwester spielt Geige.",
        "Der Zug an die Küste hat Verspätung.",
        "Er isst keine Nüsse.",
    ),
    "italian": (
        "Mia sorella suona il violino.",
        "Il treno per la costa è in ritardo.",
        "Lui non mangia noci.",
    ),
    "japanese": (
        "姉はバイオリンを弾きます。",
        "海岸行きの電車が遅れています。",
        "彼はナッツを食べません。",
    ),
    "korean": (
        "제 여동생은 바이올린을 연주합니다.",
        "해안으로 가는 기차가 늦었습니다.",
        "그는 견과류를 먹지 않습니다.",
    ),
    "polish": (
        "Moja siostra gra na skrzypcach.",
        "Pociąg na wybrzeże jest opóźniony.",
        "On nie je orzechów.",
    ),
    "portuguese": (
        "Minha irmã toca violino.",
        "O trem para o litoral está atrasado.",
        "Ele não come nozes.",
    ),
    "russian": (
        "Моя сестра играет на скрипке.",
        "Поезд на побережье опаздывает.",
        "Он не ест орехов.",
    ),
    "spanish": (
        "Mi hermana toca el violín.",
        "El tren a la costa va con retraso.",
        "Él no come nueces.",
    ),
    "thai": ("พี่สาวของฉันเล่นไวโอลิน", "รถไฟไปชายทะเลมาช้า", "เขาไม่กินถั่ว"),
    "turkish": (
        "Kız kardeşim keman çalıyor.",
        "Sahile giden tren gecikti.",
        "O fındık yemiyor.",
    ),
}
MIXED = ("We met 田中さん in the library of Kyoto.", "Dockerで動かしています。", "3 + 4 = 7", " ")


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MultilingualEmbedder]:
    made = MultilingualEmbedder(tmp_path_factory.mktemp("models"), timeout_seconds=120)
    yield made
    asyncio.run(made.close())


def of(embedder: MultilingualEmbedder, *texts: str) -> np.ndarray:
    return asyncio.run(embedder.embed(texts))


def test_what_is_said_in_one_language_is_nearest_to_the_same_in_another(
    embedder: MultilingualEmbedder,
) -> None:
    assert SAID.keys() == LANGUAGES
    found = {language: of(embedder, *texts) for language, texts in SAID.items()}
    for language, rows in found.items():
        for asked, told in ((rows, found["english"]), (found["english"], rows), (rows, rows)):
            assert np.argmax(asked @ told.T, axis=1).tolist() == [0, 1, 2], language


def test_each_language_is_one_that_it_was_taught(embedder: MultilingualEmbedder) -> None:
    assert all(embedder.taught(language) for language in SAID)
    assert not embedder.taught("hindi") and not embedder.taught("finnish")


def test_rows_are_unit_vectors_in_any_company(embedder: MultilingualEmbedder) -> None:
    texts = [*(text for said in SAID.values() for text in said), *MIXED]
    together = of(embedder, *texts)
    assert embedder.width == together.shape[1] == 896 and embedder.space.endswith("/896")
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for row, text in enumerate(texts):
        np.testing.assert_allclose(of(embedder, text)[0], together[row], atol=1e-5)


def test_a_vector_is_the_same_whatever_else_is_asked_of_its_text(
    embedder: MultilingualEmbedder,
) -> None:
    async def work() -> None:
        texts = [*SAID["english"], *SAID["japanese"], *SAID["german"], *MIXED]
        spans = [[(0, 1)] for _ in texts]
        plain = await embedder.embed(texts)
        worded = await embedder.embed_words(texts, spans)
        read = await embedder.embed_read(texts, spans)
        for row, text in enumerate(texts):
            np.testing.assert_allclose(worded[row].vector, plain[row], atol=1e-5)
            np.testing.assert_allclose(read[row][0].vector, plain[row], atol=1e-5)
            assert worded[row].words is not None
            if text in SAID["english"]:
                assert read[row][1].sentences[0].tokens

    asyncio.run(work())


def test_a_question_listens_more_to_what_is_said_in_any_language(
    embedder: MultilingualEmbedder,
) -> None:
    async def work() -> None:
        for text in (*SAID["english"], *SAID["japanese"]):
            told = await embedder.embed([text])
            asked = await embedder.embed([text], is_query=True)
            (worded,) = await embedder.embed_words([text], [[(0, 1)]], is_query=True)
            np.testing.assert_allclose(worded.vector, asked[0], atol=1e-5)
            assert (worded.words is None) == (text not in SAID["english"])
            np.testing.assert_allclose(np.linalg.norm(asked), 1, atol=1e-5)
            share, of_question = (np.sum(row[:, :WIDTH] ** 2) for row in (told, asked))
            assert of_question == pytest.approx(SHARE_ASKED * share, abs=1e-4)

    asyncio.run(work())


def test_the_share_of_english_is_most_where_a_text_is_english(
    embedder: MultilingualEmbedder,
) -> None:
    def share(text: str) -> float:
        return float(np.sum(of(embedder, text)[0, :WIDTH] ** 2))

    assert share(SAID["english"][0]) == pytest.approx(SHARE_MAX, abs=1e-3)
    assert share(SAID["polish"][0]) == pytest.approx(SHARE_MIN, abs=1e-3)
    assert share(SAID["russian"][0]) == 0
    assert 0 < share("Dockerで動かしています。") < SHARE_MIN
    # What is left of a text that is not all Latin is read as if it stood alone.
    alone, beside = of(embedder, "Docker 。", "Dockerで動かしています。")[:, :WIDTH]
    assert beside @ alone / np.linalg.norm(beside) / np.linalg.norm(alone) > 0.999


def test_words_of_its_languages_are_known_and_random_letters_are_not(
    embedder: MultilingualEmbedder,
) -> None:
    for word in (
        "sister",
        "Schwester",
        "Geige",
        "orzechów",
        "сестра",
        "小提琴",
        "ไวโอลิน",
        "hermana",
    ):
        assert embedder.knows(word), word
    for word in ("xqzvprk", "wmrkcjtp", "बहन"):
        assert not embedder.knows(word), word


def test_scripts_that_it_was_not_taught_are_left_out(embedder: MultilingualEmbedder) -> None:
    assert embedder.readable("Где живёт моя сестра? 東京 café") == "Где живёт моя сестра? 東京 café"
    assert embedder.readable("मेरी बहन Pune में") == "Pune"
    assert embedder.readable("πού;") == ""


def test_a_worker_of_all_shards_makes_the_same_vectors(
    embedder: MultilingualEmbedder, tmp_path: Path
) -> None:
    async def work() -> None:
        chosen = settings(data_dir=str(tmp_path), embedder__multilingual=True).embedder
        theirs = MultilingualEmbedder(
            tmp_path, worker=load_worker(chosen, tmp_path), timeout_seconds=120
        )
        texts = [*SAID["english"], *SAID["thai"]]
        np.testing.assert_allclose(
            await theirs.embed(texts), await embedder.embed(texts), atol=1e-5
        )
        await theirs.close()

    asyncio.run(work())


def test_another_model_beside_it_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "own", "bert", words=("violin",), seed=1)
    chosen = settings(
        data_dir=str(tmp_path),
        embedder__model_path=str(tmp_path / "own"),
        embedder__multilingual=True,
    )
    with pytest.raises(ModelUnusable, match="multilingual goes with the embedded model"):
        checkpoint_of(chosen.embedder)
