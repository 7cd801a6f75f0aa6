"""Episodes: remembering, recalling, listing and forgetting them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

import numpy as np

from engram import arguments
from engram.engine.forgetting import Forgetting
from engram.engine.recall_query import recall_query
from engram.engine.reranking import Reranking
from engram.errors import InvalidArgument, InvalidType, NotFound
from engram.index import Adjacency
from engram.models import EpisodePage, ObserveInput
from engram.paths import ownership
from engram.provenance import DEFAULT_PROVENANCE, check_provenance
from engram.retrieval import Query, recall
from engram.storage import NewEpisode, Origin
from engram.times import from_micros, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from engram.models import Episode, Filters, SearchResult
    from engram.retrieval import Blending

_PAGE_MAX = 1000
_BEYOND = 2**63
_LONGEST = 200


class EpisodeMemory(Forgetting, Reranking):
    """The calls about episodes."""

    @cached_property
    def _adjacency(self) -> Adjacency:
        """The entity graph in memory; used inside the store's transactions."""
        return Adjacency(self._store)

    def observe(
        self,
        content: str,
        *,
        actors: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        salience: float = 0.5,
        emotional_valence: float = 0.0,
        timestamp: datetime | None = None,
        provenance: str = DEFAULT_PROVENANCE,
        quarantined: bool = False,
        metadata: Mapping[str, object] | None = None,
    ) -> str:
        """Remember one episode and return its id.

        When this returns, the episode is committed and every later recall of any process sees it.

        Args:
            content: The text; any Unicode text of any length. Texts longer than the embedding
                model's window are embedded in overlapping chunks.
            actors: Who took part.
            tags: Labels to filter by.
            salience: Subjective importance at encoding, 0 to 1.
            emotional_valence: From -1 (negative) to +1 (positive).
            timestamp: When it happened; a naive datetime is UTC; None is now.
            provenance: Where it came from: "user", "tool" or "external".
            quarantined: The writer had read untrusted content before.
            metadata: A JSON object to keep with the episode; it is not searched. A `project_path`
                or `project_root` in it says which project's memory this is, see `remember`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is written.
            ModelMissing, ModelMismatch: There is no way to embed it; nothing is written.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        item = ObserveInput(
            content,
            actors=actors,  # type: ignore[arg-type] # checked and turned into names below
            tags=tags,  # type: ignore[arg-type]
            salience=salience,
            emotional_valence=emotional_valence,
            timestamp=timestamp,
            provenance=provenance,
            quarantined=quarantined,
            metadata=metadata,  # type: ignore[arg-type]
        )
        return self._remember([item])[0]

    def observe_many(self, items: Iterable[ObserveInput]) -> list[str]:
        """Remember many episodes in one transaction and return their ids, in order.

        All or none: one refused item, and nothing is written. Items without a timestamp share one.

        Raises:
            InvalidArgument, InvalidType: An item is refused; the message gives its position.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `observe`.
        """
        if isinstance(items, (str, bytes, ObserveInput)):
            message = f"items must be a list of ObserveInput, not {type(items).__name__}"
            raise InvalidType(message)
        return self._remember(list(items))

    def _remember(self, items: list[ObserveInput]) -> list[str]:
        now = self._now()
        new = [self._new_episode(item, now, at, len(items)) for at, item in enumerate(items)]
        if not new:
            return []
        with self._storing([episode.text for episode in new]) as (model, vectors, counts):
            ids = self._store.add_episodes(
                new, vectors, counts, model=model, agent=self._agent, now=now
            )
        self._emit("memory_written", ({"memory_id": uid, "kind": "episodic"} for uid in ids))
        return ids

    @staticmethod
    def _new_episode(item: ObserveInput, now: int, position: int, total: int) -> NewEpisode:
        where = f"items[{position}]." if total > 1 else ""
        if not isinstance(item, ObserveInput):
            message = f"items[{position}] must be an ObserveInput, not {type(item).__name__}"
            raise InvalidType(message)
        if not isinstance(item.provenance, str):
            message = f"{where}provenance must be a str, not {type(item.provenance).__name__}"
            raise InvalidType(message)
        return NewEpisode(
            content=arguments.text(item.content, f"{where}content"),
            occurred_at=now
            if item.timestamp is None
            else to_micros(item.timestamp, f"{where}timestamp"),
            actors=arguments.names(item.actors, f"{where}actors"),
            tags=arguments.names(item.tags, f"{where}tags"),
            salience=arguments.number(item.salience, f"{where}salience", 0.0, 1.0),
            emotional_valence=arguments.number(
                item.emotional_valence, f"{where}emotional_valence", -1.0, 1.0
            ),
            provenance=check_provenance(item.provenance),
            quarantined=arguments.flag(item.quarantined, f"{where}quarantined"),
            metadata=arguments.json_object(item.metadata, f"{where}metadata"),
            origin=_origin(item, where),
        )

    def forget(self, episode_id: str) -> None:
        """Erase an episode: its text, vectors, labels, full-text entries and access log.

        The text of every logged query that returned it goes too. Everything is overwritten; copies
        that SQLite may have left when it moved rows, and what the index has of it, go when the
        store is closed, see `compact`.

        Of an experience (see `ExperienceMemory`) also go those that were merged into it, for they
        say the same, and insights that were drawn from it.

        Raises:
            NotFound: No episode has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
        """
        self._forget(episode_id, "episode_id", self._not_found())

    def recall(
        self,
        query: str,
        k: int = 5,
        *,
        mode: str = "hybrid",
        accuracy: str = "high",
        depth: int = 2,
        decay: float = 0.5,
        vector_weight: float = 0.5,
        fts_weight: float = 0.5,
        as_of: datetime | None = None,
        cross_agent: bool = False,
        candidate_limit: int | None = None,
        k_inner: int | None = None,
        min_score: float | None = None,
        blending: str | Blending = "complete",
        **filters: Unpack[Filters],
    ) -> list[SearchResult]:
        """Return the episodes that answer a query best, best first.

        Every filter applies before the choice, so there are min(k, matching episodes) results;
        where meaning has no weight only those that have one of the query's words. Ties are in
        insertion order.

        Args:
            query: Any text; its words are matched literally, no operator has a meaning. Of a long
                one the first 10,000 characters count for its meaning and its dates, and the first
                256 distinct words. Of a blank one results have the confidence 0.
            k: How many, 1 to 4096.
            mode: "hybrid" blends meaning and words, "cosine" is meaning alone, "spreading" adds
                what is linked to the nearest episodes through the entities they mention.
            accuracy: How sure to be that nothing nearer in meaning was missed. "exact": certain, at
                any size. "high": certain in stores up to 20,000 episodes, and wherever the filters
                let few through, in all others nearly always right, in a fraction of the time.
                "fast": less often right, faster still. `SearchResult.certificate` says what was
                done.
            depth: Hops that spreading takes over the entity graph, 0 to 100; an episode and an
                entity it mentions are one hop apart. An entity of more than 200 edges passes
                activation on along its 200 strongest, the earlier of two equal ones.
            decay: The share of activation that survives a hop, 0 to 1.
            vector_weight: Share of meaning in hybrid mode, relative to `fts_weight`.
            fts_weight: Share of words in hybrid mode.
            as_of: Only episodes that had happened by then, inclusive.
            cross_agent: Look at every agent's episodes.
            candidate_limit: Candidates each side contributes in hybrid mode, never fewer than k.
                By default 64, or `k` where that is more, so that up to there results do not depend
                on `k`; by "min_max", whose scores do depend on it, 4 k.
            k_inner: Ignored, deprecated.
            min_score: Leave out results below this. In hybrid mode with "complete" blending, and
                once something is embedded, it is compared with the `confidence` of all candidates,
                which nobody else's texts change, otherwise with the `score` of results.
            blending: How hybrid mode makes one ranking of both sides; a `Blending`, or the name of
                a method with its defaults. "complete": the cosine and the words of every candidate,
                the words of its conversation, and more, see `Blending`. "min_max": each side's
                scores scaled to 0..1 among its own candidates. "reciprocal_rank": the sum of the
                weights over 60 + rank. Scores say how results of one query rank; the best has 1,
                or by "min_max" at most that.
            **filters: `tags`, `actors`, `since`, `until`, `provenance`, `exclude_quarantined`; see
                `Filters`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch: The query cannot be embedded as the store's episodes were,
                or the cross-encoder asked for is not on this machine.
            ModelCorrupt: The model, or the reranker that `blending` names, cannot be used.
            Closed, Busy, CorruptStore, CannotOpen: The store cannot be read.
        """
        if k_inner is not None:
            warnings.warn(
                "k_inner has no effect: filters apply before the choice",
                DeprecationWarning,
                stacklevel=3,  # past what traces the call
            )
        at = self._now() if as_of is None else to_micros(as_of, "as_of")
        asked = recall_query(
            query,
            k,
            arguments.allowed(self._scope(cross_agent), filters, as_of),
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
        return self._recall(asked)

    def _recall(self, asked: Query) -> list[SearchResult]:
        with self._searching(asked.text) as found:
            vector, index = found or (asked.vector, None)
            asked = replace(asked, vector=vector)
            ranking, candidates = recall(self._store, index, self._adjacency, asked)
        results, keys = self._chosen(asked, ranking, candidates)
        self._recalled(asked.text, keys.tolist())
        return results

    def _recalled(self, query: str | None, keys: list[int]) -> None:
        """Go on with the index where that takes longer, and keep the recall for the access log."""
        if self._upkeep is not None:
            self._upkeep.start()
        if keys:
            self._store.note_recall(self._agent, query, self._now(), keys)

    def get(self, episode_id: str) -> Episode:
        """Return one episode.

        Raises:
            NotFound: No episode has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(episode_id, "episode_id")
        with self._store.reading():
            episode = self._store.episodes.get(uid, self._agent)
        if episode is None:
            raise self._not_found()
        return episode

    def accesses(self, episode_id: str) -> tuple[int, datetime | None]:
        """Return how often recalls returned an episode, and when one last did, in UTC.

        For an agent its own recalls count, otherwise everyone's.

        Raises:
            NotFound: No episode has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
            Busy: The recalls that wait to be logged cannot be written.
        """
        uid = arguments.text(episode_id, "episode_id")
        self._store.flush()
        with self._store.reading():
            key = self._store.episodes.key(uid, self._agent)
            # One that is hidden has a key and cannot be got.
            if key is None or self._store.episodes.get(uid, self._agent) is None:
                raise self._not_found()
            found = self._store.strength.accesses(np.array([key], dtype=np.int64), self._agent)
        count, latest = int(found.counts[0]), int(found.latest[0])
        return count, from_micros(latest) if count else None

    def episodes(
        self,
        *,
        limit: int = 50,
        cursor: str | None = None,
        newest_first: bool = True,
        cross_agent: bool = False,
        **filters: Unpack[Filters],
    ) -> EpisodePage:
        """List episodes in the order of their event time, a page at a time.

        An episode that stays in the store appears on exactly one page, whatever is written or
        forgotten between two calls.

        Args:
            limit: Episodes per page, 1 to 1000.
            cursor: The `cursor` of the page before; None starts.
            newest_first: The direction; keep it, and the filters, from page to page.
            cross_agent: List every agent's episodes.
            **filters: As for `recall`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused, such as a foreign cursor.
        """
        size = arguments.integer(limit, "limit", 1, _PAGE_MAX)
        after = None if cursor is None else _read_cursor(cursor)
        backwards = arguments.flag(newest_first, "newest_first")
        allowed = arguments.allowed(self._scope(cross_agent), filters)
        with self._store.reading():
            rows = self._store.episodes.page(
                allowed, limit=size + 1, after=after, newest_first=backwards
            )
        page = rows[:size]
        following = "{}.{}".format(*page[-1][0]) if len(rows) > size else None
        return EpisodePage([episode for _, episode in page], following)

    def count(self, *, cross_agent: bool = False, **filters: Unpack[Filters]) -> int:
        """Return how many episodes there are; the filters are those of `recall`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        allowed = arguments.allowed(self._scope(cross_agent), filters)
        with self._store.reading():
            return self._store.episodes.count(allowed)

    @staticmethod
    def _not_found() -> NotFound:
        return NotFound("there is no such episode", "it may be forgotten, or another agent's")


def _origin(item: ObserveInput, where: str) -> Origin | None:
    """Return whose an episode is and where it came from, None where it says neither."""
    if item.source_path is None is item.source_type and not item.metadata:
        return None
    source = kind = None
    if item.source_path is not None:
        source = arguments.text(item.source_path, f"{where}source_path")
    if item.source_type is not None:
        kind = arguments.label(item.source_type, f"{where}source_type", _LONGEST)
    owner = ownership(item.metadata or {}, source)
    origin = Origin(owner.project, owner.conflict, owner.source, source, kind)
    return None if origin == Origin() else origin


def _read_cursor(cursor: str) -> tuple[int, int]:
    occurred_at, _, key = arguments.text(cursor, "cursor").partition(".")
    try:
        place = int(occurred_at), int(key)
    except ValueError:
        place = (_BEYOND, 0)
    if max(abs(part) for part in place) >= _BEYOND:
        message = "cursor is not one that came with a page"
        raise InvalidArgument(message)
    return place
