"""The entity graph as spreading recall walks it: compressed sparse rows, kept in memory.

The rows mirror the store's edges up to a change sequence. Most writes touch no edge and cost
nothing here; one that does rebuilds the rows before the next walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage import Store

_TOUCH_NO_EDGE: Final = frozenset({"observe", "assert", "supersede", "forget_fact", "reembed"})


@dataclass(frozen=True, slots=True)
class Rows:
    """A graph over episodes, which are the first nodes, and entities; every edge in both ways.

    Attributes:
        episodes: int64[e], the keys of the episodes among the nodes, ascending.
        indptr: int64[n + 1], where each node's arcs begin.
        indices: int32[m], the node each arc leads to; a node's arcs are in insertion order.
        weights: float32[m].
    """

    episodes: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]

    def nodes(self, episodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return which of some episodes are in the graph, bool[n], and the nodes of those."""
        places = np.searchsorted(self.episodes, episodes)
        present = places < len(self.episodes)
        present[present] = self.episodes[places[present]] == episodes[present]
        return places[present], present


class Adjacency:
    """The edges of a store, per scope.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        store: The store; only read from.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._covered = 0
        self._scopes: dict[str | None, Rows] = {}

    def of(self, agent: str | None) -> Rows:
        """Return the graph an agent walks: over its own edges, or with None over all.

        It holds the edges that the transaction around this call sees.
        """
        self._refresh()
        if agent not in self._scopes:
            self._scopes[agent] = self._build(agent)
        return self._scopes[agent]

    def _refresh(self) -> None:
        last = self._store.last_change()
        if last == self._covered:
            return
        if self._scopes and any(
            self._touches(*change) for change in self._store.changes_after(self._covered)
        ):
            self._scopes.clear()
        self._covered = last

    def _touches(self, op: str, first: int, last: int) -> bool:
        """Say whether a write may have changed an edge; one of an unknown kind may."""
        if op == "forget":
            gone = (first, last + 1)
            return any(
                np.diff(np.searchsorted(rows.episodes, gone))[0] > 0
                for rows in self._scopes.values()
            )
        return op not in _TOUCH_NO_EDGE

    def _build(self, agent: str | None) -> Rows:
        edges = self._store.graph.edges(agent)
        episodes = np.unique(edges.episodes[edges.episodes > 0])
        entities = np.unique(np.concatenate((edges.entities[edges.entities > 0], edges.targets)))
        sources = np.where(
            edges.episodes > 0,
            np.searchsorted(episodes, edges.episodes),
            len(episodes) + np.searchsorted(entities, edges.entities),
        )
        targets = len(episodes) + np.searchsorted(entities, edges.targets)
        leave = np.stack((sources, targets), axis=1).reshape(-1)
        reach = np.stack((targets, sources), axis=1).reshape(-1)
        order = np.argsort(leave, kind="stable")
        degrees = np.bincount(leave, minlength=len(episodes) + len(entities))
        return Rows(
            episodes=episodes,
            indptr=np.concatenate(([0], np.cumsum(degrees))).astype(np.int64),
            indices=reach[order].astype(np.int32),
            weights=np.repeat(edges.weights, 2)[order],
        )
