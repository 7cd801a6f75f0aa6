"""Agents: each name is kept once and stands in other rows as a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engram.storage.connection import Connection

OWNED: Final = (
    "iif(:agent IS NULL, {0}.agent IS NULL, {0}.agent = (SELECT id FROM agent WHERE name = :agent))"
)
"""SQL over a row: whether it is :agent's own, or with NULL nobody's. An agent that never wrote has
no key, and owns nothing."""


class Agents:
    """The agents of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def key(self, name: str) -> int | None:
        """Return the key of an agent, None when it never wrote."""
        found: int | None = self._connection.execute(
            "SELECT id FROM agent WHERE name = ?", (name,)
        ).get
        return found

    def add(self, name: str | None) -> int | None:
        """Return the key of an agent that is about to write; None stays None."""
        if name is None:
            return None
        found = self.key(name)
        if found is None:
            self._connection.execute("INSERT INTO agent (name) VALUES (?)", (name,))
            found = self._connection.last_id
        return found

    def with_episodes(self) -> list[str]:
        """Return the agents that have episodes, sorted."""
        rows = self._connection.execute(
            "SELECT name FROM agent AS a"
            " WHERE EXISTS (SELECT 1 FROM episode WHERE agent = a.id) ORDER BY name"
        )
        return [name for (name,) in rows]
