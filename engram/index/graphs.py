"""Proximity graphs of large partitions: fewer comparisons for a recall that may miss a little.

A partition is one agent's episodes, or those of no agent. Its graph is built in the background, up
to a watermark; what is newer is scanned. It is only asked where it is faster than sign bits at the
accuracy asked for, which begins at some hundred thousand vectors, and only kept where the memory
budget has room: it holds whole vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.arrays import distinct
from engram.index.proximity import ProximityGraph, available
from engram.index.shelf import KeptGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex
    from engram.models import StoredModel

GRAPH_FROM: Final = 300_000
"""Vectors of a partition from which a graph is faster."""

_EFFORT: Final = 128
"""Candidates that the search of a graph keeps, hnswlib's `ef`."""

_CHUNK_BITS: Final = 16
"""Bits of a label for the number of a chunk; the rest is its episode's key."""

_CHUNKS_MOST: Final = 2**_CHUNK_BITS
_BATCH: Final = 1024
_LINK_BYTES: Final = 160
_FLOAT_BYTES: Final = 4


class Graphs:
    """The graphs of an index's partitions, by agent; -1 is no agent's.

    Everything but building runs inside the store's transactions, which take turns.

    Attributes:
        kept: The graphs that are in files.
    """

    def __init__(self) -> None:
        self.kept: dict[int, KeptGraph] = {}
        self._wanted: set[int] = set()
        self._ready: dict[int, tuple[ProximityGraph, int]] = {}
        self._outdated = 0

    def due(self) -> int | None:
        """Return a partition whose graph is to be made, None when there is none."""
        return min(self._wanted - self._ready.keys(), default=None)

    def drop_older(self, erased: int) -> None:
        """Keep no file of a graph made before an erasure: a graph holds whole vectors."""
        self.kept = {agent: one for agent, one in self.kept.items() if one.covered >= erased}

    def outdate(self, first: int) -> None:
        """Let go of graphs that lack vectors of episodes they should know, from a key on."""
        self.kept = {agent: one for agent, one in self.kept.items() if one.watermark < first}
        self._ready = {agent: one for agent, one in self._ready.items() if one[1] < first}
        # Those too that are being made.
        self._outdated += 1

    def want(self, index: EpisodeIndex, agent: int, vectors: int) -> None:
        """Ask for the graph of a partition, if it pays and there is room for it.

        Args:
            index: The index.
            agent: Whose partition.
            vectors: How many it has.
        """
        held = sum(len(graph) for graph, _ in self._ready.values())
        size = (held + vectors) * (index.model.dim * _FLOAT_BYTES + _LINK_BYTES)
        if vectors >= GRAPH_FROM and index.size + size <= index.budget and available():
            self._wanted.add(agent)

    def nearest(
        self, agent: int, vector: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.int64], int] | None:
        """Return the keys of episodes near a vector and the key up to which the graph knows.

        Some may be forgotten. None where the partition has no graph yet.
        """
        found = self._ready.get(agent)
        if found is None:
            return None
        graph, watermark = found
        effort = max(2 * k, _EFFORT)
        return distinct(graph.nearest(vector, effort, effort) >> _CHUNK_BITS), watermark

    def make(self, index: EpisodeIndex, agent: int, stop: Callable[[], bool]) -> None:
        """Make a partition's graph, from its file or anew; outside a transaction.

        Args:
            index: The index.
            agent: Whose partition.
            stop: Asked now and then whether to give up.
        """
        with index.store.reading():
            index.refresh()
            kept = self.kept.get(agent)
            labels, watermark, model = _labels(index, agent), index.tail.last, index.model
            covered, outdated = index.covered, self._outdated
        graph = None if kept is None else index.shelf.graph(kept.identity)
        if kept is not None and graph is not None:
            watermark = kept.watermark
        if graph is None:
            vectors = _vectors(index, model, labels)
            graph = ProximityGraph.build(model.dim, labels, vectors, stop=stop)
            identity = None if graph is None else index.shelf.keep_graph(graph)
            if identity is not None:
                kept = KeptGraph(identity, watermark, covered)
        with index.store.reading():
            self._wanted.discard(agent)
            if graph is not None and outdated == self._outdated:
                self._ready[agent] = graph, watermark
                if kept is not None:
                    self.kept[agent] = kept


def _labels(index: EpisodeIndex, agent: int) -> NDArray[np.int64]:
    """Return the label of each chunk of a partition, ascending."""
    found = [np.empty(0, dtype=np.int64)]
    for part in index.parts:
        owners = np.arange(part.rows) if part.owners is None else part.owners
        starts = np.searchsorted(owners, owners)
        chunks = np.arange(len(owners)) - starts
        chosen = (part.agents[owners] == agent) & (chunks < _CHUNKS_MOST)
        if part.live is not None:
            chosen &= part.live[owners]
        found.append(part.keys[owners[chosen]] << _CHUNK_BITS | chunks[chosen])
    return np.concatenate(found)


def _vectors(
    index: EpisodeIndex, model: StoredModel, labels: NDArray[np.int64]
) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors of chunks, zeros where they were forgotten meanwhile."""
    for first in range(0, len(labels), _BATCH):
        part = labels[first : first + _BATCH]
        with index.store.reading():
            stored = index.store.embeddings.of(distinct(part >> _CHUNK_BITS), model)
        starts = np.searchsorted(stored.episodes, stored.episodes)
        mine = stored.episodes << _CHUNK_BITS | (np.arange(len(starts)) - starts)
        vectors = np.zeros((len(part), model.dim), dtype=np.float32)
        present = np.isin(mine, part)
        vectors[np.searchsorted(part, mine[present])] = stored.vectors[present]
        yield vectors
