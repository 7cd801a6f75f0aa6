"""The access log: which episodes were recalled, when, by which query.

Recalls do not write. Their entries wait here and reach the file together, so a recall costs no
commit; entries of a process that is killed before that are lost, and nothing else depends on them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import apsw
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engram.storage.connection import Connection

FLUSH_AT = 50
"""Waiting result rows that make the next recall write them."""
KEPT_AT_MOST = 5_000
"""Waiting result rows beyond which the oldest recalls are dropped: the store cannot be written."""


@dataclass(frozen=True, slots=True)
class Recall:
    """One recall and the episodes it returned, best first."""

    agent: str | None
    query: str | None
    at: int
    episodes: tuple[int, ...]


class AccessLog:
    """The access log of a store, with the entries that wait to be written.

    Thread-safe; `write` and `forget` run in the caller's transaction.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: list[Recall] = []
        # Guards _waiting; never held while waiting for the connection.
        self._lock = threading.Lock()

    def add(self, recall: Recall) -> bool:
        """Note a recall; return whether enough wait to be worth a write."""
        with self._lock:
            self._waiting.append(recall)
            while self._rows() > KEPT_AT_MOST and len(self._waiting) > 1:
                del self._waiting[0]
            return self._rows() >= FLUSH_AT

    def _rows(self) -> int:
        return sum(len(recall.episodes) for recall in self._waiting)

    @property
    def waiting(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._waiting)

    def write(self) -> Sequence[Recall]:
        """Write what waits; hand the result to `written` once it is committed."""
        with self._lock:
            recalls = tuple(self._waiting)
        for recall in recalls:
            self._write(recall)
        return recalls

    def written(self, recalls: Sequence[Recall]) -> None:
        """Stop keeping recalls that are in the file now."""
        done = {id(recall) for recall in recalls}
        with self._lock:
            self._waiting = [recall for recall in self._waiting if id(recall) not in done]

    def _write(self, recall: Recall) -> None:
        query = recall.query if self._all_there(recall.episodes) else None
        self._connection.execute(
            "INSERT INTO recall_log (agent, query, at)"
            " VALUES ((SELECT id FROM agent WHERE name = ?), ?, ?)",
            (recall.agent, query, recall.at),
        )
        log = self._connection.last_id
        self._connection.executemany(
            "INSERT INTO access_log (episode, recall, rank)"
            " SELECT id, ?2, ?3 FROM episode WHERE id = ?1",
            [(episode, log, rank) for rank, episode in enumerate(recall.episodes)],
        )

    def _all_there(self, episodes: Sequence[int]) -> bool:
        """Return whether no episode was forgotten: a query goes with any that it returned."""
        if not episodes:
            return False
        there = self._connection.execute(
            "SELECT count(*) FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value",
            (apsw.carray(np.array(episodes, dtype=np.int64)),),
        ).get
        return bool(there == len(episodes))

    def forget_queries(self, about: Callable[[str], bool]) -> None:
        """Erase the text of every query that a predicate holds for."""
        with self._lock:
            self._waiting = [
                replace(recall, query=None)
                if recall.query is not None and about(recall.query)
                else recall
                for recall in self._waiting
            ]
        rows = self._connection.execute("SELECT id, query FROM recall_log WHERE query IS NOT NULL")
        self._connection.executemany(
            "UPDATE recall_log SET query = NULL WHERE id = ?",
            [(recall,) for recall, query in rows if about(query)],
        )

    def forget(self, episode: int) -> None:
        """Erase an episode from the log, with the text of every query that returned it."""
        with self._lock:
            left = [
                replace(
                    recall, query=None, episodes=tuple(e for e in recall.episodes if e != episode)
                )
                if episode in recall.episodes
                else recall
                for recall in self._waiting
            ]
            self._waiting = [recall for recall in left if recall.episodes]
        self._connection.execute(
            "UPDATE recall_log SET query = NULL"
            " WHERE id IN (SELECT recall FROM access_log WHERE episode = ?)",
            (episode,),
        )
        self._connection.execute("DELETE FROM access_log WHERE episode = ?", (episode,))
