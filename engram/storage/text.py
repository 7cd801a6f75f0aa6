"""Full text of the episodes: the best matches of a query among those that a filter allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram.storage.full_text import FullText
from engram.storage.segment import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engram.storage.connection import Connection
    from engram.storage.filters import EpisodeFilter


class TextIndex(FullText):
    """Full-text search over a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, "episode")

    def search(
        self, query: str, allowed: EpisodeFilter, limit: int, *, every_word: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches by BM25 among the episodes a filter allows.

        Args:
            query: Any text; an episode matches when it has any of its words.
            allowed: Applied before the limit.
            limit: How many at most.
            every_word: Whether stop words count as well.

        Returns:
            Episode keys, int64[n], and scores, float64[n], FTS5's `bm25()` negated so that more is
            better; best first, ties in insertion order. Costs time in the number of matching rows.
        """
        words = self.words_of(query, every_word=every_word).values()
        return self._ranked(map(quoted, words), allowed, limit)

    def search_beginnings(
        self, query: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches of words that begin as those of a query do, likewise.

        All words with one beginning count as one term; see `beginnings_of`.
        """
        words = self.beginnings_of(query).values()
        return self._ranked((f"{quoted(word)}*" for word in words), allowed, limit)

    def _ranked(
        self, expressions: Iterable[str], allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        expression = " OR ".join(expressions)
        if not expression:
            return np.empty(0, dtype=np.int64), np.empty(0)
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
        return (
            np.array([key for key, _ in rows], dtype=np.int64),
            np.array([score for _, score in rows], dtype=np.float64),
        )
