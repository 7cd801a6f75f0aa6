"""Reflection: which episodes have been reflected on, and what each window of a run did.

A row is one window of one agent's episodes; the windows of a run share its public id. The largest
`last_episode` of an agent is its watermark. Keys grow with every write, whatever time an episode
says it happened at, so nothing that is written later lies behind a watermark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engram.storage import uids
from engram.storage.standing import AVAILABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.storage.agents import Agents
    from engram.storage.connection import Connection


@dataclass(frozen=True, slots=True)
class Waiting:
    """Episodes of one agent that were not reflected on.

    Attributes:
        agent: Whose they are; None for those of nobody.
        episodes: How many.
        last: Key of the newest.
    """

    agent: str | None
    episodes: int
    last: int


class Reflections:
    """The reflections of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection, agents: Agents) -> None:
        self._connection = connection
        self._agents = agents

    def waiting(self, agent: str | None) -> list[Waiting]:
        """Return what waits for reflection, agent by agent.

        Args:
            agent: Whose episodes; None is everyone's.
        """
        scope = "" if agent is None else " AND e.agent = (SELECT id FROM agent WHERE name = ?)"
        rows = self._connection.execute(
            "WITH done AS (SELECT agent, max(last_episode) AS last FROM reflection GROUP BY agent)"  # noqa: S608
            " SELECT a.name, count(*), max(e.id) FROM episode AS e"
            " LEFT JOIN done AS d ON d.agent IS e.agent LEFT JOIN agent AS a ON a.id = e.agent"
            f" WHERE e.id > coalesce(d.last, 0) AND {AVAILABLE}{scope}"
            " GROUP BY e.agent ORDER BY e.agent",
            () if agent is None else (agent,),
        )
        return [Waiting(*row) for row in rows]

    def window(self, agent: str | None, last: int, limit: int) -> NDArray[np.int64]:
        """Return the keys of the oldest writes that wait for reflection, int64[n], ascending.

        Args:
            agent: Whose episodes; None is those of nobody.
            last: The newest key to return.
            limit: How many at most.
        """
        owner = None if agent is None else self._agents.key(agent)
        if agent is not None and owner is None:
            return np.empty(0, dtype=np.int64)
        rows = self._connection.execute(
            f"SELECT e.id FROM episode AS e WHERE {AVAILABLE}"  # noqa: S608
            " AND e.agent IS ?1 AND e.id <= ?2 AND e.id >"
            " (SELECT coalesce(max(last_episode), 0) FROM reflection WHERE agent IS ?1)"
            " ORDER BY e.id LIMIT ?3",
            (owner, last, limit),
        ).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)

    def add(
        self,
        uid: str,
        agent: str | None,
        *,
        started_at: int,
        finished_at: int,
        model: str | None,
        tokens: int = 0,
        episodes: int = 0,
        last: int | None = None,
    ) -> int:
        """Insert a window of a run and return its key.

        Args:
            uid: Public id of the run.
            agent: Whose episodes it read.
            started_at: Start of the run, in microseconds.
            finished_at: End of the window.
            model: The language model that was asked.
            tokens: What it cost.
            episodes: How many it read.
            last: The newest of them, the agent's watermark from now on; None leaves it.
        """
        self._connection.execute(
            "INSERT INTO reflection (uid, agent, started_at, finished_at, last_episode,"
            " episodes_processed, model_used, cost_tokens) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                uids.to_stored(uid),
                self._agents.add(agent),
                started_at,
                finished_at,
                last,
                episodes,
                model,
                tokens,
            ),
        )
        return self._connection.last_id

    def note(self, key: int, facts: int, contradictions: int) -> None:
        """Keep how many facts a window gave and how many contradictions it resolved."""
        self._connection.execute(
            "UPDATE reflection SET facts_extracted = ?, contradictions_resolved = ? WHERE id = ?",
            (facts, contradictions, key),
        )
