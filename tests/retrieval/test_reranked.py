"""What a model says of the best results, mixed into their scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import WordEmbedder

from engram.embedding import resolve_reranker
from engram.retrieval.reranked import LATE_WORDS, mixed, outputs, passage_of, reranked
from engram.storage.segment import word_spans

UNIT = st.floats(0.0, 1.0)


@st.composite
def read_results(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    scores = np.sort(np.array(draw(st.lists(UNIT, max_size=12)), dtype=np.float64))[::-1]
    read = draw(st.integers(0, len(scores)))
    said = draw(st.lists(st.floats(-30.0, 30.0), min_size=read, max_size=read))
    return scores, np.array(said, dtype=np.float64), draw(UNIT)


def plain(scores: list[float], said: list[float], weight: float) -> list[int]:
    """Say the same in one loop, of those that were read."""
    least, most = min(said, default=0.0), max(said, default=0.0)
    best = max(scores, default=0.0)
    total = [
        (1.0 - weight) * (score / best if best else 0.0)
        + weight * ((one - least) / (most - least) if most > least else 1.0)
        for score, one in zip(scores, said, strict=False)
    ]
    if best == 0.0:
        return list(range(len(said)))
    return sorted(range(len(said)), key=lambda at: (-total[at], at))


@given(read_results())
def test_only_what_was_read_changes_places(given: tuple[np.ndarray, np.ndarray, float]) -> None:
    scores, said, weight = given
    order, final = reranked(scores, said, weight)
    read = len(said)
    assert order[:read].tolist() == plain(scores.tolist(), said.tolist(), weight)
    assert order[read:].tolist() == list(range(read, len(scores)))
    assert (np.diff(final) <= 1e-12).all()
    assert (final >= 0.0).all()
    if read:
        assert final.max() == scores.max()


@given(read_results())
def test_without_weight_nothing_changes(given: tuple[np.ndarray, np.ndarray, float]) -> None:
    scores, said, _ = given
    order, final = reranked(scores, said, 0.0)
    assert order.tolist() == list(range(len(scores)))
    assert np.array_equal(final, scores)


def test_with_all_weight_the_model_alone_decides() -> None:
    scores = np.array([0.9, 0.8, 0.7, 0.6])
    order, final = reranked(scores, np.array([-2.0, 5.0, 1.5]), 1.0)
    assert order.tolist() == [1, 2, 0, 3]
    assert final.tolist() == [0.9, 0.45, 0.0, 0.0]


def test_a_shuffled_or_inverted_model_changes_the_order() -> None:
    scores = np.linspace(1.0, 0.5, 10)
    said = np.random.default_rng(8).normal(size=10)
    order = reranked(scores, said, 0.5)[0].tolist()
    assert order != reranked(scores, -said, 0.5)[0].tolist()
    assert order != reranked(scores, np.roll(said, 3), 0.5)[0].tolist()


@pytest.mark.parametrize("weight", [0.0, 0.7, 1.0])
def test_a_model_that_finds_all_equal_puts_them_before_what_it_did_not_read(weight: float) -> None:
    scores = np.array([0.9, 0.5, 0.4])
    order, final = reranked(scores, np.array([2.0, 2.0]), weight)
    assert order.tolist() == [0, 1, 2]
    assert final == pytest.approx((1.0 - weight) * scores + weight * 0.9 * np.array([1, 1, 0]))


def test_mixed_scores_stay_on_the_scale_of_the_first() -> None:
    found = mixed(np.array([0.5, 0.25]), np.array([0.0, 1.0]), 0.5)
    assert found == pytest.approx([1 / 3, 0.5])
    assert mixed(np.array([0.5, 0.25]), np.zeros(2), 1.0).tolist() == [0.5, 0.25]
    assert mixed(np.empty(0), np.empty(0), 0.5).tolist() == []


# What the model reads


def test_of_an_endless_text_what_shares_words_within_measure_is_found() -> None:
    filler = "The quarterly report lists costs for paper, ink, postage and coffee. " * 400
    text = f"{filler}Grandmother hid the silver key under the beehive. {filler * 5}"
    assert "silver key" in passage_of("Where is the silver key?", text)
    far = f"{filler * 3}Grandmother hid the silver key under the beehive."
    assert "silver key" not in passage_of("Where is the silver key?", far)


def test_of_a_long_text_the_sentence_about_the_query_is_read() -> None:
    filler = "The quarterly report lists costs for paper, ink, postage and coffee. "
    text = f"{filler * 20}Grandmother hid the silver key under the beehive. {filler * 20}"
    passage = passage_of("Where is the silver key?", text)
    assert "silver key" in passage
    assert len(word_spans(passage)) <= LATE_WORDS


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("as it stands", "as it stands"),
        ("", ""),
        ("  \n ", ""),
        ("word " * 100, ("word " * LATE_WORDS).strip()),
        ("漢" * 1000, "漢" * 2 * LATE_WORDS),
    ],
)
def test_of_what_is_short_or_has_no_word_of_the_query_the_beginning_is_read(
    text: str, read: str
) -> None:
    assert passage_of("zebra", text) == read


@given(st.text(max_size=2000), st.text(max_size=50))
def test_no_text_is_read_beyond_measure(text: str, query: str) -> None:
    assert len(passage_of(query, text)) <= 12 * LATE_WORDS


def test_the_heading_is_read_with_the_text() -> None:
    reranker = resolve_reranker("none", WordEmbedder(dim=256))
    texts = [("ada (8 may 2023):", "a walk"), ("bob (9 may 2023):", "a walk"), ("", "a walk")]
    said = outputs(reranker, "bob (9 may 2023): a walk", texts)
    assert said.argmax() == 1
    assert len(outputs(reranker, "bob", [])) == 0
