"""Intervals by the bootstrap: how far a mean would move with other questions of the same kind."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RESAMPLES", "intervals", "means", "resamples"]

RESAMPLES = 2000
"""How often questions are drawn anew."""

_SEED = 0
_BOUNDS = (2.5, 97.5)


def resamples(count: int, name: str) -> NDArray[np.float64]:
    """Draw `count` questions of `count`, with replacement, many times.

    The same name draws the same questions, so that whatever is measured on them is paired; other
    names draw independently.

    Returns:
        A row for each time: how often each question was drawn.
    """
    random = np.random.default_rng((_SEED, zlib.crc32(name.encode())))
    drawn = random.integers(count, size=(RESAMPLES, count))
    drawn += np.arange(RESAMPLES)[:, None] * count
    times = np.bincount(drawn.ravel(), minlength=RESAMPLES * count)
    return times.reshape(RESAMPLES, count).astype(np.float64)


def means(values: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each column, where each row counts so often; NaN counts for nothing.

    Args:
        values: A row for each question.
        times: Rows of how often each question counts.

    Returns:
        A row of means for each row of `times`; NaN where nothing was counted.
    """
    known = ~np.isnan(values)
    counted = times @ known.astype(np.float64)
    total = times @ np.where(known, values, 0.0)
    return np.divide(total, counted, out=np.full_like(total, np.nan), where=counted > 0)


def intervals(resampled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bounds of the 95 % interval of each column of resampled figures, low and high.

    A resample that drew no question with evidence has no figure and is left out; where none has
    one, the bounds are NaN.
    """
    bounds = np.full((2, resampled.shape[1]), np.nan)
    if not np.isnan(resampled).any():
        return np.percentile(resampled, _BOUNDS, axis=0)
    for column, figures in enumerate(resampled.T):
        known = figures[~np.isnan(figures)]
        if len(known):
            bounds[:, column] = np.percentile(known, _BOUNDS)
    return bounds
