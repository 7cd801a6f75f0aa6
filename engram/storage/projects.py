"""The memories of each project, newest first: derived from the paths that episodes keep."""

from __future__ import annotations

import hashlib
import json
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engram.storage import uids
from engram.storage.filters import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engram.storage.connection import Connection

INELIGIBLE: Final = f"({UNAVAILABLE} IS NOT NULL OR {{0}}.quarantined)"
"""SQL over an episode: whether a project must not see it."""

FACT: Final = "fact:"
"""What the id of a fact begins with where it is a memory among others."""

_ELIGIBLE = f"NOT {INELIGIBLE.format('e')}"
_ACTIVE = "f.valid_to IS NULL AND f.superseded_at IS NULL AND NOT f.quarantined"

_FACT = 2
_KINDS = (0, 1, _FACT)

_Row = tuple[bytes, int, int, bytes | str, int]


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
        self._insert(
            self._episodes(
                f"episode AS e WHERE e.id BETWEEN :first AND :last AND {_ELIGIBLE}",
                {"first": first, "last": last},
            )
        )

    def remove(self, episodes: Iterable[int]) -> None:
        """Take episodes off every list, before their rows go or change."""
        self._delete(
            self._episodes(
                "json_each(:keys) AS k CROSS JOIN episode AS e ON e.id = k.value WHERE TRUE",
                {"keys": json.dumps(list(episodes))},
            )
        )

    def add_facts(self, first: int, last: int) -> None:
        """List the active ones of the facts `first` to `last`, both included."""
        self._insert(self._facts(f"f.id BETWEEN ? AND ? AND {_ACTIVE}", (first, last)))

    def remove_fact(self, fact: int) -> None:
        """Take a fact off its list, before its row goes or changes."""
        self._delete(self._facts("f.id = ?", (fact,)))

    def differences(self) -> tuple[int, int]:
        """Compare the lists with the memories, reading all of both.

        Returns:
            How many rows are missing, and how many should not be there.
        """
        expected = missing = 0
        for row in chain(
            self._episodes(f"episode AS e WHERE {_ELIGIBLE}", {}), self._facts(_ACTIVE, ())
        ):
            expected += 1
            missing += self._connection.execute(
                "SELECT NOT EXISTS (SELECT 1 FROM project_memory WHERE project = ? AND kind = ?"
                " AND recorded_at = ? AND uid = ? AND memory = ?)",
                row,
            ).get
        total: int = self._connection.execute("SELECT count(*) FROM project_memory").get
        return missing, total - (expected - missing)

    def _insert(self, rows: Iterable[_Row]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO project_memory VALUES (?, ?, ?, ?, ?)", list(rows)
        )

    def _delete(self, rows: Iterable[_Row]) -> None:
        self._connection.executemany(
            "DELETE FROM project_memory"
            " WHERE project = ? AND kind = ? AND recorded_at = ? AND uid = ? AND memory = ?",
            list(rows),
        )

    def _episodes(self, chosen: str, bindings: dict[str, object]) -> Iterator[_Row]:
        rows: Any = self._connection.execute(
            f"SELECT e.id, e.uid, e.recorded_at, e.project_path, e.source_path FROM {chosen}"  # noqa: S608
            " AND (e.project_path IS NOT NULL"
            " OR (e.source_path IS NOT NULL AND NOT e.project_conflict))",
            bindings,
        )
        for key, uid, recorded_at, project, source in rows:
            for path in [project] if project is not None else containing(source):
                yield digest(path), int(isinstance(uid, str)), recorded_at, uid, key

    def _facts(self, chosen: str, bindings: tuple[int, ...]) -> Iterator[_Row]:
        rows: Any = self._connection.execute(
            "SELECT f.id, f.uid, f.recorded_at, f.project_path FROM fact AS f"  # noqa: S608
            f" WHERE f.project_path IS NOT NULL AND {chosen}",
            bindings,
        )
        for key, uid, recorded_at, project in rows:
            yield digest(project), _FACT, recorded_at, uid, -key

    def newest(self, project: str, limit: int, excerpt: int) -> list[ProjectMemory]:
        """Return a project's newest memories, ties by id; costs time in `limit` alone.

        Args:
            project: Its canonical path.
            limit: How many at most.
            excerpt: Characters of each content to read.
        """
        ordered = merge(*(self._of_kind(project, kind, limit) for kind in _KINDS))
        keys = [key for _, _, key in islice(ordered, limit)]
        episodes: Any = self._connection.execute(
            "SELECT e.id, e.uid, substr(e.content, 1, ?1), length(e.content), e.layer,"
            " e.memory_type, e.recorded_at"
            " FROM json_each(?2) AS k CROSS JOIN episode AS e ON e.id = k.value",
            (excerpt, json.dumps([key for key in keys if key > 0])),
        ).fetchall()
        facts: Any = self._connection.execute(
            "SELECT -f.id, f.uid, substr(f.text, 1, ?1), length(f.text), 'semantic', 'fact',"
            " f.recorded_at FROM (SELECT s.id, s.uid, s.recorded_at,"
            " concat_ws(' ', s.subject, s.predicate, s.object) AS text"
            " FROM json_each(?2) AS k CROSS JOIN fact AS s ON s.id = k.value) AS f",
            (excerpt, json.dumps([-key for key in keys if key < 0])),
        ).fetchall()
        found = {
            key: ProjectMemory(_public(uid, key), *rest) for key, uid, *rest in episodes + facts
        }
        return [found[key] for key in keys]

    def _of_kind(self, project: str, kind: int, limit: int) -> Iterator[tuple[int, str, int]]:
        rows: Any = self._connection.execute(
            "SELECT recorded_at, uid, memory FROM project_memory WHERE project = ? AND kind = ?"
            " ORDER BY recorded_at DESC, uid LIMIT ?",
            (digest(project), kind, limit),
        ).fetchall()
        return iter([(-recorded_at, _public(uid, key), key) for recorded_at, uid, key in rows])


def _public(uid: bytes | str, key: int) -> str:
    return uids.from_stored(uid) if key > 0 else FACT + uids.from_stored(uid)


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
