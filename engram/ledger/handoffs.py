"""Session checkpoints: saved, cleared and taken up."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from engram import arguments, entries
from engram.errors import InvalidArgument, InvalidType
from engram.ledger.projects import MAX_MEMORIES, ContextMemory, ProjectContext, newest
from engram.paths import canonical
from engram.transfer.strict_json import items, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engram.storage.handoffs import StoredCheckpoint
    from engram.storage.ledger_store import LedgerStore

MAX_CHECKPOINTS: Final = 20

_RESUMED: Final = 3


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a session left off.

    Attributes:
        project_path: The canonical path of its project.
        task: What it was about; a project has one checkpoint for each task.
        summary: Where things stand.
        decisions: What was decided.
        next_steps: What comes next.
        blockers: What is in the way.
        created_at: When the task was first saved, Unix seconds.
        updated_at: When it was last saved, Unix seconds.
    """

    project_path: str
    task: str
    summary: str
    decisions: tuple[str, ...]
    next_steps: tuple[str, ...]
    blockers: tuple[str, ...]
    created_at: float
    updated_at: float


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a session of a project begins with, as it was at one moment.

    Attributes:
        project_path: The project's canonical path.
        memories: Its newest memories, newest first.
        checkpoints: Where its sessions left off, the latest first.
    """

    project_path: str
    memories: list[ContextMemory]
    checkpoints: list[Checkpoint]


class SessionHandoffs(ProjectContext):
    """The calls about checkpoints.

    Arguments are checked in the order in which they are listed. Texts lose the space around them;
    their lengths count it. They may hold any character but lone surrogates.
    """

    def save_checkpoint(
        self,
        project: str,
        task: str,
        summary: str,
        *,
        decisions: Iterable[str] | None = (),
        next_steps: Iterable[str] | None = (),
        blockers: Iterable[str] | None = (),
    ) -> Checkpoint:
        """Say where a session left off, in the place of all that was said of the task before.

        Args:
            project: The project's folder, absolute; any spelling of it.
            task: What it was about; for this and all below see `entries.checkpoint`.
            summary: Where things stand.
            decisions: What was decided.
            next_steps: What comes next.
            blockers: What is in the way.

        Returns:
            What was saved.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, StoreFull: The store cannot be
                written.
        """
        path = canonical(project, "project")
        texts = entries.checkpoint(task, summary, decisions, next_steps, blockers)
        with self._writing() as store:
            now = self._now()
            first = store.handoffs.save(path, texts.task, texts.summary, texts[2:], now)
        return Checkpoint(path, *texts, first / 1e6, now / 1e6)

    def clear_checkpoint(self, project: str, task: str) -> bool:
        """Delete the checkpoint of a task and return whether there was one.

        Raises:
            InvalidArgument, InvalidType, CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy,
                StoreFull: As for `save_checkpoint`.
        """
        path, name = canonical(project, "project"), entries.checkpoint_task(task)
        # Where nothing is to be deleted there is no need to wait for who writes.
        with self._reading() as store:
            if not store.handoffs.has(path, name):
                return False
        with self._writing() as store:
            return store.handoffs.clear(path, name)

    def checkpoints(
        self, project: str, *, task: str | None = None, limit: int = _RESUMED
    ) -> list[Checkpoint]:
        """Return where a project's sessions left off, the latest first, ties by task.

        Changes nothing. A row that could not have been saved is passed over and takes no other's
        place.

        Args:
            project: The project's folder, absolute; any spelling of it.
            task: Only the checkpoint of this task; upper and lower case differ.
            limit: How many at most, 1 to `MAX_CHECKPOINTS`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        path = canonical(project, "project")
        name = None if task is None else entries.checkpoint_task(task)
        count = arguments.integer(limit, "limit", 1, MAX_CHECKPOINTS)
        with self._reading() as store:
            return _latest(store, path, name, count)

    def context(self, project: str, *, task: str | None = None, limit: int = 8) -> SessionContext:
        """Return what `recent` and `checkpoints` do, both of the same moment.

        Args:
            project: The project's folder, absolute; any spelling of it.
            task: Only the checkpoint of this task; None is the three latest.
            limit: How many memories at most, 1 to `MAX_MEMORIES`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: The store cannot be read.
        """
        path = canonical(project, "project")
        name = None if task is None else entries.checkpoint_task(task)
        count = arguments.integer(limit, "limit", 1, MAX_MEMORIES)
        with self._reading() as store:
            memories = newest(store, path, count, self._now())
            return SessionContext(path, memories, _latest(store, path, name, _RESUMED))


def _latest(store: LedgerStore, project: str, task: str | None, count: int) -> list[Checkpoint]:
    handoffs = store.handoffs
    rows = handoffs.newest_first(project) if task is None else handoffs.of_task(project, task)
    return list(islice(_sound(project, rows), count))


def _stored(text: str, column: str) -> list[object]:
    return items(parse(text, column), column)


def _sound(project: str, rows: Iterable[StoredCheckpoint]) -> Iterator[Checkpoint]:
    """Yield the rows that `save_checkpoint` could have written."""
    for row in rows:
        try:
            texts = entries.checkpoint(
                row.task,
                row.summary,
                _stored(row.decisions, "decisions"),
                _stored(row.next_steps, "next_steps"),
                _stored(row.blockers, "blockers"),
            )
        except (InvalidArgument, InvalidType):
            continue
        yield Checkpoint(project, *texts, row.created_at / 1e6, row.updated_at / 1e6)
