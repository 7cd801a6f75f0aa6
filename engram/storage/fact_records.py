"""Facts on their way into the store and out of it."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engram.models import Fact
from engram.storage import uids
from engram.times import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where a fact came from.

    Attributes:
        source: An episode's public id, or a name the caller gave; None once the episode is
            forgotten.
        episode: The episode's key; None for a name and for a forgotten episode.
        provenance: How far the source was trusted when the fact was recorded. It outlives the
            source, so forgetting never makes a fact more trusted.
    """

    source: str | None
    episode: int | None
    provenance: str


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact on its way into the store; times in microseconds, everything checked.

    Attributes:
        uid: The public id.
        subject: Whom or what it is about.
        predicate: The relation.
        object: The value.
        valid_from: When it begins to hold.
        recorded_at: When the store learned it.
        valid_to: When it stops to hold, exclusive; None leaves it open.
        confidence: 0 to 1.
        sources: Where it came from, in order.
        reflection: Key of the run that extracted it.
        shared: Whether other agents see it.
        quarantined: Whether its writer had read untrusted content; a quarantined source marks it
            too.
    """

    uid: str
    subject: str
    predicate: str
    object: str
    valid_from: int
    recorded_at: int
    valid_to: int | None = None
    confidence: float = 1.0
    sources: tuple[FactSource, ...] = ()
    reflection: int | None = None
    shared: bool = True
    quarantined: bool = False


def statement(subject: str, predicate: str, value: str) -> str:
    """Return a fact as one text: what of it is searched, and embedded."""
    return f"{subject} {predicate} {value}"


def to_fact(row: tuple[Any, ...], sources: list[str]) -> Fact:
    """Return the fact of a row as `Facts` selects it; `sources` are those still to be named."""
    _, uid, subject, predicate, value, begins, ends, recorded, closed, successor = row[:10]
    confidence, run, agent, shared, mark = row[10:]
    return Fact(
        id=uids.from_stored(uid),
        subject=subject,
        predicate=predicate,
        object=value,
        valid_from=from_micros(begins),
        valid_to=None if ends is None else from_micros(ends),
        recorded_at=from_micros(recorded),
        superseded_at=None if closed is None else from_micros(closed),
        superseded_by=None if successor is None else uids.from_stored(successor),
        confidence=confidence,
        derived_from=sources,
        extracted_by=None if run is None else uids.from_stored(run),
        agent_id=agent,
        shared=bool(shared),
        quarantined=bool(mark),
    )


def conflicts(rows: Sequence[tuple[int, str, str, str]]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of facts that say different things of one subject, one by one.

    Args:
        rows: Key, subject, predicate and object of facts, in the order of the keys.
    """
    later: dict[tuple[str, str], deque[tuple[int, str]]] = defaultdict(deque)
    for key, subject, predicate, value in rows:
        later[subject, predicate].append((key, value))
    for key, subject, predicate, value in rows:
        group = later[subject, predicate]
        group.popleft()
        yield from ((key, other) for other, said in group if said != value)
