"""Maximal marginal relevance: results that are not all alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def diversified(
    scores: NDArray[np.float64],
    vectors: NDArray[np.float32],
    owners: NDArray[np.int64],
    weight: float,
    k: int,
) -> NDArray[np.int64]:
    """Choose results one after another: good ones that are unlike those chosen before.

    Each time it is the one with the highest score, as a share of the best, less `weight` times the
    cosine with the most alike of those before; two are as alike as their most alike chunks are.
    What has no vector is like nothing.

    Args:
        scores: float64[n], descending.
        vectors: The chunks' vectors, float32[m, dim], unit length.
        owners: Which candidate each chunk is of, int64[m].
        weight: 0 to 1; at 0 the first ones are chosen.
        k: How many are chosen.

    Returns:
        Their places, int64[min(k, n)], in the order in which they were chosen, ties in the order
        before. Costs time in k times the number of chunks.
    """
    best = scores.max(initial=0.0)
    relevance = scores / best if best > 0.0 else scores
    alike = np.full(len(scores), -np.inf)
    left = np.ones(len(scores), dtype=np.bool_)
    chosen: list[int] = []
    for _ in range(min(k, len(scores))):
        likeness = np.where(np.isfinite(alike), alike, 0.0)
        worth = np.where(left, relevance - weight * likeness, -np.inf)
        one = int(worth.argmax())
        chosen.append(one)
        left[one] = False
        own = vectors[owners == one]
        if len(own):
            np.maximum.at(alike, owners, (vectors @ own.T).max(axis=1))
    return np.array(chosen, dtype=np.int64)
