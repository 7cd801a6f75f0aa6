"""Finding episodes for a query: by meaning, by meaning and words, or through the entity graph."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, TypeVar

from engram.index import Damaged, nearest, times_of, true_distances, true_vectors
from engram.models import SearchResult
from engram.retrieval.hybrid import by_words, hybrid
from engram.retrieval.naming import named
from engram.retrieval.ranking import MAX_K, Ranking
from engram.retrieval.spreading import activate, similarity, spreading
from engram.tracing import stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

    from engram.index import Adjacency, EpisodeIndex, Neighbours, WordWeights
    from engram.models import Certificate
    from engram.retrieval.ranking import Chunks, Query, Ranked
    from engram.retrieval.spreading import Activation
    from engram.storage import Store, TurnColumns

_T = TypeVar("_T")

SEEDS_PER_RESULT: Final = 3


def recall(
    store: Store, index: EpisodeIndex | None, adjacency: Adjacency, query: Query
) -> tuple[Ranking, list[SearchResult]]:
    """Return the best candidates for a query, and what each is as a result; see `chosen`.

    Runs inside the caller's transaction, whose snapshot both sides and the rows come from.

    Args:
        store: The store.
        index: The index of its episodes; None while none of them is embedded.
        adjacency: Its entity graph.
        query: What is asked, and how.

    Returns:
        At least min(k, matches) of them: every filter applies before the choice. Ties are in
        insertion order, so the same store and query give the same answer.
    """
    with stage("rank"):
        if index is None:
            search = partial(store.text.search, query.text, query.allowed)
            count = store.episodes.count(query.allowed)
            ranking = by_words(query, search, count, "episodes")
        else:
            ranking = refreshed(
                index, lambda: _RANKINGS[query.mode](store, index, adjacency, query)
            )
    store.embeddings.refuse_damage()
    with stage("read"):
        episodes = store.episodes.fetch(ranking.keys)
    results = [
        SearchResult(
            episode,
            score,
            distance,
            episode.importance_score,
            confidence=sure,
            certificate=ranking.certificate,
        )
        for episode, score, distance, sure in zip(
            episodes,
            ranking.scores.tolist(),
            ranking.distances.tolist(),
            ranking.sure(),
            strict=True,
        )
    ]
    return ranking, results


def refreshed(index: EpisodeIndex, work: Callable[[], _T]) -> _T:
    """Return what some work on an index that is up to date gives, in a transaction.

    When a file of the index is not what was written, the index is built anew and the work repeated.
    """
    try:
        index.refresh()
        return work()
    except Damaged:
        index.start_over()
        return work()


class _Episodes:
    """What a hybrid recall of episodes looks at."""

    def __init__(self, store: Store, index: EpisodeIndex, query: Query) -> None:
        self.query = query
        self._store = store
        self._index = index

    def count(self) -> int:
        return sum(one.count for one in self._index.select(self.query.allowed))

    def near(self, k: int) -> tuple[Ranked, Certificate]:
        near = _near(self._index, self.query, k)
        return (near.episodes, near.distances), near.certificate

    def matches(self, limit: int) -> Ranked:
        return self._index.match(self.query.text, self.query.allowed, limit)

    def distances(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return true_distances(self._index, self.query.vector, keys)

    def allows(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._index.allows(self.query.allowed, keys)

    @cached_property
    def terms(self) -> dict[str, str]:
        return self.words_of(self.query.text)

    def weigh(self, keys: NDArray[np.int64], terms: Iterable[str]) -> WordWeights:
        return self._index.weigh(list(terms), keys)

    def bodies(self, keys: NDArray[np.int64]) -> list[str]:
        return [self._store.text.body(key) for key in keys.tolist()]

    def words_of(self, text: str) -> dict[str, str]:
        return self._store.text.words_of(text)

    def stems(self, text: str) -> list[str]:
        return self._store.text.stems(text)

    def vectors(self, keys: NDArray[np.int64]) -> Chunks:
        return true_vectors(self._index, keys)

    def turns(self, keys: NDArray[np.int64]) -> TurnColumns:
        return self._store.turns.of(keys)

    def named(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return named(self._store, self.terms.keys(), keys)

    def times(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return times_of(self._index.parts, keys)


def _near(index: EpisodeIndex, query: Query, k: int) -> Neighbours:
    return nearest(index, query.vector, k, query.allowed, query.accuracy)


def _by_meaning(_: Store, index: EpisodeIndex, __: Adjacency, query: Query) -> Ranking:
    near = _near(index, query, query.k)
    return Ranking(near.episodes, similarity(near.distances), near.distances, near.certificate)


def _by_both(store: Store, index: EpisodeIndex, _: Adjacency, query: Query) -> Ranking:
    return hybrid(_Episodes(store, index, query))


def associated(
    index: EpisodeIndex, adjacency: Adjacency, query: Query
) -> tuple[Neighbours, Activation]:
    """Return the nearest episodes, three for each result, and what they activate."""
    near = _near(index, query, min(SEEDS_PER_RESULT * query.k, MAX_K))
    rows, allows = adjacency.of(query.allowed.agent), partial(index.allows, query.allowed)
    return near, activate(rows, near, allows, query.depth, query.decay)


def _by_association(
    store: Store, index: EpisodeIndex, adjacency: Adjacency, query: Query
) -> Ranking:
    """Rank the nearest episodes and those that activation spreads to from them."""
    near, activation = associated(index, adjacency, query)
    episodes, scores, distances = spreading(store, index, query.vector, near, activation, query.k)
    return Ranking(episodes, scores, distances, near.certificate)


_RANKINGS: Final = {"hybrid": _by_both, "cosine": _by_meaning, "spreading": _by_association}
MODES: Final = tuple(_RANKINGS)
