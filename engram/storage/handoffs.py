"""Session checkpoints: where a session left off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engram.storage.connection import Connection

NAMESPACE: Final = "native"
"""Whose checkpoints these are; those that other adapters keep have other names."""

_TEXTS = ("task", "summary", "decisions", "next_steps", "blockers")
_COLUMNS = f"{', '.join(_TEXTS)}, created_at, updated_at"
_BYTES = ", ".join(f"CAST({column} AS BLOB)" for column in _TEXTS)


class StoredCheckpoint(NamedTuple):
    """A checkpoint as its row has it: lists as JSON, times in microseconds."""

    task: str
    summary: str
    decisions: str
    next_steps: str
    blockers: str
    created_at: int
    updated_at: int


class Handoffs:
    """The session checkpoints of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def save(
        self, project: str, task: str, summary: str, lists: Sequence[Sequence[str]], at: int
    ) -> int:
        """Put a checkpoint in the place of the one its task had, and return when that was first.

        Args:
            project: The canonical path.
            task: Its task.
            summary: Where the session left off.
            lists: Decisions, next steps and blockers.
            at: The time, in microseconds.
        """
        first: int = self._connection.execute(
            f"INSERT INTO session_checkpoint (namespace, project_path, {_COLUMNS})"  # noqa: S608
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)"
            " ON CONFLICT DO UPDATE SET summary = excluded.summary,"
            " decisions = excluded.decisions, next_steps = excluded.next_steps,"
            " blockers = excluded.blockers, updated_at = excluded.updated_at"
            " RETURNING created_at",
            (NAMESPACE, project, task, summary, *map(json.dumps, lists), at),
        ).get
        return first

    def clear(self, project: str, task: str) -> bool:
        """Delete the checkpoint of a task and return whether there was one."""
        self._connection.execute(
            "DELETE FROM session_checkpoint WHERE namespace = ? AND project_path = ? AND task = ?",
            (NAMESPACE, project, task),
        )
        return self._connection.changed > 0

    def has(self, project: str, task: str) -> bool:
        """Say whether a task has a checkpoint."""
        found = self._connection.execute(
            "SELECT 1 FROM session_checkpoint"
            " WHERE namespace = ? AND project_path = ? AND task = ?",
            (NAMESPACE, project, task),
        ).get
        return found is not None

    def of_task(self, project: str, task: str) -> Iterator[StoredCheckpoint]:
        """Yield the checkpoint of a task, if there is one whose texts are texts."""
        return self._read("task = ?", (NAMESPACE, project, task))

    def newest_first(self, project: str) -> Iterator[StoredCheckpoint]:
        """Yield the checkpoints of a project as they are asked for, ties by task; texts only."""
        return self._read("TRUE ORDER BY updated_at DESC, task", (NAMESPACE, project))

    def _read(self, condition: str, bindings: tuple[str, ...]) -> Iterator[StoredCheckpoint]:
        # As bytes, for what is no UTF-8 would take the rows after it along.
        rows = self._connection.execute(
            f"SELECT {_BYTES}, created_at, updated_at FROM session_checkpoint"  # noqa: S608
            f" WHERE namespace = ? AND project_path = ? AND {condition}",
            bindings,
        )
        for *texts, created_at, updated_at in rows:
            try:
                decoded = [text.decode() for text in texts]
            except UnicodeDecodeError:
                continue
            yield StoredCheckpoint._make((*decoded, created_at, updated_at))
