"""Which episodes a call may see, and the SQL that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engram.storage.standing import AVAILABLE, HIDDEN

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABELLED = (
    "e.id IN (SELECT l.episode FROM episode_label AS l WHERE l.label ="
    " (SELECT id FROM label WHERE kind = ? AND name = ?))"
)
_TAGGED = (
    "e.id IN (SELECT l.episode FROM label AS n CROSS JOIN episode_label AS l ON l.label = n.id"
    " WHERE n.kind = 'tag' AND n.folded = folded(?))"
)
_EXPERIENCES = "EXISTS (SELECT 1 FROM experience AS x WHERE x.episode = e.id AND x.{0})"


@dataclass(frozen=True, slots=True)
class EpisodeFilter:
    """Conditions an episode has to meet, all of them.

    Attributes:
        agent: The only agent whose episodes are seen, by equality; None sees every episode.
        since: Earliest event time, inclusive, in microseconds.
        until: Latest event time, inclusive, in microseconds.
        tags: Tags the episode must have, every one.
        any_case_tags: Tags the episode must have, every one, in whatever case.
        actors: Actors the episode must have, every one.
        provenances: Sources of which the episode must have one; empty allows all.
        exclude_quarantined: Leave quarantined episodes out.
        memory_types: Types of experiences, of which the episode must be one; empty allows all
            episodes, those too that are no experience.
        project: The project that the episode must be an experience of, by equality.
        standing: "available": neither forgotten nor inactive nor invalidated, and with a text.
            "withheld": any other, or quarantined.
    """

    agent: str | None = None
    since: int | None = None
    until: int | None = None
    tags: tuple[str, ...] = ()
    any_case_tags: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    provenances: tuple[str, ...] = ()
    exclude_quarantined: bool = False
    memory_types: tuple[str, ...] = ()
    project: str | None = None
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
        for condition, *values in self._on_labels():
            add(condition, *values)
        if self.provenances:
            marks = ", ".join("?" * len(self.provenances))
            add(f"e.provenance IN ({marks})", *self.provenances)
        if self.exclude_quarantined:
            add("e.quarantined = 0")
        return conditions, bindings

    def _on_labels(self) -> Iterator[tuple[str, ...]]:
        """Yield the conditions on labels and experiences, each with its bindings."""
        for tag in self.tags:
            yield _LABELLED, "tag", tag
        for tag in self.any_case_tags:
            yield _TAGGED, tag
        for actor in self.actors:
            yield _LABELLED, "actor", actor
        if self.memory_types:
            marks = ", ".join("?" * len(self.memory_types))
            yield _EXPERIENCES.format(f"memory_type IN ({marks})"), *self.memory_types
        if self.project is not None:
            yield _EXPERIENCES.format("project = ?"), self.project


@dataclass(frozen=True, slots=True)
class FactFilter:
    """Conditions a fact has to meet, all of them.

    Attributes:
        agent: Whose view: shared facts and the agent's own; None sees every fact.
        open: Leave out what was superseded, whatever its valid time says.
        since: Earliest begin of the valid time, inclusive, in microseconds.
        until: Latest begin, inclusive.
        provenances: Sources, of which the least trusted of the fact's must be one; empty allows
            all.
        exclude_quarantined: Leave out facts that are, or come from something that is.
        nothing: Allow none: what is asked for is something that facts do not have.
    """

    agent: str | None
    open: bool
    since: int | None = None
    until: int | None = None
    provenances: tuple[str, ...] = ()
    exclude_quarantined: bool = False
    nothing: bool = False
