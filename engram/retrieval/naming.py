"""Whom a query names: what they said or took part in is sooner what is asked for.

The words of a text do not tell that. In a conversation each names the other as often as the
question does, and where all texts have a name it says nothing of any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram.storage.headings import people
from engram.storage.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from engram.storage import Store


def named(store: Store, query: AbstractSet[str], keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each of some episodes which part of an actor's name a query has, float64[n].

    Of several actors, the most of any. Of an episode's actors the first four count, and none whose
    name is longer than a heading may be; of a name no stop words, unless it has no others. Takes
    time in the number of episodes.

    Args:
        store: The store, in the caller's transaction.
        query: The words of the query, as stems.
        keys: Of the episodes, int64[n], ascending.
    """
    pairs, names = store.labels.actors(keys)
    shares = np.zeros(len(keys))
    for label, name in names.items():
        words = set(store.text.stems(name)) if people([name]) else set()
        words = words - STOP_WORDS or words
        if found := len(words & query):
            here = np.searchsorted(keys, pairs[pairs[:, 1] == label, 0])
            shares[here] = np.maximum(shares[here], found / len(words))
    return shares
