"""Finding episodes and facts by their words, over all parts of an index."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from engram.index.fact_index import FACT
from engram.index.ranking import Part, rank
from engram.index.ranking import weigh as weigh_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex
    from engram.index.fact_index import FactIndex
    from engram.index.ranking import WordWeights
    from engram.index.segment import Segment
    from engram.index.selection import Selection
    from engram.index.tail import Tail
    from engram.index.words import Occurrences
    from engram.storage import EpisodeFilter

    Ranking = tuple[NDArray[np.int64], NDArray[np.float64]]
    """Keys and scores, best first, as `TextIndex.search` returns them."""


def match(
    index: EpisodeIndex, query: str, allowed: EpisodeFilter, limit: int, *, every_word: bool
) -> Ranking:
    """Return the best matches of a query's terms; see `EpisodeIndex.match`."""
    names = list(index.text.words_of(query, every_word=every_word))
    parts = _parts(index, index.select(allowed))
    return _keyed(index, parts, [part.keys for part in index.parts], names, limit)


def match_beginnings(
    index: EpisodeIndex, query: str, allowed: EpisodeFilter, limit: int
) -> Ranking:
    """Return the best matches of its beginnings; see `EpisodeIndex.match_beginnings`."""
    beginnings = list(index.text.beginnings_of(query))

    def occurrences(part: Segment | Tail) -> dict[int, Occurrences]:
        return {at: part.words.completions(one) for at, one in enumerate(beginnings)}

    parts = _parts(index, index.select(allowed), occurrences)
    return _keyed(index, parts, [part.keys for part in index.parts], beginnings, limit)


def match_memories(
    index: EpisodeIndex | None,
    facts: FactIndex,
    query: str,
    episodes: Sequence[Selection],
    chosen: Sequence[Selection],
    limit: int,
) -> Ranking:
    """Return the best matches among some episodes and some facts, ranked as one collection.

    How rare a word is, and how long a text, shows over all episodes and facts.

    Args:
        index: The index of the episodes; None is of none.
        facts: The index of the facts.
        query: As for `match`.
        episodes: The rows of the first one's parts that may be found.
        chosen: Those of the second one's.
        limit: How many at most.

    Returns:
        Keys, `FACT` added to those of facts, and scores; best first, ties in insertion order,
        episodes before facts.
    """
    names = list(facts.text.words_of(query))
    ranked = _parts(facts, chosen)
    keys = [part.keys + FACT for part in facts.parts]
    if index is not None:
        ranked = _parts(index, episodes) + ranked
        keys = [part.keys for part in index.parts] + keys
    return _keyed(index, ranked, keys, names, limit)


def weigh(index: EpisodeIndex, terms: Sequence[str], keys: NDArray[np.int64]) -> WordWeights:
    """Return what some episodes have of some terms; see `EpisodeIndex.weigh`."""
    return _weighed(index, _parts(index), [part.keys for part in index.parts], terms, keys)


def weigh_memories(
    index: EpisodeIndex | None, facts: FactIndex, terms: Sequence[str], keys: NDArray[np.int64]
) -> WordWeights:
    """Return what some episodes and facts have of some terms, as `match_memories` ranks them.

    Args:
        index: The index of the episodes; None is of none.
        facts: The index of the facts.
        terms: As for `EpisodeIndex.weigh`.
        keys: int64[n], in any order, `FACT` added to those of facts.
    """
    parts = _parts(facts)
    part_keys = [part.keys + FACT for part in facts.parts]
    if index is not None:
        parts = _parts(index) + parts
        part_keys = [part.keys for part in index.parts] + part_keys
    return _weighed(index, parts, part_keys, terms, keys)


def _parts(
    source: EpisodeIndex | FactIndex,
    selections: Sequence[Selection] | None = None,
    occurrences: Callable[[Segment | Tail], Mapping[int, Occurrences]] | None = None,
) -> list[Part]:
    """Return the parts of an index to be ranked; None selects all rows that are there."""
    text = source.text
    source.tail.read_words(text.bodies, text.tokenizer())
    chosen = repeat(None) if selections is None else selections
    return [
        Part(
            words=part.words,
            live=part.live,
            allowed=None if one is None else one.mask if one.rows is None else one.rows,
            documents=part.documents,
            tokens=part.tokens,
            occurrences={} if occurrences is None else occurrences(part),
        )
        for part, one in zip(source.parts, chosen, strict=selections is not None)
    ]


def _keyed(
    index: EpisodeIndex | None,
    ranked: Sequence[Part],
    part_keys: Sequence[NDArray[np.int64]],
    terms: Sequence[str],
    limit: int,
) -> Ranking:
    places, rows, scores = rank(ranked, terms, limit)
    _release(index)
    keys = np.empty(len(rows), dtype=np.int64)
    for place, mine in enumerate(part_keys):
        here = places == place
        keys[here] = mine[rows[here]]
    return keys, scores


def _weighed(
    index: EpisodeIndex | None,
    parts: Sequence[Part],
    part_keys: Sequence[NDArray[np.int64]],
    terms: Sequence[str],
    keys: NDArray[np.int64],
) -> WordWeights:
    places = np.full(len(keys), -1, dtype=np.int64)
    rows = np.zeros(len(keys), dtype=np.uint32)
    for place, mine in enumerate(part_keys):
        at = np.searchsorted(mine, keys)
        known = np.flatnonzero(at < len(mine))
        known = known[mine[at[known]] == keys[known]]
        places[known] = place
        rows[known] = at[known]
    found = weigh_rows(parts, terms, places, rows)
    _release(index)
    return found


def _release(index: EpisodeIndex | None) -> None:
    if index is not None and index.frugal:
        for segment in index.segments:
            segment.release_postings()
