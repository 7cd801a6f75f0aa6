"""Maximal marginal relevance: results that are not all alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def diversified(
    scores: NDArray[np.float64], vectors: NDArray[np.float32], weight: float
) -> NDArray[np.int64]:
    """Order results so that good ones come first that are unlike those before.

    One is chosen after another: the one with the highest score, as a share of the best, less
    `weight` times the cosine with the most alike of those before it. A cosine below 0 counts as 0.

    Args:
        scores: float64[n], descending.
        vectors: float32[n, dim], unit length; zeros are like nothing.
        weight: 0 to 1; at 0 the order stays.

    Returns:
        Their places, int64[n], in the order in which they were chosen, ties in the order before.
        Takes time and memory in the square of n.
    """
    best = scores.max(initial=0.0)
    left = scores / best if best > 0.0 else scores.copy()
    cosines = np.maximum(vectors @ vectors.T, 0.0)
    alike = np.zeros(len(scores))
    chosen = np.empty(len(scores), dtype=np.int64)
    for at in range(len(scores)):
        one = chosen[at] = int((left - weight * alike).argmax())
        left[one] = -np.inf
        np.maximum(alike, cosines[one], out=alike)
    return chosen


def best_vectors(
    keys: NDArray[np.int64],
    vectors: NDArray[np.float32],
    owners: NDArray[np.int64],
    query: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return of each candidate the chunk that is nearest to a query, zeros where it has none.

    Args:
        keys: Of the candidates, int64[n].
        vectors: Of their chunks, float32[m, dim].
        owners: The key of what each chunk is of, int64[m].
        query: float32[dim].

    Returns:
        float32[n, dim].
    """
    best = np.zeros((len(keys), len(query)), dtype=np.float32)
    sorter = np.argsort(keys)
    # Of several that are written to one place the last stays.
    nearest_last = np.argsort(vectors @ query, kind="stable")
    owned = np.searchsorted(keys, owners[nearest_last], sorter=sorter)
    best[sorter[owned]] = vectors[nearest_last]
    return best
