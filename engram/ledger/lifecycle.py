"""Lifecycles: memories and check observations that are to be found, hidden or found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.arguments import label
from engram.entries import LONGEST_LABEL
from engram.entries import reason as checked_reason
from engram.entries import status as checked_status
from engram.errors import InvalidArgument, NotFound
from engram.ledger.opening import Opening
from engram.storage.lifecycle import ACTIVE, FORGET, INVALIDATE, RESTORE, status_given
from engram.storage.projects import FACT

if TYPE_CHECKING:
    from engram.storage.lifecycle import Found


class MemoryLifecycle(Opening):
    """The calls about whether a memory is to be found.

    Each takes the id of a memory or of a check observation, works in one transaction, and raises
    `NotFound` where nothing has the id. Facts are not hidden: they are superseded or erased.
    """

    def hide(self, memory_id: str, *, reason: str | None = None) -> None:
        """Forget a memory so that `restore` can bring it back: no read finds it any more.

        Its bytes stay in the file; `Engram.forget` erases those of a memory, and
        `Engram.forget_evidence` those of a check observation.

        Raises:
            NotFound: Nothing has this id.
            InvalidArgument, InvalidType: An argument is refused.
            CannotOpen, NotAStore, Busy, StoreFull: The store cannot be written.
        """
        self._change(memory_id, FORGET, reason, {"forgotten_at": self._now()})

    def set_status(self, memory_id: str, status: str, *, reason: str | None = None) -> None:
        """Give a memory a status: any but "active" keeps it out of all searches and lists.

        Args:
            memory_id: Its id.
            status: Such as "active", "challenged", "invalidated", "merged" or "superseded".
            reason: Why, for the history.

        Raises:
            NotFound, InvalidArgument, InvalidType, CannotOpen, NotAStore, Busy, StoreFull: As for
                `hide`.
        """
        given = checked_status(status)
        self._change(
            memory_id,
            status_given(given),
            reason,
            {"status": None if given == ACTIVE else given},
        )

    def invalidate(self, memory_id: str, *, reason: str | None = None) -> None:
        """Say that a memory is not true: it stays readable by id and is found no more.

        Raises:
            NotFound, InvalidArgument, InvalidType, CannotOpen, NotAStore, Busy, StoreFull: As for
                `hide`.
        """
        self._change(memory_id, INVALIDATE, reason, {"invalidated_at": self._now()})

    def restore(self, memory_id: str, *, reason: str | None = None) -> None:
        """Take back what `hide`, `set_status` and `invalidate` did.

        A memory that was hidden while a reflection passed it stays as it is: reflections go on
        from the newest episode they read, so no later one reads it.

        Raises:
            NotFound, InvalidArgument, InvalidType, CannotOpen, NotAStore, Busy, StoreFull: As for
                `hide`.
        """
        self._change(
            memory_id,
            RESTORE,
            reason,
            {"forgotten_at": None, "invalidated_at": None, "status": None},
        )

    def lifecycle_of(self, memory_id: str) -> list[tuple[str, str | None, float]]:
        """Return what was done to a memory, oldest first: the action, why, and when (Unix seconds).

        Raises:
            NotFound, InvalidArgument, InvalidType, CannotOpen, NotAStore, Busy: As for `hide`.
        """
        uid = _identifier(memory_id)
        with self._reading() as store:
            if store.lifecycle.find(uid) is None:
                raise _not_found()
            return [
                (action, reason, at / 1e6) for action, reason, at in store.lifecycle.history(uid)
            ]

    def _change(
        self, memory_id: str, action: str, reason: str | None, columns: dict[str, object]
    ) -> None:
        uid = _identifier(memory_id)
        why = checked_reason(reason)
        with self._writing() as store:
            found: Found | None = store.lifecycle.find(uid)
            if found is None:
                raise _not_found()
            store.lifecycle.set(found, uid, self._now(), action=action, reason=why, columns=columns)


def _identifier(value: object) -> str:
    uid = label(value, "memory_id", LONGEST_LABEL)
    if uid.startswith(FACT):
        message = "memory_id is that of a fact, and facts are superseded or erased, not hidden"
        raise InvalidArgument(message, "assert what holds in its place, or erase it")
    return uid


def _not_found() -> NotFound:
    return NotFound("there is no such memory", "it may have been erased")
