"""What the router has learned: the value of each of its choices, by mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.storage.connection import Connection


class ChoiceValues:
    """The table of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, mode: str) -> dict[tuple[str, str], tuple[float, int]]:
        """Return value and number of updates of a mode's choices, by level and choice."""
        rows = self._connection.execute(
            "SELECT router_level, action, value, update_count FROM q_table WHERE state = ?",
            (mode,),
        )
        return {(level, action): (value, updates) for level, action, value, updates in rows}

    def put(
        self, level: str, mode: str, action: str, value: float, updates: int, *, now: int
    ) -> None:
        """Set the value of a choice and the number of its updates, at a time in microseconds."""
        self._connection.execute(
            "INSERT INTO q_table (router_level, state, action, value, update_count, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value,"
            " update_count = excluded.update_count, updated_at = excluded.updated_at",
            (level, mode, action, value, updates, now),
        )
