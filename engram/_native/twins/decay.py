"""NumPy twin of the importance kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["decay"]

_MICROSECONDS_PER_DAY = 86_400_000_000.0


def decay(
    salience: NDArray[np.float64],
    valence: NDArray[np.float64],
    access_count: NDArray[np.int64],
    baseline: NDArray[np.int64],
    now: int,
    lambda_: float,
    alpha: float,
    beta: float,
) -> NDArray[np.float64]:
    """NumPy twin of `engram._native.decay.decay`."""
    boundary.array("salience", salience, np.float64)
    boundary.array("valence", valence, np.float64)
    boundary.array("access_count", access_count, np.int64)
    boundary.array("baseline", baseline, np.int64)
    boundary.length("valence", valence, len(salience), "salience")
    boundary.length("access_count", access_count, len(salience), "salience")
    boundary.length("baseline", baseline, len(salience), "salience")
    now = boundary.whole("now", now, boundary.INT64_MIN, boundary.INT64_MAX)
    lambda_ = boundary.real("lambda_", lambda_, 0.0)
    alpha = boundary.real("alpha", alpha)
    beta = boundary.real("beta", beta)
    if np.any(access_count < 0):
        message = "access_count must not be negative"
        raise ValueError(message)

    with np.errstate(all="ignore"):
        # Unsigned subtraction: the distance of two int64 always fits, their difference may not.
        distance = np.array(now, np.int64).view(np.uint64) - baseline.view(np.uint64)
        days = np.where(baseline < now, distance, np.uint64(0)) / _MICROSECONDS_PER_DAY
        remembered: NDArray[np.float64] = salience * np.exp(-lambda_ * days)
        return remembered + alpha * np.log1p(access_count) + beta * valence
