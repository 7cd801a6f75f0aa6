"""How sure it is that a memory answers a query, on one scale for all queries.

A blended score ranks the candidates of one query and says nothing of another query's. This is
a logistic function of two things that mean the same for every query: how near in meaning the memory
is, and how many of the query's words it has. Neither depends on another memory, so nothing that
somebody else writes makes an answer look surer or less sure. `benchmarks/fit_confidence.py` finds
its constants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BIAS: Final = -7.0
_SIMILARITY: Final = 13.0
_COVERAGE: Final = 7.0


def confidence(
    similarity: NDArray[np.float64], coverage: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how probable it is that each memory answers the query.

    Args:
        similarity: float64[n], the cosine of query and memory, -1 to 1.
        coverage: float64[n], the share of the query's distinct words that the memory has, 0 to 1.

    Returns:
        float64[n], above 0 and below 1; it grows with both.
    """
    evidence = _BIAS + _SIMILARITY * similarity + _COVERAGE * coverage
    probability: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-evidence))
    return probability
