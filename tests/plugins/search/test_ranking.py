"""The ranking features, on columns small enough to check by hand."""

from __future__ import annotations

import numpy as np
import pytest

from plugins.memories import MEMORY_FEATURES, TextFeatures
from plugins.memories.features import COLUMNS
from plugins.search import ranking
from plugins.search.late_interaction import has_context, interaction, promising_of
from plugins.search.ranking import Columns, Pool, Query
from serve_app import Settings

WEIGHTS = Settings.load().ranking.weights
NOTHING_MET = np.zeros(4, np.float32)


def columns(n: int, **fields) -> Columns:
    """Cues by their names; has_time, has_number, is_question: bool; first_person, second_person: 0
    to 1.
    """
    text_features = np.zeros(n, COLUMNS)
    text_features["content_words"] = 5
    flags = {
        "is_question": TextFeatures.QUESTION,
        "has_number": TextFeatures.NUMBER,
        "has_time": TextFeatures.TIME,
    }
    for name, flag in flags.items():
        text_features["flags"] |= np.where(fields.pop(name, np.zeros(n, bool)), flag, 0).astype(
            np.uint8
        )
    for name in ("first_person", "second_person"):
        text_features[name] = 255 * fields.pop(name, np.zeros(n))
    for name in COLUMNS.names:
        if name in fields and name not in ("previous", "following", "speaker"):
            text_features[name] = fields.pop(name)
    base = {
        name: np.zeros(n) for name in ("blended", "speaker", "date", "answers")
    } | dict.fromkeys(("previous", "following"), np.full(n, -1))
    kinds = {"previous": np.int32, "following": np.int32, "answers": bool}
    return Columns(
        **{
            name: values.astype(kinds.get(name, np.float32))
            for name, values in (base | fields).items()
        },
        text_features=text_features.view(MEMORY_FEATURES.layout),
    )


def query(**fields) -> Query:
    return Query(
        **{"idf": np.array([2.0], np.float32), "ceiling": 4.4, "average_length": 10.0, **fields}
    )


def pool(frequencies, cosines=None) -> Pool:
    matrix = np.array(frequencies, np.float32)
    n = matrix.shape[1]
    return Pool(
        matrix,
        np.full(n, 10, np.uint16),
        np.zeros(n, np.float32) if cosines is None else np.array(cosines, np.float32),
    )


def test_weights_name_exactly_the_features() -> None:
    assert set(WEIGHTS) == set(ranking.FEATURES)


def test_bm25_is_the_published_formula() -> None:
    alone = Pool(np.array([[3.0]], np.float32), np.array([20], np.uint16), np.zeros(1, np.float32))
    found = ranking.features(query(idf=np.array([1.5], np.float32), ceiling=1.0), alone, columns(1))
    assert found["session"][0] == pytest.approx(
        0.5 * 1.5 * 3 * 2.2 / (3 + 1.2 * (0.25 + 0.75 * 2))
    )  # half of its own match
    assert found["lexical"][0] == pytest.approx(
        1.5 * 6 * 2.2 / (6 + 1.2 * (0.25 + 0.75 * 40 / 40))
    )  # twice itself, of four in a window


def test_a_word_beside_a_memory_counts_for_it_but_less_than_its_own() -> None:
    found = ranking.features(query(), pool([[1, 0, 0]]), columns(3, previous=np.array([-1, 0, -1])))
    own, beside, nowhere = found["lexical"]
    assert own > beside > nowhere == 0
    assert 0 < own <= 1


def test_meaning_is_a_cosine_never_below_nothing() -> None:
    found = ranking.features(
        query(), pool([[0, 0]], [0.5, -0.5]), columns(2, blended=np.array([-0.25, 0.25]))
    )
    assert (found["exact"].tolist(), found["semantic"].tolist()) == ([0.5, 0], [0, 0.25])


def test_a_session_lends_its_best_to_its_members_and_nobody_else() -> None:
    session = np.array([7 << 40, 7 << 40, 0, 9 << 40, 0], np.uint64)
    found = ranking.features(
        query(), pool([[0] * 5], [1, 0, 0, 0.5, 0.25]), columns(5, session=session)
    )
    assert found["session"].tolist() == [0.5, 0.5, 0, 0.25, 0.125]


def test_plain_notes_lose_nothing() -> None:
    with_nothing = ranking.features(query(), pool([[1]]), columns(1))
    assert with_nothing["speaker"][0] == 0
    assert with_nothing["lexical"][0] > 0 and with_nothing["session"][0] > 0


def test_time_and_number_count_only_when_asked_for() -> None:
    told = columns(1, has_time=np.array([True]), has_number=np.array([True]))
    assert ranking.features(query(), pool([[1]]), told)["time"][0] == 0
    asked = ranking.features(query(asks_when=True, asks_count=True), pool([[1]]), told)
    assert (asked["time"][0], asked["number"][0]) == (1, 1)


def test_a_long_memory_shows_everything_somewhere_so_each_of_it_counts_less() -> None:
    yes = np.array([True, True])
    told = columns(
        2,
        content_words=np.array([ranking.FEATURE_WORDS, 4 * ranking.FEATURE_WORDS]),
        previous=np.array([1, 0]),
        answers=yes,
        capitals=np.array([9, 9]),
        has_number=yes,
        has_time=yes,
    )
    asked = query(asks_when=True, asks_count=True, asks_where=True)
    found = ranking.features(asked, pool([[1, 1]]), told)
    for name in ("answer", "time", "number", "place", "names", "dated"):
        short, long = found[name].tolist()
        assert short > 0 and long == pytest.approx(short / 4), name


def test_what_follows_a_question_takes_over_how_well_it_matches() -> None:
    told = columns(3, previous=np.array([-1, 0, 1]), answers=np.array([False, True, False]))
    found = ranking.features(query(), pool([[1, 0, 0]]), told)["answer"]
    assert found[0] == found[2] == 0 < found[1]


def test_the_first_person_counts_only_beside_a_named_speaker() -> None:
    told = columns(3, speaker=np.array([1, -1, 0]), first_person=np.array([0.5, 0.5, 0.5]))
    assert ranking.features(query(), pool([[1, 1, 1]]), told)["personal"].tolist() == [0.5, -0.5, 0]


def test_subjects_conflict_when_another_speaker_fits_better() -> None:
    told = columns(4, speaker=np.array([1, 1, -1, -1]))
    for frequencies, conflicting in (([[0, 0, 1, 0]], True), ([[1, 0, 0, 0]], False)):
        found = ranking.features(query(), pool(frequencies), told)
        assert (
            ranking.subject_conflict(found, WEIGHTS, NOTHING_MET[: len(found["words"])]) < 0
        ) == conflicting
    alone = ranking.features(query(), pool([[1, 1]]), columns(2, speaker=np.array([1, 1])))
    assert ranking.subject_conflict(alone, WEIGHTS, NOTHING_MET[:2]) == 0


def test_subjects_do_not_conflict_where_the_named_has_said_it_too() -> None:
    told = columns(4, speaker=np.array([1, 1, -1, -1]))
    found = ranking.features(query(), pool([[0, 0, 1, 1]]), told)
    assert ranking.subject_conflict(found, WEIGHTS, NOTHING_MET) < 0
    met = np.array([0, 1, 1, 1], np.float32)
    assert ranking.subject_conflict(found, WEIGHTS, met) == 0
    found["words"][:] = [0.9, 0, 1, 1]
    assert ranking.subject_conflict(found, WEIGHTS, NOTHING_MET) == 0


def test_the_clear_best_is_one_that_leads() -> None:
    def near(*words: float, least: float | None = 0.45) -> list[bool]:
        found = ranking.Features(len(words))
        found["words"][:] = words
        near = {"near": 0.2, "words_min": 0.6, "clear_words_min": least, "date_min": 1.0}
        return ranking.near_enough(found, **near).tolist()

    assert near(0.3, 0.5, 0.1) == [False, True, False]
    assert near(0.46, 0.5) == [False, False]
    assert near(0.5) == [True] and near(0.4) == [False]
    assert near(0.5, least=None) == [False]
    assert near(0.7, 0.3, 0.61) == [True, False, True]


def test_a_word_or_a_near_meaning_stands_by_itself() -> None:
    found = ranking.Features(4)
    found["lexical"][:] = [0.01, 0, 0, 0]
    found["exact"][:] = [0, 0.2, 0.19, 0]
    stands = ranking.near_enough(found, near=0.2, words_min=0.6, clear_words_min=None, date_min=1.0)
    assert stands.tolist() == [True, True, False, False]


def test_words_beside_those_of_another_speaker_are_no_evidence_about_the_named() -> None:
    """Who is named only stands next to the match: a window makes his memory look as good as
    hers.
    """
    found, swapped = ranking.Features(2), ranking.Features(2)
    beside = {"nearby": [1.0, 1.0], "semantic": [0.7, 0.7]}
    itself = {"words": [0.1, 1.0], "exact": [0.1, 0.7]}
    for features, speaker in ((found, [0.5, -0.5]), (swapped, [-0.5, 0.5])):
        for name, values in {**beside, **itself, "speaker": speaker}.items():
            features[name][:] = values
    assert ranking.subject_conflict(found, WEIGHTS, NOTHING_MET[: len(found["words"])]) < -0.3
    assert ranking.subject_conflict(swapped, WEIGHTS, NOTHING_MET[:2]) > 0.3


def test_narrowed_weights_give_a_perfect_memory_the_same() -> None:
    own = ranking.narrowed(WEIGHTS)
    assert own["nearby"] == own["semantic"] == 0
    assert sum(own.values()) == pytest.approx(sum(WEIGHTS.values()))


def test_idf_is_what_the_lexical_index_says() -> None:
    got = ranking.idf(10, np.array([0, 3]))
    assert got == pytest.approx([np.log(1 + 10 / 0.5), np.log(1 + 7.5 / 3.5)])


def test_the_logistic_curve_bears_any_number() -> None:
    assert [ranking.logistic(x) for x in (-1e9, 0, 1e9)] == [0, 0.5, 1]
    assert ranking.logistic(1) == pytest.approx(1 / (1 + np.exp(-1)))


@pytest.mark.parametrize(
    ("text", "when", "count", "where"),
    [
        ("When did we meet?", True, False, False),
        ("How many cats?", False, True, False),
        ("what year was it", True, False, False),
        ("Who came whenever", False, False, False),
        ("And where did she go?", False, False, True),
        ("Which city is it", False, False, True),
        ("which cities have I seen", False, False, True),
        ("What European countries did they visit?", False, False, True),
        ("What took place?", False, False, False),
        ("The old place where nobody asks", False, False, False),
    ],
)
def test_what_a_query_asks_for(text: str, when: bool, count: bool, where: bool) -> None:
    assert (ranking.asks_when(text), ranking.asks_count(text), ranking.asks_where(text)) == (
        when,
        count,
        where,
    )


def test_no_memory_scores_above_what_is_reachable() -> None:
    rng = np.random.default_rng(7)
    n = 200
    idf = rng.uniform(0.5, 5, 4).astype(np.float32)
    found = ranking.features(
        Query(idf, float(2.2 * idf.sum()), 10.0, True, True, True),
        Pool(
            rng.integers(0, 60, (4, n)).astype(np.float32),
            rng.integers(1, 40, n).astype(np.uint16),
            np.ones(n, np.float32),
        ),
        columns(
            n,
            speaker=np.ones(n),
            blended=np.ones(n),
            has_time=np.ones(n, bool),
            has_number=np.ones(n, bool),
            content_words=np.full(n, 9_999),
            date=np.ones(n),
            capitals=np.full(n, 255),
            first_person=np.ones(n),
            answers=np.ones(n, bool),
            previous=rng.integers(0, n, n),
        ),
    )
    scores = ranking.score(found, WEIGHTS)
    assert scores.max() <= ranking.reachable(WEIGHTS) + 1e-5


@pytest.mark.parametrize("count", [0, 1, 7, 40, 60])
def test_the_promising_are_the_best_and_of_equal_ones_the_newer(count: int) -> None:
    chance = np.random.default_rng(count)
    scores = chance.integers(0, 6, 40).astype(np.float32)  # most have their equals
    previous, following = (chance.integers(-1, 90, 40).astype(np.int32) for _ in range(2))
    found, places = promising_of(scores, count, previous, following)
    best = sorted(range(40), key=lambda place: (scores[place], place))[40 - min(count, 40) :]
    assert found.tolist() == sorted(best)
    assert places.tolist() == [*found, *previous[found], *following[found]]


def test_interaction_is_the_share_of_words_that_a_memory_or_its_neighbours_come_near() -> None:
    chance = np.random.default_rng(0)
    promising = np.array([1, 4, 5], np.int32)
    nearest = chance.random((9, 4), np.float32)
    rarity = chance.random(4, np.float32)
    found = ranking.Features(6)
    interaction(found, promising, nearest, rarity)
    own, before, after = nearest.reshape(3, 3, 4)
    shares = rarity / rarity.sum()
    beside = ranking.NEIGHBOUR_WORDS * np.maximum(before, after)
    assert found["words"][promising] == pytest.approx(own @ shares, rel=1e-5)
    assert found["nearby"][promising] == pytest.approx(np.maximum(own, beside) @ shares, rel=1e-5)
    assert not found["words"][[0, 2, 3]].any() and not found["nearby"][[0, 2, 3]].any()


def test_words_of_one_language_count_as_they_do_on_the_average_at_least() -> None:
    chance = np.random.default_rng(0)
    nearest = chance.random((6, 3), np.float32)
    nearest[1], nearest[2:] = 0, 0
    before = nearest.copy()
    found = ranking.Features(2)
    promising, rarity = np.array([0, 1], np.int32), np.ones(3, np.float32)
    interaction(found, promising, nearest, rarity, one_language=True)
    assert found["words"].tolist() == pytest.approx([nearest[0].mean(), nearest[0].mean() / 2])
    assert found["nearby"].tolist() == pytest.approx(found["words"].tolist())
    assert (nearest == before).all()


def test_rarity_met_is_that_of_the_words_which_a_candidate_has_itself() -> None:
    asked = np.array([1.5, 2.0, 4.0], np.float32)
    with_neighbour = pool([[1, 0, 0, 9], [0, 3, 0, 9], [2, 1, 0, 9]])
    assert ranking.rarity_met(with_neighbour, asked, 3).tolist() == [5.5, 6.0, 0.0]


def test_context_is_a_session_or_a_speaker_that_the_query_tells_apart() -> None:
    assert not has_context(columns(3))
    assert has_context(columns(3, session=np.array([0, 0, 8])))
    assert has_context(columns(3, speaker=np.array([0, -1, 0])))
