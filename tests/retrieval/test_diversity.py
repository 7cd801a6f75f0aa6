"""Maximal marginal relevance."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engram.retrieval.diversity import diversified


@st.composite
def candidates(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw scores and chunks' vectors: some candidates have none, some several."""
    scores = np.sort(np.array(draw(st.lists(st.floats(0.0, 1.0), max_size=10))))[::-1]
    counts = [draw(st.integers(0, 3)) for _ in scores]
    owners = np.repeat(np.arange(len(scores)), counts).astype(np.int64)
    vectors = np.random.default_rng(draw(st.integers(0, 999))).normal(size=(len(owners), 3))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return scores, vectors.astype(np.float32), owners


def worth(
    relevance: np.ndarray,
    vectors: np.ndarray,
    owners: np.ndarray,
    weight: float,
    one: int,
    before: list[int],
) -> float:
    """Say what one is worth after others, all pairs of chunks compared anew."""
    pairs = [
        float(mine @ other)
        for mine in vectors[owners == one]
        for other in vectors[np.isin(owners, before)]
    ]
    return float(relevance[one]) - weight * max(pairs, default=0.0)


@given(candidates(), st.floats(0.0, 1.0), st.integers(1, 12))
def test_each_choice_is_the_best_that_is_unlike_those_before(
    given: tuple[np.ndarray, np.ndarray, np.ndarray], weight: float, k: int
) -> None:
    scores, vectors, owners = given
    found = diversified(scores, vectors, owners, weight, k).tolist()
    assert len(set(found)) == len(found) == min(k, len(scores))
    relevance = scores / (scores.max(initial=0.0) or 1.0)
    for at, one in enumerate(found):
        left = [other for other in range(len(scores)) if other not in found[:at]]
        each = [worth(relevance, vectors, owners, weight, other, found[:at]) for other in left]
        # Rounding may make the second best of them the best.
        assert each[left.index(one)] >= max(each) - 1e-5


@given(candidates(), st.integers(1, 12))
def test_without_weight_the_first_are_chosen(
    given: tuple[np.ndarray, np.ndarray, np.ndarray], k: int
) -> None:
    scores = given[0]
    chosen = diversified(*given, 0.0, k)
    assert chosen.tolist() == list(range(min(k, len(scores))))


def test_a_copy_of_the_best_gives_way_to_something_else() -> None:
    scores = np.array([1.0, 0.99, 0.8])
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    assert diversified(scores, vectors, np.arange(3), 0.5, 2).tolist() == [0, 2]
    assert diversified(scores, vectors, np.arange(3), 0.1, 2).tolist() == [0, 1]
