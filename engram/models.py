"""The public data classes: what a caller passes in and gets back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

from engram.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

__all__ = [
    "DEFAULT_PROVENANCE",
    "PROVENANCES",
    "TRUSTED_PROVENANCE",
    "UNKNOWN_PROVENANCE",
    "Counts",
    "Episode",
    "EpisodePage",
    "Filters",
    "ObserveInput",
    "SearchResult",
    "StoredModel",
    "check_provenance",
    "is_untrusted",
    "least_trusted",
]

PROVENANCES = ("user", "tool", "external")
"""The sources a writer may declare, most trusted first."""
UNKNOWN_PROVENANCE = "unknown"
DEFAULT_PROVENANCE = "external"
TRUSTED_PROVENANCE = "user"

_LEAST_TRUSTED_FIRST = (UNKNOWN_PROVENANCE, *reversed(PROVENANCES))


def check_provenance(value: str) -> str:
    """Return `value` if a writer may declare it.

    Raises:
        InvalidArgument: `value` is none of `PROVENANCES`.
    """
    if value not in PROVENANCES:
        message = f"provenance must be one of {', '.join(PROVENANCES)}"
        raise InvalidArgument(message)
    return value


def least_trusted(provenances: Iterable[str]) -> str:
    """Return the least trusted of the given sources: unknown < external < tool < user.

    An unrecognised source ranks as unknown and is returned as it is; no source at all is unknown.
    """

    def rank(value: str) -> int:
        return _LEAST_TRUSTED_FIRST.index(value) if value in _LEAST_TRUSTED_FIRST else 0

    return min(provenances, key=rank, default=UNKNOWN_PROVENANCE)


def is_untrusted(provenance: str, quarantined: bool) -> bool:
    """Say whether a memory is anything but the person's own, unquarantined words."""
    return provenance != TRUSTED_PROVENANCE or quarantined


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
        summary_of: Ids of the episodes this one summarises.
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


@dataclass
class SearchResult:
    """One hit of a recall.

    Attributes:
        episode: The episode.
        score: 0 to 1, higher is better. In cosine mode `1 / (1 + distance)`; in hybrid mode the
            blend of both sides after each was scaled to 0..1 within this query's candidates.
        distance: L2 distance between the unit vectors of the query and of the episode's nearest
            chunk, 0 to 2.
        importance: The episode's `importance_score` at the time of the recall.
    """

    episode: Episode
    score: float
    distance: float
    importance: float = 1.0


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
    """

    episodes: int
    embedded: int
    facts: int
    active_facts: int
    entities: int
    reflections: int
    last_reflection: datetime | None
