"""Dormant recall: what a search might have shown of memories that nobody asked about for long.

An evaluation follows a search and leaves one event in the store. Nothing of it enters the answer.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import nearest, true_distances
from engram.retrieval.ranking import MAX_K
from engram.retrieval.recall import refreshed
from engram.storage.dormancy import micros
from engram.storage.dormant_evaluation import Candidate
from engram.storage.segment import is_unspaced, normalise, query_terms, searchable
from engram.storage.stop_words import STOP_WORDS
from engram.vectors import cosines

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from engram.config import DormantRecall
    from engram.embedding import Reranker
    from engram.index import EpisodeIndex
    from engram.storage import EpisodeFilter, Store

_REACH: Final = 4
"""Neighbours to look at for each dormant one that is wanted; so many times more the next time."""

_FEW: Final = 1000
"""Old episodes up to which each one's distance is computed."""

_SHORTEST: Final = 3


class DormantSearch:
    """One look at the dormant memories, in three parts as a `Search` has.

    Args:
        query: What was asked.
        settings: The rules.
        now: The time of the search, in microseconds.
    """

    def __init__(self, query: str, settings: DormantRecall, now: int) -> None:
        self.terms = terms_of(query)
        self._query = query
        self._settings = settings
        self._now = now
        self._count = 0
        self._near: list[tuple[int, float, str]] = []
        self._candidates: dict[int, Candidate] = {}

    @property
    def texts(self) -> list[str]:
        """What there is to rerank, nearest first."""
        return [text for _, _, text in self._near]

    def gather(
        self,
        store: Store,
        index: EpisodeIndex,
        vector: NDArray[np.float32],
        allowed: EpisodeFilter,
        answered: Collection[int],
    ) -> None:
        """Read the nearest dormant memories; in the transaction around this call.

        Args:
            store: The store.
            index: The index of its episodes.
            vector: float32[dim], the query's, unit length, rounded as stored vectors are.
            allowed: Which memories the search could see.
            answered: Keys of those that it returned.

        Raises:
            CorruptStore: The store's rows are not what its change log says.
        """
        settings = self._settings
        self._count, keys, cosines = refreshed(
            index, lambda: _dormant(store, index, vector, allowed, settings, self._now)
        )
        relevant = [
            (key, cosine)
            for key, cosine in zip(keys.tolist(), cosines.tolist(), strict=True)
            if cosine >= settings.min_relevance and key not in answered
        ][: settings.rerank_candidates]
        memories = store.memories.read((key for key, _ in relevant), self._now)
        self._near = [
            (key, cosine, memories[key].content) for key, cosine in relevant if key in memories
        ]

    def judge(self, reranker: Reranker) -> None:
        """Keep the candidates that a reranker lets through; outside any transaction.

        The threshold is a logit. What a reranker gives between 0 and 1 is compared with the
        probability that it means.

        Raises:
            ModelMissing, ModelCorrupt: The reranker cannot be used.
        """
        scores = reranker.scores(self._query, self.texts)
        least = self._settings.min_rerank_score
        if reranker.output == "normalized_score":
            scores = reranker.calibrated(scores)
            least = 1.0 / (1.0 + math.exp(-least))
        self._candidates = {
            key: Candidate(cosine, _overlap(self.terms, text), score)
            for (key, cosine, text), score in zip(self._near, scores.tolist(), strict=True)
            if score >= least
        }

    def record(self, store: Store) -> None:
        """Choose at most one candidate, and leave the event; in a write transaction."""
        store.dormancy.record(
            self._count, len(self.terms), self._candidates, self._settings, self._now
        )


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
    return len(order), keys[order], cosines(distances[order])


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
    dormant, the rest is too far away to matter, or that would take longer than a search may.
    """
    wanted = settings.candidate_limit
    reach = _REACH * wanted
    while True:
        near = nearest(index, vector, reach, allowed, "exact")
        how_near = cosines(near.distances)
        dormant = np.isin(near.episodes, store.dormancy.dormant(near.episodes, since))
        keys, near_cosines = near.episodes[dormant][:wanted], how_near[dormant][:wanted]
        if len(keys) == wanted or len(how_near) < reach:
            return len(keys), keys, near_cosines
        if how_near[-1] < settings.min_relevance or reach * _REACH > MAX_K:
            count = store.dormancy.count(allowed, index.model, since, wanted)
            return count, keys, near_cosines
        reach *= _REACH


def _overlap(terms: list[str], text: str) -> int:
    """Return how many terms of a query are words of a text."""
    return len(set(searchable(_words(text)).split()).intersection(terms))
