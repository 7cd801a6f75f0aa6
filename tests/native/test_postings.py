"""BM25 over postings against its twin and against a plain reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram._native.postings import bm25
from engram._native.twins.postings import bm25 as twin

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]


def reference(case: dict[str, Any]) -> list[tuple[int, float]]:
    """The formula, one posting after the other."""
    live = case["live"] if case["live"] is not None else np.ones(len(case["lengths"]), bool)
    shown = case["allowed"] if case["allowed"] is not None else live
    scores: dict[int, float] = {}
    for term in sorted(set(case["terms"].tolist())):
        pairs = [
            (int(row), float(frequency))
            for place, values in enumerate(case["postings"])
            if case["terms"][place] == term
            for row, frequency in values
        ]
        hits = sum(bool(live[row]) for row, _ in pairs)
        idf = math.log((case["documents"] - hits + 0.5) / (hits + 0.5))
        idf = max(idf, 0.0) or 1e-6
        for row, frequency in pairs:
            if shown[row]:
                length = 0.25 + 0.75 * float(case["lengths"][row]) / case["mean"]
                part = idf * (frequency * 2.2) / (frequency + 1.2 * length)
                scores[row] = scores.get(row, 0.0) + part
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[: case["k"]]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 40))
    terms: list[int] = []
    postings = []
    for term in range(draw(st.integers(0, 5))):
        rows = draw(st.lists(st.integers(0, count - 1), unique=True).map(sorted))
        pairs = [(row, draw(st.integers(1, 4))) for row in rows]
        cut = draw(st.integers(0, len(pairs)))
        for part in (pairs[:cut], pairs[cut:]):
            postings.append(np.array(part, np.uint32).reshape(-1, 2))
            terms.append(term)
    live = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    allowed = live & np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    return {
        "postings": postings,
        "terms": np.array(terms, np.int64),
        "lengths": np.array(
            draw(st.lists(st.sampled_from([0, 1, 7, 511, 512, 90_000]), min_size=count,
                          max_size=count)), np.uint32),
        "documents": draw(st.just(count) | st.just(10 * count)),
        "mean": draw(st.floats(0.5, 500.0)),
        "live": draw(st.sampled_from([None, live])),
        "allowed": draw(st.sampled_from([None, allowed])),
        "scratch": np.zeros(count),
        "k": draw(st.integers(1, count + 2)),
    }  # fmt: skip


@given(cases())
def test_the_ranking_is_that_of_the_formula(agree: Agree, case: dict[str, Any]) -> None:
    rows, scores = agree(bm25, twin, *case.values())
    expected = reference(case)
    assert not case["scratch"].any()
    np.testing.assert_allclose(scores, [score for _, score in expected], rtol=1e-9)
    # The reference multiplies in another order: equal scores may differ in their last bits there.
    assert len(set(rows.tolist())) == len(rows)
    order = np.lexsort((rows, -scores))
    assert order.tolist() == list(range(len(rows)))


@pytest.mark.parametrize("share", [0.002, 0.1, 0.9])
def test_rare_and_frequent_terms_give_the_bits_of_the_twin(agree: Agree, share: float) -> None:
    random = np.random.default_rng(5)
    count, scratch = 5000, np.zeros(5000)
    postings = []
    for _ in range(4):
        rows = np.flatnonzero(random.random(count) < share)
        postings.append(
            np.stack((rows, random.integers(1, 5, len(rows))), axis=1).astype(np.uint32)
        )
    lengths = random.integers(4, 700, count).astype(np.uint32)
    live = random.random(count) < 0.7
    for mask in (None, live):
        for k in (1, 40, count):
            rows, scores = agree(
                bm25, twin, postings, np.arange(4), lengths, count, float(lengths.mean()),
                mask, None, scratch, k,
            )  # fmt: skip
            assert len(rows) > 0
            assert np.all(np.diff(scores) <= 0)
            assert not scratch.any()


def test_a_tie_at_the_cut_keeps_the_smaller_row(agree: Agree) -> None:
    pairs = np.array([[7, 1], [3, 1], [5, 1]], np.uint32)
    rows, scores = agree(bm25, twin, [pairs], *list(GOOD.values())[1:-1], 2)
    assert rows.tolist() == [3, 5]
    assert scores[0] == scores[1]


PAIRS = np.array([[0, 1], [2, 3]], np.uint32)
GOOD: dict[str, Any] = {
    "postings": [PAIRS],
    "terms": np.zeros(1, np.int64),
    "lengths": np.full(9, 4, np.uint32),
    "documents": 9,
    "mean": 4.0,
    "live": None,
    "allowed": None,
    "scratch": np.zeros(9),
    "k": 3,
}


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("postings", [PAIRS.tolist()], TypeError),
        ("postings", [PAIRS.astype(np.int64)], TypeError),
        ("postings", [PAIRS.reshape(-1)], ValueError),
        ("postings", [PAIRS.reshape(1, 4)], ValueError),
        ("postings", [PAIRS[:, ::-1]], ValueError),
        ("postings", [np.array([[9, 1]], np.uint32)], ValueError),
        ("postings", [np.array([[2**32 - 1, 1]], np.uint32)], ValueError),
        ("terms", np.zeros(2, np.int64), ValueError),
        ("terms", np.zeros(1, np.int32), TypeError),
        ("lengths", np.zeros(9, np.int64), TypeError),
        ("documents", 0, ValueError),
        ("documents", 1.0, TypeError),
        ("mean", 0.0, ValueError),
        ("mean", -1.0, ValueError),
        ("mean", math.nan, ValueError),
        ("mean", "4", TypeError),
        ("live", np.ones(8, np.bool_), ValueError),
        ("live", np.ones(9, np.uint8), TypeError),
        ("allowed", np.ones(10, np.bool_), ValueError),
        ("allowed", [True] * 9, TypeError),
        ("scratch", np.zeros(8), ValueError),
        ("scratch", np.zeros(9, np.float32), TypeError),
        ("k", 0, ValueError),
        ("k", None, TypeError),
    ],
)
def test_a_wrong_argument_is_named(
    refuse: Refuse, name: str, value: object, error: type[Exception]
) -> None:
    kind, message = refuse(bm25, twin, *(GOOD | {name: value}).values())
    assert kind is error
    assert message.startswith(name)
    assert not GOOD["scratch"].any()


def test_terms_must_ascend(refuse: Refuse) -> None:
    case = GOOD | {"postings": [PAIRS, PAIRS], "terms": np.array([1, 0])}
    assert refuse(bm25, twin, *case.values())[1].startswith("terms")


def test_rows_need_a_length(refuse: Refuse) -> None:
    none: NDArray[np.uint32] = np.empty(0, np.uint32)
    case = GOOD | {"lengths": none, "scratch": np.zeros(0)}
    assert refuse(bm25, twin, *case.values())[1].startswith("postings")
