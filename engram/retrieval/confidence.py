"""How surely a memory answers a query, comparable across queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BIAS: Final = -5.0
_SIMILARITY: Final = 8.0
_COVERAGE: Final = 2.0


def confidence(
    similarity: NDArray[np.float64], coverage: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return a logistic function of what is known by meaning and by words, float64[n], 0 to 1.

    Args:
        similarity: float64[n], the cosine of query and memory.
        coverage: float64[n], how much of the query's words, weighed by how rare they are, the
            memory has, 0 to 1.
    """
    sure: NDArray[np.float64] = 1.0 / (
        1.0 + np.exp(-(_BIAS + _SIMILARITY * similarity + _COVERAGE * coverage))
    )
    return sure
