"""Finding episodes for a query: by meaning, by meaning and words, or through the entity graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engram._native import blend
from engram.models import SearchResult
from engram.retrieval.spreading import similarity, spreading

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index import Adjacency, TextPostings, VectorIndex
    from engram.storage import EpisodeFilter, Store

MAX_K = 4096
"""The largest `k`, and the largest pool of candidates a side contributes."""
MODES = ("hybrid", "cosine", "spreading")
_POOL_PER_RESULT = 4
_SEEDS_PER_RESULT = 3


@dataclass(frozen=True, slots=True)
class Query:
    """A recall with its arguments checked.

    Attributes:
        text: What was asked.
        vector: float32[dim], unit length, rounded as stored vectors are.
        k: How many results at most.
        mode: One of `MODES`.
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
    allowed: EpisodeFilter
    vector_weight: float = 0.5
    text_weight: float = 0.5
    pool: int | None = None
    min_score: float | None = None
    depth: int = 2
    decay: float = 0.5


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Episode keys, best first, with scores and distances in step."""

    episodes: NDArray[np.int64]
    scores: NDArray[np.float64]
    distances: NDArray[np.float64]


def recall(
    store: Store, index: VectorIndex, words: TextPostings, adjacency: Adjacency, query: Query
) -> tuple[list[SearchResult], list[int]]:
    """Return the best episodes for a query, best first, and their keys.

    Runs inside the caller's transaction, whose snapshot both sides and the rows come from.

    Returns:
        min(k, matches) results: every filter applies before the choice. Ties are in insertion
        order, so the same store and query give the same answer.
    """
    index.refresh()
    if query.mode == "cosine":
        ranking = _by_meaning(index, query)
    elif query.mode == "spreading":
        ranking = _by_association(store, index, adjacency, query)
    else:
        ranking = _by_both(index, words, query)
    kept = len(ranking.scores)
    if query.min_score is not None:
        kept = int(np.count_nonzero(ranking.scores >= query.min_score))
    episodes = store.episodes.fetch(ranking.episodes[:kept])
    results = [
        SearchResult(episode, score, distance, episode.importance_score)
        for episode, score, distance in zip(
            episodes, ranking.scores[:kept].tolist(), ranking.distances[:kept].tolist(), strict=True
        )
    ]
    return results, ranking.episodes[:kept].tolist()


def _by_meaning(index: VectorIndex, query: Query) -> _Ranking:
    near = index.search(query.vector, query.k, query.allowed)
    return _Ranking(near.episodes, similarity(near.distances), near.distances)


def _by_both(index: VectorIndex, words: TextPostings, query: Query) -> _Ranking:
    """Blend the nearest and the best-matching candidates, each side scaled to 0..1."""
    pool = min(query.pool or _POOL_PER_RESULT * query.k, MAX_K)
    pool = max(pool, query.k)
    near = index.search(query.vector, pool, query.allowed)
    matches, match_scores = words.search(query.text, query.allowed, pool)
    episodes, scores = blend(
        near.episodes,
        similarity(near.distances),
        matches,
        match_scores,
        query.vector_weight,
        query.text_weight,
        query.k,
    )
    return _Ranking(episodes, scores, index.distances(query.vector, episodes))


def _by_association(
    store: Store, index: VectorIndex, adjacency: Adjacency, query: Query
) -> _Ranking:
    """Rank the nearest episodes and those that activation spreads to from them."""
    seeds = min(_SEEDS_PER_RESULT * query.k, MAX_K)
    near = index.search(query.vector, seeds, query.allowed)
    episodes, scores, distances = spreading(
        store,
        adjacency,
        index,
        query.vector,
        near,
        query.allowed.agent,
        partial(store.episodes.among, query.allowed),
        query.depth,
        query.decay,
    )
    return _Ranking(episodes[: query.k], scores[: query.k], distances[: query.k])
