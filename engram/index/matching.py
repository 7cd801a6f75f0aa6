"""Finding episodes by their words, over all parts of an index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engram.index import words
from engram.index.fact_index import FACT
from engram.storage import Phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex
    from engram.index.fact_index import FactIndex
    from engram.index.segment import Segment
    from engram.index.selection import Selection
    from engram.index.tail import Tail
    from engram.storage import EpisodeFilter, FullText

    Ranking = tuple[NDArray[np.int64], NDArray[np.float64]]
    """Keys and scores, best first, as `TextIndex.search` returns them."""


def match(index: EpisodeIndex, query: str, allowed: EpisodeFilter, limit: int) -> Ranking:
    """Return the best matches of a query's terms; see `EpisodeIndex.match`."""
    store = index.store
    if not index.segments:
        return store.text.search(query, allowed, limit)
    names, phrases = _terms(store.text, query)
    occurrences = partial(_occurrences, index, store.text, phrases)
    parts = _parts(index, store.text, index.select(allowed), occurrences)
    return _keyed(index, parts, [part.keys for part in index.parts], names, limit)


def match_beginnings(
    index: EpisodeIndex, query: str, allowed: EpisodeFilter, limit: int
) -> Ranking:
    """Return the best matches of its beginnings; see `EpisodeIndex.match_beginnings`."""
    text = index.store.text
    if not index.segments:
        return text.search_beginnings(query, allowed, limit)
    beginnings = text.beginnings_of(query)

    def occurrences(part: Segment | Tail) -> dict[int, words.Occurrences]:
        return {at: part.words.completions(one) for at, one in enumerate(beginnings)}

    parts = _parts(index, text, index.select(allowed), occurrences)
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
    store = facts.store
    ranked: list[words.Part] = []
    keys: list[NDArray[np.int64]] = []
    names, phrases = _terms(store.fact_text, query)
    if index is not None:
        occurrences = partial(_occurrences, index, store.text, phrases)
        ranked += _parts(index, store.text, episodes, occurrences)
        keys += [part.keys for part in index.parts]
    occurrences = partial(_occurrences, facts, store.fact_text, phrases)
    ranked += _parts(facts, store.fact_text, chosen, occurrences)
    keys += [part.keys + FACT for part in facts.parts]
    return _keyed(index, ranked, keys, names, limit)


def _terms(text: FullText, query: str) -> tuple[list[str], dict[int, Phrase]]:
    """Return the terms of a query, and which of them are several words."""
    terms = text.terms_of(query)
    phrases = {at: term for at, term in enumerate(terms) if isinstance(term, Phrase)}
    return [term.text if isinstance(term, Phrase) else term for term in terms], phrases


def _occurrences(
    source: EpisodeIndex | FactIndex,
    text: FullText,
    phrases: Mapping[int, Phrase],
    part: Segment | Tail,
) -> dict[int, words.Occurrences]:
    return {at: source.phrases.of(text, part, phrase) for at, phrase in phrases.items()}


def _parts(
    source: EpisodeIndex | FactIndex,
    text: FullText,
    selections: Sequence[Selection],
    occurrences: Callable[[Segment | Tail], Mapping[int, words.Occurrences]],
) -> list[words.Part]:
    """Return the parts of an index, with the rows of each that may be found, to be ranked."""
    source.tail.read_words(text.bodies, text.tokenizer())
    return [
        words.Part(
            words=part.words,
            live=part.live,
            allowed=one.mask if one.rows is None else one.rows,
            documents=part.documents,
            tokens=part.tokens,
            occurrences=occurrences(part),
        )
        for part, one in zip(source.parts, selections, strict=True)
    ]


def _keyed(
    index: EpisodeIndex | None,
    ranked: Sequence[words.Part],
    part_keys: Sequence[NDArray[np.int64]],
    terms: Sequence[str],
    limit: int,
) -> Ranking:
    places, rows, scores = words.rank(ranked, terms, limit)
    if index is not None and index.frugal:
        for segment in index.segments:
            segment.release_postings()
    keys = np.empty(len(rows), dtype=np.int64)
    for place, mine in enumerate(part_keys):
        here = places == place
        keys[here] = mine[rows[here]]
    return keys, scores
