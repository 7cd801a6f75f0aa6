"""Rank fusion gives the documented values, and its rankings are long enough."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.errors import InvalidArgument, InvalidType
from engram.retrieval.fusion import Fusion, shadow_rewards


def test_a_place_in_a_ranking_is_worth_what_is_documented():
    assert Fusion().scores([1], [2]) == pytest.approx({1: 0.0114754, 2: 0.0049180}, abs=1e-7)
    assert Fusion().scores([1], [1]) == pytest.approx({1: 0.0163934}, abs=1e-7)
    assert Fusion().scores([], [7, 8]) == {7: 0.3 / 61, 8: 0.3 / 62}
    assert Fusion().scores([], []) == {}


@pytest.mark.parametrize(
    ("fusion", "first", "second"),
    [
        (Fusion(vector_weight=0.9, sparse_weight=0.1), 0.0147541, 0.0146828),
        (Fusion(), 0.0114754, 0.0150630),
    ],
)
def test_weights_decide_between_one_first_place_and_two_others(fusion, first, second):
    scores = fusion.scores([1, *range(101, 108), 2], [2])
    assert (scores[1], scores[2]) == pytest.approx((first, second), abs=1e-7)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [("rrf_k", 0, InvalidArgument), ("rrf_k", -1, InvalidArgument), ("rrf_k", "60", InvalidType),
     ("vector_weight", -0.1, InvalidArgument), ("sparse_weight", float("inf"), InvalidArgument),
     ("sparse_weight", float("nan"), InvalidArgument), ("vector_weight", True, InvalidType),
     ("rrf_k", 1e7, InvalidArgument), ("vector_weight", 1.7e308, InvalidArgument),
     ("other_project_weight", 1.1, InvalidArgument), ("other_project_weight", -1, InvalidArgument)],
)  # fmt: skip
def test_a_setting_that_gives_no_ranking_is_refused(name, value, error):
    with pytest.raises(error, match=name):
        Fusion(**{name: value})


def test_both_weights_may_not_be_zero():
    with pytest.raises(InvalidArgument, match="both be 0"):
        Fusion(vector_weight=0, sparse_weight=0.0)


@given(
    st.builds(
        Fusion,
        rrf_k=st.floats(0.5, 200),
        vector_weight=st.sampled_from([0.0, 0.2, 0.7, 1.0]),
        sparse_weight=st.sampled_from([0.1, 0.3, 1.0]),
    ),
    st.integers(0, 12),
    st.sampled_from([1.0, 0.9, 0.5, 0.25]),
    st.integers(0, 2**32),
)
def test_nothing_that_both_rankings_leave_out_belongs_into_the_answer(fusion, limit, weight, seed):
    depth = fusion.depth(limit, weight)
    assert depth >= max(100, 4 * limit)
    chance = random.Random(seed)
    keys = list(range(2 * depth))
    by_meaning, by_words = chance.sample(keys, len(keys)), chance.sample(keys, len(keys))
    # The worst case: all that is near is of another project, all that is left out is not.
    known = {*by_meaning[:depth], *by_words[:depth]}
    scores = fusion.scores(by_meaning, by_words)
    weighted = {key: score * (weight if key in known else 1) for key, score in scores.items()}
    best = sorted(weighted, key=weighted.__getitem__, reverse=True)[:limit]
    assert set(best) <= known


def test_where_no_length_is_enough_all_of_both_rankings_are_taken():
    assert Fusion().depth(10, 5e-324) is None


def test_shadow_rewards_are_the_shares_of_shorter_answers():
    assert shadow_rewards([]) == shadow_rewards([0.0]) == []
    assert shadow_rewards([0.5]) == [{"k": k, "reward": 1.0} for k in (3, 5, 10, 20)]
    rewards = [one["reward"] for one in shadow_rewards([1.0] * 8)]
    assert rewards == [3 / 8, 5 / 8, 1.0, 1.0]


@given(st.lists(st.floats(0, 1), max_size=40))
def test_longer_answers_hold_no_less(scores):
    rewards = [one["reward"] for one in shadow_rewards(sorted(scores, reverse=True))]
    assert rewards == sorted(rewards)
    assert all(0 <= reward <= 1 for reward in rewards)
    if rewards and len(scores) <= 20:
        assert rewards[-1] == 1.0
