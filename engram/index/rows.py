"""A graph in rows that can be changed in place: a row per node, its arcs in insertion order.

All rows lie in one pool. Changed ones move to its end, where they have room to grow, so that an
edge costs its two rows and not a rebuild; when the pool is full, the graph is built anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from engram.storage import Edges

ENTITY: Final = 1 << 62
"""Added to an entity's key where episodes and entities are told apart by number alone."""
HUB_ARCS: Final = 200
"""A node of more arcs is walked along this many: the strongest, the earlier of two equal ones."""
OVERLAY: Final = 8
"""The graph is built anew when its changes fill this part of what it was built with."""
_LEAST_ROOM = 1_024


@dataclass(slots=True)
class _Row:
    """A row that has moved, or is a hub's.

    Attributes:
        start: Where its arcs begin.
        count: How many there are.
        room: How many places it may fill.
        walked: Where a hub's strongest arcs begin; -1 before they are selected.
        weakest: The least weight among those.
        stale: Whether others may be the strongest now.
    """

    start: int
    count: int
    room: int
    walked: int = -1
    weakest: float = 0.0
    stale: bool = True


class Rows:
    """A graph over episodes and entities, every edge in both ways.

    Attributes:
        codes: int64[n], the episode of each node, or `ENTITY` and the entity; 0 when it is gone.
        starts: int32[n], where the arcs to walk of each node begin.
        counts: int32[n], how many there are.
        indices: int32[m], the node each arc leads to.
        weights: float32[m]; 0 where an arc leads to a node that is gone.

    Args:
        edges: All edges, in insertion order.
    """

    def __init__(self, edges: Edges) -> None:
        sources, targets = codes_of(edges)
        ends = np.sort(np.concatenate((sources, targets)))
        known = ends[np.diff(ends, prepend=0) != 0]
        nodes, arcs = len(known), 2 * len(sources)
        leave = np.empty(arcs, dtype=np.int32)
        reach = np.empty(arcs, dtype=np.int32)
        leave[::2] = reach[1::2] = np.searchsorted(known, sources)
        leave[1::2] = reach[::2] = np.searchsorted(known, targets)
        order = np.argsort(leave, kind="stable")
        degrees = np.bincount(leave, minlength=nodes)
        self._known = known
        self._more: dict[int, int] = {}
        self._moved: dict[int, _Row] = {}
        self._nodes, self._used = nodes, arcs
        hubs = np.flatnonzero(degrees > HUB_ARCS)
        room = arcs + arcs // OVERLAY + 4 * int(degrees[hubs].sum()) + _LEAST_ROOM
        # The room is not touched, and takes no memory, before it is used.
        self.codes = np.zeros(nodes + nodes // OVERLAY + _LEAST_ROOM, dtype=np.int64)
        self.starts = np.zeros(len(self.codes), dtype=np.int32)
        self.counts = np.zeros(len(self.codes), dtype=np.int32)
        self.indices = np.empty(room, dtype=np.int32)
        self.weights = np.empty(room, dtype=np.float32)
        self.codes[:nodes] = known
        self.counts[:nodes] = degrees
        self.starts[:nodes] = np.cumsum(degrees) - degrees
        self.indices[:arcs] = reach[order]
        self.weights[:arcs] = edges.weights[order // 2]
        for hub in hubs.tolist():
            self._select(hub, self._row(hub))

    def nodes(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the nodes of some codes, int64[n], -1 for those that are not in the graph."""
        found = np.full(len(codes), -1, dtype=np.int64)
        if len(self._known):
            at = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
            found = np.where(self._known[at] == codes, at, found)
        if self._more:
            missing = np.flatnonzero(found < 0)
            found[missing] = [self._more.get(code, -1) for code in codes[missing].tolist()]
        found[self.codes[found] == 0] = -1
        return found

    def neighbours(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the codes of all that some nodes are joined with, each once, ascending."""
        rows = [self._arcs(node) for node in self.nodes(codes).tolist() if node >= 0]
        reached = np.concatenate([self.indices[row] for row in rows]) if rows else np.empty(0, "i4")
        found = np.unique(self.codes[reached])
        return found[found > 0]

    def remove(self, codes: NDArray[np.int64]) -> None:
        """Take nodes out, with their arcs; those that are not in the graph are left out."""
        nodes = self.nodes(codes)
        gone = nodes[nodes >= 0]
        if not len(gone):
            return
        joined = np.unique(np.concatenate([self.indices[self._arcs(n)] for n in gone.tolist()]))
        self.codes[gone] = 0
        for node in joined.tolist():
            arcs = self._arcs(node)
            # Kept, since it costs less to walk them than to close the gaps.
            self.weights[arcs][self.codes[self.indices[arcs]] == 0] = 0.0
            if node in self._moved:
                self._moved[node].stale = True
                self._walk(node)

    def update(self, edges: Edges) -> bool:
        """Take over edges that are new or have another weight.

        Args:
            edges: In insertion order; of any two nodes all the edges or none.

        Returns:
            Whether there was room for them. If not, the graph is of no more use.
        """
        sources, targets = codes_of(edges)
        given: dict[tuple[int, int], list[tuple[int, float]]] = {}
        pairs = zip(sources.tolist(), targets.tolist(), edges.weights.tolist(), strict=True)
        for edge, (source, target, weight) in enumerate(pairs):
            given.setdefault((source, target), []).append((edge, weight))
            given.setdefault((target, source), []).append((edge, weight))
        nodes = self._add(dict.fromkeys(source for source, _ in given))
        if nodes is None:
            return False
        added: list[tuple[int, tuple[int, int, float]]] = []
        for (source, target), arcs in given.items():
            node, other = nodes[source], nodes[target]
            there = self._reweigh(node, other, [weight for _, weight in arcs])
            added += ((edge, (node, other, weight)) for edge, weight in arcs[there:])
        # In insertion order, whichever nodes the edges join.
        added.sort()
        return all(self._append(*arc) for _, arc in added) and all(map(self._walk, nodes.values()))

    def _add(self, codes: Iterable[int]) -> dict[int, int] | None:
        """Return the nodes of codes, new ones included; None when there is no room."""
        asked = np.array(list(codes), dtype=np.int64)
        found = self.nodes(asked)
        for at in np.flatnonzero(found < 0).tolist():
            if self._nodes == len(self.codes):
                return None
            found[at] = self._more[int(asked[at])] = self._nodes
            self.codes[self._nodes] = asked[at]
            self._nodes += 1
        return dict(zip(asked.tolist(), found.tolist(), strict=True))

    def _reweigh(self, node: int, other: int, weights: Sequence[float]) -> int:
        """Set the weights of the arcs from a node to another; return how many there are."""
        row = self._arcs(node)
        there = row.start + np.flatnonzero(self.indices[row] == other)[: len(weights)]
        hub = self._moved.get(node)
        if hub is not None and len(there):
            strongest = max(*self.weights[there].tolist(), *weights[: len(there)])
            hub.stale |= strongest >= hub.weakest
        self.weights[there] = weights[: len(there)]
        return len(there)

    def _append(self, node: int, other: int, weight: float) -> bool:
        row = self._row(node)
        if row.count == row.room:
            room = 2 * row.count + 2
            if self._used + room > len(self.indices):
                return False
            to, old = slice(self._used, self._used + row.count), self._arcs(node)
            self.indices[to], self.weights[to] = self.indices[old], self.weights[old]
            row.start, row.room = self._used, room
            self._used += room
        self._moved[node] = row
        self.indices[row.start + row.count] = other
        self.weights[row.start + row.count] = weight
        row.count += 1
        row.stale |= row.walked < 0 or weight > row.weakest
        return True

    def _row(self, node: int) -> _Row:
        count = int(self.counts[node])
        return self._moved.get(node) or _Row(int(self.starts[node]), count, count)

    def _arcs(self, node: int) -> slice:
        row = self._row(node)
        return slice(row.start, row.start + row.count)

    def _walk(self, node: int) -> bool:
        """Say which arcs of a changed row are walked; return whether there was room for a hub's."""
        row = self._moved.get(node)
        return row is None or self._select(node, row)

    def _select(self, node: int, row: _Row) -> bool:
        if row.count <= HUB_ARCS:
            self.starts[node], self.counts[node] = row.start, row.count
            return True
        if not row.stale:
            return True
        if row.walked < 0:
            if self._used + HUB_ARCS > len(self.indices):
                return False
            row.walked = self._used
            self._used += HUB_ARCS
        self._moved[node] = row
        arcs = slice(row.start, row.start + row.count)
        strongest = _strongest(self.weights[arcs])
        to = slice(row.walked, row.walked + HUB_ARCS)
        self.indices[to] = self.indices[arcs][strongest]
        self.weights[to] = self.weights[arcs][strongest]
        self.starts[node], self.counts[node] = row.walked, HUB_ARCS
        row.weakest, row.stale = float(self.weights[to].min()), False
        return True


def codes_of(edges: Edges) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of what edges leave and of what they lead to, each int64[n]."""
    sources = np.where(edges.episodes > 0, edges.episodes, ENTITY + edges.entities)
    return sources, ENTITY + edges.targets


def _strongest(weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the places of the `HUB_ARCS` largest of more weights, ascending; ties by place."""
    least = np.partition(weights, len(weights) - HUB_ARCS)[len(weights) - HUB_ARCS]
    larger, equal = np.flatnonzero(weights > least), np.flatnonzero(weights == least)
    return np.sort(np.concatenate((larger, equal[: HUB_ARCS - len(larger)])))
