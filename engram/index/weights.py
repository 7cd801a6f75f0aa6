"""What the words of a query weigh in given episodes and facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram.index import matching
from engram.index.fact_index import FACT
from engram.index.selection import Selection, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex
    from engram.index.fact_index import FactIndex


class WordWeights(NamedTuple):
    """Term frequencies of some rows and what the ranking makes of them."""

    frequencies: NDArray[np.float32]
    lengths: NDArray[np.float64]
    rarity: NDArray[np.float64]
    average: float

    def scores(self) -> NDArray[np.float64]:
        """Return what BM25 gives each, float64[n]."""
        base = 1.2 * (1 - 0.75 + 0.75 * self.lengths / self.average)
        found = self.frequencies.astype(np.float64)
        return np.asarray((found * 2.2 / (found + base[:, None])) @ self.rarity)


def weigh(index: EpisodeIndex, query: str, keys: NDArray[np.int64]) -> WordWeights:
    """Return what a query weighs in some episodes."""
    return _weigh([(index, index.store.text, 0)], query, keys)


def weigh_memories(
    index: EpisodeIndex, facts: FactIndex, query: str, keys: NDArray[np.int64]
) -> WordWeights:
    """Return what a query weighs in some episodes and facts."""
    store = facts.store
    return _weigh([(index, store.text, 0), (facts, store.fact_text, FACT)], query, keys)


def _weigh(sources, query, keys):  # type: ignore[no-untyped-def]
    order = np.argsort(keys)
    ascending = keys[order]
    names, phrases = matching._terms(sources[0][1], query)
    frequencies = np.zeros((len(keys), len(names)), dtype=np.float32)
    lengths = np.zeros(len(keys))
    having = np.zeros(len(names))
    documents = tokens = 0
    for source, text, offset in sources:
        everything = [Selection(part.documents) for part in source.parts]
        parts = matching._parts(
            source,
            text,
            everything,
            lambda part: matching._occurrences(source, text, phrases, part),
        )
        for part, ranked in zip(source.parts, parts, strict=True):
            documents += ranked.documents
            tokens += ranked.tokens
            found = ranked.postings(names)
            counts = found.frequencies.astype(np.float32)
            counts[found.large] = found.large_frequencies
            mine = ascending - offset
            rows = rows_of(part, mine)
            places = order[np.searchsorted(mine, part.keys[rows])]
            lengths[places] = found.lengths[rows]
            for term, (first, end) in enumerate(found.ranges.tolist()):
                here = found.rows[first:end]
                live = len(here) if part.live is None else np.count_nonzero(part.live[here])
                having[term] += live
                if not len(here):
                    continue
                at = np.searchsorted(here, rows)
                at[at == len(here)] = 0
                hit = here[at] == rows
                frequencies[places[hit], term] = counts[first:end][at[hit]]
    rarity = np.maximum(np.log((documents - having + 0.5) / (having + 0.5)), 1e-6)
    return WordWeights(frequencies, lengths, rarity, tokens / max(documents, 1) or 1.0)
