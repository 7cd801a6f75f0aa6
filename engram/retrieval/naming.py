"""Whom a query names: what they said or took part in is sooner what is asked for.

The words of a text do not tell that. In a conversation each names the other as often as the
question does, and where all texts have a name it says nothing of any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram.storage import people

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from engram.storage import Store


def named(
    query: AbstractSet[str], actors: Iterable[tuple[int, frozenset[str]]], keys: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return for each of some episodes which part of an actor's name a query has, float64[n].

    Of several actors, the most of any.

    Args:
        query: The words of the query, as stems.
        actors: As `actors_of` returns them.
        keys: Of the episodes, int64[n], ascending.
    """
    shares = np.zeros(len(keys))
    for key, name in actors:
        if found := len(name & query):
            at = np.searchsorted(keys, key)
            shares[at] = max(shares[at], found / len(name))
    return shares


def actors_of(store: Store, keys: NDArray[np.int64]) -> list[tuple[int, frozenset[str]]]:
    """Return the actors of some episodes who have a name: the episode, and the name's stems."""
    stems = store.text.tokenizer()
    actors = store.labels.actors(keys)
    words = {name: frozenset(stems(name.encode())) for name in people({who for _, who in actors})}
    return [(key, words[name]) for key, who in actors if (name := who.strip()) in words]
