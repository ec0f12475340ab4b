"""The lexical index against a plain dictionary of documents: BM25 by its definition, updates,
blocks, scopes and secrets.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np
import pytest
from pyroaring import BitMap

from storage.indexes.lexical import OCCURRENCES_SCORED_MAX, BoundLexical, LexicalIndex
from storage.indexes.lexical.held import HELD_BYTES_PER_DOCUMENT
from storage.store import Identity, Scope, Snapshot, Store
from storage.text import analyze, query_terms

INDEX = LexicalIndex("lexical")
HELD = LexicalIndex("held", held_min=0)  # of which every account has something in memory
WORDS = [f"w{number}" for number in range(40)]
TENANTS = itertools.count(1)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store.open(
        tmp_path_factory.mktemp("store"),
        (*INDEX.tables, *HELD.tables),
        identity=Identity("", 0, 1, 4096, 1),
        create=True,
    )
    yield store
    store.close()


@pytest.fixture
def scope() -> Scope:
    """A tenant of the test's own."""
    return Scope(9, next(TENANTS), b"k" * 32)


def change(
    store: Store,
    scope: Scope,
    work: Callable[[BoundLexical], object],
    index: LexicalIndex = INDEX,
) -> object:
    return store.write(lambda transaction: work(index.bind(transaction, scope))).result


def rows(store: Store, scope: Scope) -> dict[str, list]:
    """What is stored, less the tokens, which no two changes have in common."""
    with store.snapshot() as snapshot:
        found = {table.name: list(snapshot.bind(table, scope).scan()) for table in INDEX.tables}
    found[INDEX.stats.name] = [
        (key, (stats.documents, stats.total_length)) for key, stats in found[INDEX.stats.name]
    ]
    return found


def plain_scores(
    documents: dict[int, list[str]], terms: list[str], k1: float = 1.2, b: float = 0.75
) -> dict[int, float]:
    """BM25 as the textbook writes it."""
    average = sum(map(len, documents.values())) / len(documents)
    scores: dict[int, float] = {}
    for term in set(terms):
        containing = sum(term in words for words in documents.values())
        idf = math.log(1 + (len(documents) - containing + 0.5) / (containing + 0.5))
        for ordinal, words in documents.items():
            if tf := words.count(term):
                norm = k1 * (1 - b + b * len(words) / average)
                scores[ordinal] = scores.get(ordinal, 0.0) + idf * tf * (k1 + 1) / (tf + norm)
    return scores


def check_against(
    documents: dict[int, list[str]],
    bound: BoundLexical,
    terms: list[str],
    allowed: BitMap | None,
    k: int = 10,
) -> None:
    expected = (
        {o: s for o, s in plain_scores(documents, terms).items() if allowed is None or o in allowed}
        if documents
        else {}
    )
    ordinals, scores = bound.search(terms, k, allowed)
    assert len(ordinals) == min(k, len(expected))
    assert scores.tolist() == pytest.approx(sorted(expected.values(), reverse=True)[:k], rel=1e-5)
    assert [expected[o] for o in ordinals.tolist()] == pytest.approx(scores.tolist(), rel=1e-5)
    assert (np.lexsort((ordinals, scores))[::-1] == np.arange(len(ordinals))).all()
    if allowed is not None:
        members = np.array(sorted(allowed), np.uint32)
        assert bound.search(terms, k, members)[0].tolist() == ordinals.tolist()
    assert bound.have_terms([*terms, "never"]) == [
        *(any(term in words for words in documents.values()) for term in terms),
        False,
    ]
    every = np.array(sorted(documents), np.uint32)
    full = plain_scores(documents, terms) if documents else {}
    assert bound.score(terms, every).tolist() == pytest.approx(
        [full.get(o, 0.0) for o in every.tolist()], rel=1e-5
    )
    assert bound.lengths(every).tolist() == [len(documents[o]) for o in every.tolist()]
    for some in (terms, terms[:1], terms[::-1], terms):  # whatever was laid out before
        assert bound.frequencies(some, every).tolist() == [
            [documents[o].count(term) for o in every.tolist()] for term in some
        ]


@pytest.mark.parametrize("index", [INDEX, HELD])
@pytest.mark.parametrize("seed", range(4))
def test_random_changes_answer_like_plain_bm25(
    store: Store, scope: Scope, seed: int, index: LexicalIndex
) -> None:
    rng = random.Random(seed)
    documents: dict[int, list[str]] = {}
    pool = [*range(30), *range(1_000, 1_050), *range(500, 530), 70_000, 3_000_000][
        : rng.choice([60, 200])
    ]

    def words() -> list[str]:
        return rng.choices(WORDS, k=rng.randrange(0, 25))

    for _ in range(25):
        batch = {rng.choice(pool): words() for _ in range(rng.randrange(1, 12))}
        gone = rng.sample(pool, 4)

        def work(bound: BoundLexical, batch=batch, gone=gone) -> None:
            bound.add_many(list(batch.items()))
            documents.update(batch)
            one = rng.choice(pool)
            documents[one] = words()
            bound.add(one, Counter(documents[one]))
            assert bound.remove_many(gone) == sum(
                documents.pop(ordinal, None) is not None for ordinal in gone
            )

        change(store, scope, work, index)
        with store.snapshot() as snapshot:
            bound = index.bind(snapshot, scope)
            stats = bound.stats()
            assert (stats.documents, stats.total_length) == (
                len(documents),
                sum(map(len, documents.values())),
            )
            allowed = rng.choice([None, BitMap(rng.sample(pool, 20)), BitMap(pool)])
            check_against(documents, bound, rng.sample(WORDS, rng.randrange(1, 6)), allowed)


@pytest.mark.parametrize("index", [INDEX, HELD])
@pytest.mark.parametrize("size, apart", [(10, 1), (3_000, 1), (3_000, 37), (200, 40_000)])
def test_search_over_many_blocks(
    store: Store, scope: Scope, index: LexicalIndex, size: int, apart: int
) -> None:
    rng = random.Random(7)
    documents = {
        ordinal * apart: rng.choices(WORDS, k=rng.randrange(1, 9)) for ordinal in range(size)
    }
    change(store, scope, lambda bound: bound.add_many(documents.items()), index)
    all_of = list(documents)
    few = BitMap([all_of[place] for place in range(0, size, 3)])
    for _ in range(2):  # what the second reads may be in memory
        with store.snapshot() as snapshot:
            bound = index.bind(snapshot, scope)
            for allowed in (None, few, BitMap(all_of), BitMap(all_of[-2:]), BitMap()):
                for k in (7, 500):
                    check_against(documents, bound, ["w1", "w2", "none"], allowed, k=k)


def test_each_snapshot_finds_its_own_whatever_is_in_memory(store: Store, scope: Scope) -> None:
    def found(snapshot: Snapshot) -> list[int]:
        return sorted(HELD.bind(snapshot, scope).search(["lake"], 9)[0].tolist())

    with ExitStack() as opened:
        seen = []

        def changed(work: Callable[[BoundLexical], object], expected: list[int]) -> None:
            change(store, scope, work, HELD)
            seen.append((opened.enter_context(store.snapshot()), expected))
            for snapshot, known in (*seen, *reversed(seen)):
                assert found(snapshot) == known

        changed(lambda bound: bound.add_many([(1, ["lake"]), (70_000, ["lake"])]), [1, 70_000])
        changed(lambda bound: bound.add(140_000, ["lake", "lake"]), [1, 70_000, 140_000])
        changed(lambda bound: bound.remove(1), [70_000, 140_000])
        changed(lambda bound: bound.add(70_000, ["sea"]), [140_000])
        # All is gone, and some of it comes again where nothing tells it from what was there.
        changed(lambda bound: bound.clear(), [])
        changed(lambda bound: bound.add(140_000, ["lake", "lake"]), [140_000])


def test_what_is_in_memory_is_what_was_asked_last_within_a_bound(
    store: Store, scope: Scope
) -> None:
    documents = {
        ordinal: [*WORDS[:30], f"w{ordinal % 7}", f"own{ordinal}"] for ordinal in range(3_000)
    }
    change(store, scope, lambda bound: bound.add_many(documents.items()), HELD)
    with store.snapshot() as snapshot:
        most = HELD_BYTES_PER_DOCUMENT * len(documents)
        bound = HELD.bind(snapshot, scope)
        lengths = 2 * len(documents) + 2 * 512 + 64  # the last block is padded
        for word in WORDS[:30]:
            check_against(documents, bound, [word], None)
            assert 0 < store.residents.bytes_of(scope) <= most + lengths
        assert store.residents.bytes_of(scope) > most / 2


def test_removing_and_adding_again_leaves_the_same_rows(store: Store, scope: Scope) -> None:
    documents = {
        ordinal: [f"w{ordinal % 7}", f"w{ordinal % 3}", "same", "same"]
        for ordinal in range(0, 2_500, 5)
    }
    change(store, scope, lambda bound: bound.add_many(documents.items()))
    before = rows(store, scope)

    def shuffle(bound: BoundLexical) -> None:
        for ordinal in list(documents)[::3]:
            assert bound.remove(ordinal)
            assert not bound.remove(ordinal)
        for ordinal in reversed(list(documents)[::3]):
            bound.add(ordinal, documents[ordinal])

    change(store, scope, shuffle)
    assert rows(store, scope) == before
    assert change(store, scope, lambda bound: bound.clear()) == len(documents)
    assert not any(rows(store, scope).values())
    change(
        store,
        scope,
        lambda bound: [bound.add(ordinal, terms) for ordinal, terms in documents.items()],
    )
    assert rows(store, scope) == before
    change(store, scope, lambda bound: bound.remove_many(documents))
    assert not any(
        table for name, table in rows(store, scope).items() if not name.endswith("stats")
    )


def test_a_batch_and_single_adds_are_the_same(store: Store) -> None:
    one, other = Scope(9, next(TENANTS), b"s" * 32), Scope(9, next(TENANTS), b"s" * 32)
    documents = [
        (ordinal, random.Random(ordinal).choices(WORDS, k=12)) for ordinal in range(0, 3_000, 17)
    ]
    change(store, one, lambda bound: bound.add_many(documents))
    change(store, other, lambda bound: [bound.add(*document) for document in reversed(documents)])
    assert rows(store, one) == rows(store, other)


def test_a_term_stands_in_the_file_only_under_the_tenants_secret(store: Store) -> None:
    one, other = Scope(9, next(TENANTS), b"1" * 32), Scope(9, next(TENANTS), b"2" * 32)
    for scope in (one, other):
        change(store, scope, lambda bound: bound.add(5, ["zanzibar"]))
    assert (
        rows(store, one)["lexical.postings"][0][0] != rows(store, other)["lexical.postings"][0][0]
    )
    assert b"zanzibar" not in store.data_file.read_bytes()


def test_tenants_do_not_see_each_other(store: Store) -> None:
    secret = b"x" * 32
    one, other = Scope(9, next(TENANTS), secret), Scope(9, next(TENANTS), secret)
    change(store, one, lambda bound: bound.add(1, ["lake"]))
    with store.snapshot() as snapshot:
        assert len(INDEX.bind(snapshot, one).search(["lake"], 5)[0]) == 1
        assert len(INDEX.bind(snapshot, other).search(["lake"], 5)[0]) == 0


def test_idf_and_ceiling(store: Store, scope: Scope) -> None:
    change(store, scope, lambda bound: bound.add_many([(0, ["a", "b"]), (1, ["a"]), (2, [])]))
    with store.snapshot() as snapshot:
        bound = INDEX.bind(snapshot, scope)
        rarities = bound.idfs(["a", "unseen"])
        assert rarities == pytest.approx([math.log(1 + 1.5 / 2.5), math.log(1 + 3 / 0.5)])
        assert bound.ceiling(["a", "unseen", "a"]) == pytest.approx(2.2 * sum(rarities))
        assert bound.search(["a", "b"], 1)[1][0] < bound.ceiling(["a", "b"])
        assert bound.has(2) and not bound.has(3)


def test_an_empty_tenant_answers_nothing(store: Store, scope: Scope) -> None:
    with store.snapshot() as snapshot:
        bound = INDEX.bind(snapshot, scope)
        assert [len(part) for part in bound.search(["a"], 5)] == [0, 0]
        assert bound.score(["a"], np.array([1, 2])).tolist() == [0, 0]
        assert bound.score([], np.array([1, 2])).tolist() == [0, 0]
        assert bound.ceiling(["a"]) == bound.ceiling([]) == 0
        assert len(bound.lengths(np.zeros(0, np.uint32))) == 0


def test_equal_scores_come_newest_first_also_at_the_cut(store: Store, scope: Scope) -> None:
    change(
        store, scope, lambda bound: bound.add_many([(ordinal, ["same"]) for ordinal in range(100)])
    )
    with store.snapshot() as snapshot:
        assert INDEX.bind(snapshot, scope).search(["same"], 4)[0].tolist() == [99, 98, 97, 96]


def test_many_occurrences_are_scored_up_to_a_bound_and_counted_in_full(
    store: Store, scope: Scope
) -> None:
    change(store, scope, lambda bound: bound.add(3, {"often": 5_000, "once": 1}))
    with store.snapshot() as snapshot:
        bound = INDEX.bind(snapshot, scope)
        assert bound.postings("often").occurrences.tolist() == [OCCURRENCES_SCORED_MAX]
        assert bound.lengths(np.array([3])).tolist() == [5_001]
    change(store, scope, lambda bound: bound.add(3, {"often": 1_000_000}))
    change(store, scope, lambda bound: bound.remove(3))
    with store.snapshot() as snapshot:
        assert INDEX.bind(snapshot, scope).stats().total_length == 0


def test_a_transaction_reads_what_it_wrote_and_a_failed_child_leaves_nothing(
    store: Store, scope: Scope
) -> None:
    def work(transaction) -> None:
        bound = INDEX.bind(transaction, scope)
        bound.add(1, ["lake"])
        assert bound.search(["lake"], 5)[0].tolist() == [1]
        with pytest.raises(ZeroDivisionError), transaction.child() as child:
            INDEX.bind(child, scope).add(2, ["lake"])
            raise ZeroDivisionError
        assert bound.search(["lake"], 5)[0].tolist() == [1]
        bound.add(1, ["sea"])
        assert bound.search(["lake"], 5)[0].tolist() == []

    store.write(work)
    with store.snapshot() as snapshot:
        assert INDEX.bind(snapshot, scope).stats().documents == 1


def test_texts_are_found_through_the_analyzer(store: Store, scope: Scope) -> None:
    texts = [
        "Melanie painted the lake at sunset",
        "Caroline went to the adoption agency",
        "Die Häuser am See sind nicht so schön",
        "黒猫が好きです",
    ]
    change(
        store,
        scope,
        lambda bound: bound.add_many(
            (ordinal, analyze(text)) for ordinal, text in enumerate(texts)
        ),
    )
    with store.snapshot() as snapshot:
        bound = INDEX.bind(snapshot, scope)
        for query, expected in [
            ("What did Melanie paint?", 0),
            ("adoption agencies", 1),
            ("wo ist das Haus?", 2),
            ("猫", 3),
        ]:
            assert bound.search(query_terms(query), 1)[0].tolist() == [expected]
