from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import WordEmbedder

from engram.embedding import OnnxEmbedder
from engram.embedding.cache import LongestUnused
from engram.embedding.late_interaction import LateInteraction
from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = "Where did grandmother hide the silver key?"
ANSWER = "Grandmother put the silver key under the beehive."
OTHERS = (
    "The quarterly report lists costs for paper, ink, postage and coffee.",
    "We moved the database to the new server on Tuesday.",
    "Her bicycle was stolen in March.",
)


def reranker(embedder: object) -> LateInteraction:
    return LateInteraction(embedder, reason="for a test")


# Token vectors


def test_pooling_the_token_vectors_gives_the_texts_vector(
    small: Callable[..., OnnxEmbedder], table: dict[str, np.ndarray]
) -> None:
    (chunks,) = small().token_vectors(["a b c"])
    expected = [table[word] / np.linalg.norm(table[word]) for word in "abc"]
    assert len(chunks) == 1
    assert np.allclose(chunks[0], expected, atol=1e-6)


def test_every_token_of_a_long_text_has_a_vector_in_its_chunk(
    small: Callable[..., OnnxEmbedder],
) -> None:
    embedder = small()  # chunks of at most eight tokens
    long, short, empty = embedder.token_vectors(["a b c " * 10, "a", ""])
    assert [len(chunk) for chunk in long] == [7] * 5  # 30 tokens, neighbours share one
    assert [chunk.shape for chunk in short] == [(1, 4)]
    assert [chunk.shape for chunk in empty] == [(0, 4)]
    assert len(embedder.token_vectors(["a b c " * 10], 2)[0]) == 2
    assert embedder.token_vectors([]) == []


def test_a_querys_prefix_and_punctuation_have_no_vectors(
    small: Callable[..., OnnxEmbedder], packaged: OnnxEmbedder
) -> None:
    embedder = small(query_prefix="query: ")
    bare = embedder.token_vectors(["a b"])[0][0]
    assert np.allclose(embedder.query_token_vectors("a b"), bare, atol=1e-6)
    assert packaged.query_token_vectors("Who?").shape == (1, 384)
    assert packaged.query_token_vectors("?!").shape == (2, 384)
    assert packaged.query_token_vectors("").shape == (0, 384)


# Scores with token vectors


def test_what_answers_is_above_the_gate_and_other_things_are_not(packaged: OnnxEmbedder) -> None:
    scores = reranker(packaged).scores(QUESTION, [*OTHERS, ANSWER])
    assert scores.dtype == np.float64
    assert scores[-1] > 0.6
    assert (scores[:-1] < 0.1).all()


def test_a_score_depends_neither_on_order_nor_on_company(packaged: OnnxEmbedder) -> None:
    texts = [ANSWER, *OTHERS, ANSWER]
    together = reranker(packaged).scores(QUESTION, texts)
    assert together[0] == together[-1]
    assert np.array_equal(reranker(packaged).scores(QUESTION, texts[::-1]), together[::-1])
    alone = [reranker(packaged).scores(QUESTION, [text])[0] for text in texts]
    assert np.allclose(alone, together, atol=1e-3)


def test_the_best_chunk_of_a_long_text_counts(packaged: OnnxEmbedder) -> None:
    long = " ".join([OTHERS[0]] * 20 + [ANSWER] + [OTHERS[0]] * 4)
    found, filler = reranker(packaged).scores(QUESTION, [long, " ".join([OTHERS[0]] * 25)])
    assert found > 0.6 > filler


def test_scored_texts_are_not_embedded_again(
    packaged: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = reranker(packaged)
    first = late.scores(QUESTION, [ANSWER, *OTHERS])
    monkeypatch.setattr(OnnxEmbedder, "token_vectors", None)
    assert np.array_equal(late.scores(QUESTION, [ANSWER, *OTHERS]), first)
    assert late.scores("What did the report say about ink?", OTHERS).argmax() == 0


def test_threads_agree(packaged: OnnxEmbedder) -> None:
    late = reranker(packaged)
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: late.scores(QUESTION, [ANSWER, *OTHERS]), range(8)))
    assert all(np.array_equal(each, scores[0]) for each in scores)


# Scores with anyone's embedder


def test_an_embedder_without_token_vectors_is_asked_for_sentences() -> None:
    embedder = WordEmbedder(dim=256)
    text = "nothing to see here. the silver key lies there. and nothing more"
    late = reranker(embedder)
    scores = late.scores("silver key", [text, "some other words entirely"])
    assert scores[0] > 0.6 > scores[1]
    embedded = embedder.embedded
    assert np.array_equal(late.scores("silver key", [text, "some other words entirely"]), scores)
    assert embedder.embedded == embedded


def test_vectors_that_are_all_near_each_other_give_the_same_scores() -> None:
    class Narrow(WordEmbedder):
        """Adds one direction to all vectors, as real models do to a degree."""

        def __init__(self) -> None:
            super().__init__(dim=65)

        def vector(self, text: str) -> np.ndarray:
            plain = WordEmbedder(dim=64).vector(text)
            return np.append(plain, 1.5) / np.linalg.norm(np.append(plain, 1.5))

    texts = ["silver key", "the silver bowl", "no such thing"]
    plain = reranker(WordEmbedder(dim=64)).scores("silver key", texts)
    assert np.allclose(reranker(Narrow()).scores("silver key", texts), plain, atol=0.02)


def test_an_embedders_nonsense_is_refused() -> None:
    class Broken(WordEmbedder):
        def embed(self, texts: list[str]) -> np.ndarray:
            return np.full((len(texts), self.dim), np.nan)

    with pytest.raises(InvalidArgument):
        reranker(Broken()).scores("a", ["b"])


def test_it_says_what_it_is() -> None:
    late = reranker(WordEmbedder(fingerprint="words-v2"))
    assert (late.name, late.kind, late.output) == (
        "words-v2",
        "late_interaction",
        "normalized_score",
    )
    assert late.reason == "for a test"
    assert late.calibrated(np.array([-1.0, 0.25, 7.0])).tolist() == [0.0, 0.25, 1.0]
    assert late.scores("a", []).shape == (0,)


@given(st.text(max_size=60), st.lists(st.text(max_size=200), max_size=5))
def test_any_texts_have_scores_between_nought_and_one(query: str, texts: list[str]) -> None:
    scores = reranker(WordEmbedder()).scores(query, texts)
    assert scores.shape == (len(texts),)
    assert ((scores >= 0) & (scores <= 1)).all()


@pytest.mark.parametrize("query", ["", "\x00", "\ud800", "🦜", "漢字", "?" * 300, "a " * 5000])
def test_any_text_can_be_scored_with_token_vectors(packaged: OnnxEmbedder, query: str) -> None:
    scores = reranker(packaged).scores(query, ["", "\x00", "\udfff", "漢字かな", "a" * 20_000])
    assert ((scores >= 0) & (scores <= 1)).all()


def test_what_is_kept_is_bounded_by_its_weight() -> None:
    kept: LongestUnused[bytes] = LongestUnused(10, len)
    for text in ("a", "b", "c"):
        kept.put(text, bytes(4))
    assert [kept.get(text) is not None for text in ("a", "b", "c")] == [False, True, True]
    kept.put("b", bytes(9))  # in the place of four
    assert [kept.get(text) is not None for text in ("b", "c")] == [True, False]
    kept.put("d", bytes(11))
    assert kept.get("d") is None
    assert kept.get("b") is not None
