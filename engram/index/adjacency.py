"""The entity graph as spreading recall walks it, kept in memory and in step with the store.

The rows mirror the store's edges up to a change sequence. Most writes touch no edge and cost
nothing here; one that does changes the rows of what it touches before the next walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index.rows import ENTITY, Rows, codes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage import Store

_TOUCH_NO_EDGE: Final = frozenset(
    {
        "observe",
        "assert",
        "supersede",
        "forget_fact",
        "forget_text",
        "reembed",
        "decay",
        "lifecycle",
        "relabel",
        "embed",
    }
)
_FOLLOWED: Final = frozenset({"link", "strengthen", "alias", "forget", "forget_entity"})
TOUCHED_AT_MOST: Final = 5_000
"""Changed edges, or episodes, beyond which building the rows anew is faster than changing them."""

_Changes = dict[str, list[tuple[int, int]]]


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
            self._scopes[agent] = Rows(self._store.graph.edges(agent))
        return self._scopes[agent]

    def _refresh(self) -> None:
        last = self._store.last_change()
        if last == self._covered:
            return
        if self._scopes:
            changes: _Changes = {}
            for op, first, end in self._store.changes_after(self._covered):
                if op not in _TOUCH_NO_EDGE:
                    changes.setdefault(op, []).append((first, end))
            if changes:
                self._follow(changes)
        self._covered = last

    def _follow(self, changes: _Changes) -> None:
        """Change the rows of what was written, or give up the scopes where that is no gain."""
        linked = self._linked(changes) if changes.keys() <= _FOLLOWED else None
        if linked is None:
            self._scopes.clear()
            return
        merged = _keys(changes, "alias", 1)
        gone = np.concatenate(
            (
                _keys(changes, "forget"),
                ENTITY + _keys(changes, "forget_entity"),
                ENTITY + merged[merged > 0],
            )
        )
        for agent, rows in list(self._scopes.items()):
            # What was joined with an entity that became part of another is joined with that now.
            touched = np.union1d(linked, rows.neighbours(ENTITY + merged))
            if len(touched) + len(rows.neighbours(gone)) > TOUCHED_AT_MOST:
                del self._scopes[agent]
                continue
            rows.remove(gone)
            entities = touched[touched >= ENTITY] - ENTITY
            edges = self._store.graph.edges_of(touched[touched < ENTITY], entities, agent)
            if not rows.update(edges):
                del self._scopes[agent]

    def _linked(self, changes: _Changes) -> NDArray[np.int64] | None:
        """Return the codes of what new or changed edges leave, None where that is not known."""
        graph, ranges = self._store.graph, changes.get("link", [])
        number = sum(last - first + 1 for first, last in ranges)
        if number > TOUCHED_AT_MOST:
            return None
        edges = graph.edges_between(ranges)
        # An edge that is gone went with what it joined, or became another one by an alias.
        if "alias" in changes and len(edges.targets) < number:
            return None
        recalled = graph.recalled(changes.get("strengthen", []))
        return None if recalled is None else np.union1d(codes_of(edges)[0], recalled)


def _keys(changes: _Changes, op: str, place: int = 0) -> NDArray[np.int64]:
    """Return what the changes of one kind name: first, or in place 1 last."""
    return np.array([change[place] for change in changes.get(op, [])], dtype=np.int64)
