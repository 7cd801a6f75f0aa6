"""Hybrid recall: candidates by meaning and by words, made one ranking; see `Blending`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from engram._native import blend
from engram.arrays import distinct
from engram.models import Certificate
from engram.retrieval import date_expressions
from engram.retrieval.complete import Signals, complete, scaled
from engram.retrieval.confidence import confidence
from engram.retrieval.diversity import best_vectors
from engram.retrieval.feedback import second_look
from engram.retrieval.fusion import Fusion
from engram.retrieval.near_words import likeness
from engram.retrieval.ranking import Ranking
from engram.retrieval.reranked import mixed
from engram.retrieval.spreading import similarity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from engram.index import WordWeights
    from engram.retrieval.ranking import Chunks, Query, Ranked
    from engram.storage import TurnColumns

_NONE: Final = (np.empty(0, dtype=np.int64), np.empty(0))


class Source(Protocol):
    """What a hybrid recall looks at, in the caller's transaction."""

    query: Query

    def count(self) -> int:
        """Return how many the filters let through."""

    def near(self, k: int) -> tuple[Ranked, Certificate]:
        """Return the `k` nearest, nearest first, ties in insertion order, and their distances."""

    def matches(self, limit: int) -> Ranked:
        """Return the best matches by words, ties in insertion order."""

    def distances(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far some are from the query; infinite where one has no vector."""

    def allows(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some episodes, int64[n], ascending, the filters let through."""

    @property
    def terms(self) -> dict[str, str]:
        """The words of the query that are searched for, by their stems."""

    def weigh(self, keys: NDArray[np.int64], terms: Iterable[str]) -> WordWeights:
        """Return what some terms weigh in some."""

    def bodies(self, keys: NDArray[np.int64]) -> list[str]:
        """Return the texts of some as they are searched."""

    def words_of(self, text: str) -> dict[str, str]:
        """Return the words that a text is searched for, by their stems."""

    def stems(self, text: str) -> list[str]:
        """Return the stems of a text's distinct words, in its order."""

    def vectors(self, keys: NDArray[np.int64]) -> Chunks:
        """Return the vectors of the chunks of some."""

    def turns(self, keys: NDArray[np.int64]) -> TurnColumns:
        """Return what conversations say of some, int64[n], ascending."""

    def named(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return which part of an actor's name the query has, of some, ascending, 0 to 1."""

    def times(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when some, int64[n], ascending, happened, in microseconds."""


class _Candidates(NamedTuple):
    """What both sides put forward.

    Attributes:
        near: The nearest, and how far they are.
        matches: The best by words, and their scores.
        keys: int64[n], all of them, ascending.
        distances: float64[n], in step.
    """

    near: Ranked
    matches: Ranked
    keys: NDArray[np.int64]
    distances: NDArray[np.float64]


def hybrid(source: Source) -> Ranking:
    """Return the best candidates by what both sides say of them, best first.

    Ties are in insertion order. Where words have no weight the order is that of the nearest.
    """
    query = source.query
    found, certificate = _candidates(source)
    scores, words = _METHODS[query.blending.method](source, found)
    if feedback := query.blending.feedback * query.text_share:
        scores = mixed(scores, second_look(source, found.keys, scores), feedback)
    # Where meaning alone counts scores only fall with distance, and rounding may make two the same.
    by = found.distances if query.text_share == 0.0 else -scores
    order = np.lexsort((found.keys, by))
    sure = confidence(_cosines(found.distances), _coverage(words, len(found.keys)))
    if not query.text.strip():
        sure = np.zeros(len(sure))  # nothing answers what asks nothing
    calibrated = query.blending.method == "complete"
    if calibrated and query.min_score is not None:
        order = order[sure[order] >= query.min_score]
    order = order[: query.width]
    keys = found.keys[order]
    vectors = None
    if first := query.unlike:
        vectors = best_vectors(keys[:first], *source.vectors(keys[:first]), query.vector)
    return Ranking(
        keys, scores[order], found.distances[order], certificate, sure[order], calibrated, vectors
    )


def _candidates(source: Source) -> tuple[_Candidates, Certificate]:
    query = source.query
    # By min-max what words alone found and what meaning alone found may both be results.
    if query.text_share < 1.0 or query.blending.method == "min_max":
        near, certificate = source.near(query.candidates)
    else:
        near, count = _NONE, source.count()
        certificate = _certificate(query, count, f"{count} match: meaning has no weight")
    matches = source.matches(query.candidates) if query.text_share > 0.0 else _NONE
    keys = distinct(np.concatenate((near[0], matches[0])))
    distances = np.full(len(keys), np.nan)
    distances[np.searchsorted(keys, near[0])] = near[1]
    others = np.isnan(distances)
    if others.any():
        distances[others] = source.distances(keys[others])
    return _Candidates(near, matches, keys, distances), certificate


def by_words(query: Query, search: Callable[[int], Ranked], count: int, noun: str) -> Ranking:
    """Rank by words alone where that is asked for and nothing is embedded yet.

    Args:
        query: What is asked.
        search: Returns so many best matches and their scores.
        count: How many the filters let through.
        noun: Of what.
    """
    asked = query.mode == "hybrid" and query.text_share > 0.0
    keys, scores = search(query.candidates) if asked else _NONE
    if query.blending.method == "min_max":
        weights = query.vector_weight, query.text_weight
        keys, scores = blend(*_NONE, keys, scores, *weights, query.k)
    elif query.blending.method == "reciprocal_rank":
        scores = scaled(np.array(list(_fused(query, _NONE[0], keys).values())))
    else:
        scores = scaled(scores)
    keys, scores = keys[: query.k], scores[: query.k]
    reason = f"{count} {noun} match: none of them is embedded yet"
    return Ranking(keys, scores, np.full(len(keys), np.inf), _certificate(query, count, reason))


def _complete(source: Source, found: _Candidates) -> tuple[NDArray[np.float64], WordWeights]:
    """Score by both signals of every candidate; see `engram.retrieval.complete`."""
    keys, query = found.keys, source.query
    similarities = np.maximum(_cosines(found.distances), 0.0)
    if query.text_share == 0.0:
        return scaled(similarities), source.weigh(keys, source.terms)
    turns = source.turns(keys)
    # A question says something of its answer where it is no candidate itself, too; but not where
    # the filters leave it out, or it is hidden.
    asked = distinct(turns.answers[turns.answers > 0])
    asked = asked[_places(keys, asked) < 0]
    weighed = np.concatenate((keys, asked[source.allows(asked)]))
    words = source.weigh(weighed, source.terms)
    # Of questions that are candidates and of others.
    questions = _places(keys, turns.answers)
    others = _places(weighed[len(keys) :], turns.answers)
    questions = np.where(others < 0, questions, others + len(keys))
    signals = Signals(
        similarities,
        words,
        likeness(source, weighed, words) if query.blending.near_words else None,
        questions,
        turns,
        source.named(keys) if query.blending.named else None,
        _nearness(source, keys),
    )
    return complete(signals, query.blending, query.text_share), words


def _min_max(source: Source, found: _Candidates) -> tuple[NDArray[np.float64], WordWeights]:
    """Score by each side's own candidates, scaled to 0..1."""
    (near, distances), query = found.near, source.query
    most = max(len(found.keys), 1)
    weights = query.vector_weight, query.text_weight
    keys, blended = blend(near, similarity(distances), *found.matches, *weights, most)
    scores = np.empty(len(found.keys))
    scores[np.searchsorted(found.keys, keys)] = blended
    return scores, source.weigh(found.keys, source.terms)


def _reciprocal_rank(source: Source, found: _Candidates) -> tuple[NDArray[np.float64], WordWeights]:
    """Score by the sum of the weights over the ranks."""
    ranked = _fused(source.query, found.near[0], found.matches[0])
    scores = np.array([ranked[key] for key in found.keys.tolist()], dtype=np.float64)
    return scaled(scores), source.weigh(found.keys, source.terms)


def _fused(query: Query, near: NDArray[np.int64], matches: NDArray[np.int64]) -> dict[int, float]:
    fusion = Fusion(vector_weight=1.0 - query.text_share, sparse_weight=query.text_share)
    return fusion.scores(near.tolist(), matches.tolist())


_METHODS: Final = {
    "complete": _complete,
    "min_max": _min_max,
    "reciprocal_rank": _reciprocal_rank,
}


def _cosines(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines of unit vectors so far apart; 0 where there is no vector."""
    return np.where(np.isfinite(distances), 1.0 - distances * distances / 2.0, 0.0)


def _places(keys: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of some keys stands among others, which ascend, int64[n]; -1: nowhere."""
    places = np.searchsorted(keys, wanted)
    places[places == len(keys)] = -1
    if len(keys):
        places[keys[places] != wanted] = -1
    return places


def _nearness(source: Source, keys: NDArray[np.int64]) -> NDArray[np.float64] | None:
    query = source.query
    spans = date_expressions.spans(query.text, query.now) if query.blending.dates else []
    return date_expressions.nearness(source.times(keys), spans) if spans else None


def _coverage(words: WordWeights, count: int) -> NDArray[np.float64]:
    """Return the share of the query's distinct words that each of the first `count` texts has.

    A rare word counts as much as a common one: how rare it is others decide, by what they write.
    """
    frequencies = words.frequencies[:count]
    shares: NDArray[np.float64] = np.count_nonzero(frequencies, axis=1) / max(
        frequencies.shape[1], 1
    )
    return shares


def _certificate(query: Query, count: int, reason: str) -> Certificate:
    return Certificate(
        query.accuracy, "scan", exact=True, matching=count, considered=0, reason=reason
    )
