"""Finding episodes by their words, over all parts of an index."""

from __future__ import annotations

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
    from engram.storage import EpisodeFilter

    Ranking = tuple[NDArray[np.int64], NDArray[np.float64]]
    """Keys and scores, best first, as `TextIndex.search` returns them."""


def match(index: EpisodeIndex, query: str, allowed: EpisodeFilter, limit: int) -> Ranking:
    """Return the best matches of a query's terms; see `EpisodeIndex.match`."""
    store = index.store
    if not index.segments:
        return store.text.search(query, allowed, limit)
    terms = store.text.terms_of(query)
    phrases = {at: term for at, term in enumerate(terms) if isinstance(term, Phrase)}

    def occurrences(part: Segment | Tail) -> dict[int, words.Occurrences]:
        return {at: index.phrases.of(store.text, part, phrase) for at, phrase in phrases.items()}

    names = [term.text if isinstance(term, Phrase) else term for term in terms]
    return _ranked(index, names, occurrences, allowed, limit)


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

    return _ranked(index, beginnings, occurrences, allowed, limit)


def match_memories(
    index: EpisodeIndex,
    facts: FactIndex,
    query: str,
    episodes: Sequence[Selection],
    chosen: Sequence[Selection],
    limit: int,
) -> Ranking:
    """Return the best matches among some episodes and some facts, ranked as one collection.

    How rare a word is, and how long a text, shows over all episodes and facts.

    Args:
        index: The index of the episodes.
        facts: The index of the facts.
        query: As for `match`.
        episodes: The rows of the first one's parts that may be found.
        chosen: Those of the second one's.
        limit: How many at most.

    Returns:
        Keys, `FACT` added to those of facts, and scores; best first, ties in insertion order,
        episodes before facts.
    """
    text = index.store.text
    terms = text.terms_of(query)
    phrases = {at: term for at, term in enumerate(terms) if isinstance(term, Phrase)}
    ranked, keys = [], []
    for source, own, selections, added in (
        (index, text, episodes, 0),
        (facts, index.store.fact_text, chosen, FACT),
    ):
        source.tail.read_words(own.bodies, own.tokenizer())
        for part, one in zip(source.parts, selections, strict=True):
            found = {at: source.phrases.of(own, part, phrase) for at, phrase in phrases.items()}
            ranked.append(_part(part, one, found))
            keys.append(part.keys + added)
    names = [term.text if isinstance(term, Phrase) else term for term in terms]
    return _keyed(index, ranked, keys, names, limit)


def _part(
    part: Segment | Tail, one: Selection, occurrences: Mapping[int, words.Occurrences]
) -> words.Part:
    return words.Part(
        words=part.words,
        live=part.live,
        allowed=one.mask if one.rows is None else one.rows,
        documents=part.documents,
        tokens=part.tokens,
        occurrences=occurrences,
    )


def _ranked(
    index: EpisodeIndex,
    terms: Sequence[str],
    occurrences: Callable[[Segment | Tail], Mapping[int, words.Occurrences]],
    allowed: EpisodeFilter,
    limit: int,
) -> Ranking:
    """Rank the rows of all parts; `occurrences` are those of terms that are not single ones."""
    text = index.store.text
    index.tail.read_words(text.bodies, text.tokenizer())
    parts = index.parts
    ranked = [
        _part(part, one, occurrences(part))
        for part, one in zip(parts, index.select(allowed), strict=True)
    ]
    return _keyed(index, ranked, [part.keys for part in parts], terms, limit)


def _keyed(
    index: EpisodeIndex,
    ranked: Sequence[words.Part],
    part_keys: Sequence[NDArray[np.int64]],
    terms: Sequence[str],
    limit: int,
) -> Ranking:
    places, rows, scores = words.rank(ranked, terms, limit)
    if index.frugal:
        for segment in index.segments:
            segment.release_postings()
    keys = np.empty(len(rows), dtype=np.int64)
    for place, mine in enumerate(part_keys):
        here = places == place
        keys[here] = mine[rows[here]]
    return keys, scores
