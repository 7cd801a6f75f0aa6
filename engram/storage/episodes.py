"""Episodes: the rows themselves, found by id, by key, by filter, page by page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from engram.errors import CorruptStore
from engram.models import Episode
from engram.storage import uids
from engram.storage.headings import headed, heading
from engram.storage.importance import IMPORTANCE, JOIN, Importance, from_stored
from engram.storage.segment import search_text
from engram.storage.standing import HIDDEN, TEXTLESS, WITHDRAWN
from engram.times import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from engram.storage.connection import Connection
    from engram.storage.filters import EpisodeFilter
    from engram.storage.labels import Labels

    _Row = tuple[
        int, bytes | str, str, int, float, float, bytes | None, str | None, str, int, str | None
    ]


class Origin(NamedTuple):
    """Whose an episode is and where it came from, see `engram.paths.Ownership`."""

    project: str | None = None
    conflict: bool = False
    source: str | None = None
    source_raw: str | None = None
    source_type: str | None = None


class NewEpisode(NamedTuple):
    """An episode on its way into the store; times in microseconds, everything checked.

    Without a `uid` it gets one.
    """

    content: str
    occurred_at: int
    actors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    salience: float = 0.5
    emotional_valence: float = 0.0
    provenance: str = "external"
    quarantined: bool = False
    summary_of: tuple[str, ...] = ()
    metadata: str | None = None
    origin: Origin | None = None
    uid: str | None = None

    @property
    def heading(self) -> str | None:
        """What is embedded and searched in front of the text, see `headings`."""
        return heading(self.actors, self.occurred_at)

    @property
    def text(self) -> str:
        """What is embedded and searched."""
        return headed(self.heading, self.content)


_COLUMNS = (
    "e.id, e.uid, e.content, e.occurred_at, e.salience, e.emotional_valence,"
    f" {IMPORTANCE}, a.name, e.provenance, e.quarantined, e.metadata"
)
_JOINS = f"LEFT JOIN agent AS a ON a.id = e.agent {JOIN}"
_PLAIN = (
    *("id", "uid", "agent", "content", "heading", "search_text"),
    *("occurred_at", "recorded_at", "salience", "emotional_valence"),
    *("provenance", "quarantined", "metadata"),
)
_ORIGIN = ("project_path", "project_conflict", "source_path", "source_raw", "source_type")


def _insert(columns: Sequence[str]) -> str:
    return f"INSERT INTO episode ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608


_INSERT = _insert(_PLAIN)
_INSERT_WITH_ORIGIN = _insert(_PLAIN + _ORIGIN)


class Episodes:
    """The episodes of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection, labels: Labels) -> None:
        self._connection = connection
        self._labels = labels
        self._importance = Importance(connection)
        self._matched: tuple[object, NDArray[np.int64]] | None = None

    def add(
        self, new: Sequence[NewEpisode], agent: int | None, recorded_at: int
    ) -> tuple[range, list[bytes | str]]:
        """Insert episodes.

        Returns:
            Their keys, consecutive and larger than any before, and their public ids as stored.
        """
        last = self._connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'episode'"
        ).get
        keys = range((last or 0) + 1, (last or 0) + 1 + len(new))
        newest = self._connection.execute("SELECT uid FROM episode ORDER BY id DESC LIMIT 1").get
        made = uids.following(newest, recorded_at, len(new))
        ids = [
            uid if e.uid is None else uids.to_stored(e.uid)
            for uid, e in zip(made, new, strict=True)
        ]
        rows = (
            (
                key,
                uid,
                agent,
                e.content,
                before,
                search_text(headed(before, e.content)),
                e.occurred_at,
                recorded_at,
                e.salience,
                e.emotional_valence,
                e.provenance,
                e.quarantined,
                e.metadata,
            )
            for key, uid, e in zip(keys, ids, new, strict=True)
            for before in (e.heading,)
        )
        # Most have no origin, and columns that say nothing take their time too.
        if all(e.origin is None for e in new):
            self._connection.executemany(_INSERT, rows)
        else:
            self._connection.executemany(
                _INSERT_WITH_ORIGIN,
                (row + (e.origin or Origin()) for row, e in zip(rows, new, strict=True)),
            )
        self._labels.add(keys, [e.actors for e in new], [e.tags for e in new])
        sources = [
            (key, position, uids.to_stored(source))
            for key, e in zip(keys, new, strict=True)
            for position, source in enumerate(e.summary_of)
        ]
        if sources:
            self._connection.executemany("INSERT INTO episode_source VALUES (?, ?, ?)", sources)
        return keys, ids

    def key(self, uid: str, agent: str | None) -> int | None:
        """Return the key of the episode with a public id, None unless `agent` may see it."""
        scope = "" if agent is None else " AND agent = (SELECT id FROM agent WHERE name = ?)"
        found: int | None = self._connection.execute(
            f"SELECT id FROM episode WHERE uid = ?{scope}",  # noqa: S608
            (uids.to_stored(uid),) if agent is None else (uids.to_stored(uid), agent),
        ).get
        return found

    def get(self, uid: str, agent: str | None) -> Episode | None:
        """Return the episode with a public id, None unless `agent` may see it.

        Neither may anybody see one that is forgotten and not erased.
        """
        key = self.visible(uid, agent)
        return None if key is None else self.fetch(np.array([key], dtype=np.int64))[0]

    def visible(self, uid: str, agent: str | None) -> int | None:
        """Return the key of the episode with a public id, None for whom `get` shows none."""
        key = self.key(uid, agent)
        if key is None:
            return None
        found: int | None = self._connection.execute(
            "SELECT id FROM episode WHERE id = ? AND forgotten_at IS NULL", (key,)
        ).get
        return found

    def unavailable(self, after: int) -> NDArray[np.int64]:
        """Return the keys after one of all episodes that no filter lets through, ascending.

        They are forgotten and not erased, inactive or invalidated, or have no text.
        """
        rows = self._connection.execute(
            f"{WITHDRAWN} AND u.id > ?1 UNION {TEXTLESS} AND n.episode > ?1 ORDER BY 1", (after,)
        ).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)

    def fetch(self, keys: NDArray[np.int64]) -> list[Episode]:
        """Return the episodes with the given keys, in their order; missing ones are left out."""
        if not len(keys):
            return []
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM carray(?) AS k"  # noqa: S608
            f" CROSS JOIN episode AS e ON e.id = k.value {_JOINS}",
            (apsw.carray(keys),),
        )
        return [episode for _, episode in self._read(rows)]

    def matching(self, allowed: EpisodeFilter) -> NDArray[np.int64]:
        """Return the keys of all episodes a filter allows, int64[n], ascending; not to be changed.

        Asked again in the same transaction, as both sides of a recall do, it costs nothing.
        """
        asked = (self._connection.moment, allowed)
        if self._matched is None or self._matched[0] != asked:
            self._matched = asked, self._find(allowed)
        return self._matched[1]

    def _find(self, allowed: EpisodeFilter) -> NDArray[np.int64]:
        conditions, bindings = allowed.conditions()
        where = " AND ".join(conditions) or "TRUE"
        rows = self._connection.execute(
            f"SELECT e.id FROM episode AS e WHERE {where} ORDER BY e.id",  # noqa: S608
            bindings,
        ).fetchall()
        keys = np.array(rows, dtype=np.int64).reshape(-1)
        keys.setflags(write=False)
        return keys

    def count(self, allowed: EpisodeFilter) -> int:
        """Return how many episodes a filter allows."""
        if allowed.standing == "available":
            # Counting all, and then the few, takes indexes where a condition on each takes rows.
            conditions, bindings = allowed.other_conditions()
            hidden = [*conditions, f"e.id IN {HIDDEN}"]
            return self._count(conditions, bindings) - self._count(hidden, bindings)
        return self._count(*allowed.conditions())

    def _count(self, conditions: list[str], bindings: list[object]) -> int:
        where = " AND ".join(conditions) or "TRUE"
        found: int = self._connection.execute(
            f"SELECT count(*) FROM episode AS e WHERE {where}",  # noqa: S608
            bindings,
        ).get
        return found

    def page(
        self,
        allowed: EpisodeFilter,
        *,
        limit: int,
        after: tuple[int, int] | None,
        newest_first: bool,
    ) -> list[tuple[tuple[int, int], Episode]]:
        """Return episodes in the order of their event time, each with its place in it.

        Args:
            allowed: Which episodes to list.
            limit: How many at most.
            after: The place of the last episode of the page before: event time and key.
            newest_first: The direction.
        """
        conditions, bindings = allowed.conditions()
        order = "DESC" if newest_first else "ASC"
        if after is not None:
            conditions.append(f"(e.occurred_at, e.id) {'<' if newest_first else '>'} (?, ?)")
            bindings.extend(after)
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM episode AS e {_JOINS}"  # noqa: S608
            f" WHERE {' AND '.join(conditions) or 'TRUE'}"
            f" ORDER BY e.occurred_at {order}, e.id {order} LIMIT ?",
            (*bindings, limit),
        )
        return self._read(rows)

    def _read(self, rows: Iterable[_Row]) -> list[tuple[tuple[int, int], Episode]]:
        found = list(rows)
        if not found:
            return []
        keys = np.array([row[0] for row in found], dtype=np.int64)
        labels, sources = self._labels.of(keys), self._sources(keys)
        try:
            return [
                _episode(row, labels.get(row[0], ([], [])), sources.get(row[0], []))
                for row in found
            ]
        except OverflowError:
            # In a damaged file a time can be any number.
            message = "a stored episode is damaged"
            raise CorruptStore(message, "restore a backup") from None

    def _sources(self, keys: NDArray[np.int64]) -> dict[int, list[str]]:
        """Return the ids of the episodes that each summary among the given ones stands for."""
        sources: dict[int, list[str]] = {}
        rows = self._connection.execute(
            "SELECT s.episode, s.source FROM carray(?) AS k"
            " CROSS JOIN episode_source AS s ON s.episode = k.value"
            " ORDER BY s.episode, s.position",
            (apsw.carray(keys),),
        )
        for episode, source in rows:
            sources.setdefault(episode, []).append(uids.from_stored(source))
        return sources

    def remove(self, key: int) -> None:
        """Delete an episode's row and, by cascade, its vectors, turn, strength and edges."""
        self._labels.remove(key)
        self._importance.clear(key)
        self._connection.execute("DELETE FROM episode WHERE id = ?", (key,))


def _episode(
    row: _Row, labels: tuple[list[str], list[str]], sources: list[str]
) -> tuple[tuple[int, int], Episode]:
    key, uid, content, occurred_at, salience, valence, importance, agent, source, mark, metadata = (
        row
    )
    actors, tags = labels
    return (occurred_at, key), Episode(
        id=uids.from_stored(uid),
        content=content,
        timestamp=from_micros(occurred_at),
        actors=actors,
        tags=tags,
        salience=salience,
        emotional_valence=valence,
        summary_of=sources,
        importance_score=from_stored(importance),
        agent_id=agent,
        provenance=source,
        quarantined=bool(mark),
        metadata={} if metadata is None else json.loads(metadata),
    )
