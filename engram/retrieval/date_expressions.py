"""Dates in queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spans(query: str, now: int) -> list[tuple[int, int]]:
    """Return the times that a query names."""
    return []


def nearness(times: NDArray[np.int64], spans: list[tuple[int, int]]) -> NDArray[np.float64]:
    """Return how near times are to spans."""
    return np.zeros(len(times))
