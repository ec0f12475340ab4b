"""Eight-bit codes against the float32 vectors they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from storage.indexes.row_map import ABSENT
from storage.indexes.vectors.quantised import Codes, quantised


@pytest.fixture(params=[3, 16, 384])
def vectors(request: pytest.FixtureRequest) -> np.ndarray:
    drawn = np.random.default_rng(5).normal(size=(60, request.param))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def test_a_product_is_off_by_no_more_than_the_rows_residual(vectors: np.ndarray) -> None:
    codes = quantised(vectors)
    queries = vectors[::7]
    errors = np.abs(codes.products(queries, len(vectors)) - queries @ vectors.T)
    assert (errors <= codes.residuals + 1e-6).all()
    assert codes.residuals.max() < 0.02
    assert (
        np.linalg.norm(codes.decoded(np.arange(60)) - vectors, axis=1) <= codes.residuals + 1e-6
    ).all()


def test_a_rows_codes_do_not_depend_on_the_rows_beside_it(vectors: np.ndarray) -> None:
    alone, together = quantised(vectors[7:8]), quantised(vectors)
    assert (alone.codes[0] == together.codes[7]).all() and alone.scales[0] == together.scales[7]


def test_products_of_single_rows_are_the_same_and_nothing_where_there_is_none(
    vectors: np.ndarray,
) -> None:
    codes = quantised(vectors)
    rows = np.array([5, ABSENT, 59], np.int32)
    assert codes.products_at(rows, vectors[3]).tolist() == pytest.approx(
        [vectors[5] @ vectors[3], 0, vectors[59] @ vectors[3]], abs=0.02
    )


def test_a_blend_is_the_cosine_of_the_sum(vectors: np.ndarray) -> None:
    codes = quantised(vectors)
    query = vectors[0]
    places = [
        (4, 5, 6),
        (7, ABSENT, 8),
        (9, 10, ABSENT),
        (11, ABSENT, ABSENT),
        (ABSENT, ABSENT, ABSENT),
    ]
    rows = [np.array(each, np.int32) for each in zip(*places, strict=True)]
    blended = codes.blended(rows, [codes.products_at(each, query) for each in rows], 0.5)
    nothing = np.zeros(len(query))
    for found, (own, one, other) in zip(blended, places, strict=True):
        blend = sum(
            share * (nothing if row == ABSENT else vectors[row])
            for share, row in ((1, own), (0.5, one), (0.5, other))
        )
        assert found == pytest.approx(blend @ query / max(np.linalg.norm(blend), 1e-9), abs=0.02)


def test_rows_move_whole(vectors: np.ndarray) -> None:
    codes = quantised(vectors)
    moved = Codes.empty(4, vectors.shape[1])
    moved.put(1, codes.take(np.array([9, 2])))
    assert (moved.codes[1] == codes.codes[9]).all() and moved.residuals[2] == codes.residuals[2]
    assert moved.nbytes == 4 * (vectors.shape[1] + 8)
