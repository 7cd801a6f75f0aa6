"""Hybrid blending against its twin and against a plain reference."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram._native.blend import blend
from engram._native.twins.blend import blend as twin

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]
Scores = dict[int, float]

deterministic = settings(deadline=None, derandomize=True)

FINITE = st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.integers(-8, 8) | st.sampled_from([-(2**63), 2**63 - 1])
WEIGHTS = st.tuples(st.floats(0, allow_infinity=False), st.floats(0, allow_infinity=False)).filter(
    any
)
TINY = 5e-324
HUGE = 1.7976931348623157e308


def pools(scores: st.SearchStrategy[float]) -> st.SearchStrategy[Scores]:
    return st.dictionaries(KEYS, scores, max_size=12)


def arguments(vectors: Scores, texts: Scores, weights: tuple[float, float], k: int) -> Any:
    return (
        np.array(list(vectors), np.int64),
        np.array(list(vectors.values()), np.float64),
        np.array(list(texts), np.int64),
        np.array(list(texts.values()), np.float64),
        *weights,
        k,
    )


def reference(vectors: Scores, texts: Scores, weights: tuple[float, float]) -> dict[int, Fraction]:
    """The blended score of every key, in exact arithmetic."""

    def normalised(pool: Scores) -> dict[int, Fraction]:
        if not pool:
            return {}
        lo, hi = Fraction(min(pool.values())), Fraction(max(pool.values()))
        return {
            key: (Fraction(score) - lo) / (hi - lo) if hi > lo else Fraction(1)
            for key, score in pool.items()
        }

    left, right = normalised(vectors), normalised(texts)
    wv, wt = map(Fraction, weights)
    return {
        key: (wv * left.get(key, 0) + wt * right.get(key, 0)) / (wv + wt)
        for key in left.keys() | right.keys()
    }


@deterministic
@given(pools(FINITE), pools(FINITE), WEIGHTS, st.integers(1, 30))
def test_any_finite_scores_stay_within_one_and_match_the_twin(
    agree: Agree, vectors: Scores, texts: Scores, weights: tuple[float, float], k: int
) -> None:
    keys, scores = agree(blend, twin, *arguments(vectors, texts, weights, k))
    assert len(keys) == min(k, len(vectors.keys() | texts.keys()))
    assert np.all((scores >= 0.0) & (scores <= 1.0))
    order = list(zip((-scores).tolist(), keys.tolist(), strict=True))
    assert order == sorted(order)


@deterministic
@given(
    pools(st.integers(-50, 50).map(float)),
    pools(st.integers(-50, 50).map(float)),
    st.tuples(st.integers(0, 9).map(float), st.integers(0, 9).map(float)).filter(any),
)
def test_scores_match_exact_arithmetic(
    agree: Agree, vectors: Scores, texts: Scores, weights: tuple[float, float]
) -> None:
    expected = reference(vectors, texts, weights)
    keys, scores = agree(blend, twin, *arguments(vectors, texts, weights, 99))
    assert set(keys.tolist()) == expected.keys()
    for key, score in zip(keys.tolist(), scores.tolist(), strict=True):
        assert score == pytest.approx(float(expected[key]), abs=1e-15)


def test_the_worst_of_a_pool_scores_nothing_and_a_lone_member_everything(agree: Agree) -> None:
    keys, scores = agree(blend, twin, *arguments({1: 0.9, 2: 0.5, 3: 0.1}, {3: 7.0}, (1.0, 1.0), 9))
    assert keys.tolist() == [1, 3, 2]
    assert scores.tolist() == [0.5, 0.5, 0.25]


def test_equal_pools_become_one_and_ties_order_by_key(agree: Agree) -> None:
    keys, scores = agree(blend, twin, *arguments({9: 0.3, -4: 0.3, 5: 0.3}, {}, (0.7, 0.3), 2))
    assert keys.tolist() == [-4, 5]
    assert scores.tolist() == [0.7, 0.7]


@pytest.mark.parametrize(
    ("scores", "middle"),
    [
        ((-HUGE, 0.0, HUGE), 0.5),
        ((0.0, TINY, 2 * TINY), 0.5),
        ((HUGE, HUGE / 2, 0.0), 0.5),
        ((-TINY, -0.0, TINY), 0.5),
        ((1.0, 1.0 + 2**-52, 1.0 + 2**-51), 0.5),
    ],
)
def test_extreme_scores_keep_their_proportion(
    agree: Agree, scores: tuple[float, ...], middle: float
) -> None:
    pool = dict(enumerate(scores))
    for weights in ((1.0, 0.0), (HUGE, HUGE), (TINY, 0.0)):
        texts = pool if weights[1] else {}
        keys, blended = agree(blend, twin, *arguments(pool, texts, weights, 3))
        found = dict(zip(keys.tolist(), blended.tolist(), strict=True))
        assert found[1] == (0.0 if weights[0] == TINY else middle)
        assert sorted(found.values())[::2] == [0.0, 1.0]


def test_a_side_with_weight_zero_still_brings_its_keys(agree: Agree) -> None:
    keys, scores = agree(blend, twin, *arguments({1: 1.0, 2: 2.0}, {3: 1.0}, (1.0, 0.0), 9))
    assert keys.tolist() == [2, 1, 3]
    assert scores.tolist() == [1.0, 0.0, 0.0]


def test_two_empty_pools_give_nothing(agree: Agree) -> None:
    keys, scores = agree(blend, twin, *arguments({}, {}, (0.5, 0.5), 5))
    assert keys.shape == scores.shape == (0,)


def test_large_pools_match_the_twin(agree: Agree) -> None:
    random = np.random.default_rng(5)
    case = (
        random.permutation(9000)[:4096],
        random.integers(0, 50, 4096) / 7,
        random.permutation(9000)[:4096],
        random.standard_normal(4096),
    )
    for array in case:
        array.setflags(write=False)
    for k in (1, 10, 2**70):
        agree(blend, twin, *case, 0.3, 0.7, k)


GOOD: dict[str, Any] = {
    "vector_keys": np.array([1, 2]),
    "vector_scores": np.array([0.5, 0.6]),
    "text_keys": np.array([2, 3, 4]),
    "text_scores": np.array([1.0, 2.0, 3.0]),
    "vector_weight": 0.5,
    "text_weight": 0.5,
    "k": 3,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("vector_keys", [1, 2], TypeError),
        ("vector_keys", np.array([1, 2], np.uint64), TypeError),
        ("vector_keys", np.array([1, 1]), ValueError),
        ("vector_scores", np.array([1.0]), ValueError),
        ("vector_scores", np.array([1.0, np.nan]), ValueError),
        ("vector_scores", np.array([1.0, -np.inf]), ValueError),
        ("vector_scores", np.arange(4.0)[::2], ValueError),
        ("text_keys", np.array([3, 4, 3]), ValueError),
        ("text_keys", np.array([[3, 4, 5]]), ValueError),
        ("text_scores", np.array([1.0, 2.0, np.inf]), ValueError),
        ("text_scores", np.array([1.0, 2.0, 3.0], np.float32), TypeError),
        ("vector_weight", -0.1, ValueError),
        ("vector_weight", np.nan, ValueError),
        ("vector_weight", "1", TypeError),
        ("text_weight", np.inf, ValueError),
        ("text_weight", 10**400, ValueError),
        ("text_weight", None, TypeError),
        ("k", 0, ValueError),
        ("k", "3", TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(blend, twin, *(GOOD | {name: value}).values())
    assert kind is error
    assert message.startswith(name)


def test_both_weights_zero_are_refused(refuse: Refuse) -> None:
    kind, message = refuse(
        blend, twin, *(GOOD | {"vector_weight": 0.0, "text_weight": -0.0}).values()
    )
    assert kind is ValueError
    assert message == "vector_weight and text_weight must not both be 0"
