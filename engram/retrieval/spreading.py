"""Spreading recall: what is near the query, and what is linked to it through shared entities.

Activation starts at the nearest episodes and spreads over the entity graph, as Collins and Loftus
describe ("A spreading-activation theory of semantic processing", Psychological Review 82, 1975).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram._native import spread
from engram.index import distance_bounds, true_distances
from engram.index.rows import ENTITY

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex, Neighbours
    from engram.index.rows import Rows
    from engram.storage import Store

    Allowed = Callable[[NDArray[np.int64]], NDArray[np.bool_]]

SIMILARITY_SHARE: Final = 0.6
ACTIVATION_SHARE: Final = 0.3
IMPORTANCE_SHARE: Final = 0.1
"""What each part is worth in a score; each lies in 0..1 and so does the sum."""

_ROUNDING: Final = 1e-9
"""By how much two ways to compute one score may differ."""


class Activation(NamedTuple):
    """What spreading reached, ascending by key, and how much each received, 0 to 1.

    Attributes:
        episodes: int64[n].
        of_episodes: float64[n].
        entities: int64[m].
        of_entities: float64[m].
    """

    episodes: NDArray[np.int64]
    of_episodes: NDArray[np.float64]
    entities: NDArray[np.int64]
    of_entities: NDArray[np.float64]


def similarity(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `1 / (1 + d)`: 1 for identical, about 0.41 for orthogonal, 1/3 for opposite."""
    return 1.0 / (1.0 + distances)


def spreading(
    store: Store,
    index: EpisodeIndex,
    vector: NDArray[np.float32],
    near: Neighbours,
    activation: Activation,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the best of the seeds and the allowed episodes that activation reaches, best first.

    A score is 0.6 similarity + 0.3 activation + 0.1 importance. Where activations exceed 1 they
    are all divided by the largest, so that a dense graph neither breaks the bound nor loses its
    order. Importance is cut to 0..1. Every episode has its own similarity, reached ones too: with
    activation bounded, one that counted as unlike the query could not pass any seed.

    Args:
        store: The store, in a transaction.
        index: Its vectors, up to date.
        vector: float32[dim], the query.
        near: The seeds: the nearest allowed episodes.
        activation: What they activated.
        k: How many at most.

    Returns:
        Episode keys, int64[m], their scores, float64[m] within 0..1, and their distances,
        float64[m]; ties in insertion order.
    """
    if not len(near.episodes):
        return near.episodes, near.distances, near.distances
    reached = activation.episodes
    episodes = np.union1d(near.episodes, reached)
    importance = store.strength.importance.of(episodes)
    beside = IMPORTANCE_SHARE * np.clip(importance, 0.0, 1.0)
    received = np.zeros(len(episodes))
    received[np.searchsorted(episodes, reached)] = ACTIVATION_SHARE * activation.of_episodes
    if len(episodes) > k:
        # Bounds of the distances tell most that are reached from those that can be among the best.
        least, most = distance_bounds(index, vector, episodes)
        lowest = SIMILARITY_SHARE * similarity(most) + received + beside
        highest = SIMILARITY_SHARE * similarity(least) + received + beside
        kept = highest >= np.partition(lowest, -k)[-k] - _ROUNDING
        episodes, received, beside = episodes[kept], received[kept], beside[kept]
    distances = true_distances(index, vector, episodes)
    scores = SIMILARITY_SHARE * similarity(distances) + received + beside
    order = np.lexsort((episodes, -scores))[:k]
    return episodes[order], scores[order], distances[order]


def activate(
    rows: Rows, near: Neighbours, allowed: Allowed, depth: int, decay: float
) -> Activation:
    """Return what activation reaches from the nearest episodes.

    A node of more than `HUB_ARCS` arcs passes energy on along its strongest ones only, so that the
    walk costs what it reaches and not what the store holds.

    Args:
        rows: The graph that is walked.
        near: The seeds: the nearest allowed episodes.
        allowed: Says of episodes, int64[n], which may appear and conduct, bool[n]; asked about
            those that a hop reaches.
        depth: How many hops.
        decay: The share of energy that survives a hop.
    """
    nodes, energy = rows.nodes(near.episodes), similarity(near.distances)
    nodes, energy = _in_order(rows, nodes[nodes >= 0], energy[nodes >= 0])
    reached, received = [np.empty(0, dtype=np.int64)], [np.empty(0)]
    while depth > 0 and len(nodes):
        nodes, energy = spread(
            rows.starts, rows.counts, rows.indices, rows.weights, nodes, energy, decay
        )
        nodes, energy = _in_order(rows, nodes, energy)
        codes = rows.codes[nodes]
        are_episodes = codes < ENTITY
        conducts = np.ones(len(nodes), dtype=np.bool_)
        conducts[are_episodes] = allowed(codes[are_episodes])
        reached.append(codes[conducts])
        received.append(energy[conducts])
        nodes, energy = nodes[conducts], energy[conducts]
        depth -= 1
    codes, place = np.unique(np.concatenate(reached), return_inverse=True)
    sums = np.zeros(len(codes))
    np.add.at(sums, place, np.concatenate(received))
    first = int(np.searchsorted(codes, ENTITY))
    return Activation(
        codes[:first], _bounded(sums[:first]), codes[first:] - ENTITY, _bounded(sums[first:])
    )


def _bounded(activation: NDArray[np.float64]) -> NDArray[np.float64]:
    bound: float = max(1.0, activation.max(initial=0.0))
    return activation / bound


def _in_order(
    rows: Rows, nodes: NDArray[np.int64], energy: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return nodes and energies in the order of what they stand for, which no rebuild changes."""
    order = np.argsort(rows.codes[nodes])
    return nodes[order], energy[order]
