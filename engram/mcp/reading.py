"""The tools that read an agent's memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engram.errors import NotFound
from engram.mcp import parameters as given
from engram.mcp import results
from engram.mcp.options import IN_MEMORY
from engram.mcp.parameters import check_scope, moment
from engram.provenance import TRUSTED_PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Collection

    from engram import Engram
    from engram.mcp.opening import Opening
    from engram.mcp.options import Options
    from engram.mcp.trust import Session
    from engram.models import Fact, Filters

__all__ = ["Reading"]


class Reading:
    """The tools that return what is stored, and tell the session what they return.

    Args:
        store: The memory.
        session: What the session is trusted with.
        options: How the server was started.
    """

    def __init__(self, store: Opening[Engram], session: Session, options: Options) -> None:
        self._store = store
        self._session = session
        self._agent = options.agent_id
        self._db = options.db

    def recall(
        self,
        query: given.Query,
        limit: given.Limit = 5,
        agent_id: given.Identity = None,
        mode: given.Mode = "hybrid",
        kind: given.FoundKind = "any",
        as_of: given.AsOf = None,
        tags: given.Tags = None,
        actors: given.Actors = None,
        since: given.Since = None,
        until: given.Until = None,
        trusted_only: given.TrustedOnly = False,
    ) -> list[results.FoundEpisode | results.FoundFact]:
        """Return the memories that answer a query."""
        check_scope(agent_id, self._agent)
        when = moment(as_of, "as_of")
        filters = _filters(tags, actors, since, until, trusted_only)
        found = self._store.get().recall_memories(
            query, limit, kind=kind, mode=mode, as_of=when, **filters
        )
        items = [results.found(hit) for hit in found]
        self._session.returning("recall", map(results.returned, items))
        return items

    def why(self, memory_id: given.MemoryId) -> results.Explanation:
        """Return what there is to say about a fact, else about an episode of the agent."""
        memory = self._store.get()
        try:
            explained = results.explained_fact(memory.get_fact(memory_id), memory.why(memory_id))
        except NotFound:
            try:
                explained = results.explained_episode(
                    memory.get(memory_id), *memory.accesses(memory_id)
                )
            except NotFound:
                raise results.not_found() from None
        self._session.returning("why", [results.returned(explained)])
        return explained

    def timeline(
        self,
        entity: given.EntityName,
        as_of: given.AsOf = None,
        known_at: given.KnownAt = None,
        limit: given.Limit = 100,
    ) -> results.Timeline:
        """Return the facts about an entity, and of too many those that began last."""
        holds, known = moment(as_of, "as_of"), moment(known_at, "known_at")
        memory = self._store.get()
        facts = memory.timeline(entity, as_of=holds, known_at=known)
        items = list(self._listed(memory, facts[-limit:]).values())
        self._session.returning("timeline", map(results.returned, items))
        return {"facts": items, "more": len(facts) > limit}

    def contradictions(self, limit: given.Limit = 50) -> results.Contradictions:
        """Return the pairs of facts that cannot both hold, and of too many the first."""
        memory = self._store.get()
        found = memory.contradictions(limit=limit + 1)
        pairs = found[:limit]
        listed = self._listed(memory, {fact.id: fact for pair in pairs for fact in pair}.values())
        # One that was forgotten meanwhile contradicts nothing.
        items: list[results.Contradiction] = [
            {"first": listed[first.id], "second": listed[second.id]}
            for first, second in pairs
            if first.id in listed and second.id in listed
        ]
        self._session.returning("contradictions", map(results.returned, listed.values()))
        return {"pairs": items, "more": len(found) > limit}

    @staticmethod
    def _listed(memory: Engram, facts: Collection[Fact]) -> dict[str, results.ListedFact]:
        """Return facts by id with how far each is to be trusted, without those just forgotten."""
        trust = memory.trust_of([fact.id for fact in facts])
        return {
            fact.id: results.listed_fact(fact, *trust[fact.id])
            for fact in facts
            if fact.id in trust
        }

    def recent(
        self,
        limit: given.Limit = 10,
        cursor: given.Cursor = None,
        tags: given.Tags = None,
        actors: given.Actors = None,
        since: given.Since = None,
        until: given.Until = None,
        trusted_only: given.TrustedOnly = False,
    ) -> results.Page:
        """Return a page of the agent's episodes, the newest first."""
        filters = _filters(tags, actors, since, until, trusted_only)
        page = self._store.get().episodes(limit=limit, cursor=cursor, **filters)
        items = [results.listed_episode(episode) for episode in page.episodes]
        self._session.returning("recent", map(results.returned, items))
        return {"memories": items, "cursor": page.cursor}

    def stats(self, agent_id: given.Identity = None) -> results.Statistics:
        """Return how much there is, and how the session stands."""
        check_scope(agent_id, self._agent)
        counts = self._store.get().counts()
        size = None if self._db == IN_MEMORY else Path(self._db).stat().st_size
        return results.statistics(
            counts,
            self._session.state(),
            agent_id=self._agent,
            db_path=self._db,
            db_size_bytes=size,
        )


def _filters(
    tags: list[str] | None,
    actors: list[str] | None,
    since: str | None,
    until: str | None,
    trusted_only: bool,
) -> Filters:
    filters: Filters = {
        "tags": tags,
        "actors": actors,
        "since": moment(since, "since"),
        "until": moment(until, "until"),
    }
    if trusted_only:
        filters |= {"provenance": TRUSTED_PROVENANCE, "exclude_quarantined": True}
    return filters
