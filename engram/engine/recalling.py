"""Recall of all memories: episodes and facts in one answer."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Unpack

from engram import arguments
from engram.embedding import embed_documents
from engram.engine.episodes import EpisodeMemory
from engram.engine.recall_query import recall_query
from engram.errors import Busy, CannotOpen, InvalidArgument, StoreFull
from engram.index import FACT, FactIndex
from engram.retrieval import KINDS, FactQuery, recall_memories
from engram.storage import FactFilter
from engram.times import to_micros
from engram.tracing import stage

if TYPE_CHECKING:
    from datetime import datetime

    from engram.models import FactResult, Filters, SearchResult, StoredModel
    from engram.retrieval import Blending

_AT_ONCE: Final = 1024
"""Facts that one recall embeds at most, some seconds' work; the others are found by their words."""

_WRITTEN: Final = 128
"""Facts that are embedded for one short transaction."""

_PATIENCE: Final = 1.0
"""Seconds a recall waits for another connection's write: a later one can make the vectors."""


class MemoryRecall(EpisodeMemory):
    """The call that looks for episodes and facts."""

    @cached_property
    def _fact_index(self) -> FactIndex:
        """The facts in memory; used inside the store's transactions."""
        return FactIndex(self._store)

    def recall_memories(
        self,
        query: str,
        k: int = 5,
        *,
        kind: str = "any",
        mode: str = "hybrid",
        accuracy: str = "high",
        depth: int = 2,
        decay: float = 0.5,
        vector_weight: float = 0.5,
        fts_weight: float = 0.5,
        as_of: datetime | None = None,
        cross_agent: bool = False,
        candidate_limit: int | None = None,
        min_score: float | None = None,
        blending: str | Blending = "complete",
        **filters: Unpack[Filters],
    ) -> list[SearchResult | FactResult]:
        """Return the episodes and facts that answer a query best, best first.

        Both kinds are ranked together, on one scale. A fact is found by its three parts, by their
        words and by their meaning; it has to hold, now or at `as_of`. Ties are in insertion order,
        episodes before facts.

        Facts that may be returned and have no vector are embedded first, 1,024 at most, the newest
        of them; the next call, or `maintain`, goes on. Until then the others are found by their
        words alone, in mode "hybrid". So are all of them where their vectors cannot be written,
        because somebody else has been writing for more than a second or the disk is full.

        The query is kept in the access log only where all results are episodes: erasing a fact
        leaves no query that returned it.

        Args:
            query: As for `recall`.
            k: How many, 1 to 4096.
            kind: "any"; "episodic": what `recall` returns; "semantic": facts alone.
            mode: As for `recall`. In mode "spreading" a fact has the activation of its subject or
                its object, the larger one, and its confidence counts as an episode's importance.
            accuracy: As for `recall`.
            depth: As for `recall`.
            decay: As for `recall`.
            vector_weight: As for `recall`.
            fts_weight: As for `recall`.
            as_of: Only episodes that had happened by then, and facts that held then, superseded
                ones too. Without it no superseded fact is returned.
            cross_agent: Look at every agent's episodes. Facts are those of every other read: shared
                ones and the agent's own.
            candidate_limit: As for `recall`.
            min_score: As for `recall`.
            blending: As for `recall`. A fact is in no conversation; it happened when it began to
                hold.
            **filters: As for `recall`. Of a fact `since` and `until` ask when it began to hold,
                `provenance` and `exclude_quarantined` what `why` says. With `tags` or `actors`
                there are no facts.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch: The query, or a fact, cannot be embedded as what the store
                holds was, or the cross-encoder asked for is not on this machine.
            ModelCorrupt: The model, or the reranker that `blending` names, cannot be used.
            Closed, Busy, CorruptStore: The store cannot be read.
        """
        if kind not in KINDS:
            message = f"kind must be one of {', '.join(KINDS)}"
            raise InvalidArgument(message)
        allowed = arguments.allowed(self._scope(cross_agent), filters)
        at = self._now() if as_of is None else to_micros(as_of, "as_of")
        until = [one for one in (allowed.until, None if as_of is None else at) if one is not None]
        asked = recall_query(
            query,
            k,
            replace(allowed, until=min(until, default=None)),
            mode=mode,
            accuracy=accuracy,
            depth=depth,
            decay=decay,
            vector_weight=vector_weight,
            fts_weight=fts_weight,
            candidate_limit=candidate_limit,
            min_score=min_score,
            blending=blending,
            now=at,
        )
        if kind == "episodic":
            return [*self._recall(asked)]
        wanted = FactFilter(
            self._agent,
            open=as_of is None,
            since=allowed.since,
            until=allowed.until,
            provenances=allowed.provenances,
            exclude_quarantined=allowed.exclude_quarantined,
            nothing=bool(allowed.tags or allowed.actors),
        )
        with suppress(Busy, StoreFull, CannotOpen):
            self._embed_facts(wanted, at, _PATIENCE)
        facts = FactQuery(wanted, at, self._agent, only=kind == "semantic")
        with self._searching(asked.text) as found:
            vector, index = found or (asked.vector, None)
            asked = replace(asked, vector=vector)
            ranking, candidates = recall_memories(
                self._store, index, self._fact_index, self._adjacency, asked, facts
            )
        results, keys = self._chosen(asked, ranking, candidates)
        episodes = keys[keys < FACT].tolist()
        self._recalled(asked.text if len(episodes) == len(results) else None, episodes)
        return results

    def maintain(self) -> None:
        """Bring the index up to date, merge its parts and embed facts: the next recalls are fast.

        Recalls do this themselves as far as they need it, and a thread in the background goes on
        with the index where it takes longer. Worth a call after a large import. Writers need not
        wait for it: no transaction of it lasts longer than reading or marking a part, or writing
        the vectors of some facts. Of the facts those get theirs that this instance may see and that
        hold now.

        Raises:
            ModelMissing, ModelMismatch: A fact cannot be embedded as what the store holds was; the
                index is up to date.
            Busy, StoreFull, Closed: The store cannot be read, or not be told of the result.
        """
        super().maintain()
        wanted, before = FactFilter(self._agent, open=True), list[int]()
        # What a round could not change, another will not.
        while (left := self._embed_facts(wanted, self._now(), None)) != before:
            before = left

    def _embed_facts(self, wanted: FactFilter, at: int, wait: float | None) -> list[int]:
        """Give vectors to the newest facts that may be returned and have none.

        Args:
            wanted: Which may be returned.
            at: When they hold, in microseconds.
            wait: Seconds to wait for another connection's lock; None is the busy timeout.

        Returns:
            Those that have none yet.

        Raises:
            ModelMissing, ModelMismatch: They cannot be embedded as what the store holds was.
            Busy, StoreFull, CannotOpen: Their vectors cannot be written.
        """
        stored, lacking, texts = self._lacking(wanted, at)
        for begin in range(0, len(texts), _WRITTEN):
            self._embed_some(texts[begin : begin + _WRITTEN], stored, wait)
        # The index takes over what was written.
        return self._lacking(wanted, at)[1] if texts else lacking

    def _lacking(
        self, wanted: FactFilter, at: int
    ) -> tuple[StoredModel | None, list[int], list[tuple[int, str]]]:
        with self._store.reading():
            self._fact_index.refresh()
            lacking = self._fact_index.lacking(wanted, at)
            texts = self._store.fact_search.statements(lacking[-_AT_ONCE:]) if lacking else []
            return self._store.model(), lacking, texts

    def _embed_some(
        self, texts: list[tuple[int, str]], stored: StoredModel | None, wait: float | None
    ) -> None:
        embedder = self._the_embedder(stored)
        self._check_model(embedder, stored)
        with stage("embed"):
            vectors, counts = embed_documents(embedder, [text for _, text in texts])
        with self._store.writing(wait=wait):
            current = self._store.model()
            if self._same_model(embedder, current):
                model = self._model_key(embedder, current)
                self._store.fact_search.put([key for key, _ in texts], vectors, counts, model)
