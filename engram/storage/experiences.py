"""Experiences: episodes in three parts, and what is kept about them beside the episode."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engram.storage import uids
from engram.storage.standing import UNAVAILABLE
from engram.storage.triplets import Experience, NewExperience, parts_of, wire_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection

SUPERSEDED: Final = "superseded"
ARCHIVED: Final = "archived"
"""The statuses of episodes that a consolidation merged into another, or put away."""

_ROW = (
    "SELECT e.id, e.uid, e.content, e.occurred_at, e.status,"
    " e.id NOT IN (SELECT u.episode FROM unembedded AS u), j.score, x.memory_type,"
    " x.context_bytes, x.action_bytes, x.project, x.parent, x.superseded_by, x.source_ids,"
    " x.insight_type, x.updated_at, x.used_count, x.last_used_at, x.given_times,"
    " (SELECT json_group_array(t.name) FROM (SELECT n.name FROM episode_label AS l"
    " JOIN label AS n ON n.id = l.label WHERE l.episode = e.id AND n.kind = 'tag'"
    " ORDER BY l.position) AS t)"
    " FROM {keys} JOIN experience AS x ON x.episode = k.value"
    " JOIN episode AS e ON e.id = x.episode LEFT JOIN judgement AS j ON j.episode = e.id"
)


# Those of the agent that is asked for.
_OWN = "(:agent IS NULL OR e.agent = (SELECT id FROM agent WHERE name = :agent))"
LISTED: Final = (
    f"({_OWN} AND NOT e.quarantined AND coalesce(e.forgotten_at, e.invalidated_at) IS NULL"
    f" AND coalesce(e.status, 'active') IN ('active', '{ARCHIVED}'))"
)
"""SQL over the `episode AS e` of an experience: whether lists and exports of :agent show it."""
_OF_TYPE = "x.memory_type = :type"
_JOINED = f"CROSS JOIN episode AS e ON e.id = o.episode WHERE {_OWN}"
_FEW = (
    "WITH few (id) AS ("  # noqa: S608
    f"SELECT u.id FROM episode AS u WHERE {UNAVAILABLE.format('u')} IS NOT NULL"
    " UNION SELECT q.id FROM episode AS q WHERE q.quarantined"
    " UNION SELECT episode FROM unembedded)"
    " SELECT count(*), count(x.episode),"
    " count(x.episode) FILTER (WHERE e.quarantined OR e.forgotten_at IS NOT NULL),"
    " count(w.episode), count(*) FILTER (WHERE e.quarantined)"
    " FROM few CROSS JOIN episode AS e ON e.id = few.id"
    " LEFT JOIN experience AS x ON x.episode = e.id LEFT JOIN unembedded AS w ON w.episode = e.id"
    f" WHERE {_OWN}"
)


class ExperienceCounts(NamedTuple):
    """How many episodes and experiences there are.

    Attributes:
        experiences: All of them.
        episodes: All of them, experiences or not.
        pending: Episodes that were shown and never judged.
        unsearched: Episodes that no search by meaning finds: hidden, quarantined, not embedded.
        unindexed: Those of them that are experiences.
        gone: Experiences that are forgotten or quarantined.
        waiting: Episodes that wait to be embedded.
        quarantined: Episodes that are quarantined.
    """

    experiences: int
    episodes: int
    pending: int
    unsearched: int
    unindexed: int
    gone: int
    waiting: int
    quarantined: int


class Outline(NamedTuple):
    """What places an episode in an answer.

    Attributes:
        key: Its key.
        id: Its public id.
        happened_at: When it happened, in microseconds.
        memory_type: None where it is no experience.
        project: Whose experience it is.
    """

    key: int
    id: str
    happened_at: int
    memory_type: str | None
    project: str | None


class Use(NamedTuple):
    """How much an episode was of use so far.

    Attributes:
        score: How useful it was judged; 0.0 before it was.
        used_count: How often it was stored again.
        happened_at: When it happened, in microseconds.
        last_at: When it was last stored again, or else changed; likewise.
        changed_at: When it was last changed, likewise.
    """

    score: float
    used_count: int
    happened_at: int
    last_at: int
    changed_at: int


class Experiences:
    """The experiences of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, episodes: Sequence[int], new: Sequence[NewExperience]) -> None:
        """Say of new episodes, by their keys, that they are experiences."""
        self._connection.executemany(
            "INSERT INTO experience (episode, memory_type, context_bytes, action_bytes, digest,"
            " project, parent, source_ids, insight_type, updated_at, used_count, last_used_at,"
            " given_times) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    key,
                    one.memory_type,
                    len(one.context.encode()),
                    len(one.action.encode()),
                    one.digest,
                    one.project,
                    None if one.parent is None else uids.to_stored(one.parent),
                    one.source_ids,
                    one.insight_type,
                    one.updated_at,
                    one.used_count,
                    one.last_used_at,
                    json.dumps(one.given_times) if one.given_times else None,
                )
                for key, one in zip(episodes, new, strict=True)
            ),
        )
        self._connection.executemany(
            "INSERT INTO judgement (episode, score) VALUES (?, ?)",
            [(key, one.score) for key, one in zip(episodes, new, strict=True) if one.score],
        )

    def listed(
        self, agent: str | None, memory_type: str | None, after: int, limit: int
    ) -> dict[int, Experience]:
        """Return the next of an agent's experiences that lists and exports show, by ascending key.

        They are active or archived: not merged into others, deleted, invalidated or quarantined.

        Args:
            agent: Whose; None is everybody's.
            memory_type: The only type; None is every one.
            after: The key after which to begin.
            limit: How many at most.
        """
        rows = self._connection.execute(
            "SELECT x.episode FROM experience AS x CROSS JOIN episode AS e ON e.id = x.episode"  # noqa: S608
            f" WHERE x.episode > :after AND {'TRUE' if memory_type is None else _OF_TYPE}"
            f" AND {LISTED}"
            " ORDER BY x.episode LIMIT :limit",
            {"agent": agent, "type": memory_type, "after": after, "limit": limit},
        )
        return self.read(key for (key,) in rows)

    def counts(self, agent: str | None) -> ExperienceCounts:
        """Return how many there are of what, of an agent's episodes or of everybody's.

        Counts all by indexes, and looks at the few that are hidden, quarantined or not embedded.
        """
        one = self._connection.execute
        scope: dict[str, object] = {"agent": agent}
        joined = "" if agent is None else _JOINED
        experiences: int = one(f"SELECT count(*) FROM experience AS o {joined}", scope).get  # noqa: S608
        episodes: int = one(f"SELECT count(*) FROM episode AS e WHERE {_OWN}", scope).get  # noqa: S608
        pending: int = one(
            f"SELECT count(DISTINCT o.episode) FROM shown AS o {joined or 'WHERE TRUE'}"  # noqa: S608
            " AND o.episode NOT IN (SELECT episode FROM judgement WHERE judged_at IS NOT NULL)",
            scope,
        ).get
        few: Any = one(_FEW, scope).fetchone()
        return ExperienceCounts(experiences, episodes, pending, *few)

    def embedded(self, agent: str | None) -> tuple[int, int]:
        """Return how many experiences lists show, and how many of them wait to be embedded."""
        total, waiting = self._connection.execute(
            "SELECT count(*), count(w.episode) FROM experience AS x"  # noqa: S608
            " CROSS JOIN episode AS e ON e.id = x.episode"
            f" LEFT JOIN unembedded AS w ON w.episode = x.episode WHERE {LISTED}",
            {"agent": agent},
        ).get
        return total, waiting

    def outlines(self, episodes: Iterable[int]) -> list[Outline]:
        """Return what places some episodes in an answer, experiences or not."""
        rows = self._connection.execute(
            "SELECT e.id, e.uid, e.occurred_at, x.memory_type, x.project FROM json_each(?) AS k"
            " CROSS JOIN episode AS e ON e.id = k.value"
            " LEFT JOIN experience AS x ON x.episode = e.id",
            (json.dumps(list(episodes)),),
        )
        return [
            Outline(key, uids.from_stored(uid), at, kind, whose)
            for key, uid, at, kind, whose in rows
        ]

    def uses(self, episodes: Iterable[int]) -> dict[int, Use]:
        """Return how much some episodes were of use so far, by key, experiences or not."""
        rows = self._connection.execute(
            "SELECT e.id, coalesce(j.score, 0.0), coalesce(x.used_count, 0), e.occurred_at,"
            " coalesce(x.last_used_at, x.updated_at, e.occurred_at),"
            " coalesce(x.updated_at, e.occurred_at) FROM json_each(?) AS k"
            " CROSS JOIN episode AS e ON e.id = k.value"
            " LEFT JOIN experience AS x ON x.episode = e.id"
            " LEFT JOIN judgement AS j ON j.episode = e.id",
            (json.dumps(list(episodes)),),
        )
        return {key: Use(*row) for key, *row in rows}

    def read(self, episodes: Iterable[int]) -> dict[int, Experience]:
        """Return those of some episodes that are experiences, by key, in the order given."""
        rows = self._connection.execute(
            _ROW.format(keys="json_each(?) AS k"), (json.dumps(list(episodes)),)
        )
        return {row.key: _experience(row) for row in map(_Row._make, rows)}


class _Row(NamedTuple):
    """What `_ROW` selects."""

    key: int
    uid: bytes | str
    content: str
    occurred_at: int
    status: str | None
    embedded: int
    score: float | None
    memory_type: str
    context_bytes: int
    action_bytes: int
    project: str | None
    parent: bytes | str | None
    successor: bytes | str | None
    source_ids: str | None
    insight_type: str | None
    updated_at: int
    used_count: int
    last_used_at: int | None
    given_times: str | None
    tags: str


def _experience(row: _Row) -> Experience:
    given: dict[str, str] = {} if row.given_times is None else json.loads(row.given_times)
    context, action, result = parts_of(row.content, row.context_bytes, row.action_bytes)
    last_used = None if row.last_used_at is None else wire_time(row.last_used_at)
    return Experience(
        id=uids.from_stored(row.uid),
        memory_type=row.memory_type,
        context=context,
        action=action,
        result=result,
        score=row.score or 0.0,
        tags=tuple(json.loads(row.tags)),
        project=row.project,
        parent_id=None if row.parent is None else uids.from_stored(row.parent),
        source_ids=row.source_ids,
        insight_type=row.insight_type,
        created_at=given.get("created_at", wire_time(row.occurred_at)),
        updated_at=given.get("updated_at", wire_time(row.updated_at)),
        used_count=row.used_count,
        last_used_at=given.get("last_used_at", last_used),
        superseded_by=None if row.successor is None else uids.from_stored(row.successor),
        archived=row.status == ARCHIVED,
        indexed=bool(row.embedded) and row.status in (None, "active"),
    )
