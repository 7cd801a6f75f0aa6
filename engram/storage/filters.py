"""Which episodes a call may see, and the SQL that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engram.storage.standing import AVAILABLE, HIDDEN

_LABELLED = (
    "e.id IN (SELECT l.episode FROM episode_label AS l WHERE l.label ="
    " (SELECT id FROM label WHERE kind = ? AND name = ?))"
)


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Conditions an episode has to meet, all of them.

    Attributes:
        agent: The only agent whose episodes are seen, by equality; None sees every episode.
        since: Earliest event time, inclusive, in microseconds.
        until: Latest event time, inclusive, in microseconds.
        tags: Tags the episode must have, every one.
        actors: Actors the episode must have, every one.
        provenances: Sources of which the episode must have one; empty allows all.
        exclude_quarantined: Leave quarantined episodes out.
        standing: "available": neither forgotten nor inactive nor invalidated. "withheld": any of
            these, or quarantined.
    """

    agent: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    provenances: tuple[str, ...] = ()
    exclude_quarantined: bool = False
    standing: Literal["available", "withheld"] = "available"

    @property
    def only_scope(self) -> bool:
        """Whether an agent is all it asks for."""
        return self == EpisodeFilter(agent=self.agent)

    def conditions(self) -> tuple[list[str], list[object]]:
        """Return SQL conditions over `episode AS e` and their bindings, in step."""
        conditions, bindings = self.other_conditions()
        withheld = f"(e.id IN {HIDDEN} OR e.quarantined)"
        return [AVAILABLE if self.standing == "available" else withheld, *conditions], bindings

    def other_conditions(self) -> tuple[list[str], list[object]]:
        """Return the conditions without the one on the episode's standing."""
        conditions: list[str] = []
        bindings: list[object] = []

        def add(condition: str, *values: object) -> None:
            conditions.append(condition)
            bindings.extend(values)

        if self.agent is not None:
            add("e.agent = (SELECT id FROM agent WHERE name = ?)", self.agent)
        if self.since is not None:
            add("e.occurred_at >= ?", self.since)
        if self.until is not None:
            add("e.occurred_at <= ?", self.until)
        for tag in self.tags:
            add(_LABELLED, "tag", tag)
        for actor in self.actors:
            add(_LABELLED, "actor", actor)
        if self.provenances:
            marks = ", ".join("?" * len(self.provenances))
            add(f"e.provenance IN ({marks})", *self.provenances)
        if self.exclude_quarantined:
            add("e.quarantined = 0")
        return conditions, bindings
