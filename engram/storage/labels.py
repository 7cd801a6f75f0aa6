"""Actors and tags: each name is kept once and joined to its episodes in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.storage.connection import Connection

Kind = Literal["actor", "tag"]


class Labels:
    """The labels of a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, episodes: Iterable[tuple[int, Sequence[str], Sequence[str]]]) -> None:
        """Join actors and tags to new episodes, given as `(episode, actors, tags)`."""
        known: dict[tuple[Kind, str], int] = {}

        def label(kind: Kind, name: str) -> int:
            key = (kind, name)
            if key not in known:
                known[key] = self._id(kind, name)
            return known[key]

        rows = []
        for episode, actors, tags in episodes:
            labels = [label("actor", name) for name in actors]
            labels += [label("tag", name) for name in tags]
            rows += [(episode, position, one) for position, one in enumerate(labels)]
        self._connection.executemany("INSERT INTO episode_label VALUES (?, ?, ?)", rows)

    def _id(self, kind: Kind, name: str) -> int:
        found: int | None = self._connection.execute(
            "SELECT id FROM label WHERE kind = ? AND name = ?", (kind, name)
        ).get
        if found is None:
            self._connection.execute("INSERT INTO label (kind, name) VALUES (?, ?)", (kind, name))
            found = self._connection.last_id
        return found

    def of(self, episodes: NDArray[np.int64]) -> dict[int, tuple[list[str], list[str]]]:
        """Return the actors and the tags of each of the given episodes that has any."""
        labels: dict[int, tuple[list[str], list[str]]] = {}
        rows = self._connection.execute(
            "SELECT l.episode, n.kind, n.name FROM carray(?) AS k"
            " CROSS JOIN episode_label AS l ON l.episode = k.value"
            " CROSS JOIN label AS n ON n.id = l.label ORDER BY l.episode, l.position",
            (apsw.carray(episodes),),
        )
        for episode, kind, name in rows:
            actors, tags = labels.setdefault(episode, ([], []))
            (actors if kind == "actor" else tags).append(name)
        return labels

    def remove(self, episode: int) -> None:
        """Take an episode's labels away, and each name that no other episode has."""
        rows = self._connection.execute(
            "DELETE FROM episode_label WHERE episode = ? RETURNING label", (episode,)
        ).fetchall()
        self._connection.executemany(
            "DELETE FROM label WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM episode_label WHERE label = ?1)",
            set(rows),
        )
