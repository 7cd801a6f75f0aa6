"""How well episodes are remembered: importance, and the accesses that keep it up.

The log keeps the newest recalls one by one. Older ones are folded into counts here: by anybody, and
by the episode's own agent, whose accesses are all that a scoped instance counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw
import numpy as np

from engram.storage import uids

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage.connection import Connection

_NEVER = -(2**63)

_FOLD = (
    "INSERT INTO strength"
    " (episode, access_count, last_accessed_at, own_access_count, own_last_accessed_at)"
    " SELECT a.episode, count(*), max(r.at), count(*) FILTER (WHERE r.agent = e.agent),"
    " max(r.at) FILTER (WHERE r.agent = e.agent)"
    " FROM recall_log AS r CROSS JOIN access_log AS a ON a.recall = r.id"
    " CROSS JOIN episode AS e ON e.id = a.episode WHERE r.id <= ? GROUP BY a.episode"
    " ON CONFLICT DO UPDATE SET access_count = access_count + excluded.access_count,"
    " own_access_count = own_access_count + excluded.own_access_count,"
    " last_accessed_at = max(coalesce(last_accessed_at, excluded.last_accessed_at),"
    " coalesce(excluded.last_accessed_at, last_accessed_at)),"
    " own_last_accessed_at = max(coalesce(own_last_accessed_at, excluded.own_last_accessed_at),"
    " coalesce(excluded.own_last_accessed_at, own_last_accessed_at))"
)


@dataclass(frozen=True, slots=True)
class Traces:
    """What importance is computed from, one column per value; times in microseconds.

    Attributes:
        episodes: int64[n], ascending.
        salience: float64[n], importance at encoding.
        valence: float64[n], emotional valence.
        accesses: int64[n], how often each was recalled.
        accessed: int64[n], the last recall, else the event itself.
        known: int64[n], the latest of event, writing and last recall.
        importance: float64[n], as stored; 1.0 before the first decay.
    """

    episodes: NDArray[np.int64]
    salience: NDArray[np.float64]
    valence: NDArray[np.float64]
    accesses: NDArray[np.int64]
    accessed: NDArray[np.int64]
    known: NDArray[np.int64]
    importance: NDArray[np.float64]


class Strength:
    """Importance and accesses of a store's episodes; methods run in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def traces(self, episodes: NDArray[np.int64], agent: str | None) -> Traces:
        """Return the columns of the given episodes, those that are gone left out.

        Args:
            episodes: int64[n], ascending.
            agent: The agent whose accesses count, which must own the episodes; None counts all.
        """
        own = "" if agent is None else "own_"
        rows = self._connection.execute(
            "SELECT e.id, e.salience, e.emotional_valence, e.occurred_at, e.recorded_at,"  # noqa: S608
            f" coalesce(s.importance, 1.0), coalesce(s.{own}access_count, 0),"
            f" coalesce(s.{own}last_accessed_at, {_NEVER})"
            " FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value"
            " LEFT JOIN strength AS s ON s.episode = e.id",
            (apsw.carray(episodes),),
        ).fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * 8
        keys, happened, written, counted, accessed = (
            np.array(columns[at], dtype=np.int64) for at in (0, 3, 4, 6, 7)
        )
        salience, valence, importance = (
            np.array(columns[at], dtype=np.float64) for at in (1, 2, 5)
        )
        if rows:
            at, counts, latest = self._logged(keys, agent)
            counted[at] += counts
            accessed[at] = np.maximum(accessed[at], latest)
        return Traces(
            episodes=keys,
            salience=salience,
            valence=valence,
            accesses=counted,
            accessed=np.where(accessed == _NEVER, happened, accessed),
            known=np.maximum(np.maximum(happened, written), accessed),
            importance=importance,
        )

    def _logged(
        self, episodes: NDArray[np.int64], agent: str | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the logged episodes, their accesses, and the last of them."""
        scope = "" if agent is None else "WHERE r.agent = (SELECT id FROM agent WHERE name = ?)"
        rows = self._connection.execute(
            "SELECT a.episode, count(*), max(r.at) FROM carray(?) AS k"  # noqa: S608
            " CROSS JOIN access_log AS a ON a.episode = k.value"
            f" CROSS JOIN recall_log AS r ON r.id = a.recall {scope} GROUP BY a.episode",
            (apsw.carray(episodes),) if agent is None else (apsw.carray(episodes), agent),
        ).fetchall()
        keys, counts, latest = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        return np.searchsorted(episodes, keys), counts, latest

    def set_importance(self, episodes: NDArray[np.int64], importance: NDArray[np.float64]) -> None:
        """Store the importance of episodes, which must exist."""
        self._connection.executemany(
            "INSERT INTO strength (episode, importance) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET importance = excluded.importance",
            zip(episodes.tolist(), importance.tolist(), strict=True),
        )

    def fold(self, keep: int, most: int) -> bool:
        """Turn the oldest logged recalls into counts; return whether more are left to fold.

        Args:
            keep: How many of the newest recalls stay in the log.
            most: How many to fold now.
        """
        last = self._connection.execute(
            "SELECT max(id), count(*) FROM (SELECT id FROM recall_log WHERE id <="
            " (SELECT id FROM recall_log ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?)",
            (keep, most),
        ).fetchone()
        assert last is not None  # noqa: S101 - an aggregate has a row
        if last[0] is None:
            return False
        self._connection.execute(_FOLD, (last[0],))
        self._connection.execute("DELETE FROM recall_log WHERE id <= ?", (last[0],))
        return bool(last[1] == most)

    def below(self, importance: float, agent: str | None) -> list[tuple[int | None, int]]:
        """Return the agent and the key of each episode under an importance that is no summary.

        By agent, oldest event first, ties in insertion order.

        Args:
            importance: Exclusive.
            agent: Whose episodes; None is everyone's.
        """
        scope = "" if agent is None else " AND e.agent = (SELECT id FROM agent WHERE name = ?)"
        rows = self._connection.execute(
            "SELECT e.agent, e.id FROM episode AS e LEFT JOIN strength AS s ON s.episode = e.id"  # noqa: S608
            " WHERE coalesce(s.importance, 1.0) < ?"
            f" AND NOT EXISTS (SELECT 1 FROM episode_source WHERE episode = e.id){scope}"
            " ORDER BY e.agent, e.occurred_at, e.id",
            (importance,) if agent is None else (importance, agent),
        )
        return [(owner, key) for owner, key in rows]

    def ids(self, episodes: NDArray[np.int64]) -> list[str]:
        """Return the public ids of episodes, in their order; missing ones are left out."""
        if not len(episodes):
            return []
        rows = self._connection.execute(
            "SELECT e.uid FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value",
            (apsw.carray(episodes),),
        )
        return [uids.from_stored(uid) for (uid,) in rows]
