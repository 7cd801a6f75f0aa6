"""NumPy twin of the hybrid blending."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["blend"]


def blend(
    vector_keys: NDArray[np.int64],
    vector_scores: NDArray[np.float64],
    text_keys: NDArray[np.int64],
    text_scores: NDArray[np.float64],
    vector_weight: float,
    text_weight: float,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """NumPy twin of `engram._native.blend.blend`."""
    boundary.array("vector_keys", vector_keys, np.int64)
    boundary.array("vector_scores", vector_scores, np.float64)
    boundary.array("text_keys", text_keys, np.int64)
    boundary.array("text_scores", text_scores, np.float64)
    boundary.length("vector_scores", vector_scores, len(vector_keys), "vector key")
    boundary.length("text_scores", text_scores, len(text_keys), "text key")
    vector_weight = boundary.real("vector_weight", vector_weight, 0.0)
    text_weight = boundary.real("text_weight", text_weight, 0.0)
    if vector_weight == 0.0 and text_weight == 0.0:
        message = "vector_weight and text_weight must not both be 0"
        raise ValueError(message)
    k = boundary.whole("k", k, 1)
    vectors = _normalised("vector", vector_keys, vector_scores)
    texts = _normalised("text", text_keys, text_scores)

    if not math.isfinite(vector_weight + text_weight):
        vector_weight *= 0.5
        text_weight *= 0.5
    keys = np.union1d(vector_keys, text_keys)
    vector_side = np.zeros(len(keys))
    vector_side[np.searchsorted(keys, vector_keys)] = vectors
    text_side = np.zeros(len(keys))
    text_side[np.searchsorted(keys, text_keys)] = texts
    with np.errstate(all="ignore"):
        weighed = vector_weight * vector_side + text_weight * text_side
        blended = weighed / (vector_weight + text_weight)
    best = np.lexsort((keys, -blended))[:k]
    return keys[best], blended[best]


def _normalised(
    side: str, keys: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    if not np.all(np.isfinite(scores)):
        message = f"{side}_scores must be finite"
        raise ValueError(message)
    if len(np.unique(keys)) != len(keys):
        message = f"{side}_keys must not repeat a key"
        raise ValueError(message)
    if not len(scores):
        return scores
    with np.errstate(all="ignore"):
        # Halves keep the difference of two huge scores finite; elsewhere they would cost bits.
        scale = 1.0 if np.isfinite(scores.max() - scores.min()) else 0.5
        lo = scores.min() * scale
        span = scores.max() * scale - lo
        return (scores * scale - lo) / span if span > 0.0 else np.ones(len(scores))
