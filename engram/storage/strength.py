"""How well episodes are remembered: importance, and the accesses that keep it up.

The log keeps the newest recalls one by one. Older ones are folded into counts here: by anybody, and
by the episode's own agent, whose accesses are all that a scoped instance counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from engram.storage import uids
from engram.storage.importance import UNDECAYED, Importance
from engram.storage.standing import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engram.storage.connection import Connection

NEVER: Final = -(2**63)
_IS_AVAILABLE = f"{UNAVAILABLE.format('e')} IS NULL"
_IS_NO_ITEM = "NOT EXISTS (SELECT 1 FROM item WHERE episode = e.id)"
# No episode has the key 0, and an array to bind cannot be empty.
_NO_EPISODE = np.zeros(1, dtype=np.int64)
# From this share of the episodes between two keys on, a scan of what lies between them is faster
# than a look-up of each.
_DENSE = 0.25

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
        happened: int64[n], the event.
    """

    episodes: NDArray[np.int64]
    salience: NDArray[np.float64]
    valence: NDArray[np.float64]
    happened: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often episodes were recalled, in step with their keys.

    Attributes:
        counts: int64[n].
        latest: int64[n], the last recall in microseconds, `NEVER` without one.
    """

    counts: NDArray[np.int64]
    latest: NDArray[np.int64]


class Strength:
    """Importance and accesses of a store's episodes; methods run in the caller's transaction.

    Attributes:
        importance: The importance as of the last decay.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.importance = Importance(connection)

    def traces(self, agent: str | None, size: int) -> Iterator[Traces]:
        """Yield the columns of an agent's episodes, ascending, at most `size` at a time.

        Each part is read when it is asked for: one transaction after the other may do so.

        Args:
            agent: Whose episodes; None is everyone's.
            size: Episodes per part.
        """
        after = 0
        # By key: through the index on agents each part would sort all of the agent's episodes.
        scope = "" if agent is None else " AND +agent = (SELECT id FROM agent WHERE name = :agent)"
        while True:
            rows = self._connection.execute(
                "SELECT id, salience, emotional_valence, occurred_at FROM episode"  # noqa: S608
                f" WHERE id > :after{scope} ORDER BY id LIMIT :size",
                {"after": after, "size": size, "agent": agent},
            ).fetchall()
            if not rows:
                return
            keys, salience, valence, happened = zip(*rows, strict=True)
            yield Traces(
                episodes=np.array(keys, dtype=np.int64),
                salience=np.array(salience, dtype=np.float64),
                valence=np.array(valence, dtype=np.float64),
                happened=np.array(happened, dtype=np.int64),
            )
            after = keys[-1]

    def known(self, episodes: NDArray[np.int64]) -> tuple[Traces, NDArray[np.int64]]:
        """Return the columns of the given episodes, and when each was written, int64[n].

        Those that are gone or hidden are left out, and so are items, which do not fade away.

        Args:
            episodes: int64[n], ascending.
        """
        rows = self._connection.execute(
            "SELECT e.id, e.salience, e.emotional_valence, e.occurred_at, e.recorded_at"  # noqa: S608
            f" FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value AND {_IS_AVAILABLE}"
            f" AND {_IS_NO_ITEM}",
            (apsw.carray(episodes),),
        ).fetchall()
        keys, salience, valence, happened, written = list(zip(*rows, strict=True)) or [()] * 5
        traces = Traces(
            episodes=np.array(keys, dtype=np.int64),
            salience=np.array(salience, dtype=np.float64),
            valence=np.array(valence, dtype=np.float64),
            happened=np.array(happened, dtype=np.int64),
        )
        return traces, np.array(written, dtype=np.int64)

    def accesses(self, episodes: NDArray[np.int64], agent: str | None) -> Accesses:
        """Return how often episodes were recalled, folded and logged together.

        Takes the time of the accesses between the first and the last of them where most are asked
        about, else that of one look-up each.

        Args:
            episodes: int64[n], ascending.
            agent: The agent whose accesses count, which must own the episodes; None counts all.
        """
        counts = np.zeros(len(episodes), dtype=np.int64)
        latest = np.full(len(episodes), NEVER, dtype=np.int64)
        for rows in (self._folded(episodes, agent), self._logged(episodes, agent)):
            numbers = np.fromiter(chain.from_iterable(rows), dtype=np.int64)
            keys, counted, accessed = numbers.reshape(-1, 3).T
            at = np.searchsorted(episodes, keys)
            asked = episodes[at] == keys
            at = at[asked]
            counts[at] += counted[asked]
            latest[at] = np.maximum(latest[at], accessed[asked])
        return Accesses(counts, latest)

    def _folded(self, episodes: NDArray[np.int64], agent: str | None) -> Any:
        own = "" if agent is None else "own_"
        source, bindings = _among(episodes, "strength AS s", "s.episode")
        return self._connection.execute(
            f"SELECT s.episode, s.{own}access_count, s.{own}last_accessed_at FROM {source}"  # noqa: S608
            f" AND s.{own}access_count > 0",
            bindings,
        ).fetchall()

    def _logged(self, episodes: NDArray[np.int64], agent: str | None) -> Any:
        scope = "" if agent is None else " AND r.agent = (SELECT id FROM agent WHERE name = :agent)"
        source, bindings = _among(
            episodes, "access_log AS a CROSS JOIN recall_log AS r", "a.episode"
        )
        return self._connection.execute(
            f"SELECT a.episode, count(*), max(r.at) FROM {source}"  # noqa: S608
            f" AND (r.id = a.recall{scope}) GROUP BY a.episode",
            {**bindings, "agent": agent},
        ).fetchall()

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
        """Return the agent and the key of each plain episode under an importance.

        Summaries, experiences, items and what is hidden are left out. By agent, oldest event first,
        ties in insertion order.

        Args:
            importance: Exclusive.
            agent: Whose episodes; None is everyone's.
        """
        # An episode that never decayed can be in no block.
        among, inside = ("IN", True) if importance <= UNDECAYED else ("NOT IN", False)
        stored = [
            keys[(values < importance) == inside] for keys, values in self.importance.stored()
        ]
        scope = "" if agent is None else " AND e.agent = (SELECT id FROM agent WHERE name = :agent)"
        rows = self._connection.execute(
            "SELECT e.agent, e.id FROM episode AS e"  # noqa: S608
            f" WHERE e.id {among} (SELECT value FROM carray(:keys)) AND {_IS_AVAILABLE}"
            " AND NOT EXISTS (SELECT 1 FROM episode_source WHERE episode = e.id)"
            " AND NOT EXISTS (SELECT 1 FROM experience WHERE episode = e.id)"
            f" AND {_IS_NO_ITEM}{scope}"
            " ORDER BY e.agent, e.occurred_at, e.id",
            {"keys": apsw.carray(np.concatenate([_NO_EPISODE, *stored])), "agent": agent},
        )
        return [(owner, key) for owner, key in rows]

    def ids(self, episodes: NDArray[np.int64]) -> list[str]:
        """Return the public ids of episodes in their order, without those gone or hidden."""
        if not len(episodes):
            return []
        rows = self._connection.execute(
            "SELECT e.uid FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value"  # noqa: S608
            f" AND {_IS_AVAILABLE}",
            (apsw.carray(episodes),),
        )
        return [uids.from_stored(uid) for (uid,) in rows]


def _among(episodes: NDArray[np.int64], table: str, key: str) -> tuple[str, dict[str, Any]]:
    """Return the SQL that reads a table's rows of some episodes, at least, and its bindings.

    None of them lies outside the first and the last episode. The SQL ends in a condition, which the
    caller may go on with.
    """
    first, last = (int(episodes[0]), int(episodes[-1])) if len(episodes) else (0, -1)
    if len(episodes) >= _DENSE * (last - first + 1):
        return f"{table} WHERE {key} BETWEEN :first AND :last", {"first": first, "last": last}
    keys = {"keys": apsw.carray(episodes)}
    return f"carray(:keys) AS k CROSS JOIN {table} WHERE {key} = k.value", keys
