"""The part of a store that a ledger keeps: what needs neither vectors nor NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.storage import schema
from engram.storage.changes import Changes
from engram.storage.connection import Connection
from engram.storage.dormancy import Dormancy
from engram.storage.handoffs import Handoffs
from engram.storage.holdings import Holdings
from engram.storage.lifecycle import Lifecycle
from engram.storage.observations import Observations
from engram.storage.projects import Projects
from engram.storage.residue import Residue

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path


class LedgerStore:
    """An existing store, without what searches need.

    Every method of its parts runs in the caller's transaction.

    Args:
        path: The file; nothing is made.
        now: The time, in microseconds.
        key: Passphrase of an encrypted store.
        busy_timeout: Seconds to wait for another connection's lock.

    Raises:
        CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy, InvalidArgument: As documented on
            `Connection` and `schema.bring_up_to_date`.
    """

    def __init__(
        self, path: Path, now: int, *, key: str | None = None, busy_timeout: float = 10.0
    ) -> None:
        # Not mapped: the first touch of a mapped page costs more than reading it, and a ledger
        # reads few pages twice.
        self._connection = Connection(
            path, key=key, busy_timeout=busy_timeout, mapped=0, create=False
        )
        try:
            schema.bring_up_to_date(self._connection, now)
        except BaseException:
            self._connection.close()
            raise
        changes = Changes(self._connection, Residue(self._connection))
        self.projects = Projects(self._connection)
        self.lifecycle = Lifecycle(self._connection, changes, self.projects)
        self.handoffs = Handoffs(self._connection)
        self.observations = Observations(self._connection)
        self.dormancy = Dormancy(self._connection)
        self.holdings = Holdings(self._connection)

    def reading(self) -> AbstractContextManager[None]:
        """Hold one snapshot: every read inside sees the same commits."""
        return self._connection.reading()

    def writing(self) -> AbstractContextManager[None]:
        """Commit everything inside at once, or nothing when an exception leaves."""
        return self._connection.writing()

    def close(self) -> None:
        """Close the file; twice is harmless."""
        self._connection.close()
