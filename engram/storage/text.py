"""Full text: the FTS5 table over the searchable form of the episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage.connection import Connection
    from engram.storage.filters import EpisodeFilter


class TextIndex:
    """Full-text search over a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, first: int, last: int) -> None:
        """Index the new episodes `first` to `last`, both included."""
        self._connection.execute(
            "INSERT INTO episode_fts (rowid, body)"
            " SELECT id, body FROM episode_text WHERE id BETWEEN ? AND ?",
            (first, last),
        )

    def remove(self, episode: int) -> None:
        """Take an episode out, before its row goes."""
        self._connection.execute(
            "INSERT INTO episode_fts (episode_fts, rowid, body)"
            " SELECT 'delete', id, body FROM episode_text WHERE id = ?",
            (episode,),
        )

    def search(
        self, expression: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches by BM25 among the episodes a filter allows.

        Args:
            expression: An FTS5 expression, as `segment.match_expression` makes it.
            allowed: Applied before the limit.
            limit: How many at most.

        Returns:
            Episode keys, int64[n], and scores, float64[n], FTS5's `bm25()` negated so that more is
            better; best first, ties in insertion order. Costs time in the number of matching rows.
        """
        conditions, bindings = allowed.conditions()
        # CROSS JOIN keeps the full-text table in the lead: driven from an episode index, FTS5
        # would run the whole expression again for each row.
        join = "CROSS JOIN episode AS e ON e.id = f.rowid" if conditions else ""
        rows = self._connection.execute(
            f"SELECT f.rowid, -bm25(episode_fts) FROM episode_fts AS f {join}"  # noqa: S608
            f" WHERE {' AND '.join(['episode_fts MATCH ?', *conditions])}"
            " ORDER BY bm25(episode_fts), f.rowid LIMIT ?",
            (expression, *bindings, limit),
        ).fetchall()
        found = np.array(rows, dtype=np.float64).reshape(-1, 2)
        return np.array([row[0] for row in rows], dtype=np.int64), found[:, 1].copy()

    def check(self) -> None:
        """Compare the index with the episodes, row by row.

        Raises:
            CorruptStore: They differ.
        """
        self._connection.execute(
            "INSERT INTO episode_fts (episode_fts, rank) VALUES ('integrity-check', 1)"
        )
