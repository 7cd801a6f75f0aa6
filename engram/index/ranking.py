"""Ranking rows by their words, over all segments and the tail."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram._native import bm25, row_frequencies
from engram.index.words import ASIDE, Postings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index.words import Occurrences, WordSegment, WordTail

K1: Final = 1.2
B: Final = 0.5
"""How much further occurrences of a word, and a text's length, count in BM25; K1 in a whole
conversation too. K1 is SQLite's own. A length counts less than SQLite's 0.75: on conversations that
found more, on documents as much."""

_LEAST_RARITY: Final = 1e-6
"""Of a word that more than half of the texts have, as in FTS5."""


@dataclass(frozen=True, slots=True)
class Part:
    """One segment or tail in a ranking.

    Attributes:
        words: Its words.
        documents: How many of its rows are live.
        tokens: How many tokens these have.
        live: bool[n], False where an episode was erased; None where none was.
        allowed: The rows that may be found, if they are live: bool[n], or uint32[m], ascending;
            None for all. A list costs time in its length, a mask in that of the postings.
        occurrences: For the places of a query's terms that are beginnings, the rows that have
            each, uint32[m], ascending, and how often, int64[m].
    """

    words: WordSegment | WordTail
    documents: int
    tokens: int
    live: NDArray[np.bool_] | None = None
    allowed: NDArray[np.bool_] | NDArray[np.uint32] | None = None
    occurrences: Mapping[int, Occurrences] = field(default_factory=dict)

    def postings(self, terms: Sequence[str]) -> Postings:
        """Return where some terms are, `occurrences` included; those make it a copy."""
        found = self.words.postings(terms)
        if not self.occurrences:
            return found
        rows, frequencies, aside, numbers, ranges = [], [], [], [], []
        size = 0
        for place, (first, end) in enumerate(found.ranges.tolist()):
            if place in self.occurrences:
                mine, counts = self.occurrences[place]
                high = np.flatnonzero(counts >= ASIDE)
                rows.append(mine)
                frequencies.append(np.minimum(counts, ASIDE).astype(np.uint8))
                numbers.append(counts[high].astype(np.uint32))
            else:
                rows.append(found.rows[first:end])
                frequencies.append(found.frequencies[first:end])
                low, high = np.searchsorted(found.large, (first, end))
                numbers.append(found.large_frequencies[low:high])
                high = found.large[low:high] - first
            aside.append(high + size)
            ranges.append((size, size + len(rows[-1])))
            size += len(rows[-1])
        return Postings(
            found.lengths,
            np.concatenate(rows),
            np.concatenate(frequencies),
            np.concatenate(aside).astype(np.int64),
            np.concatenate(numbers),
            np.array(ranges, dtype=np.int64),
        )


def rank(
    parts: Sequence[Part], terms: Sequence[str], k: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows with any of some terms that are best by BM25.

    Args:
        parts: The whole index: how rare a term is, and how long a row, shows over all parts.
        terms: Of the query, in its order; a repeated one counts again. Where beginnings are is
            said by `Part.occurrences`.
        k: How many rows at most; at least 1.

    Returns:
        The number of each row's part, int64[r], the row there, int64[r], and its score, float64[r];
        best first, ties by part and then row. What it costs is said at
        `engram._native.postings.bm25`.
    """
    documents, average = _size(parts)
    if average == 0.0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    found = [part.postings(terms) for part in parts]
    return bm25(
        [(*words[:-1], each.live, each.allowed) for words, each in zip(found, parts, strict=True)],
        np.stack([words.ranges for words in found]),
        documents,
        average,
        k,
        K1,
        B,
    )


def _size(parts: Sequence[Part]) -> tuple[int, float]:
    """Return how many documents there are, and how many tokens one has on average."""
    documents = sum(part.documents for part in parts)
    tokens = sum(part.tokens for part in parts)
    return documents, tokens / documents if tokens else 0.0


class WordWeights(NamedTuple):
    """What some texts have of the terms of a query.

    Attributes:
        frequencies: float32[n, t], how often each text has each term.
        lengths: float64[n], how many tokens each has.
        rarity: float64[t], the logarithm of how rare each term is, as the ranking has it.
        average: How many tokens a text of the store has on average, 0.0 where none has any.
    """

    frequencies: NDArray[np.float32]
    lengths: NDArray[np.float64]
    rarity: NDArray[np.float64]
    average: float

    def scores(self) -> NDArray[np.float64]:
        """Return what `rank` gives each text, float64[n], 0.0 where none of the terms is."""
        scores = np.zeros(len(self.lengths))
        if self.average == 0.0:
            return scores
        norms = K1 * (1 - B + B * self.lengths / self.average)
        for rarity, frequencies in zip(self.rarity, self.frequencies.T, strict=True):
            f = frequencies.astype(np.float64)
            scores += rarity * ((f * (K1 + 1.0)) / (f + norms))
        return scores


def weigh(
    parts: Sequence[Part],
    terms: Sequence[str],
    places: NDArray[np.int64],
    rows: NDArray[np.uint32],
) -> WordWeights:
    """Return what some rows have of the terms of a query.

    Takes O(log p) time for each row and term with p postings; in a part where rows were erased, as
    many steps as the terms have postings there.

    Args:
        parts: The whole index, without beginnings.
        terms: Of the query, in its order.
        places: int64[n], the number of each row's part; a row of none has nothing.
        rows: uint32[n], the rows there.
    """
    documents, average = _size(parts)
    frequencies = np.zeros((len(rows), len(terms)), dtype=np.float32)
    lengths = np.zeros(len(rows))
    hits = np.zeros(len(terms), dtype=np.int64)
    for number, part in enumerate(parts):
        here = np.flatnonzero(places == number)
        mine = rows[here]
        lengths[here] = part.words.lengths[mine]
        found = part.words.postings(terms)
        if len(here):
            frequencies[here] = row_frequencies(*found[1:], mine)
        hits += _live(found, part.live)
    rarity = np.array([_rarity(documents, int(having)) for having in hits])
    return WordWeights(frequencies, lengths, rarity, average)


def _live(found: Postings, live: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return how many live rows have each term, int64[t]."""
    if live is None:
        return found.ranges[:, 1] - found.ranges[:, 0]
    rows = (found.rows[first:end] for first, end in found.ranges.tolist())
    return np.array([np.count_nonzero(live[having]) for having in rows], dtype=np.int64)


def _rarity(documents: int, hits: int) -> float:
    ratio = (documents - hits + 0.5) / (hits + 0.5)
    rarity = math.log(ratio) if ratio > 0.0 else 0.0
    return rarity if rarity > 0.0 else _LEAST_RARITY
