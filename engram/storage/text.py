"""Full text: the FTS5 table over the searchable form of the episodes."""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram.errors import CorruptStore
from engram.storage.segment import match_expression, query_terms, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from engram.storage.connection import Connection
    from engram.storage.filters import EpisodeFilter

SHORTEST_BEGINNING: Final = 3
"""Characters of a query's word from which on longer words that begin so match it too."""

MAX_BEGINNINGS: Final = 32
"""Words of a query for which that is so."""

_FEW = 100
_REMOVAL_COST = 10
"""A removal that overwrites what it removes costs about as much as indexing ten episodes."""


_TOKENIZER: Final = ("unicode61", ["remove_diacritics", "2", "categories", "L* N* Co Mn Mc"])
"""What the table's `tokenize` option says."""

_LONGEST_TERM = 32_768
"""Bytes; FTS5 cuts longer terms off there."""


class Phrase(NamedTuple):
    """A word of a query that is several to the full-text table: they must follow each other."""

    text: str


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

    def remove(self, episodes: Sequence[int]) -> None:
        """Take episodes out, before their rows go.

        One statement for all: FTS5 writes what it has pending whenever another statement that
        could fail begins, so one by one each would rewrite its pages.
        """
        self._connection.execute(
            "INSERT INTO episode_fts (episode_fts, rowid, body) SELECT 'delete', t.id, t.body"
            " FROM json_each(?) AS k CROSS JOIN episode_text AS t ON t.id = k.value",
            (json.dumps(list(episodes)),),
        )

    def is_cheaper_to_rebuild(self, removed: int) -> bool:
        """Return whether so many removals cost more than indexing afresh what is left."""
        if removed < _FEW:
            return False
        total: int = self._connection.execute("SELECT count(*) FROM episode").get
        return removed * _REMOVAL_COST > total

    def rebuild(self) -> None:
        """Index all episodes afresh."""
        self._connection.execute("INSERT INTO episode_fts (episode_fts) VALUES ('rebuild')")

    def search(
        self, query: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches by BM25 among the episodes a filter allows.

        Args:
            query: Any text; an episode matches when it has any of its terms.
            allowed: Applied before the limit.
            limit: How many at most.

        Returns:
            Episode keys, int64[n], and scores, float64[n], FTS5's `bm25()` negated so that more is
            better; best first, ties in insertion order. Costs time in the number of matching rows.
        """
        return self._ranked(match_expression(query), allowed, limit)

    def search_beginnings(
        self, query: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches of words that begin as those of a query do, likewise.

        All words with one beginning count as one term; see `beginnings_of`.
        """
        expression = " OR ".join(f"{quoted(one)}*" for one in self.beginnings_of(query))
        return self._ranked(expression, allowed, limit)

    def _ranked(
        self, expression: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
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

    def bodies(self, first: int, last: int) -> list[bytes]:
        """Return the searchable texts of the episodes `first` to `last`, both included, in UTF-8.

        Raises:
            CorruptStore: A row holds what no episode has.
        """
        rows = self._connection.execute(
            "SELECT CAST(coalesce(search_text, content) AS BLOB) FROM episode"
            " WHERE id BETWEEN ? AND ? ORDER BY id",
            (first, last),
        ).fetchall()
        bodies = [body for (body,) in rows if isinstance(body, bytes)]
        if len(bodies) != len(rows):
            message = "a stored episode is damaged"
            raise CorruptStore(message, "restore a backup")
        return bodies

    def terms_of(self, query: str) -> list[str | Phrase]:
        """Return the terms of a query as documents have them, repeats included."""
        tokenize = self.tokenizer()
        terms: list[str | Phrase] = []
        for term in query_terms(query):
            found = tokenize(term.encode())
            if len(found) == 1:
                terms += found
            elif found:
                terms.append(Phrase(term))
        return terms

    def beginnings_of(self, query: str) -> list[str]:
        """Return what words may begin with that a query asks for, as documents have them.

        These are its words of at least `SHORTEST_BEGINNING` characters, at most `MAX_BEGINNINGS` of
        them, the first ones, without repeats.
        """
        tokenize = self.tokenizer()
        words = chain.from_iterable(tokenize(term.encode()) for term in query_terms(query))
        long = (word for word in dict.fromkeys(words) if len(word) >= SHORTEST_BEGINNING)
        return list(islice(long, MAX_BEGINNINGS))

    def phrase(
        self, phrase: Phrase, first: int, last: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where a phrase is among the episodes `first` to `last`, both included.

        Costs time in the occurrences of its words.

        Returns:
            Episode keys, int64[n], ascending, and how often each has it, int64[n].
        """
        self._connection.count_occurrences()
        rows = self._connection.execute(
            "SELECT rowid, occurrences(episode_fts) FROM episode_fts"
            " WHERE episode_fts MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid",
            (quoted(phrase.text), first, last),
        ).fetchall()
        keys, counts = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return keys, counts

    def tokenizer(self) -> Callable[[bytes], list[str]]:
        """Return what splits a text into the table's terms; for the caller's transaction."""
        tokenize = self._connection.tokenizer(*_TOKENIZER)

        def terms(utf8: bytes) -> list[str]:
            found = tokenize(utf8)
            # No term is longer than its text, but for what folding adds.
            return found if len(utf8) * 2 < _LONGEST_TERM else [_cut(term) for term in found]

        return terms

    def refresh(self) -> None:
        """Read the structure of the index anew."""
        self._connection.execute(
            "SELECT count(*) FROM episode_fts WHERE episode_fts MATCH ?", ('"x"',)
        )

    def optimize(self) -> None:
        """Merge the index into one piece, without what was removed."""
        self._connection.execute("INSERT INTO episode_fts (episode_fts) VALUES ('optimize')")

    def check(self) -> None:
        """Compare the index with the episodes, row by row.

        Raises:
            CorruptStore: They differ.
        """
        self._connection.execute(
            "INSERT INTO episode_fts (episode_fts, rank) VALUES ('integrity-check', 1)"
        )


def _cut(term: str) -> str:
    """Return what FTS5 keeps of a term; half a character at the end stays distinguishable."""
    kept = term.encode()[:_LONGEST_TERM]
    return kept.decode(errors="surrogateescape")
