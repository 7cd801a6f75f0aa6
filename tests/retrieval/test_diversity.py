"""Maximal marginal relevance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engram.retrieval.diversity import best_vectors, diversified


@st.composite
def candidates(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw scores and vectors: some candidates have none."""
    scores = np.sort(np.array(draw(st.lists(st.floats(0.0, 1.0), max_size=10)), float))[::-1]
    vectors = np.random.default_rng(draw(st.integers(0, 999))).normal(size=(len(scores), 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[[draw(st.integers(0, 3)) == 0 for _ in scores]] = 0.0
    return scores, vectors.astype(np.float32)


@given(candidates(), st.floats(0.0, 1.0))
def test_each_choice_is_the_best_that_is_unlike_those_before(
    given: tuple[np.ndarray, np.ndarray], weight: float
) -> None:
    scores, vectors = given
    found = diversified(scores, vectors, weight).tolist()
    assert sorted(found) == list(range(len(scores)))
    relevance = scores / (scores.max(initial=0.0) or 1.0)

    def worth(one: int, before: list[int]) -> float:
        alike = [float(vectors[one] @ vectors[other]) for other in before]
        return float(relevance[one]) - weight * max(0.0, *alike, 0.0)

    for at, one in enumerate(found):
        each = [worth(other, found[:at]) for other in found[at:]]
        # Rounding may make the second best of them the best.
        assert worth(one, found[:at]) >= max(each) - 1e-5


@given(candidates())
def test_without_weight_the_order_stays(given: tuple[np.ndarray, np.ndarray]) -> None:
    assert diversified(*given, 0.0).tolist() == list(range(len(given[0])))


def test_a_copy_of_the_best_gives_way_to_something_else() -> None:
    scores = np.array([1.0, 0.99, 0.8])
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    assert diversified(scores, vectors, 0.5).tolist() == [0, 2, 1]
    assert diversified(scores, vectors, 0.1).tolist() == [0, 1, 2]


def test_of_several_chunks_the_one_nearest_to_the_query_stands_for_a_text() -> None:
    keys = np.array([30, 10, 20])
    vectors = np.array([[1, 0], [0, 1], [0.6, 0.8], [0, 1]], dtype=np.float32)
    owners = np.array([10, 10, 30, 30])
    query = np.array([0.8, 0.6], dtype=np.float32)
    assert best_vectors(keys, vectors, owners, query).tolist() == [
        vectors[2].tolist(),
        [1.0, 0.0],
        [0.0, 0.0],
    ]
