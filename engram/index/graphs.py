"""Proximity graphs of large partitions: fewer comparisons for a recall that may miss a little.

A partition is one agent's episodes, or those of no agent. Its graph is built in the background, up
to a watermark; what is newer is scanned. It is only asked where it is faster than sign bits at the
accuracy asked for, which is measured to begin at some hundred thousand vectors, and only kept where
the memory budget has room: it holds whole vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import proximity
from engram.index.proximity import ProximityGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex

GRAPH_FROM: Final = 300_000
"""Vectors of a partition from which a graph is faster."""

_CHUNK_BITS: Final = 16
_BATCH: Final = 1024
_LINK_BYTES: Final = 160
_FLOAT_BYTES: Final = 4


class Graphs:
    """The graphs of an index's partitions, by agent; -1 is no agent's.

    `wanted` and `ready` are read and written inside the store's transactions, which take turns;
    building works between them.
    """

    def __init__(self) -> None:
        self.wanted: set[int] = set()
        self.ready: dict[int, tuple[ProximityGraph, int]] = {}

    def due(self) -> int | None:
        """Return a partition whose graph is to be built, None when there is none."""
        return min(self.wanted - self.ready.keys(), default=None)

    def build(self, index: EpisodeIndex, agent: int, stop: Callable[[], bool]) -> None:
        """Build a partition's graph; outside a transaction, which it holds for a slice at a time.

        Args:
            index: The index.
            agent: Whose partition.
            stop: Asked now and then whether to give up.
        """
        with index.store.reading():
            index.refresh()
            keys = partition(index, agent)
            watermark = index.tail.last
        labels: list[NDArray[np.int64]] = []

        def batches() -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
            for first in range(0, len(keys), _BATCH):
                with index.store.reading():
                    stored = index.store.embeddings.of(keys[first : first + _BATCH], index.model)
                starts = np.flatnonzero(np.diff(stored.episodes, prepend=-1))
                counts = np.diff(np.append(starts, len(stored.episodes)))
                chunks = np.arange(len(stored.episodes)) - np.repeat(starts, counts)
                labels.append(stored.episodes << _CHUNK_BITS | chunks)
                yield labels[-1], stored.vectors

        graph = ProximityGraph.build(index.model.dim, len(keys), batches(), stop=stop)
        with index.store.reading():
            self.wanted.discard(agent)
            if graph is not None:
                self.ready[agent] = graph, watermark

    def nearest(
        self, agent: int, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], int] | None:
        """Return the keys of episodes near a vector, forgotten ones maybe too, and the watermark.

        None where the partition has no graph yet.
        """
        found = self.ready.get(agent)
        if found is None:
            return None
        graph, watermark = found
        effort = max(2 * k, _EFFORT)
        return np.unique(graph.nearest(vector, effort, effort) >> _CHUNK_BITS), watermark


_EFFORT: Final = 128
"""Candidates the search of a graph keeps, hnswlib's `ef`."""


def partition(index: EpisodeIndex, agent: int) -> NDArray[np.int64]:
    """Return the keys of a partition's episodes, ascending."""
    found = [np.empty(0, dtype=np.int64)]
    for part in index.parts:
        rows = part.agent_rows(agent)
        keys = part.keys if rows is None else part.keys[rows]
        live = part.live
        if live is not None:
            keys = keys[live if rows is None else live[rows]]
        found.append(keys)
    return np.concatenate(found)


def size(vectors: int, dim: int) -> int:
    """Return the bytes that a graph over so many vectors takes."""
    return vectors * (dim * _FLOAT_BYTES + _LINK_BYTES)


def available() -> bool:
    """Say whether graphs can be built at all."""
    return proximity.available()
