"""Spreading recall: what is near the query, and what is linked to it through shared entities.

Activation starts at the nearest episodes and spreads over the entity graph, as Collins and Loftus
describe ("A spreading-activation theory of semantic processing", Psychological Review 82, 1975).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram._native import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index import Adjacency, Neighbours, VectorIndex
    from engram.storage import EpisodeFilter, Store

SIMILARITY_SHARE: Final = 0.6
ACTIVATION_SHARE: Final = 0.3
IMPORTANCE_SHARE: Final = 0.1
"""What each part is worth in a score; each lies in 0..1 and so does the sum."""


def similarity(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `1 / (1 + d)`: 1 for identical, about 0.41 for orthogonal, 1/3 for opposite."""
    return 1.0 / (1.0 + distances)


def spreading(
    store: Store,
    adjacency: Adjacency,
    index: VectorIndex,
    vector: NDArray[np.float32],
    near: Neighbours,
    allowed: EpisodeFilter,
    depth: int,
    decay: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the seeds and every allowed episode that activation reaches, best first.

    A score is 0.6 similarity + 0.3 activation + 0.1 importance. Where activations exceed 1 they
    are all divided by the largest, so that a dense graph neither breaks the bound nor loses its
    order. Importance is cut to 0..1. Every episode has its own similarity, reached ones too: with
    activation bounded, one that counted as unlike the query could not pass any seed.

    Args:
        store: The store, in a transaction.
        adjacency: Its entity graph.
        index: Its vectors, up to date.
        vector: float32[dim], the query.
        near: The seeds: the nearest allowed episodes.
        allowed: Which episodes may appear, and conduct; its scope says whose edges are walked.
        depth: How many hops.
        decay: The share of energy that survives a hop.

    Returns:
        Episode keys, int64[m], their scores, float64[m] within 0..1, and their distances,
        float64[m]; ties in insertion order.
    """
    if not len(near.episodes):
        return near.episodes, near.distances, near.distances
    reached, activation = _activate(store, adjacency, near, allowed, depth, decay)
    episodes = np.union1d(near.episodes, reached)
    distances = index.distances(vector, episodes)
    importance = store.strength.importance.of(episodes)
    scores = SIMILARITY_SHARE * similarity(distances)
    bound = max(1.0, activation.max(initial=0.0))
    scores[np.searchsorted(episodes, reached)] += ACTIVATION_SHARE * (activation / bound)
    scores += IMPORTANCE_SHARE * np.clip(importance, 0.0, 1.0)
    order = np.lexsort((episodes, -scores))
    return episodes[order], scores[order], distances[order]


def _activate(
    store: Store,
    adjacency: Adjacency,
    near: Neighbours,
    allowed: EpisodeFilter,
    depth: int,
    decay: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the allowed episodes that received activation, and how much."""
    rows = adjacency.of(allowed.agent)
    seeds, present = rows.nodes(near.episodes)
    if not len(seeds):
        return np.empty(0, dtype=np.int64), np.empty(0)
    conducts = np.ones(len(rows.indptr) - 1, dtype=np.bool_)
    conducts[: len(rows.episodes)] = np.isin(rows.episodes, store.episodes.matching(allowed))
    # An arc of weight 0 passes nothing on: an episode outside the filter ends the walk.
    weights = np.where(conducts[rows.indices], rows.weights, np.float32(0.0))
    energy = similarity(near.distances[present])
    nodes, activation = spread(rows.indptr, rows.indices, weights, seeds, energy, depth, decay)
    found = (nodes < len(rows.episodes)) & (activation > 0.0)
    return rows.episodes[nodes[found]], activation[found]
