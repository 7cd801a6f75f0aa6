"""Facts: what the agent believes, with two time axes."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from engram import arguments
from engram.engine.session import Session
from engram.errors import InvalidArgument, NotFound, ScopeError
from engram.models import FactPage
from engram.provenance import (
    PROVENANCES,
    TRUSTED_PROVENANCE,
    UNKNOWN_PROVENANCE,
    least_trusted,
)
from engram.storage import FactSource, NewFact, fact_records
from engram.times import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from engram.models import Fact


_PAGE_MAX = 1000
_PAIRS_MAX = 2**63 - 1
_CURSOR_LENGTH = 19  # what is shorter fits SQLite's integers


class _Origin(NamedTuple):
    """What a fact is said to come from.

    Attributes:
        named: An id or another name.
        is_episode: Whether it has to be the id of an episode.
        provenance: How far it is trusted as it speaks here; None where that is not said.
    """

    named: str
    is_episode: bool
    provenance: str | None


class FactMemory(Session):
    """The calls about facts."""

    def assert_fact(
        self,
        subject: str,
        predicate: str,
        object: str,  # noqa: A002 - the documented name
        *,
        confidence: float = 1.0,
        source: str | None = None,
        source_episode: str | None = None,
        source_provenance: str | None = None,
        shared: bool = True,
        quarantined: bool = False,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
    ) -> str:
        """Store a statement and return its id.

        Nothing is closed by it: if other active facts say otherwise, `contradictions` shows them.

        Args:
            subject: Whom or what it is about; any text that is not blank.
            predicate: The relation, not blank.
            object: The value, not blank.
            confidence: 0 to 1.
            source: Where it came from: the id of an episode this agent sees, whose provenance and
                quarantine the fact takes on, or any other name, which is of unknown provenance.
            source_episode: The id of an episode, in place of `source`: it is never taken for a
                name, also when the episode is forgotten at the same moment.
            source_provenance: How far the source is trusted as it speaks here: "user", "tool" or
                "external". It makes a name known, and an episode at most less trusted.
            shared: Whether other agents of the file see it.
            quarantined: The writer had read untrusted content before.
            valid_from: When it begins to hold; a naive datetime is UTC; None is now.
            valid_to: When it stops to hold, exclusive; None leaves it open.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is written.
            NotFound: This agent sees no episode with the id `source_episode`; nothing is written.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        now = self._now()
        begins = now if valid_from is None else to_micros(valid_from, "valid_from")
        ends = None if valid_to is None else to_micros(valid_to, "valid_to")
        if ends is not None and ends <= begins:
            message = "valid_to must be later than valid_from"
            raise InvalidArgument(message)
        origin = _origin(source, source_episode, source_provenance)
        new = NewFact(
            uid=str(uuid.uuid4()),
            subject=_statement(subject, "subject"),
            predicate=_statement(predicate, "predicate"),
            object=_statement(object, "object"),
            valid_from=begins,
            recorded_at=now,
            valid_to=ends,
            confidence=arguments.number(confidence, "confidence", 0.0, 1.0),
            shared=arguments.flag(shared, "shared"),
            quarantined=arguments.flag(quarantined, "quarantined"),
        )
        with self._store.writing():
            if origin is not None:
                new = replace(new, sources=(self._source(origin),))
            self._store.facts.add(new, self._agent)
        self._emit("memory_written", [{"memory_id": new.uid, "kind": "semantic"}])
        return new.uid

    def _source(self, origin: _Origin) -> FactSource:
        """Return the episode with an id this agent sees, else the name as it stands.

        Raises:
            NotFound: There is none, and it has to be one.
        """
        named, is_episode, known = origin
        key = self._store.episodes.key(named, self._agent)
        episode = None if key is None else self._store.episodes.get(named, self._agent)
        if episode is not None:
            trust = least_trusted((episode.provenance, known or TRUSTED_PROVENANCE))
            return FactSource(named, key, trust)
        if is_episode:
            message = "there is no such episode"
            raise NotFound(message, "it may be forgotten, or another agent's")
        return FactSource(named, key, known or UNKNOWN_PROVENANCE)

    def get_fact(self, fact_id: str) -> Fact:
        """Return one fact.

        Raises:
            NotFound: No fact has this id, or it is another agent's private one.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(fact_id, "fact_id")
        with self._store.reading():
            return self._fact(uid)[1]

    def timeline(
        self,
        entity: str,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
    ) -> list[Fact]:
        """Return the facts about an entity, superseded ones included, in the order they begin.

        Args:
            entity: The subject, exactly as stated, or one of its declared aliases.
            as_of: Only facts that hold at this valid time; the end of a fact is exclusive.
            known_at: The facts as the store knew them at this time: later ones are left out, and
                what was superseded later is still open. Together with `as_of`: what was believed
                then about that moment.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        subject = arguments.text(entity, "entity")
        holds = None if as_of is None else to_micros(as_of, "as_of")
        known = None if known_at is None else to_micros(known_at, "known_at")
        with self._store.reading():
            return self._store.facts.about(subject, self._agent, as_of=holds, known_at=known)

    def facts(
        self, *, active_only: bool = True, limit: int = 100, cursor: str | None = None
    ) -> FactPage:
        """List facts in the order they were recorded, page by page.

        Args:
            active_only: Leave out those that are closed or superseded.
            limit: Facts on a page, 1 to 1000.
            cursor: The `cursor` of the page before.

        Raises:
            InvalidArgument, InvalidType: An argument is refused, or it is no such cursor.
        """
        active = arguments.flag(active_only, "active_only")
        size = arguments.integer(limit, "limit", 1, _PAGE_MAX)
        after = 0 if cursor is None else _read_cursor(cursor)
        with self._store.reading():
            rows = self._store.facts.page(self._agent, active=active, after=after, limit=size + 1)
        page = rows[:size]
        return FactPage([fact for _, fact in page], str(page[-1][0]) if len(rows) > size else None)

    def why(self, fact_id: str) -> dict[str, object]:
        """Return where a fact came from.

        Returns:
            `fact` ("subject predicate object"), `extracted_from` (ids of the source episodes that
            are still there, and named sources), `extracted_by` (id of the reflection run),
            `confidence`, `model` (the run's), `provenance` (the least trusted source ever
            recorded, forgotten ones included), `quarantined` (the fact or a source is),
            `agent_id` and `shared`.

        Raises:
            NotFound: No fact has this id, or it is another agent's private one.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(fact_id, "fact_id")
        with self._store.reading():
            key, fact = self._fact(uid)
            model = self._store.evidence.model(key)
            provenance, quarantined = self._store.evidence.trust([key])[key]
        return {
            "fact": fact_records.statement(fact.subject, fact.predicate, fact.object),
            "extracted_from": fact.derived_from,
            "extracted_by": fact.extracted_by,
            "confidence": fact.confidence,
            "model": model,
            "provenance": provenance,
            "quarantined": quarantined,
            "agent_id": fact.agent_id,
            "shared": fact.shared,
        }

    def trust_of(self, fact_ids: Iterable[str]) -> dict[str, tuple[str, bool]]:
        """Return how far many facts are to be trusted, read at one moment.

        Args:
            fact_ids: The ids.

        Returns:
            By id the `provenance` and the `quarantined` that `why` tells. An id of no fact, or of
            another agent's private one, is left out.

        Raises:
            InvalidArgument, InvalidType: They are no ids.
        """
        wanted = arguments.names(fact_ids, "fact_ids")
        with self._store.reading():
            keys = self._store.evidence.keys(wanted, self._agent)
            trust = self._store.evidence.trust(list(keys.values()))
        return {uid: trust[key] for uid, key in keys.items()}

    def contradictions(self, *, limit: int | None = None) -> list[tuple[Fact, Fact]]:
        """Return the pairs of active facts that cannot both hold, in the order they were recorded.

        Same subject, same predicate, different object. A predicate declared to hold many values
        contradicts nothing, see `declare_predicate`.

        Args:
            limit: Pairs to return at most, at least 1; None returns all, which of many values of
                one subject and predicate are as many as their square.

        Raises:
            InvalidArgument, InvalidType: The limit is refused.
        """
        most = None if limit is None else arguments.integer(limit, "limit", 1, _PAIRS_MAX)
        with self._store.reading():
            return self._store.facts.contradictions(self._agent, most)

    def forget_fact(self, fact_id: str) -> None:
        """Erase a fact. What it had superseded holds again, unless another fact took its place.

        Raises:
            NotFound: No fact has this id, or it is another agent's private one.
            ScopeError: Another agent wrote it, or nobody that is known; it is a PermissionError.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(fact_id, "fact_id")
        now = self._now()
        with self._store.writing():
            key, fact = self._fact(uid)
            if self._agent not in (None, fact.agent_id):
                message = "the fact was written by another agent"
                raise ScopeError(message, "only its writer can forget it, or who serves no agent")
            self._store.facts.remove([key], now)
        self._emit("memory_forgotten", [{"memory_id": uid, "kind": "semantic"}])

    def declare_predicate(self, name: str, *, multi: bool) -> None:
        """Say how many values a predicate holds at once, for the whole file, from now on.

        By default one: a newer fact of a reflection run closes the older one, and two active ones
        contradict. Of many values, each closes only its own repetition. Facts that were closed
        before stay closed.

        Args:
            name: The predicate, exactly as stated.
            multi: Whether it holds many values.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        predicate = _statement(name, "name")
        many = arguments.flag(multi, "multi")
        with self._store.writing():
            self._store.facts.declare(predicate, many)

    def add_alias(self, entity: str, alias: str) -> None:
        """Declare another name of an entity, for the whole file.

        What is known under both names becomes one: their places in the graph are merged, and
        `timeline`, `contradictions` and supersession take either name. The facts keep the words
        they were stated in.

        Args:
            entity: The name it keeps; it need not have been seen before.
            alias: The other name.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
        """
        name, other = _statement(entity, "entity"), _statement(alias, "alias")
        now = self._now()
        with self._store.writing():
            self._store.graph.alias(name, other, now)

    def _fact(self, uid: str) -> tuple[int, Fact]:
        found = self._store.facts.get(uid, self._agent)
        if found is None:
            message = "there is no such fact"
            raise NotFound(message, "it may be forgotten, or another agent's private one")
        return found


def _origin(
    source: str | None, source_episode: str | None, source_provenance: str | None
) -> _Origin | None:
    """Return what a fact is said to come from; None where nothing is said.

    Raises:
        InvalidArgument, InvalidType: An argument is refused, or goes with no other.
    """
    named = None if source is None else arguments.text(source, "source") or None
    if source_episode is not None:
        if named is not None:
            message = "source and source_episode exclude each other"
            raise InvalidArgument(message, "name one of them")
        named = arguments.text(source_episode, "source_episode")
    known = None
    if source_provenance is not None:
        known = arguments.one_of(source_provenance, PROVENANCES, "source_provenance")
        if named is None:
            message = "source_provenance is of no use without a source"
            raise InvalidArgument(message, "name the source")
    return None if named is None else _Origin(named, source_episode is not None, known)


def _read_cursor(cursor: str) -> int:
    text = arguments.text(cursor, "cursor")
    if not (text.isascii() and text.isdecimal() and len(text) < _CURSOR_LENGTH):
        message = "cursor is not one that came with a page"
        raise InvalidArgument(message)
    return int(text)


def _statement(value: object, argument: str) -> str:
    text = arguments.text(value, argument)
    if not text.strip():
        message = f"{argument} must not be blank"
        raise InvalidArgument(message)
    return text
