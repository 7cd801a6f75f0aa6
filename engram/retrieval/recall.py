"""Finding episodes for a query: by meaning, by meaning and words, or through the entity graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from engram._native import blend
from engram.index import Damaged, nearest, true_distances
from engram.models import Certificate, SearchResult
from engram.retrieval.spreading import activate, similarity, spreading
from engram.tracing import stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from engram.index import Adjacency, EpisodeIndex, Neighbours
    from engram.retrieval.spreading import Activation
    from engram.storage import EpisodeFilter, Store

    Ranked = tuple[NDArray[np.int64], NDArray[np.float64]]
    """Keys, best first, and what they are ranked by."""

_T = TypeVar("_T")

MAX_K: Final = 4096
"""The largest `k`, and the largest pool of candidates a side contributes."""
_POOL_PER_RESULT: Final = 4
SEEDS_PER_RESULT: Final = 3


@dataclass(frozen=True, slots=True)
class Query:
    """A recall with its arguments checked.

    Attributes:
        text: What was asked.
        vector: float32[dim], unit length, rounded as stored vectors are; empty where the store has
            none.
        k: How many results at most.
        mode: One of `MODES`.
        accuracy: One of `engram.index.ACCURACIES`.
        allowed: Which episodes may be returned.
        vector_weight: Share of the vector side, against `text_weight`.
        text_weight: Share of the keyword side.
        pool: Candidates each side contributes, at least `k`; None is four for each result.
        min_score: Results below it are left out.
        depth: Hops of spreading activation.
        decay: The share of activation that survives a hop.
    """

    text: str
    vector: NDArray[np.float32]
    k: int
    mode: str
    accuracy: str
    allowed: EpisodeFilter
    vector_weight: float = 0.5
    text_weight: float = 0.5
    pool: int | None = None
    min_score: float | None = None
    depth: int = 2
    decay: float = 0.5


@dataclass(frozen=True, slots=True)
class Ranking:
    """Keys, best first, with scores and distances in step; see `FACT` for those of facts."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float64]
    distances: NDArray[np.float64]
    certificate: Certificate | None

    def above(self, min_score: float | None) -> int:
        """Return how many of the first do not score below a floor."""
        if min_score is None:
            return len(self.scores)
        return int(np.count_nonzero(self.scores >= min_score))


def recall(
    store: Store, index: EpisodeIndex | None, adjacency: Adjacency, query: Query
) -> tuple[list[SearchResult], list[int]]:
    """Return the best episodes for a query, best first, and their keys.

    Runs inside the caller's transaction, whose snapshot both sides and the rows come from.

    Args:
        store: The store.
        index: The index of its episodes; None while none of them is embedded.
        adjacency: Its entity graph.
        query: What is asked, and how.

    Returns:
        min(k, matches) results: every filter applies before the choice. Ties are in insertion
        order, so the same store and query give the same answer.
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
    kept = ranking.above(query.min_score)
    with stage("read"):
        episodes = store.episodes.fetch(ranking.keys[:kept])
    results = [
        SearchResult(episode, score, distance, episode.importance_score, ranking.certificate)
        for episode, score, distance in zip(
            episodes, ranking.scores[:kept].tolist(), ranking.distances[:kept].tolist(), strict=True
        )
    ]
    return results, ranking.keys[:kept].tolist()


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


def pool_of(query: Query) -> int:
    """Return how many candidates each side of a hybrid recall contributes."""
    return max(min(query.pool or _POOL_PER_RESULT * query.k, MAX_K), query.k)


def _near(index: EpisodeIndex, query: Query, k: int) -> Neighbours:
    return nearest(index, query.vector, k, query.allowed, query.accuracy)


def _by_meaning(_: Store, index: EpisodeIndex, __: Adjacency, query: Query) -> Ranking:
    near = _near(index, query, query.k)
    return Ranking(near.episodes, similarity(near.distances), near.distances, near.certificate)


def _by_both(_: Store, index: EpisodeIndex, __: Adjacency, query: Query) -> Ranking:
    pool = pool_of(query)
    near = _near(index, query, pool)
    matches = index.match(query.text, query.allowed, pool)
    distances = partial(true_distances, index, query.vector)
    return blended(query, (near.episodes, near.distances), matches, distances, near.certificate)


def blended(
    query: Query,
    near: Ranked,
    matches: Ranked,
    distances: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    certificate: Certificate | None,
) -> Ranking:
    """Blend the nearest and the best-matching candidates, each side scaled to 0..1.

    Args:
        query: What is asked.
        near: The nearest ones, int64[n], and their distances, float64[n].
        matches: The best matches, int64[m], and their scores, float64[m].
        distances: Returns how far others are.
        certificate: How the nearest ones were found.
    """
    keys, scores = blend(
        near[0],
        similarity(near[1]),
        *matches,
        query.vector_weight,
        query.text_weight,
        query.k,
    )
    known = dict(zip(near[0].tolist(), near[1].tolist(), strict=True))
    others = [key for key in keys.tolist() if key not in known]
    if others:
        found = distances(np.array(others, dtype=np.int64))
        known.update(zip(others, found.tolist(), strict=True))
    of_keys = np.array([known[key] for key in keys.tolist()], dtype=np.float64)
    return Ranking(keys, scores, of_keys, certificate)


def by_words(query: Query, search: Callable[[int], Ranked], count: int, noun: str) -> Ranking:
    """Rank by words alone where that is asked for and nothing is embedded yet.

    Args:
        query: What is asked.
        search: Returns so many best matches and their scores.
        count: How many the filters let through.
        noun: Of what.
    """
    none = np.empty(0, dtype=np.int64), np.empty(0)
    matches = search(query.k) if query.mode == "hybrid" else none
    reason = f"{count} {noun} match: none of them is embedded yet"
    certificate = Certificate(
        query.accuracy, "scan", exact=True, matching=count, considered=0, reason=reason
    )
    return blended(query, none, matches, lambda keys: np.full(len(keys), np.inf), certificate)


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
