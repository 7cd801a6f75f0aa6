"""Full text: an FTS5 table over the searchable form of a store's episodes, or of its facts."""

from __future__ import annotations

import json
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, Literal

from engram.errors import CorruptStore
from engram.storage.segment import MAX_TERMS, query_terms
from engram.storage.stop_words import without_stop_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engram.storage.connection import Connection

SHORTEST_BEGINNING: Final = 3
"""Characters of a query's word from which on longer words that begin so match it too."""

MAX_BEGINNINGS: Final = 32
"""Words of a query for which that is so."""

_FEW = 100
_REMOVAL_COST = 10
"""A removal that overwrites what it removes costs about as much as indexing ten episodes."""


_TOKENIZER: Final = (
    "porter",
    ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc"],
)
"""What the table's `tokenize` option says: stems of what the second of them finds."""

_LONGEST_TERM = 32_768
"""Bytes; FTS5 cuts longer terms off there."""


class FullText:
    """A full-text table; every method runs in the caller's transaction.

    Args:
        connection: The store's connection.
        noun: What it is of: "episode" or "fact", the name of the table that has the texts.
    """

    def __init__(self, connection: Connection, noun: Literal["episode", "fact"]) -> None:
        self._connection = connection
        self._noun = noun
        self._table = f"{noun}_fts"
        self._view = f"{noun}_text"

    def add(self, first: int, last: int) -> None:
        """Index the new texts `first` to `last`, both included."""
        self._connection.execute(
            f"INSERT INTO {self._table} (rowid, body)"  # noqa: S608
            f" SELECT id, body FROM {self._view} WHERE id BETWEEN ? AND ?",
            (first, last),
        )

    def remove(self, keys: Sequence[int]) -> None:
        """Take texts out, by their keys, before their rows go.

        One statement for all: FTS5 writes what it has pending whenever another statement that
        could fail begins, so one by one each would rewrite its pages.
        """
        self._connection.execute(
            f"INSERT INTO {self._table} ({self._table}, rowid, body)"  # noqa: S608
            " SELECT 'delete', t.id, t.body"
            f" FROM json_each(?) AS k CROSS JOIN {self._view} AS t ON t.id = k.value",
            (json.dumps(list(keys)),),
        )

    def is_cheaper_to_rebuild(self, removed: int) -> bool:
        """Return whether so many removals cost more than indexing afresh what is left."""
        if removed < _FEW:
            return False
        total: int = self._connection.execute(f"SELECT count(*) FROM {self._noun}").get  # noqa: S608
        return removed * _REMOVAL_COST > total

    def rebuild(self) -> None:
        """Index all texts afresh."""
        self._command("rebuild")

    def bodies(self, first: int, last: int) -> list[bytes]:
        """Return the searchable texts `first` to `last`, both included, in UTF-8.

        Raises:
            CorruptStore: A row holds what is no text.
        """
        rows = self._connection.execute(
            f"SELECT CAST(body AS BLOB) FROM {self._view}"  # noqa: S608
            " WHERE id BETWEEN ? AND ? ORDER BY id",
            (first, last),
        ).fetchall()
        bodies = [body for (body,) in rows if isinstance(body, bytes)]
        if len(bodies) != len(rows):
            message = f"a stored {self._noun} is damaged"
            raise CorruptStore(message, "restore a backup")
        return bodies

    def body(self, key: int) -> str:
        """Return a searchable text by its key; one that is gone is empty."""
        return b"".join(self.bodies(key, key)).decode(errors="replace")

    def words_of(self, query: str, *, every_word: bool = False) -> dict[str, str]:
        """Return the words that a query is searched for, by their stems, in its order.

        Words of one stem are one, the first. What has punctuation inside is several words.

        Args:
            query: Any text.
            every_word: Whether stop words are among them; they are where there are no others.

        Returns:
            At most `MAX_TERMS`, in the spelling the table folds them to before it stems them.
        """
        inner, *options = _TOKENIZER[1]
        surface = self._connection.tokenizer(inner, options)
        # A single accent is a word without a character.
        terms = query_terms(query)
        said = [list(filter(None, surface(term.encode()))) for term in terms]
        words = [] if every_word else without_stop_words(terms, said)
        words = words or list(chain.from_iterable(said))
        stems = self.tokenizer()(" ".join(words).encode())
        found: dict[str, str] = {}
        for stem, word in zip(stems, words, strict=True):
            found.setdefault(stem, word)
        return dict(islice(found.items(), MAX_TERMS))

    def stems(self, text: str) -> list[str]:
        """Return the stems of a text's distinct words, as those of a query are made of it.

        Of the first `MAX_TERMS`, stop words among them.
        """
        return self.tokenizer()(" ".join(query_terms(text)).encode())

    def beginnings_of(self, query: str) -> dict[str, str]:
        """Return the words of a query that longer ones may begin with, by their stems.

        "authors" finds what begins with "author". The stems have at least `SHORTEST_BEGINNING`
        characters, and there are at most `MAX_BEGINNINGS`, the first ones.
        """
        words = self.words_of(query, every_word=True)
        long = ((stem, word) for stem, word in words.items() if len(stem) >= SHORTEST_BEGINNING)
        return dict(islice(long, MAX_BEGINNINGS))

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
            f"SELECT count(*) FROM {self._table} WHERE {self._table} MATCH ?",  # noqa: S608
            ('"x"',),
        )

    def optimize(self) -> None:
        """Merge the index into one piece, without what was removed."""
        self._command("optimize")

    def check(self) -> None:
        """Compare the index with the texts, row by row.

        Raises:
            CorruptStore: They differ.
        """
        self._connection.execute(
            f"INSERT INTO {self._table} ({self._table}, rank) VALUES ('integrity-check', 1)"  # noqa: S608
        )

    def _command(self, name: str) -> None:
        self._connection.execute(
            f"INSERT INTO {self._table} ({self._table}) VALUES (?)",  # noqa: S608
            (name,),
        )


def _cut(term: str) -> str:
    """Return what FTS5 keeps of a term; half a character at the end stays distinguishable."""
    kept = term.encode()[:_LONGEST_TERM]
    return kept.decode(errors="surrogateescape")
