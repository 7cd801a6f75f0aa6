"""The memories of each project, newest first: derived from the paths that episodes keep."""

from __future__ import annotations

import hashlib
import json
from codecs import getincrementaldecoder
from contextlib import suppress
from heapq import merge
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engram.storage import uids
from engram.storage.standing import ACTIVE_FACT, INELIGIBLE, READABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engram.storage.connection import Connection

FACT: Final = "fact:"
"""What the id of a fact begins with where it is a memory among others."""

_ELIGIBLE = f"NOT {INELIGIBLE.format('e')}"
# Whether a fact holds changes with the time and with its sources, so that is asked when it is read.
_LISTED = "f.superseded_at IS NULL"

_FACT = 2
_KINDS = (0, 1, _FACT)
_DIGEST_BYTES = 16
_EVERY_KEY = 2**63 - 1

_Row = tuple[bytes, int, int, bytes | str, int]


# As bytes: to SQLite's functions on text a NUL is its end.
_CONTEXT = (
    f"SELECT e.id, {uids.TYPED.format('e')}, substr(CAST(e.content AS BLOB), 1, :bytes),"  # noqa: S608
    " CAST(e.layer AS BLOB), CAST(e.memory_type AS BLOB), e.recorded_at"
    " FROM json_each(:episodes) AS k CROSS JOIN episode AS e ON e.id = k.value"
    f" WHERE {READABLE.format('e')}"
    f" UNION ALL SELECT -f.id, {uids.TYPED.format('f')},"
    " substr(CAST(concat_ws(' ', f.subject, f.predicate, f.object)"
    " AS BLOB), 1, :bytes), CAST('semantic' AS BLOB), CAST('fact' AS BLOB), f.recorded_at"
    " FROM json_each(:facts) AS k CROSS JOIN fact AS f ON f.id = k.value"
    f" WHERE {ACTIVE_FACT.format('f')}"
)
_UTF8_MOST = 4


class ProjectMemory(NamedTuple):
    """A memory as a project lists it; times in microseconds."""

    id: str
    content: str
    truncated: bool
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

    def fill(self) -> None:
        """List everything, where nothing is listed yet."""
        self.add(0, _EVERY_KEY)
        self.add_facts(0, _EVERY_KEY)

    def remove(self, episodes: Iterable[int]) -> None:
        """Take episodes off every list, before their rows go or change."""
        self._delete(
            self._episodes(
                "json_each(:keys) AS k CROSS JOIN episode AS e ON e.id = k.value WHERE TRUE",
                {"keys": json.dumps(list(episodes))},
            )
        )

    def add_facts(self, first: int, last: int) -> None:
        """List those of the facts `first` to `last`, both included, that are not superseded."""
        self._insert(self._facts(f"f.id BETWEEN ? AND ? AND {_LISTED}", (first, last)))

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
            self._episodes(f"episode AS e WHERE {_ELIGIBLE}", {}), self._facts(_LISTED, ())
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
        # Row by row as they are read: an import lists all it wrote at once.
        self._connection.executemany(
            "INSERT OR IGNORE INTO project_memory VALUES (?, ?, ?, ?, ?)", rows
        )

    def _delete(self, rows: Iterable[_Row]) -> None:
        self._connection.executemany(
            "DELETE FROM project_memory"
            " WHERE project = ? AND kind = ? AND recorded_at = ? AND uid = ? AND memory = ?",
            rows,
        )

    def _episodes(self, chosen: str, bindings: dict[str, object]) -> Iterator[_Row]:
        rows: Any = self._connection.execute(
            f"SELECT e.id, e.uid, e.recorded_at, e.project_path, e.source_path FROM {chosen}"  # noqa: S608
            " AND (e.project_path IS NOT NULL"
            " OR (e.source_path IS NOT NULL AND NOT e.project_conflict))",
            bindings,
        )
        for key, uid, recorded_at, project, source in rows:
            for folder in [digest(project)] if project is not None else containing(source):
                yield folder, int(isinstance(uid, str)), recorded_at, uid, key

    def _facts(self, chosen: str, bindings: tuple[int, ...]) -> Iterator[_Row]:
        rows: Any = self._connection.execute(
            "SELECT f.id, f.uid, f.recorded_at, f.project_path FROM fact AS f"  # noqa: S608
            f" WHERE f.project_path IS NOT NULL AND {chosen}",
            bindings,
        )
        for key, uid, recorded_at, project in rows:
            yield digest(project), _FACT, recorded_at, uid, -key

    def newest(self, project: str, limit: int, excerpt: int, now: int) -> list[ProjectMemory]:
        """Return a project's newest memories, ties by id.

        Costs time in `limit`, and in the listed facts it passes over that do not hold.

        Args:
            project: Its canonical path.
            limit: How many at most.
            excerpt: Characters of each content to read.
            now: The time at which a fact has to hold, in microseconds.
        """
        listed = merge(*(self._of_kind(project, kind) for kind in _KINDS))
        newest: list[ProjectMemory] = []
        while keys := [key for _, _, key in islice(listed, limit - len(newest))]:
            found = self._read(keys, excerpt, now)
            # An engram that knows no lists may have erased a memory and left its row.
            newest += [found[key] for key in keys if key in found]
        return newest

    def _of_kind(self, project: str, kind: int) -> Iterator[tuple[int, str, int]]:
        rows: Any = self._connection.execute(
            f"SELECT p.recorded_at, {uids.TYPED.format('p')}, p.memory FROM project_memory AS p"  # noqa: S608
            " WHERE p.project = ? AND p.kind = ? ORDER BY p.recorded_at DESC, p.uid",
            (digest(project), kind),
        )
        for recorded_at, form, uid, key in rows:
            with suppress(ValueError):
                yield -recorded_at, _public(form, uid, key), key

    def _read(self, keys: Sequence[int], excerpt: int, now: int) -> dict[int, ProjectMemory]:
        """Return memories by their keys; those whose text is damaged are left out."""
        bindings = {
            "bytes": _UTF8_MOST * (excerpt + 1),
            "episodes": json.dumps([key for key in keys if key > 0]),
            "facts": json.dumps([-key for key in keys if key < 0]),
            "now": now,
        }
        found: dict[int, ProjectMemory] = {}
        rows: Any = self._connection.execute(_CONTEXT, bindings)
        for key, form, uid, content, layer, kind, recorded_at in rows:
            with suppress(ValueError):
                # The last character may be cut in two, which is no damage.
                text = getincrementaldecoder("utf-8")().decode(content or b"")
                found[key] = ProjectMemory(
                    _public(form, uid, key),
                    text[:excerpt],
                    len(text) > excerpt,
                    layer.decode(),
                    kind.decode(),
                    recorded_at,
                )
        return found


def _public(form: str, uid: bytes | None, key: int) -> str:
    return uids.from_typed(form, uid) if key > 0 else FACT + uids.from_typed(form, uid)


def digest(path: str) -> bytes:
    """Return what stands for a canonical path, 16 bytes."""
    return hashlib.blake2b(path.encode(), digest_size=_DIGEST_BYTES).digest()


def containing(source: str) -> Iterator[bytes]:
    """Yield what stands for a canonical path and for every folder above it, in linear time."""
    yield digest("/")
    path = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for name in source.split("/"):
        if name:
            path.update(f"/{name}".encode())
            yield path.copy().digest()
