"""Finding episodes and facts for a query in one ranking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.arrays import distinct
from engram.index import (
    FACT,
    Selection,
    match_memories,
    nearest,
    nearest_facts,
    times_of,
    true_distances,
    true_vectors,
    weigh_memories,
)
from engram.index.rows import HUB_ARCS
from engram.models import Certificate, FactResult, SearchResult
from engram.retrieval.hybrid import by_words, hybrid
from engram.retrieval.naming import named
from engram.retrieval.ranking import Ranking
from engram.retrieval.recall import SEEDS_PER_RESULT, associated, refreshed
from engram.retrieval.spreading import (
    ACTIVATION_SHARE,
    IMPORTANCE_SHARE,
    SIMILARITY_SHARE,
    similarity,
    spreading,
)
from engram.storage import TurnColumns
from engram.tracing import stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engram.index import Adjacency, EpisodeIndex, FactIndex, WordWeights
    from engram.models import Fact
    from engram.retrieval.ranking import Chunks, Query, Ranked
    from engram.retrieval.spreading import Activation
    from engram.storage import FactFilter, Store

KINDS: Final = ("any", "episodic", "semantic")


@dataclass(frozen=True, slots=True)
class FactQuery:
    """What a recall asks of facts, beside what it asks of episodes.

    Attributes:
        allowed: Which facts may be returned.
        at: The time at which they hold, in microseconds.
        agent: Whose view they are read in; None is everyone's.
        only: Leave episodes out.
    """

    allowed: FactFilter
    at: int
    agent: str | None
    only: bool


class _Search:
    """One query over both kinds, in the caller's transaction."""

    def __init__(
        self, index: EpisodeIndex | None, facts: FactIndex, query: Query, asked: FactQuery
    ) -> None:
        self.facts = facts
        self.query = query
        self.only = asked.only
        self.chosen = facts.choose(asked.allowed, asked.at)
        self._index = index

    @property
    def index(self) -> EpisodeIndex:
        """The episodes, where there are any with vectors."""
        assert self._index is not None  # noqa: S101 - without one only words are looked at
        return self._index

    def count(self) -> int:
        """Return how many the filters let through."""
        count = len(self.chosen.keys)
        if self.only:
            return count
        if self._index is None:
            return count + self.facts.store.episodes.count(self.query.allowed)
        return count + sum(one.count for one in self._index.select(self.query.allowed))

    def near(self, k: int) -> tuple[Ranked, Certificate]:
        """Return the `k` nearest of both, nearest first, ties in insertion order."""
        vector, accuracy = self.query.vector, self.query.accuracy
        keys, distances, certificate = nearest_facts(
            self.facts, vector, k, self.chosen.parts, accuracy
        )
        keys = keys + FACT
        if self.only:
            return (keys, distances), certificate
        near = nearest(self.index, vector, k, self.query.allowed, accuracy)
        keys = np.concatenate((near.episodes, keys))
        distances = np.concatenate((near.distances, distances))
        order = np.lexsort((keys, distances))[:k]
        return (keys[order], distances[order]), _joined(near.certificate, certificate)

    def matches(self, limit: int) -> Ranked:
        """Return the best matches of both by their words."""
        episodes = self.index.select(self.query.allowed)
        if self.only:
            # They still tell how rare a word is.
            episodes = [Selection(0, np.empty(0, dtype=np.uint32)) for _ in episodes]
        return match_memories(
            self.index, self.facts, self.query.text, episodes, self.chosen.parts, limit
        )

    def matches_without_index(self, limit: int) -> Ranked:
        """Return the best matches of both where no episode is embedded: they have no index.

        How rare a word is shows over each kind.
        """
        text = self.query.text
        keys, scores = match_memories(None, self.facts, text, [], self.chosen.parts, limit)
        if self.only:
            return keys, scores
        episodes, others = self.facts.store.text.search(text, self.query.allowed, limit)
        keys, scores = np.concatenate((episodes, keys)), np.concatenate((others, scores))
        order = np.lexsort((keys, -scores))[:limit]
        return keys[order], scores[order]

    def distances(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far some episodes and facts are from the query."""
        found = np.empty(len(keys))
        are_facts = keys >= FACT
        vector = self.query.vector
        found[~are_facts] = true_distances(self.index, vector, keys[~are_facts])
        found[are_facts] = true_distances(self.facts, vector, keys[are_facts] - FACT)
        return found

    def allows(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some episodes, ascending, the filters let through."""
        return self.index.allows(self.query.allowed, keys)

    @cached_property
    def terms(self) -> dict[str, str]:
        """The words of the query that are searched for, by their stems."""
        return self.words_of(self.query.text)

    def weigh(self, keys: NDArray[np.int64], terms: Iterable[str]) -> WordWeights:
        """Return what some terms weigh in some."""
        return weigh_memories(self.index, self.facts, list(terms), keys)

    def bodies(self, keys: NDArray[np.int64]) -> list[str]:
        """Return the texts of some as they are searched."""
        store = self.facts.store
        return [
            store.text.body(key) if key < FACT else store.fact_text.body(key - FACT)
            for key in keys.tolist()
        ]

    def words_of(self, text: str) -> dict[str, str]:
        """Return the words that a text is searched for, by their stems."""
        return self.facts.store.fact_text.words_of(text)

    def stems(self, text: str) -> list[str]:
        """Return the stems of a text's distinct words, in its order."""
        return self.facts.store.fact_text.stems(text)

    def vectors(self, keys: NDArray[np.int64]) -> Chunks:
        """Return the vectors of the chunks of some."""
        are_facts = keys >= FACT
        vectors, owners = true_vectors(self.index, keys[~are_facts])
        of_facts, facts = true_vectors(self.facts, keys[are_facts] - FACT)
        return np.concatenate((vectors, of_facts)), np.concatenate((owners, facts + FACT))

    def turns(self, keys: NDArray[np.int64]) -> TurnColumns:
        """Return what conversations say of some, ascending: facts, which come last, have none."""
        episodes = keys[keys < FACT]
        found, none = self.facts.store.turns.of(episodes), (0, len(keys) - len(episodes))
        return TurnColumns(
            np.pad(found.conversation, none),
            np.pad(found.answers, none),
            np.pad(found.assistant, none),
        )

    def named(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return which part of an actor's name the query has, of some: facts have none."""
        shares = np.zeros(len(keys))
        episodes = keys < FACT
        shares[episodes] = named(self.facts.store, self.terms.keys(), keys[episodes])
        return shares

    def times(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return when some, ascending, happened, or began to hold."""
        facts = keys[keys >= FACT] - FACT
        of_facts = times_of(self.facts.parts, facts)
        return np.concatenate((times_of(self.index.parts, keys[keys < FACT]), of_facts))


def recall_memories(
    store: Store,
    index: EpisodeIndex | None,
    facts: FactIndex,
    adjacency: Adjacency,
    query: Query,
    asked: FactQuery,
) -> tuple[Ranking, list[SearchResult | FactResult]]:
    """Return the best candidates of both kinds for a query, and what each is as a result.

    Runs inside the caller's transaction. Both kinds are candidates of one ranking: what scales the
    scores of `recall` scales them here over episodes and facts together. Ties are in insertion
    order, episodes before facts.

    Args:
        store: The store.
        index: The index of its episodes; None while nothing is embedded.
        facts: The index of its facts.
        adjacency: Its entity graph.
        query: What is asked, and how.
        asked: What is asked of facts.
    """
    with stage("rank"):
        facts.refresh()
        search = _Search(index, facts, query, asked)
        if index is None:
            noun = "facts" if asked.only else "memories"
            ranking = by_words(query, search.matches_without_index, search.count(), noun)
        else:
            ranking = refreshed(index, partial(_ranked, search, adjacency))
    store.embeddings.refuse_damage()
    with stage("read"):
        return ranking, _results(store, ranking, asked.agent)


def _ranked(search: _Search, adjacency: Adjacency) -> Ranking:
    query = search.query
    if query.mode == "hybrid":
        return hybrid(search)
    if query.mode == "cosine":
        (keys, distances), certificate = search.near(query.k)
        return Ranking(keys, similarity(distances), distances, certificate)
    return _by_association(search, search.index, adjacency)


def _by_association(search: _Search, index: EpisodeIndex, adjacency: Adjacency) -> Ranking:
    """Rank by similarity and activation: a fact has that of its subject or its object."""
    query = search.query
    near, activation = associated(index, adjacency, query)
    (keys, scores, distances), certificate = _fact_associations(search, activation)
    if not search.only:
        episodes = spreading(search.facts.store, index, query.vector, near, activation, query.k)
        keys, scores, distances = (
            np.concatenate(both) for both in zip(episodes, (keys, scores, distances), strict=True)
        )
        certificate = _joined(near.certificate, certificate)
    order = np.lexsort((keys, -scores))[: query.k]
    return Ranking(keys[order], scores[order], distances[order], certificate)


def _fact_associations(
    search: _Search, activation: Activation
) -> tuple[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], Certificate]:
    """Score the nearest facts and the newest ones of the entities that are activated most.

    The larger activation of its subject and its object counts, and how sure it is in the place of
    importance.
    """
    query, facts = search.query, search.facts.store.fact_search
    seeds = SEEDS_PER_RESULT * query.k
    near, _, certificate = nearest_facts(
        search.facts, query.vector, seeds, search.chosen.parts, query.accuracy
    )
    strongest = np.lexsort((activation.entities, -activation.of_entities))[:seeds]
    entities, reached = facts.about(
        activation.entities[np.sort(strongest)], search.chosen.keys, HUB_ARCS
    )
    keys = distinct(np.concatenate((near, reached)))
    received = np.zeros(len(keys))
    energy = activation.of_entities[np.searchsorted(activation.entities, entities)]
    np.maximum.at(received, np.searchsorted(keys, reached), energy)
    distances = true_distances(search.facts, query.vector, keys)
    sure = facts.confidence(keys)
    scores = (
        SIMILARITY_SHARE * similarity(distances)
        + ACTIVATION_SHARE * received
        + IMPORTANCE_SHARE * sure
    )
    return (keys + FACT, scores, distances), certificate


def _joined(episodes: Certificate, facts: Certificate) -> Certificate:
    """Say how the nearest of both kinds were found."""
    return Certificate(
        accuracy=episodes.accuracy,
        strategy=facts.strategy if episodes.exact else episodes.strategy,
        exact=episodes.exact and facts.exact,
        matching=episodes.matching + facts.matching,
        considered=episodes.considered + facts.considered,
        reason=f"{episodes.reason}; {facts.reason}",
    )


def _results(store: Store, ranking: Ranking, agent: str | None) -> list[SearchResult | FactResult]:
    keys, certificate = ranking.keys, ranking.certificate
    are_facts = keys >= FACT
    episodes = iter(store.episodes.fetch(keys[~are_facts]))
    facts = _facts(store, (keys[are_facts] - FACT).tolist(), agent)
    results: list[SearchResult | FactResult] = []
    for key, score, distance, sure in zip(
        keys.tolist(),
        ranking.scores.tolist(),
        ranking.distances.tolist(),
        ranking.sure(),
        strict=True,
    ):
        if key < FACT:
            one = next(episodes)
            results.append(
                SearchResult(
                    one,
                    score,
                    distance,
                    one.importance_score,
                    confidence=sure,
                    certificate=certificate,
                )
            )
        else:
            results.append(
                FactResult(
                    facts[key - FACT][0],
                    score,
                    distance,
                    *facts[key - FACT][1:],
                    confidence=sure,
                    certificate=certificate,
                )
            )
    return results


def _facts(store: Store, keys: list[int], agent: str | None) -> dict[int, tuple[Fact, str, bool]]:
    """Return facts by their keys, each with what `why` says of its trust."""
    if not keys:
        return {}
    trust = store.evidence.trust(keys)
    return {key: (fact, *trust[key]) for key, fact in store.facts.fetch(keys, agent).items()}
