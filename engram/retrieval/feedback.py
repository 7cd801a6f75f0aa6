"""Pseudo-relevance feedback: the words that the best candidates share, looked for as well."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.retrieval.complete import scaled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from engram.retrieval.hybrid import Source

_BEST: Final = 5
"""Candidates that are taken for answers."""

_LEAST_SHARE: Final = 0.4
"""What they score at least, of the best score: few memories are not all answers. What has a word
once scores by it 0.45 of what has it often."""

_SHARED_BY: Final = 2
"""Of how many of them a word is."""

_MOST_WORDS: Final = 64
"""Words that are weighed."""

_MOST_TERMS: Final = 5


def second_look(
    source: Source, keys: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what the most telling words of the best candidates score in all, float64[n], 0 to 1.

    All are 0 where the best share no word but the query's.

    Args:
        source: What is searched.
        keys: Of the candidates, int64[n].
        scores: By the query, float64[n].
    """
    best = np.lexsort((keys, -scores))[:_BEST]
    best = best[scores[best] >= _LEAST_SHARE * scores.max(initial=0.0)]
    found = further_words(source.bodies(keys[best]), source.query.text, source.words_of)
    if not found:
        return np.zeros(len(keys))
    words = source.weigh(keys, source.words_of(" ".join(found)))
    telling = telling_terms(words.frequencies[best], words.rarity)
    return scaled(
        words._replace(
            frequencies=words.frequencies[:, telling], rarity=words.rarity[telling]
        ).scores()
    )


def further_words(
    texts: Sequence[str], query: str, words_of: Callable[[str], dict[str, str]]
) -> list[str]:
    """Return words that several texts have and a query has in no form.

    Args:
        texts: Where to look.
        query: What was asked.
        words_of: Returns the words of a text as it is searched, by their stems.

    Returns:
        At most 64, those of most texts first, each in the first form found.
    """
    asked = words_of(query)
    found: dict[str, str] = {}
    having = Counter[str]()
    for text in texts:
        words = words_of(text)
        having.update(words.keys() - asked.keys())
        for stem, word in words.items():
            found.setdefault(stem, word)
    shared = [stem for stem in found if having[stem] >= _SHARED_BY]
    shared.sort(key=having.__getitem__, reverse=True)
    return [found[stem] for stem in shared[:_MOST_WORDS]]


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
        is worth nothing or that only one text has.
    """
    having = np.count_nonzero(frequencies, axis=0)
    worth = np.where(having >= _SHARED_BY, rarity * having, 0.0)
    order = np.argsort(-worth, kind="stable")[:_MOST_TERMS]
    telling: NDArray[np.int64] = order[worth[order] > 0.0]
    return telling
