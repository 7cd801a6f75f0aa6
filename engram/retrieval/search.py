"""Search: candidates from every channel, fused, reread by a reranker, and cut where it is unsure.

A search has three parts, so that no transaction lasts while a model runs: `gather` reads
candidates from one snapshot of the store, `judge` has them reranked, `conclude` looks at a second
snapshot whether they may still be returned. What was observed on the way stays in the candidates;
`engram.retrieval.report` makes the explanation of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import nearest
from engram.retrieval.passages import best_passage
from engram.retrieval.question import CHANNELS, Question
from engram.retrieval.ranking import MAX_K
from engram.retrieval.recall import refreshed
from engram.storage import EpisodeFilter
from engram.times import DAY
from engram.vectors import cosines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from engram.config import Retrieval
    from engram.embedding import Reranker
    from engram.index import EpisodeIndex
    from engram.retrieval.passages import Passage
    from engram.storage import Memory, Store

_EXPANSIONS_MOST: Final = 8
_WITHHELD_MOST: Final = 10
"""Memories that may not be returned and that an explanation names, of each channel."""

_NEIGHBOUR: Final = 0.5
_TOKENS: Final = 8
_TOKEN_LENGTH: Final = 3
_PER_PHRASE: Final = 0.6
_PER_TOKEN: Final = 0.08
_TOKENS_MOST: Final = 0.4


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One memory that a search returned.

    Attributes:
        id: Its id; "fact:" and the id of a fact.
        content: All of its text.
        score: How surely it answers the query, 0 to 1: no probability that it is true.
        layer: Such as "episodic"; a fact's is "semantic".
        memory_type: Such as "narrative"; a fact's is "fact".
        importance: 0 to 1.
        key: The store's own key for it.
    """

    id: str
    content: str
    score: float
    layer: str
    memory_type: str
    importance: float
    key: int = field(repr=False, compare=False, default=0)


@dataclass(slots=True)
class Candidate:
    """A memory on its way through a search, with what was observed of it.

    Attributes:
        memory: As it was read last; None once it is gone.
        id: Its public id.
        withheld: It may not be returned, and is here for the explanation only.
        scores: By the name of what gave them.
        ranks: From 1, by the name of the order.
        passage: The excerpt that was read beside the whole text.
        retried: Whether that was because the whole text fell short of the confidence asked for.
        base: The reranker's output for the whole text.
        excerpt: Its output for the excerpt.
        passed: Whether it is as sure as was asked for; None before that is known.
        promoted: Whether it owes its place to the order before the reranker.
    """

    memory: Memory | None
    id: str = ""
    withheld: bool = False
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    passage: Passage | None = None
    retried: bool = False
    base: float | None = None
    excerpt: float | None = None
    passed: bool | None = None
    promoted: bool = False

    @property
    def output(self) -> float:
        """The better of the reranker's outputs."""
        return max(one for one in (self.base, self.excerpt) if one is not None)

    @property
    def eligible(self) -> bool:
        """Whether its lifecycle lets it be returned."""
        return self.memory is not None and self.memory.standing == "eligible"


class Search:
    """One search.

    Args:
        question: What is asked.
        k: How many memories to return at most.
        settings: The configuration of retrieval.
        half_life: Days in which the weight of an episode's age halves.
        agent: Whose memories; None is everyone's.
        now: The time, in microseconds.
    """

    def __init__(
        self,
        question: Question,
        k: int,
        settings: Retrieval,
        half_life: float,
        agent: str | None,
        now: int,
    ) -> None:
        self.question = question
        self.k = k
        self.settings = settings
        self.half_life = half_life
        self.budget = max(settings.rerank_candidates, k)
        self.expansions: list[str] = []
        self.channels: dict[str, int] = dict.fromkeys(CHANNELS, 0)
        self.candidates: dict[int, Candidate] = {}
        self.reranked: list[Candidate] = []
        self.final: list[Candidate] = []
        self.damaged = 0
        self._agent = agent
        self._now = now

    @property
    def bm25_query(self) -> str:
        """What full text is asked: the question, and other names of those it names."""
        return " ".join([self.question.text, *self.expansions])

    def gather(
        self, store: Store, index: EpisodeIndex, vector: NDArray[np.float32], *, explain: bool
    ) -> None:
        """Read the candidates, inside a transaction of the caller's.

        Args:
            store: The store.
            index: The index of its episodes.
            vector: float32[dim], the question's, unit length, rounded as stored vectors are.
            explain: Whether to look as well for what may not be returned.

        Raises:
            CorruptStore: The store's rows are not what its change log says.
        """
        refreshed(index, lambda: self._gather(store, index, vector, explain=explain))

    def _gather(
        self, store: Store, index: EpisodeIndex, vector: NDArray[np.float32], *, explain: bool
    ) -> None:
        self.candidates.clear()
        entities = store.names.entities(self.question.names, self._agent)
        if self.settings.enable_query_expansion:
            self.expansions = self._other_names(store.names.of(entities))
        allowed = EpisodeFilter(agent=self._agent, exclude_quarantined=True)
        for name, ranking in (
            *self._by_text(index, vector, allowed, self.settings.dense_multiplier * self.k),
            ("graph", self._by_name(store, entities)),
        ):
            self.channels[name] = len(ranking)
            for rank, (key, score) in enumerate(ranking, 1):
                candidate = self.candidates.setdefault(key, Candidate(None))
                candidate.scores[name] = score
                candidate.ranks[name] = rank
        if explain:
            self._add_withheld(index, vector)
        for key, memory in store.memories.read(self.candidates, self._now).items():
            self.candidates[key].memory = memory
            self.candidates[key].id = memory.id
        self._fuse()

    def _other_names(self, names: Iterable[str]) -> list[str]:
        asked = {name.casefold() for name in self.question.names}
        return [name for name in names if name.casefold() not in asked][:_EXPANSIONS_MOST]

    def _by_text(
        self,
        index: EpisodeIndex,
        vector: NDArray[np.float32],
        allowed: EpisodeFilter,
        dense: int,
        bm25: int | None = None,
    ) -> list[tuple[str, list[tuple[int, float]]]]:
        """Return the nearest by meaning, and the best by their words."""
        near = nearest(index, vector, min(dense, MAX_K), allowed, "high")
        limit = self.settings.bm25_multiplier * self.k if bm25 is None else bm25
        limit = min(limit, MAX_K)
        matches, scores = index.match(self.bm25_query, allowed, limit, every_word=True)
        return [
            (
                "dense",
                list(zip(near.episodes.tolist(), cosines(near.distances).tolist(), strict=True)),
            ),
            ("bm25", list(zip(matches.tolist(), scores.tolist(), strict=True))),
        ]

    def _by_name(self, store: Store, entities: Sequence[int]) -> list[tuple[int, float]]:
        """Return what is known of those the question names, and of their neighbours."""
        names, agent, k = store.names, self._agent, self.k
        # An alias is declared for the whole file; the facts are those that the agent may see.
        asked = self.question.names
        everyones = entities if agent is None else names.entities(asked, None)
        about = [*asked, *names.of(everyones)]
        found = {-fact: 1.0 for fact in names.facts(about, agent, k, self._now)}
        strengths = [(entity, 1.0) for entity in entities]
        strengths += [(e, _NEIGHBOUR * weight) for e, weight in names.neighbours(entities, agent)]
        for entity, strength in strengths:
            for key in names.episodes(entity, agent, k):
                found[key] = max(found.get(key, 0.0), strength)
        # Of equally strong ones the newest: all of them would be too many.
        return sorted(found.items(), key=lambda one: (-one[1], -abs(one[0])))[:k]

    def _add_withheld(self, index: EpisodeIndex, vector: NDArray[np.float32]) -> None:
        """Add near ones of those that may not be returned: they take no room from the others."""
        allowed = EpisodeFilter(agent=self._agent, standing="withheld")
        for name, ranking in self._by_text(index, vector, allowed, _WITHHELD_MOST, _WITHHELD_MOST):
            for key, score in ranking:
                candidate = self.candidates.setdefault(key, Candidate(None, withheld=True))
                candidate.scores[name] = score

    def _fuse(self) -> None:
        """Order the candidates by weighted reciprocal ranks, then by what is known of each."""
        weights = self.question.weights
        fused = []
        for key, candidate in self.candidates.items():
            if candidate.withheld or candidate.memory is None:
                continue
            candidate.scores["rrf"] = sum(
                weights[name] / (self.settings.rrf_k + rank)
                for name, rank in candidate.ranks.items()
            )
            candidate.scores["boosted"] = candidate.scores["rrf"] * self._prior(candidate.memory)
            fused.append((key, candidate))
        for order in ("rrf", "boosted"):
            fused.sort(key=lambda one: (-one[1].scores[order], one[0]))
            for rank, (_, candidate) in enumerate(fused, 1):
                candidate.ranks[order] = rank
        self.reranked = [candidate for _, candidate in fused[: self.budget]]
        for rank, candidate in enumerate(self.reranked, 1):
            candidate.ranks["prior"] = rank

    def _prior(self, memory: Memory) -> float:
        """Return how much more a memory is worth before it is read: around 1."""
        prior = 0.8 + 0.4 * memory.importance
        prior *= 1.0 + self._exactness(memory.content) * (self.settings.exact_match_boost - 1.0)
        if memory.layer == "episodic":
            age = max(self._now - memory.recorded_at, 0) / DAY
            prior *= 0.5 + 0.5 * 2.0 ** (-age / self.half_life)
        return prior

    def _exactness(self, content: str) -> float:
        """Return how literally a text has the question's phrases and words, 0 to 1."""
        text = content.casefold()
        words = [
            term for term in self.question.terms if len(term) >= _TOKEN_LENGTH or not term.isascii()
        ][:_TOKENS]
        hits = sum(word in text for word in words)
        phrases = sum(phrase.casefold() in text for phrase in self.question.phrases)
        return min(1.0, _PER_PHRASE * phrases + min(_TOKENS_MOST, _PER_TOKEN * hits))

    def judge(self, reranker: Reranker) -> None:
        """Have the first candidates reread; outside any transaction.

        Raises:
            ModelMissing, ModelCorrupt: The reranker cannot be used.
        """
        read = [(one, one.memory.content) for one in self.reranked if one.memory is not None]
        if not read:
            return
        texts = [content for _, content in read]
        raw = reranker.scores(self.question.text, texts)
        sure = reranker.calibrated(raw)
        for (candidate, _), score in zip(read, raw.tolist(), strict=True):
            candidate.base = score
        self._reread(reranker, [(*one, how) for one, how in zip(read, sure.tolist(), strict=True)])
        raw = np.array([candidate.output for candidate, _ in read], dtype=np.float64)
        alpha = self.settings.rerank_fusion_alpha
        for (candidate, _), score, how in zip(
            read, raw.tolist(), reranker.calibrated(raw).tolist(), strict=True
        ):
            named = "raw_logit" if reranker.output == "raw_logit" else "normalized_model_score"
            candidate.scores |= {
                "cross_encoder": score,
                named: score,
                "cross_encoder_calibrated": how,
                "temporal_boost": 0.0,
                "final": (1.0 - alpha) * how + alpha / candidate.ranks["prior"],
            }

    def _reread(self, reranker: Reranker, read: list[tuple[Candidate, str, float]]) -> None:
        """Have the best passage of each long text read that fell short as a whole."""
        settings = self.settings
        if not settings.rerank_passage_fallback or not settings.rerank_passage_floor:
            return
        none_will_do = all(how < settings.rerank_passage_floor for _, _, how in read)
        short = [
            (candidate, passage)
            for candidate, content, how in read
            if (none_will_do or how < settings.min_confidence)
            and (passage := best_passage(self.question.text, content)) is not None
        ]
        if not short:
            return
        raw = reranker.scores(self.question.text, [passage.text for _, passage in short])
        for (candidate, passage), score in zip(short, raw.tolist(), strict=True):
            candidate.passage, candidate.excerpt = passage, score
            candidate.retried = not none_will_do

    def conclude(self, store: Store) -> list[SearchHit]:
        """Return what is sure enough and may still be returned, best first; in a transaction."""
        standings = store.memories.standings(self.candidates, self._now)
        for key, candidate in self.candidates.items():
            standing = standings.get(key)
            if standing is None or candidate.memory is None:
                candidate.memory = None
            else:
                candidate.memory = candidate.memory._replace(standing=standing)
        scored = [one for one in self.reranked if "final" in one.scores and one.eligible]
        scored.sort(key=lambda one: (-one.scores["final"], one.ranks["prior"]))
        floor = self.settings.min_confidence
        for rank, candidate in enumerate(scored, 1):
            candidate.ranks["scored"] = rank
            candidate.passed = not floor or candidate.scores["final"] >= floor
        passed = [one for one in scored if one.passed]
        _rank(passed, "before_coverage")
        self._cover(passed)
        _rank(passed, "after_coverage")
        self.final = passed[: self.k]
        _rank(self.final, "final")
        return [
            hit_of(one.memory, round(one.scores["final"], 4))
            for one in self.final
            if one.memory is not None
        ]

    def _cover(self, passed: list[Candidate]) -> None:
        """Keep the best of the order before the reranker among the first k, as the last of them."""
        if not self.settings.preserve_prior_candidate or self.k < 2 or len(passed) <= self.k:
            return
        prior = min(passed, key=lambda one: one.ranks["prior"])
        if passed.index(prior) >= self.k:
            passed.remove(prior)
            passed.insert(self.k - 1, prior)
            prior.promoted = True


def _rank(ordered: list[Candidate], name: str) -> None:
    for rank, candidate in enumerate(ordered, 1):
        candidate.ranks[name] = rank


def hit_of(memory: Memory, score: float) -> SearchHit:
    """Return a memory as a search returns it."""
    return SearchHit(
        memory.id,
        memory.content,
        score,
        memory.layer,
        memory.memory_type,
        memory.importance,
        memory.key,
    )
