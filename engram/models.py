"""The public data classes: what a caller passes in and gets back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypedDict

from engram.provenance import (
    DEFAULT_PROVENANCE,
    PROVENANCES,
    TRUSTED_PROVENANCE,
    UNKNOWN_PROVENANCE,
    check_provenance,
    is_untrusted,
    least_trusted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "DEFAULT_PROVENANCE",
    "MEMORY_TYPES",
    "PROVENANCES",
    "TRUSTED_PROVENANCE",
    "UNKNOWN_PROVENANCE",
    "CompressionRun",
    "Counts",
    "Edge",
    "Entity",
    "Episode",
    "EpisodePage",
    "Fact",
    "FactPage",
    "Filters",
    "ForgetResult",
    "ObserveInput",
    "ReflectionRun",
    "SearchResult",
    "StoredModel",
    "check_provenance",
    "is_untrusted",
    "least_trusted",
]


MEMORY_TYPES: Final = ("narrative", "fact", "procedure")
"""What a memory may be."""


def _from_iso(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _from_json(text: str | None) -> list[str]:
    values: list[str] = json.loads(text) if text else []
    return values


@dataclass
class ObserveInput:
    """One episode to remember, as `Engram.observe_many` takes it.

    Attributes:
        content: The text; any Unicode text, the empty one included.
        actors: Who took part, in order.
        tags: Labels, in order.
        salience: Subjective importance at encoding, 0 to 1.
        emotional_valence: From -1 (negative) to +1 (positive).
        timestamp: When it happened; a naive datetime is UTC; None is the time of the call.
        provenance: Where the text came from: "user", "tool" or "external".
        quarantined: The writer had read untrusted content before.
        metadata: A JSON object to keep with the episode.
        source_path: The file it came from; an absolute one makes the episode a memory of every
            folder above it, unless `metadata` names a project.
        source_type: How it came here, such as "ingest".
    """

    content: str
    actors: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    salience: float = 0.5
    emotional_valence: float = 0.0
    timestamp: datetime | None = None
    provenance: str = DEFAULT_PROVENANCE
    quarantined: bool = False
    metadata: dict[str, object] = field(default_factory=dict)
    source_path: str | None = None
    source_type: str | None = None


class Filters(TypedDict, total=False):
    """Conditions on episodes, all of which must hold.

    Attributes:
        tags: Only episodes with all of these tags.
        actors: Only episodes with all of these actors.
        since: Earliest event time, inclusive; a naive datetime is UTC.
        until: Latest event time, inclusive.
        provenance: Only episodes from this source, or from one of these.
        exclude_quarantined: Leave quarantined episodes out.
    """

    tags: Iterable[str] | None
    actors: Iterable[str] | None
    since: datetime | None
    until: datetime | None
    provenance: str | Iterable[str] | None
    exclude_quarantined: bool


@dataclass
class Episode:
    """One remembered observation.

    Attributes:
        id: The public id.
        content: The text as it was observed.
        timestamp: When it happened, in UTC.
        actors: Who took part, in the order given.
        tags: Labels, in the order given.
        salience: Subjective importance at encoding, 0 to 1.
        emotional_valence: From -1 (negative) to +1 (positive).
        summary_of: Ids of the episodes this one summarises, or, of an insight, was drawn from; they
            need not be there.
        importance_score: Importance as of the last decay; 1.0 before the first.
        agent_id: Who wrote it; None when the writer had no agent id.
        provenance: "user", "tool", "external", or "unknown" for old rows.
        quarantined: The writer had read untrusted content before.
        metadata: The JSON object it was observed with.
    """

    id: str
    content: str
    timestamp: datetime
    actors: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    salience: float = 0.5
    emotional_valence: float = 0.0
    summary_of: list[str] = field(default_factory=list)
    importance_score: float = 1.0
    agent_id: str | None = None
    provenance: str = UNKNOWN_PROVENANCE
    quarantined: bool = False
    metadata: dict[str, object] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Episode:
        """Return the episode of a row in the reference library's layout.

        Args:
            row: id, content, timestamp (ISO 8601), actors, tags (JSON), salience,
                emotional_valence, summary_of (JSON), importance_score; agent_id, provenance and
                quarantined may be missing, which reads as NULL. A NULL mark means that nobody
                recorded where the episode came from: quarantined, of unknown provenance.
        """
        agent_id, provenance, quarantined = (*row[9:12], None, None, None)[:3]
        legacy = quarantined is None or provenance is None
        return cls(
            id=row[0],
            content=row[1],
            timestamp=_from_iso(row[2]),
            actors=_from_json(row[3]),
            tags=_from_json(row[4]),
            salience=row[5],
            emotional_valence=row[6],
            summary_of=_from_json(row[7]),
            importance_score=1.0 if row[8] is None else row[8],
            agent_id=agent_id,
            provenance=UNKNOWN_PROVENANCE if legacy else provenance,
            quarantined=quarantined is None or bool(quarantined),
        )


@dataclass
class Fact:
    """One statement: subject, predicate, object.

    Attributes:
        id: The public id.
        subject: Whom or what it is about.
        predicate: The relation.
        object: The value.
        valid_from: When it begins to hold, in UTC.
        valid_to: When it stops to hold, exclusive; None is still open.
        recorded_at: When the store learned it.
        superseded_at: When the store learned that it no longer holds.
        superseded_by: Id of the fact that took its place.
        confidence: 0 to 1.
        derived_from: What it came from: ids of episodes that are still there, and names the
            caller gave.
        extracted_by: Id of the reflection run that extracted it.
        agent_id: Who wrote it, and alone may erase it.
        shared: Whether other agents see it.
        quarantined: Its writer had read untrusted content before.
    """

    id: str
    subject: str
    predicate: str
    object: str
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    superseded_at: datetime | None
    superseded_by: str | None
    confidence: float
    derived_from: list[str] = field(default_factory=list)
    extracted_by: str | None = None
    agent_id: str | None = None
    shared: bool = True
    quarantined: bool = False

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> Fact:
        """Return the fact of a row in the reference library's layout.

        Args:
            row: The fields in order, times in ISO 8601, derived_from in JSON. The last three may
                be missing, which reads as NULL: shared, and quarantined since nobody recorded its
                origin.
        """
        agent_id, shared, quarantined = (*row[12:15], None, None, None)[:3]
        return cls(
            id=row[0],
            subject=row[1],
            predicate=row[2],
            object=row[3],
            valid_from=_from_iso(row[4]),
            valid_to=None if row[5] is None else _from_iso(row[5]),
            recorded_at=_from_iso(row[6]),
            superseded_at=None if row[7] is None else _from_iso(row[7]),
            superseded_by=row[8],
            confidence=row[9],
            derived_from=_from_json(row[10]),
            extracted_by=row[11],
            agent_id=agent_id,
            shared=shared is None or bool(shared),
            quarantined=quarantined is None or bool(quarantined),
        )


@dataclass
class FactPage:
    """One page of `Engram.facts`.

    Attributes:
        facts: The facts, in the order they were recorded.
        cursor: Pass it to the next call to go on; None on the last page.
    """

    facts: list[Fact]
    cursor: str | None = None


@dataclass
class Entity:
    """A named person, place or thing.

    Attributes:
        id: The public id.
        name: The name it goes by.
        type: What it is; "unknown" unless somebody said so.
        aliases: Its other names.
        first_seen: When it was first mentioned, in UTC.
        last_seen: When it was last mentioned.
    """

    id: str
    name: str
    type: str
    aliases: list[str] = field(default_factory=list)
    first_seen: datetime | None = None
    last_seen: datetime | None = None


@dataclass
class Edge:
    """A connection of the entity graph.

    Attributes:
        src_id: Id of an episode or an entity.
        dst_id: Id of an entity.
        relation: What connects them, such as "mentions".
        weight: How firmly; from 1 on it conducts all there is.
        created_at: When it was made, in UTC.
    """

    src_id: str
    dst_id: str
    relation: str
    weight: float = 1.0
    created_at: datetime | None = None


@dataclass(frozen=True)
class Certificate:
    """How the meaning side of a recall was answered, and what that is worth.

    Attributes:
        accuracy: What was asked for: "exact", "high" or "fast".
        strategy: "scan": every matching vector was compared; "sketch": sign bits chose which to
            compare; "graph": a proximity graph did.
        exact: Whether the nearest memories are certainly those of a brute-force search.
        matching: Episodes, facts or both that the scope and the filters let through.
        considered: Vectors that were compared.
        reason: The choice in words.
    """

    accuracy: str
    strategy: str
    exact: bool
    matching: int
    considered: int
    reason: str


@dataclass
class SearchResult:
    """One hit of a recall.

    Attributes:
        episode: The episode.
        score: 0 to 1, higher is better. In cosine mode `1 / (1 + distance)`; in hybrid mode it
            says how this result ranks among the others of the same query and nothing across
            queries: see `Engram.recall`, `blending`.
        distance: L2 distance between the unit vectors of the query and of the episode's nearest
            chunk, 0 to 2; infinite while the episode's text waits to be embedded.
        importance: The episode's `importance_score` at the time of the recall.
        confidence: How surely it answers the query, 0 to 1, comparable across queries: made of the
            cosine and of how much of the query's words the episode has. None where only one of
            both was looked at: in the other modes, and while nothing is embedded.
        certificate: How the recall was answered, the same for all its results.
    """

    episode: Episode
    score: float
    distance: float
    importance: float = 1.0
    certificate: Certificate | None = field(default=None, repr=False, compare=False)
    confidence: float | None = None


@dataclass
class FactResult:
    """One fact among the hits of `Engram.recall_memories`.

    Attributes:
        fact: The fact.
        score: 0 to 1, on one scale with the episodes of the same answer.
        distance: L2 distance between the unit vectors of the query and of the fact's nearest chunk,
            0 to 2; infinite while the fact waits to be embedded.
        provenance: The least trusted source it ever had; "unknown" without one.
        quarantined: The fact is, or a source of it that is still there.
        confidence: As that of a `SearchResult`; how sure the fact itself is says `fact.confidence`.
        certificate: How the recall was answered, the same for all its results, of either kind.
    """

    fact: Fact
    score: float
    distance: float
    provenance: str
    quarantined: bool
    certificate: Certificate | None = field(default=None, repr=False, compare=False)
    confidence: float | None = None


@dataclass
class EpisodePage:
    """One page of `Engram.episodes`.

    Attributes:
        episodes: The episodes, in the order asked for.
        cursor: Pass it to the next call to go on; None on the last page.
    """

    episodes: list[Episode]
    cursor: str | None = None


@dataclass(frozen=True)
class StoredModel:
    """The embedding model whose vectors a store holds.

    Attributes:
        id: The store's own key for it.
        fingerprint: What changes whenever the vectors of the same text would change.
        name: The name it can be opened by; None for an embedder of the caller's own.
        dim: Numbers in a vector.
    """

    id: int
    fingerprint: str
    name: str | None
    dim: int


@dataclass(frozen=True)
class Counts:
    """How much a store holds.

    Episodes and reflections are the agent's when counted for one; facts and entities are the
    file's.

    Attributes:
        episodes: Episodes.
        embedded: Episodes that have vectors.
        facts: Facts, superseded ones included.
        active_facts: Facts that are neither closed nor superseded.
        entities: Named entities.
        reflections: Runs of reflection.
        last_reflection: When the last of them ended, in UTC.
        store_bytes: Size of the database, the write-ahead log's new pages included.
        index_bytes: Size of the files beside it that the index is kept in.
    """

    episodes: int
    embedded: int
    facts: int
    active_facts: int
    entities: int
    reflections: int
    last_reflection: datetime | None
    store_bytes: int = field(default=0, compare=False)
    index_bytes: int = field(default=0, compare=False)


@dataclass
class ReflectionRun:
    """What one call of `Engram.reflect` did.

    Attributes:
        id: The public id; the facts it extracted name it.
        started_at: When it began, in UTC.
        finished_at: When it ended; None for a dry run.
        episodes_processed: Episodes the language model read.
        facts_extracted: Facts that were stored.
        contradictions_resolved: Facts that were closed because a new one says otherwise.
        model_used: The language model; None without one.
        cost_tokens: Tokens it charged, replies that were discarded included.
        episodes_waiting: Episodes that still wait for a language model when the run ends.
        pruned: Ids of the episodes that had faded and were erased; in a dry run, that would be.
    """

    id: str
    started_at: datetime
    finished_at: datetime | None = None
    episodes_processed: int = 0
    facts_extracted: int = 0
    contradictions_resolved: int = 0
    model_used: str | None = None
    cost_tokens: int = 0
    episodes_waiting: int = 0
    pruned: list[str] = field(default_factory=list)


@dataclass
class CompressionRun:
    """What one call of `Engram.compress` did.

    Attributes:
        episodes_removed: Episodes that a summary took the place of.
        summaries_created: Summaries that were written.
        model_used: The language model; None when none was asked.
        cost_tokens: Tokens it charged, summaries that were discarded included.
    """

    episodes_removed: int
    summaries_created: int
    model_used: str | None = None
    cost_tokens: int = 0


@dataclass
class ForgetResult:
    """The receipt of an erasure.

    Attributes:
        entity: The name that was asked for.
        episodes_deleted: Episodes erased, summaries made of erased episodes among them.
        facts_deleted: Facts erased, those that rested on erased episodes alone among them.
        episode_ids: Ids of the erased episodes, in the order they were written.
        fact_ids: Ids of the erased facts, in the order they were written.
        removed: Rows taken from each table that lost any, by its name in the file format; under
            "query" the logged queries whose text was blanked.
        wiped: Whether the erased bytes have left every file of the store. False when another
            connection was in the way, or the store is too large to be rebuilt on the way:
            `compact` takes them away.
    """

    entity: str
    episodes_deleted: int
    facts_deleted: int
    episode_ids: list[str] = field(default_factory=list)
    fact_ids: list[str] = field(default_factory=list)
    removed: dict[str, int] = field(default_factory=dict)
    wiped: bool = False
