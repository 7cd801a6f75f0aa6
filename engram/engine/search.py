"""Search: the memories that answer a query, as sure of it as was asked for."""

from __future__ import annotations

import logging
import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.arguments import MAX_QUERY, MAX_RESULTS
from engram.embedding.cache import digest_of
from engram.engine.dormancy import DormantShadow
from engram.engine.reranking import DEFAULT_CROSS_ENCODER, Reranking
from engram.errors import EngramError, InvalidArgument
from engram.retrieval.answers import Answers
from engram.retrieval.question import Question
from engram.retrieval.report import explanation
from engram.retrieval.search import Search, hit_of
from engram.times import DAY
from engram.tracing import stage

if TYPE_CHECKING:
    from engram.config import DormantRecall, Retrieval
    from engram.embedding import Reranker
    from engram.retrieval.search import SearchHit

_HALF_LIFE: Final = 30.0

_LOG = logging.getLogger("engram.search")


class MemorySearch(DormantShadow, Reranking):
    """The calls that search with a reranker."""

    @cached_property
    def _answers(self) -> Answers:
        return Answers()

    def search(
        self,
        query: str,
        k: int | None = None,
        *,
        settings: Retrieval | None = None,
        cross_encoder: str = DEFAULT_CROSS_ENCODER,
        half_life_days: float = _HALF_LIFE,
        dormant: DormantRecall | None = None,
    ) -> list[SearchHit]:
        """Return the memories that answer a query, as sure of it as `settings` ask for.

        Unlike `recall`, it returns facts too, reads the best candidates again with a reranker and
        leaves out what that is not sure of, so that the answer may be empty. Quarantined memories
        are left out. What it returns counts as recalled; the query is not kept.

        Args:
            query: Any text of 1 to 4,000 characters that is not blank.
            k: How many at most, 1 to 20; None is `settings.top_k`.
            settings: How to search; see `engram.config.Retrieval`.
            cross_encoder: Name of a reranker, used if it is on this machine. Otherwise the
                embedder's own token vectors are compared.
            half_life_days: Days in which the weight of an episode's age halves, before the
                reranker.
            dormant: In mode "shadow" the search also notes what it might have shown of memories
                that nobody asked about for long, see `engram.config.DormantRecall`. That changes
                no answer and shows in `Ledger.review_dormant`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch, ModelCorrupt: A model cannot be used.
            Closed, Busy, CorruptStore: The store cannot be read.
        """
        asked = self._asked(query, k, settings, half_life_days)
        # Of the day as well: the weight of an age changes with it.
        how = asked.k, asked.settings, half_life_days, cross_encoder, self._now() // DAY
        key = digest_of(asked.question.text), how
        with self._store.reading():
            change = self._store.last_change()
            hits = self._kept_hits(self._answers.get(key, change))
        if hits is None:
            hits = self._run(asked, cross_encoder, explain=False)[0]
            kept = [(hit.key, hit.score) for hit in hits]
            self._answers.put(key, change, kept, asked.settings.search_cache_size)
        if dormant is not None:
            # Before the access is noted: what lay dormant until now counts as looked at.
            answered = {hit.key for hit in hits}
            reranker = partial(self._reranker, cross_encoder)
            self._evaluate_dormant(asked.question.text, answered, reranker, dormant)
        self._note_access(hits)
        return hits

    def search_explained(
        self,
        query: str,
        k: int | None = None,
        *,
        settings: Retrieval | None = None,
        cross_encoder: str = DEFAULT_CROSS_ENCODER,
        half_life_days: float = _HALF_LIFE,
    ) -> tuple[list[SearchHit], dict[str, object]]:
        """Return what `search` would, and how it came about. Leaves no trace in the store.

        Args:
            query: As for `search`.
            k: As for `search`.
            settings: As for `search`.
            cross_encoder: As for `search`.
            half_life_days: As for `search`.

        Returns:
            The memories, and a report that JSON has a form for; see the JSONL reference for its
            members.

        Raises:
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, ModelCorrupt, Closed, Busy,
                CorruptStore: As for `search`.
        """
        asked = self._asked(query, k, settings, half_life_days)
        begun = time.perf_counter()
        hits, reranker, model = self._run(asked, cross_encoder, explain=True)
        seconds = time.perf_counter() - begun
        return hits, explanation(asked, reranker, model, seconds)

    def _asked(
        self, query: str, k: int | None, settings: Retrieval | None, half_life_days: float
    ) -> Search:
        text = arguments.text(query, "query")
        if not 1 <= len(text) <= MAX_QUERY or not text.strip():
            message = f"query must have 1 to {MAX_QUERY} characters, not all of them blank"
            raise InvalidArgument(message)
        chosen = settings or _defaults()
        count = arguments.integer(chosen.top_k if k is None else k, "k", 1, MAX_RESULTS)
        half_life = arguments.number(half_life_days, "half_life_days", 1e-6)
        return Search(Question.read(text), count, chosen, half_life, self._agent, self._now())

    def _run(
        self, search: Search, cross_encoder: str, *, explain: bool
    ) -> tuple[list[SearchHit], Reranker | None, str | None]:
        with self._searching(search.question.text) as found:
            if found is None:
                return [], None, None
            vector, index = found
            with stage("rank"):
                search.gather(self._store, index, vector, explain=explain)
            model, search.damaged = index.model, len(self._store.embeddings.damaged)
        if search.damaged:
            _LOG.warning("%d memories have damaged vectors: they are left out", search.damaged)
        if self._upkeep is not None and not explain:
            self._upkeep.start()
        reranker = self._reranker(cross_encoder, self._the_embedder(model))
        with stage("rerank"):
            search.judge(reranker)
        with self._store.reading(), stage("read"):
            return search.conclude(self._store), reranker, model.name

    def _kept_hits(self, kept: list[tuple[int, float]] | None) -> list[SearchHit] | None:
        """Return an answer that was kept with its memories read again, in a transaction."""
        if kept is None:
            return None
        memories = self._store.memories.read((key for key, _ in kept), self._now())
        found = [(memories.get(key), score) for key, score in kept]
        return [
            hit_of(memory, score)
            for memory, score in found
            if memory is not None and memory.standing == "eligible"
        ]

    def _note_access(self, hits: list[SearchHit]) -> None:
        """Keep which memories were returned; an answer does not depend on whether that works."""
        keys = [hit.key for hit in hits if hit.key > 0]
        if not keys:
            return
        try:
            self._store.note_recall(self._agent, None, self._now(), keys)
            self._store.flush(wait=False)
        except EngramError as error:
            _LOG.warning("an access could not be recorded at once: %s", type(error).__name__)


def _defaults() -> Retrieval:
    from engram.config import Retrieval  # noqa: PLC0415 - slow, and of no use without a search

    return Retrieval()
