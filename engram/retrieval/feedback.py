"""Pseudo-relevance feedback: the words that the best candidates share, looked for as well."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.retrieval.complete import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from engram.retrieval.hybrid import Source

_BEST: Final = 5
"""Candidates that are taken for answers."""

_MOST_TERMS: Final = 5


def second_look(
    source: Source, keys: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the most telling words of the best candidates score in all, float64[n], 0 to 1.

    Args:
        source: What is searched.
        keys: Of the candidates, int64[n].
        scores: By the query, float64[n].
    """
    order = np.lexsort((keys, -scores))
    best = source.bodies(keys[order[:_BEST]])
    found = further_words(best, source.query.text, source.words_of)
    words = source.weigh(keys, " ".join(found))
    telling = telling_terms(words.frequencies[order[:_BEST]], words.rarity)
    return scaled(
        words._replace(
            frequencies=words.frequencies[:, telling], rarity=words.rarity[telling]
        ).scores()
    )


def further_words(
    texts: Sequence[str], query: str, words_of: Callable[[str], dict[str, str]]
) -> list[str]:
    """Return words of texts that a query has in no form, each in the first form found.

    Args:
        texts: Where to look.
        query: What was asked.
        words_of: Returns the words of a text as it is searched, by their stems.
    """
    asked = words_of(query)
    found: dict[str, str] = {}
    for text in texts:
        for stem, word in words_of(text).items():
            if stem not in asked:
                found.setdefault(stem, word)
    return list(found.values())


def telling_terms(
    frequencies: NDArray[np.float32], rarity: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return which terms say most of what some texts have in common.

    A term is worth its rarity times how many of the texts have it.

    Args:
        frequencies: How often each text has each term, float32[n, t].
        rarity: How much finding the term says, float64[t], not negative.

    Returns:
        Their places, int64[u], the most telling first, ties in order; at most five, and none that
        is worth nothing.
    """
    worth = rarity * np.count_nonzero(frequencies, axis=0)
    order = np.argsort(-worth, kind="stable")[:_MOST_TERMS]
    telling: NDArray[np.int64] = order[worth[order] > 0.0]
    return telling
