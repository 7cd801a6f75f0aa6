"""Pseudo-relevance feedback: the words that the best candidates share, looked for as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEST: Final = 5
"""Candidates that are taken for answers."""

MOST_TERMS: Final = 5


def telling_terms(
    frequencies: NDArray[np.float32], rarity: NDArray[np.float64], asked: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return which terms say most of what some texts have in common.

    A term is worth its rarity times how many of the texts have it.

    Args:
        frequencies: How often each text has each term, float32[n, t].
        rarity: How much finding the term says, float64[t], not negative.
        asked: Which of them the query has already, bool[t]: they are none of these.

    Returns:
        Their places, int64[u], the most telling first, ties in order; at most `MOST_TERMS`, and
        none that is worth nothing.
    """
    worth = np.where(asked, 0.0, rarity * np.count_nonzero(frequencies, axis=0))
    order = np.argsort(-worth, kind="stable")[:MOST_TERMS]
    return order[worth[order] > 0.0]
