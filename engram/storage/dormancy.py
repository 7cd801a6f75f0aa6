"""Dormant memories: what a search might have shown, and how long each one rests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from engram.storage import uids
from engram.storage.standing import INELIGIBLE
from engram.times import DAY, from_micros

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engram.config import DormantRecall
    from engram.storage.connection import Connection

# Texts as bytes, for what is no UTF-8 would take the rows after it along.
_EVENT = (
    "SELECT typeof(e.uid) = 'text', CAST(d.id AS BLOB), d.sequence, d.created_at,"
    " CAST(e.uid AS BLOB), CAST(d.outcome AS BLOB), d.candidate_count, d.relevance,"
    " d.bonus, d.dormant_days, d.overlap_count, d.query_term_count, d.shown_at,"
    " CAST(d.feedback AS BLOB), d.feedback_at, d.rerank_score, CAST(d.algorithm AS BLOB)"
    " FROM dormant_event AS d LEFT JOIN episode AS e ON e.id = d.episode"
)
_OF_INELIGIBLE = (
    "SELECT d.episode FROM dormant_event AS d"  # noqa: S608
    " CROSS JOIN episode AS e ON e.id = d.episode"
    f" WHERE {INELIGIBLE.format('e')}"
)


@dataclass(frozen=True, slots=True)
class DormantEvent:
    """What one search found among dormant memories, without a word of query or memory.

    What says something of a chosen memory is None where the outcome is "none".

    Attributes:
        id: Its id, a UUID.
        sequence: Its place among all events ever.
        created_at: When the search was; times are Unix seconds.
        memory_id: The memory that might have been shown.
        outcome: "candidate" or "none".
        candidate_count: How many of the nearest dormant memories were looked at.
        relevance: Cosine of the memory and the query.
        bonus: What its rest added to that.
        dormant_days: Days since it was made, recalled or used.
        overlap_count: Terms of the query that are words of it.
        query_term_count: Terms of the query.
        shown_at: When it was first inspected.
        feedback: What they who inspected it thought of it.
        feedback_at: When that was said.
        rerank_score: What the reranker thought of it, on the reranker's scale.
        algorithm: How all that was determined.
    """

    id: str
    sequence: int
    created_at: float
    memory_id: str | None
    outcome: str
    candidate_count: int
    relevance: float | None
    bonus: float | None
    dormant_days: float | None
    overlap_count: int | None
    query_term_count: int | None
    shown_at: float | None
    feedback: str | None
    feedback_at: float | None
    rerank_score: float | None
    algorithm: str


class Content(NamedTuple):
    """What there is to read of a memory; its metadata are JSON that nobody has checked."""

    content: str
    source_type: str
    metadata: str


class Dormancy:
    """The dormant events and states of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def prune(self, settings: DormantRecall, now: int) -> None:
        """Remove the events that are too old or too many, and what is about ineligible memories.

        Args:
            settings: What is kept, and how long.
            now: The time, in microseconds.
        """
        execute = self._connection.execute
        execute("DELETE FROM dormant_event WHERE created_at < ?", (_oldest(settings, now),))
        execute(f"DELETE FROM dormant_state WHERE episode IN ({_OF_INELIGIBLE})")  # noqa: S608
        execute(f"DELETE FROM dormant_event WHERE episode IN ({_OF_INELIGIBLE})")  # noqa: S608
        execute(
            "DELETE FROM dormant_event WHERE sequence <="
            " (SELECT sequence FROM dormant_event ORDER BY sequence DESC LIMIT 1 OFFSET ?)",
            (settings.log_max_events,),
        )

    def events(self, settings: DormantRecall, now: int, limit: int) -> list[DormantEvent]:
        """Return the newest events that `prune` would leave, newest first; changes nothing.

        Damaged ones are left out.
        """
        rows = self._connection.execute(
            f"{_EVENT} WHERE d.created_at >= ?"
            f" AND (d.episode IS NULL OR NOT {INELIGIBLE.format('e')})"
            " ORDER BY d.sequence DESC LIMIT ?",
            (_oldest(settings, now), settings.log_max_events),
        )
        return list(islice(_events(rows), limit))

    def event(self, event_id: str) -> DormantEvent | None:
        """Return an event, None where none has this id or it is damaged; `prune` first."""
        rows = self._connection.execute(f"{_EVENT} WHERE d.id = ?", (event_id,))
        return next(_events(rows), None)

    def content(self, event: DormantEvent) -> Content | None:
        """Return what there is to read of the memory of an event that has one.

        None where a text of it is damaged.
        """
        row: Any = self._connection.execute(
            "SELECT CAST(e.content AS BLOB), CAST(coalesce(e.source_type, e.provenance) AS BLOB),"
            " CAST(coalesce(e.metadata, '{}') AS BLOB)"
            " FROM dormant_event AS d CROSS JOIN episode AS e ON e.id = d.episode"
            " WHERE d.sequence = ?",
            (event.sequence,),
        ).get
        try:
            return Content(*(text.decode() for text in row))
        except UnicodeDecodeError:
            return None

    def show(self, event: DormantEvent, now: int, cooldown_until: int) -> None:
        """Note that the memory of an event was read here, and let it rest at least until then."""
        self._connection.execute(
            "UPDATE dormant_event SET shown_at = coalesce(shown_at, ?) WHERE sequence = ?",
            (now, event.sequence),
        )
        self.rest(self._episode(event), cooldown_until, shown_at=now)

    def judge(self, event: DormantEvent, category: str, now: int, cooldown_until: int) -> None:
        """Note what was thought of the memory of an event, and let it rest at least until then."""
        self._connection.execute(
            "UPDATE dormant_event SET feedback = ?, feedback_at = ? WHERE sequence = ?",
            (category, now, event.sequence),
        )
        used_at = now if category == "useful" else None
        self.rest(self._episode(event), cooldown_until, used_at=used_at)

    def _episode(self, event: DormantEvent) -> int | None:
        key: int | None = self._connection.execute(
            "SELECT episode FROM dormant_event WHERE sequence = ?", (event.sequence,)
        ).get
        return key

    def rest(
        self,
        episode: int | None,
        until: int,
        *,
        retrieved_at: int | None = None,
        shown_at: int | None = None,
        used_at: int | None = None,
    ) -> None:
        """Let a memory rest at least until a time, and note when what happened to it.

        Args:
            episode: Its key.
            until: In microseconds, like the others.
            retrieved_at: When an evaluation chose it; None leaves what is noted, like the others.
            shown_at: When somebody read it here.
            used_at: When it helped.
        """
        self._connection.execute(
            "INSERT INTO dormant_state (episode, retrieved_at, shown_at, used_at, cooldown_until)"
            " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
            " retrieved_at = coalesce(excluded.retrieved_at, retrieved_at),"
            " shown_at = coalesce(excluded.shown_at, shown_at),"
            " used_at = coalesce(excluded.used_at, used_at),"
            " cooldown_until = max(cooldown_until, excluded.cooldown_until)",
            (episode, retrieved_at, shown_at, used_at, until),
        )


def micros(days: float) -> int:
    """Return a number of days in microseconds."""
    return round(days * DAY)


def _oldest(settings: DormantRecall, now: int) -> int:
    return now - micros(settings.log_retention_days)


def _events(rows: Any) -> Iterator[DormantEvent]:
    """Yield the events of rows, but for those that are damaged."""
    for textual, *row in rows:
        values: dict[str, Any] = dict(zip(DormantEvent.__slots__, row, strict=True))
        given = {name for name, value in values.items() if value is not None}
        try:
            for name in given & {"id", "outcome", "feedback", "algorithm"}:
                values[name] = values[name].decode()
            for name in given & {"created_at", "shown_at", "feedback_at"}:
                values[name] = from_micros(values[name]).timestamp()
            if uid := values["memory_id"]:
                values["memory_id"] = uids.from_stored(uid.decode() if textual else uid)
        except (UnicodeDecodeError, OverflowError):
            continue
        event = DormantEvent(**values)
        if _measured(event):
            yield event


def _measured(event: DormantEvent) -> bool:
    """Say whether an event's numbers are finite, and all there if it has a memory."""
    numbers = (
        event.relevance,
        event.bonus,
        event.dormant_days,
        event.overlap_count,
        event.query_term_count,
        event.rerank_score,
    )
    return all(
        event.memory_id is None if number is None else math.isfinite(number) for number in numbers
    )
