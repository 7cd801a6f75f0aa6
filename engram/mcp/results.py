"""What the tools of a memory return: their output schemas, and how results become them.

What a memory is worth stands before what it says: where it came from, and whether its writer had
read untrusted content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NotRequired

from typing_extensions import TypedDict

from engram.errors import NotFound
from engram.mcp.trust import Returned, SessionState
from engram.models import SearchResult
from engram.storage import fact_records

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engram.models import Counts, Episode, Fact, FactResult

NOTE: Final = "An episode is kept as it was observed; nothing was inferred to make it."
UNFADED: Final = 1.0
"""The importance of a fact: facts do not fade."""


class Written(TypedDict):
    """Of `remember`."""

    id: str
    kind: Literal["episodic", "semantic"]
    agent_id: str | None
    provenance: str | None
    quarantined: bool
    shared: bool


class ListedEpisode(TypedDict):
    """An episode as `recent` lists it."""

    kind: Literal["episodic"]
    id: str
    provenance: str
    quarantined: bool
    content: str
    timestamp: str
    actors: list[str]
    tags: list[str]
    importance: float


class FoundEpisode(ListedEpisode):
    """An episode as `recall` returns it."""

    score: float


class ListedFact(TypedDict):
    """A fact as `timeline` and `contradictions` list it."""

    kind: Literal["semantic"]
    id: str
    provenance: str
    quarantined: bool
    content: str
    subject: str
    predicate: str
    object: str
    confidence: float
    valid_from: str
    valid_to: str | None
    recorded_at: str
    superseded_at: str | None
    superseded_by: str | None
    agent_id: str | None
    shared: bool


class FoundFact(ListedFact):
    """A fact as `recall` returns it; it has every key that an episode has."""

    score: float
    importance: float
    timestamp: str
    actors: list[str]
    tags: list[str]


class Contradiction(TypedDict):
    """Two facts that cannot both hold."""

    first: ListedFact
    second: ListedFact


class Timeline(TypedDict):
    """Of `timeline`."""

    facts: list[ListedFact]
    more: bool


class Contradictions(TypedDict):
    """Of `contradictions`."""

    pairs: list[Contradiction]
    more: bool


class Page(TypedDict):
    """Of `recent`."""

    memories: list[ListedEpisode]
    cursor: str | None


class Explanation(TypedDict):
    """Of `why`; which keys there are depends on the kind."""

    kind: Literal["episodic", "semantic"]
    id: str
    provenance: str
    quarantined: bool
    agent_id: str | None
    content: NotRequired[str]
    timestamp: NotRequired[str]
    actors: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    salience: NotRequired[float]
    emotional_valence: NotRequired[float]
    importance_score: NotRequired[float]
    summary_of: NotRequired[list[str]]
    access_count: NotRequired[int]
    last_accessed: NotRequired[str | None]
    note: NotRequired[str]
    subject: NotRequired[str]
    predicate: NotRequired[str]
    object: NotRequired[str]
    confidence: NotRequired[float]
    valid_from: NotRequired[str]
    valid_to: NotRequired[str | None]
    recorded_at: NotRequired[str]
    extracted_from: NotRequired[list[str]]
    extracted_by_reflection_run: NotRequired[str | None]
    extraction_model: NotRequired[str | None]
    shared: NotRequired[bool]


class Removed(TypedDict):
    """Of `forget`."""

    id: str
    kind: Literal["episodic", "semantic"]
    deleted: Literal[True]


class Layers(TypedDict):
    """How many memories there are of each kind."""

    episodic: int
    semantic: int
    procedural: int


class Scope(TypedDict):
    """Which counts are this agent's, and which the whole file's."""

    scoped_to_agent: list[str]
    shared_across_agents: list[str]


class Statistics(TypedDict):
    """Of `stats`."""

    agent_id: str | None
    counts: Layers
    vector_index_size: int
    facts_total: int
    facts_active: int
    facts_superseded: int
    entities: int
    reflections: int
    scope: Scope
    session: SessionState
    db_path: str
    db_size_bytes: int | None


def written(
    uid: str,
    kind: Literal["episodic", "semantic"],
    agent_id: str | None,
    provenance: str | None,
    quarantined: bool,
    *,
    shared: bool = False,
) -> Written:
    """Return what a caller is told of a memory that was stored."""
    return {
        "id": uid,
        "kind": kind,
        "agent_id": agent_id,
        "provenance": provenance,
        "quarantined": quarantined,
        "shared": shared,
    }


def listed_episode(episode: Episode) -> ListedEpisode:
    """Return an episode as a list shows it."""
    return {
        "kind": "episodic",
        "id": episode.id,
        "provenance": episode.provenance,
        "quarantined": episode.quarantined,
        "content": episode.content,
        "timestamp": episode.timestamp.isoformat(),
        "actors": episode.actors,
        "tags": episode.tags,
        "importance": episode.importance_score,
    }


def found(hit: SearchResult | FactResult) -> FoundEpisode | FoundFact:
    """Return a memory as a recall shows it; a fact happened when it began to hold."""
    if isinstance(hit, SearchResult):
        return {**listed_episode(hit.episode), "importance": hit.importance, "score": hit.score}
    return {
        **listed_fact(hit.fact, hit.provenance, hit.quarantined),
        "score": hit.score,
        "importance": UNFADED,
        "timestamp": hit.fact.valid_from.isoformat(),
        "actors": [],
        "tags": [],
    }


def listed_fact(fact: Fact, provenance: str, quarantined: bool) -> ListedFact:
    """Return a fact as a list shows it.

    Args:
        fact: The fact.
        provenance: The least trusted of its sources'.
        quarantined: Whether it is, or a source.
    """
    return {
        "kind": "semantic",
        "id": fact.id,
        "provenance": provenance,
        "quarantined": quarantined,
        "content": fact_records.statement(fact.subject, fact.predicate, fact.object),
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "confidence": fact.confidence,
        "valid_from": fact.valid_from.isoformat(),
        "valid_to": _iso(fact.valid_to),
        "recorded_at": fact.recorded_at.isoformat(),
        "superseded_at": _iso(fact.superseded_at),
        "superseded_by": fact.superseded_by,
        "agent_id": fact.agent_id,
        "shared": fact.shared,
    }


def explained_episode(
    episode: Episode, access_count: int, last_accessed: datetime | None
) -> Explanation:
    """Return what there is to say about an episode."""
    return {
        "kind": "episodic",
        "id": episode.id,
        "provenance": episode.provenance,
        "quarantined": episode.quarantined,
        "agent_id": episode.agent_id,
        "content": episode.content,
        "timestamp": episode.timestamp.isoformat(),
        "actors": episode.actors,
        "tags": episode.tags,
        "salience": episode.salience,
        "emotional_valence": episode.emotional_valence,
        "importance_score": episode.importance_score,
        "summary_of": episode.summary_of,
        "access_count": access_count,
        "last_accessed": _iso(last_accessed),
        "note": NOTE,
    }


def explained_fact(fact: Fact, told: Mapping[str, object]) -> Explanation:
    """Return what there is to say about a fact.

    Args:
        fact: The fact.
        told: What `Engram.why` tells of it.
    """
    provenance, quarantined = trust_of(told)
    model = told["model"]
    return {
        "kind": "semantic",
        "id": fact.id,
        "provenance": provenance,
        "quarantined": quarantined,
        "agent_id": fact.agent_id,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "confidence": fact.confidence,
        "valid_from": fact.valid_from.isoformat(),
        "valid_to": _iso(fact.valid_to),
        "recorded_at": fact.recorded_at.isoformat(),
        "extracted_from": fact.derived_from,
        "extracted_by_reflection_run": fact.extracted_by,
        "extraction_model": None if model is None else str(model),
        "shared": fact.shared,
    }


def statistics(
    counts: Counts,
    session: SessionState,
    *,
    agent_id: str | None,
    db_path: str,
    db_size_bytes: int | None,
) -> Statistics:
    """Return what a store holds, and how the session stands."""
    return {
        "agent_id": agent_id,
        "counts": {
            "episodic": counts.episodes,
            "semantic": counts.active_facts,
            "procedural": 0,
        },
        "vector_index_size": counts.embedded,
        "facts_total": counts.facts,
        "facts_active": counts.active_facts,
        "facts_superseded": counts.facts - counts.active_facts,
        "entities": counts.entities,
        "reflections": counts.reflections,
        "scope": {
            "scoped_to_agent": ["episodic", "vector_index_size", "reflections"],
            "shared_across_agents": [
                "semantic",
                "facts_total",
                "facts_active",
                "facts_superseded",
                "entities",
            ],
        },
        "session": session,
        "db_path": db_path,
        "db_size_bytes": db_size_bytes,
    }


def trust_of(told: Mapping[str, object]) -> tuple[str, bool]:
    """Return the provenance and the quarantine of a fact, as `Engram.why` tells them."""
    return str(told["provenance"]), bool(told["quarantined"])


def returned(item: ListedEpisode | ListedFact | Explanation) -> Returned:
    """Return what trust looks at of something that is about to be returned."""
    return Returned(item["id"], item["provenance"], item["quarantined"])


def not_found() -> NotFound:
    """Return the error for an id of neither an episode nor a fact."""
    return NotFound("memory not found", "it may be forgotten, or another agent's")


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
