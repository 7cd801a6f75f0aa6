"""Project context: the newest memories that a project owns, and what the whole store holds."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.ledger.opening import Opening
from engram.paths import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engram.storage.ledger_store import LedgerStore

EXCERPT: Final = 2000
"""Characters of a memory that a context shows."""

MAX_MEMORIES: Final = 20


@dataclass(frozen=True, slots=True)
class ContextMemory:
    """A memory as a project's context shows it.

    Attributes:
        id: Its id.
        content: The first `EXCERPT` characters of it.
        truncated: Whether there are more.
        layer: Such as "episodic" or "semantic".
        memory_type: Such as "narrative" or "fact".
        created_at: When the store learned it, Unix seconds.
    """

    id: str
    content: str
    truncated: bool
    layer: str
    memory_type: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Totals:
    """What a store holds.

    Attributes:
        layers: Memories that are not forgotten, by layer; facts that hold are "semantic".
        evidence: Check observations that are not forgotten.
        entities: Named entities, and other subjects of facts.
        relationships: Connections between entities, and facts about two of them.
        db_size: Bytes of the main file; what waits in the write-ahead log is not counted.
    """

    layers: Mapping[str, int]
    evidence: int
    entities: int
    relationships: int
    db_size: int


EMPTY: Final = Totals({}, evidence=0, entities=0, relationships=0, db_size=0)
"""What there is where there is no store yet."""


class ProjectContext(Opening):
    """The calls about projects, and about the store as a whole."""

    def totals(self) -> Totals:
        """Return how much the store holds.

        Raises:
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        with self._reading() as store:
            held = store.holdings.count(self._now())
        return Totals(**held._asdict(), db_size=self._path.stat().st_size)

    def uninitialized(self) -> bool:
        """Return whether nothing is at the store's path, or an empty file that awaits a store."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size == 0

    def recent(self, project: str, *, limit: int = 8) -> list[ContextMemory]:
        """Return the newest memories that a project owns, ties by id. Changes nothing.

        A memory belongs to the project that its metadata names, else to every folder above the
        file it came from. Forgotten, inactive, invalidated and quarantined ones are left out.
        Costs time in `limit`, whatever the store's size.

        Args:
            project: The project's folder, absolute; any spelling of it.
            limit: How many at most, 1 to `MAX_MEMORIES`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        path = canonical(project, "project")
        count = arguments.integer(limit, "limit", 1, MAX_MEMORIES)
        with self._reading() as store:
            return newest(store, path, count, self._now())


def newest(store: LedgerStore, project: str, count: int, now: int) -> list[ContextMemory]:
    """Return the newest memories that a project owns, for the caller's transaction.

    Args:
        store: The store.
        project: The project's canonical path.
        count: How many at most.
        now: The time, in microseconds.
    """
    return [
        ContextMemory(
            memory.id,
            memory.content,
            memory.truncated,
            memory.layer,
            memory.memory_type,
            memory.recorded_at / 1e6,
        )
        for memory in store.projects.newest(project, count, EXCERPT, now)
    ]
