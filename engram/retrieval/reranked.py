"""Reranking: what a model says of the best results of a recall, mixed into their scores.

The model runs outside any transaction: what it is to read is read before, `passage_of` says of how
much of it, and `reranked` is arithmetic on what it said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.retrieval.passages import best_passage
from engram.storage.segment import word_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.embedding import Reranker

LATE_WORDS: Final = 24
"""Words of a text that late interaction reads in a recall. Twenty texts took two cores 65 to 154 ms
the first time, by how long they were, and 2 ms again."""

_LONGEST: Final = 12 * LATE_WORDS
"""Characters of a text that it reads: what has no spaces is one word."""

_ASKED_WORDS: Final = 64
"""Words of a query that it reads, and twelve times as many characters."""

_SEARCHED: Final = 65_536
"""Characters of a text in which it looks for them."""

_SEARCHED_CLOSELY: Final = 16_384
"""Of these, the ones whose sentences are compared."""

_CERTAIN: Final = 1e-12


def outputs(
    reranker: Reranker, query: str, texts: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    """Return how well texts answer a query, float64[n], any real numbers; more is better.

    These are log-odds. As probabilities, those of several good answers would hardly differ.

    Args:
        reranker: The model. A cross-encoder reads as much of a text as its window holds.
        query: What was asked. Late interaction reads its first 64 words.
        texts: What stands before each text, such as who said it and when, and the text.

    Raises:
        ModelCorrupt: The model cannot be used.
    """
    late = reranker.kind == "late_interaction"
    read = [
        f"{heading} {passage_of(query, text) if late else text}".lstrip() for heading, text in texts
    ]
    asked = _beginning(query, _ASKED_WORDS) if late else query
    sure = reranker.calibrated(reranker.scores(asked, read)).clip(_CERTAIN, 1.0 - _CERTAIN)
    odds: NDArray[np.float64] = np.log(sure / (1.0 - sure))
    return odds


def passage_of(query: str, text: str) -> str:
    """Return the part of a text that late interaction reads: around its best sentence by words.

    It is looked for in the first 65,536 characters, and there in the 16,384 that have most of the
    query's words.
    """
    passage = best_passage(query, text[:_SEARCHED], LATE_WORDS, _SEARCHED_CLOSELY)
    if passage is not None:
        return passage.text[:_LONGEST]
    # Short, or without any word of the query: how it begins.
    return _beginning(text, LATE_WORDS)


def _beginning(text: str, most: int) -> str:
    words = word_spans(text[: 12 * most])[:most]
    return text[: words[-1][1]] if words else ""


def reranked(
    scores: NDArray[np.float64], said: NDArray[np.float64], weight: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Order results by their scores and by what a model said of the first of them.

    What it said is scaled to 0..1 among those it read, the worst to 0, the best to 1, all to 1
    where it finds all alike. The best score before is worth as much as the best it said. What it
    did not read counts as its worst: so the first stay first, in an order of their own.

    Args:
        scores: float64[n], descending.
        said: float64[m] of the first m, m <= n.
        weight: The share of the latter, 0 to 1.

    Returns:
        Their places before, int64[n], best first, ties in the order before; and their scores,
        float64[n].
    """
    scaled = np.zeros(len(scores))
    if len(said):
        spread = said.max() - said.min()
        scaled[: len(said)] = (said - said.min()) / spread if spread > 0.0 else 1.0
    total = mixed(scores, scaled, weight)
    order = np.arange(len(scores))
    order[: len(said)] = np.argsort(-total[: len(said)], kind="stable")
    return order, total[order]


def mixed(
    scores: NDArray[np.float64], others: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """Return scores of which others make up a share, the largest of them what it was before.

    Args:
        scores: float64[n], at least 0.
        others: float64[n], 0 to 1. Where all are 0 they say nothing, and change nothing.
        weight: Their share, 0 to 1, beside scores that are divided by the largest.
    """
    best = scores.max(initial=0.0)
    if weight == 0.0 or best == 0.0 or not others.any():
        return scores
    total: NDArray[np.float64] = (1.0 - weight) * (scores / best) + weight * others
    total /= total.max()
    total *= best
    return total
