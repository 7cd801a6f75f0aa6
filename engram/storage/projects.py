"""The memories of each project, newest first: derived from the paths that episodes keep."""

from __future__ import annotations

import hashlib
import json
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from engram.storage import uids
from engram.storage.filters import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engram.storage.connection import Connection

INELIGIBLE: Final = f"({UNAVAILABLE} IS NOT NULL OR {{0}}.quarantined)"
"""SQL over an episode: whether a project must not see it."""

_LISTED = (
    "SELECT e.id, e.uid, e.recorded_at, e.project_path, e.source_path FROM {0}"
    " WHERE (e.project_path IS NOT NULL OR (e.source_path IS NOT NULL AND NOT e.project_conflict))"
)
_KINDS = (0, 1)


class ProjectMemory(NamedTuple):
    """A memory as a project lists it; times in microseconds."""

    id: str
    content: str
    length: int
    layer: str
    memory_type: str
    recorded_at: int


class Projects:
    """The memories of projects; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, first: int, last: int) -> None:
        """List the eligible ones of the episodes `first` to `last`, both included."""
        self._connection.executemany(
            "INSERT OR IGNORE INTO project_memory VALUES (?, ?, ?, ?, ?)",
            self._rows(
                f" AND e.id BETWEEN :first AND :last AND NOT {INELIGIBLE.format('e')}",
                {"first": first, "last": last},
            ),
        )

    def remove(self, episodes: Iterable[int]) -> None:
        """Take episodes off every list, before their rows go or change."""
        self._connection.executemany(
            "DELETE FROM project_memory"
            " WHERE project = ? AND kind = ? AND recorded_at = ? AND uid = ? AND episode = ?",
            self._rows(
                "",
                {"keys": json.dumps(list(episodes))},
                "json_each(:keys) AS k CROSS JOIN episode AS e ON e.id = k.value",
            ),
        )

    def _rows(
        self, condition: str, bindings: dict[str, object], source: str = "episode AS e"
    ) -> list[tuple[bytes, int, int, bytes | str, int]]:
        found = self._connection.execute(_LISTED.format(source) + condition, bindings)
        return [
            (digest(path), int(isinstance(uid, str)), recorded_at, uid, key)
            for key, uid, recorded_at, project, origin in found.fetchall()
            for path in ([project] if project is not None else containing(origin))
        ]

    def newest(self, project: str, limit: int, excerpt: int) -> list[ProjectMemory]:
        """Return a project's newest memories, ties by id; costs time in `limit` alone.

        Args:
            project: Its canonical path.
            limit: How many at most.
            excerpt: Characters of each content to read.
        """
        ordered = merge(*(self._of_kind(project, kind, limit) for kind in _KINDS))
        keys = [key for _, _, key in islice(ordered, limit)]
        rows = self._connection.execute(
            "SELECT e.uid, substr(e.content, 1, ?1), length(e.content), e.layer, e.memory_type,"
            " e.recorded_at FROM json_each(?2) AS k CROSS JOIN episode AS e ON e.id = k.value",
            (excerpt, json.dumps(keys)),
        )
        return [ProjectMemory(uids.from_stored(uid), *rest) for uid, *rest in rows]

    def _of_kind(self, project: str, kind: int, limit: int) -> Iterator[tuple[int, str, int]]:
        rows = self._connection.execute(
            "SELECT recorded_at, uid, episode FROM project_memory WHERE project = ? AND kind = ?"
            " ORDER BY recorded_at DESC, uid LIMIT ?",
            (digest(project), kind, limit),
        ).fetchall()
        return iter([(-recorded_at, uids.from_stored(uid), key) for recorded_at, uid, key in rows])


def digest(path: str) -> bytes:
    """Return what stands for a canonical path, 16 bytes."""
    return hashlib.blake2b(path.encode(), digest_size=16).digest()


def containing(source: str) -> Iterator[str]:
    """Yield a canonical path and every folder above it."""
    end = len(source)
    while end > 0:
        yield source[:end]
        end = source.rfind("/", 0, end)
    if source != "/":
        yield "/"
