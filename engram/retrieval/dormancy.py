"""Dormant recall: what a search might have shown of memories that nobody asked about for long.

An evaluation follows a search and leaves one event in the store. Nothing of it enters the answer.
"""

from __future__ import annotations

import logging
import math
import re
import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import Damaged, nearest, true_distances
from engram.retrieval.stop_words import STOP_WORDS
from engram.storage.dormancy import micros
from engram.storage.dormant_evaluation import Candidate
from engram.storage.segment import is_unspaced, normalise, query_terms, searchable

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from engram.config import DormantRecall
    from engram.embedding.reranking import Reranker
    from engram.index import EpisodeIndex
    from engram.storage import EpisodeFilter, Store

_LOCKED: Final = 0.05
"""Seconds to wait for another writer: the caller waits for the answer meanwhile."""

_REACH: Final = 4
"""Neighbours to look at for each dormant one that is wanted; so many times more the next time."""

_FEW: Final = 1000
"""Old episodes up to which each one's distance is computed."""

_SHORTEST: Final = 3

_logger = logging.getLogger(__name__)


def evaluate(
    store: Store,
    found: tuple[NDArray[np.float32], EpisodeIndex] | None,
    query: str,
    *,
    answered: Collection[int],
    allowed: EpisodeFilter,
    reranker: Reranker,
    settings: DormantRecall,
    now: int,
) -> None:
    """Note what a search might have shown of dormant memories; nothing where the mode is "off".

    Called after the answer was made, outside any transaction. Whatever fails is logged by the
    name of its class alone and goes no further, and a store that another connection writes is
    given up on, so an answer neither changes nor waits.

    Args:
        store: The store.
        found: The query's vector, float32[dim], rounded as stored vectors are, and the index that
            was searched; None where the store has no vectors.
        query: What was asked, as it was.
        answered: Keys of the episodes that were returned.
        allowed: Which episodes the search could see.
        reranker: Reads the query and the nearest candidates.
        settings: The rules.
        now: The time of the search, in microseconds.
    """
    if settings.mode == "off":
        return
    try:
        terms = terms_of(query)
        count, candidates = 0, {}
        if terms and found is not None:
            count, texts = _candidates(store, *found, answered, allowed, settings, now)
            candidates = _reranked(query, terms, texts, reranker, settings)
        with store.writing(wait=_LOCKED):
            store.dormancy.record(count, len(terms), candidates, settings, now)
    except Exception as error:  # noqa: BLE001 - the answer is there, and stays as it is
        _logger.warning("a dormant evaluation failed: %s", type(error).__name__)


def terms_of(query: str) -> list[str]:
    """Return what of a query counts as its terms: words of any script, without stop words.

    Words of fewer than three letters are none, but where a script sets no spaces any two
    neighbouring letters are a term.
    """
    return [
        term
        for term in query_terms(_words(query))
        if (len(term) >= _SHORTEST or is_unspaced(term[0])) and term not in STOP_WORDS
    ]


def _words(text: str) -> str:
    """Return a text in its folded spelling, all that is in no word left out."""
    return re.sub(r"\W", _apart, normalise(text).casefold())


def _apart(character: re.Match[str]) -> str:
    # Vowel signs of many scripts are marks, and as much of their words as the letters.
    return character[0] if unicodedata.category(character[0])[0] == "M" else " "


def _candidates(
    store: Store,
    vector: NDArray[np.float32],
    index: EpisodeIndex,
    answered: Collection[int],
    allowed: EpisodeFilter,
    settings: DormantRecall,
    now: int,
) -> tuple[int, dict[int, tuple[float, str]]]:
    """Return how many dormant episodes were looked at, and those that go to the reranker.

    Returns:
        The number, and by key cosines and texts, nearest first.
    """
    with store.reading():
        searched = index.model
        index.refresh()
        if index.model != searched:
            # The vector is of a model that is no longer the store's.
            return 0, {}
        allowed = replace(allowed, exclude_quarantined=True)
        try:
            count, keys, cosines = _dormant(store, index, vector, allowed, settings, now)
        except Damaged:
            index.start_over()
            count, keys, cosines = _dormant(store, index, vector, allowed, settings, now)
        relevant = [
            (key, cosine)
            for key, cosine in zip(keys.tolist(), cosines.tolist(), strict=True)
            if cosine >= settings.min_relevance and key not in answered
        ][: settings.rerank_candidates]
        episodes = store.episodes.fetch(np.array([key for key, _ in relevant], dtype=np.int64))
    return count, {
        key: (cosine, episode.content)
        for (key, cosine), episode in zip(relevant, episodes, strict=True)
    }


def _dormant(
    store: Store,
    index: EpisodeIndex,
    vector: NDArray[np.float32],
    allowed: EpisodeFilter,
    settings: DormantRecall,
    now: int,
) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """Return how many dormant episodes are the nearest, up to the limit, and the near ones.

    Returns:
        The number, keys, int64[n], and cosines, float64[n], nearest first, ties in insertion order.
    """
    wanted, since = settings.candidate_limit, now - micros(settings.dormancy_days)
    old = store.dormancy.recorded_by(since, _FEW + 1)
    if len(old) > _FEW:
        return _among_the_nearest(store, index, vector, allowed, settings, since)
    keys = store.dormancy.dormant(old, since)
    keys = keys[index.allows(allowed, keys)]
    distances = true_distances(index, vector, keys)
    order = np.lexsort((keys, distances))[:wanted]
    # An episode without vectors is near nothing.
    order = order[np.isfinite(distances[order])]
    return len(order), keys[order], _cosines(distances[order])


def _among_the_nearest(
    store: Store,
    index: EpisodeIndex,
    vector: NDArray[np.float32],
    allowed: EpisodeFilter,
    settings: DormantRecall,
    since: int,
) -> tuple[int, NDArray[np.int64], NDArray[np.float64]]:
    """Return what `_dormant` does, where too many episodes are old to look at each.

    Episodes that are in use can be among the nearest, so more are looked at until enough are
    dormant, or the rest is too far away to matter.
    """
    wanted = settings.candidate_limit
    reach = _REACH * wanted
    while True:
        near = nearest(index, vector, reach, allowed, "exact")
        cosines = _cosines(near.distances)
        dormant = np.isin(near.episodes, store.dormancy.dormant(near.episodes, since))
        keys, near_cosines = near.episodes[dormant][:wanted], cosines[dormant][:wanted]
        if len(keys) == wanted or len(cosines) < reach:
            return len(keys), keys, near_cosines
        if cosines[-1] < settings.min_relevance:
            count = store.dormancy.count(allowed, index.model, since, wanted)
            return count, keys, near_cosines
        reach *= _REACH


def _cosines(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of unit vectors at some distances."""
    cosines: NDArray[np.float64] = 1.0 - distances**2 / 2.0
    return cosines


def _reranked(
    query: str,
    terms: list[str],
    texts: dict[int, tuple[float, str]],
    reranker: Reranker,
    settings: DormantRecall,
) -> dict[int, Candidate]:
    """Return the candidates that the reranker lets through, by key.

    The threshold is a logit. What a reranker gives between 0 and 1 is compared with the
    probability that it means.
    """
    if not texts:
        return {}
    scores = reranker.scores(query, [text for _, text in texts.values()])
    least = settings.min_rerank_score
    if reranker.output == "normalized_score":
        scores = reranker.calibrated(scores)
        least = 1.0 / (1.0 + math.exp(-least))
    return {
        key: Candidate(cosine, _overlap(terms, text), score)
        for (key, (cosine, text)), score in zip(texts.items(), scores.tolist(), strict=True)
        if score >= least
    }


def _overlap(terms: list[str], text: str) -> int:
    """Return how many terms of a query are words of a text."""
    return len(set(searchable(_words(text)).split()).intersection(terms))
