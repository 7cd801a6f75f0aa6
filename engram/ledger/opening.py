"""What every call of a `Ledger` leans on: a store that is opened when it is needed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from engram import times
from engram.errors import (
    Busy,
    CannotOpen,
    Closed,
    CorruptStore,
    EngramError,
    InvalidArgument,
    InvalidType,
)
from engram.paths import expanded
from engram.storage.ledger_store import LedgerStore
from engram.times import utc_now

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path


class Opening:
    """A store's path, and its connection while the file there is the one it was opened on."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        busy_timeout: float = 10.0,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._path = expanded(path)
        self._key = key
        self._busy_timeout = busy_timeout
        self._clock = clock
        # Guards _store and _identity; held while opening, never in a transaction.
        self._lock = threading.Lock()
        self._store: LedgerStore | None = None
        self._identity: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """The store's file."""
        return self._path

    def close(self) -> None:
        """Close the file, if it is open; the next call opens it again."""
        with self._lock:
            self._drop()

    def present(self) -> tuple[int, int]:
        """Return which file the store is, having opened it: device and inode.

        Raises:
            CannotOpen, NotAStore, StoreTooNew, CorruptStore, Busy: There is no store to be used.
        """
        return self._opened()[1]

    def _now(self) -> int:
        return times.to_micros(self._clock(), "clock()")

    def _reading(self) -> AbstractContextManager[LedgerStore]:
        """Hold one snapshot of the store."""
        return self._within(LedgerStore.reading)

    def _writing(self) -> AbstractContextManager[LedgerStore]:
        """Hold a transaction that commits everything inside at once, or nothing."""
        return self._within(LedgerStore.writing)

    @contextmanager
    def _within(
        self, transaction: Callable[[LedgerStore], AbstractContextManager[None]]
    ) -> Iterator[LedgerStore]:
        with ExitStack() as stack:
            try:
                store = self._begin(stack, transaction)
            except Closed:
                # Another thread's failure, or its close(), came between opening and beginning.
                store = self._begin(stack, transaction)
            yield store

    def _begin(
        self, stack: ExitStack, transaction: Callable[[LedgerStore], AbstractContextManager[None]]
    ) -> LedgerStore:
        store, _ = self._opened()
        stack.enter_context(self._dropping(store))
        stack.enter_context(transaction(store))
        return store

    @contextmanager
    def _dropping(self, store: LedgerStore) -> Iterator[None]:
        try:
            yield
        except (InvalidArgument, InvalidType) as error:
            # Arguments were checked before: what is refused here is what the store holds.
            raise CorruptStore(error.message, error.hint) from error
        except EngramError as error:
            # A connection that failed once may be of no use; the next call tries anew.
            if isinstance(error, sqlite3.Error) and not isinstance(error, Busy):
                with self._lock:
                    # Another thread may have opened the next one already.
                    if self._store is store:
                        self._drop()
            raise

    def _opened(self) -> tuple[LedgerStore, tuple[int, int]]:
        """Return the store, opened on the file that has its name now, and which file that is.

        Raises:
            CannotOpen: Nothing is there; nothing is made.
            NotAStore, StoreTooNew, CorruptStore, Busy: As for `LedgerStore`.
        """
        with self._lock:
            try:
                found = self._path.stat()
            except OSError:
                self._drop()
                message = "there is no store at the path"
                raise CannotOpen(message, "make one with `engram init`") from None
            identity = found.st_dev, found.st_ino
            if self._store is None or self._identity != identity:
                self._drop()
                self._store = LedgerStore(
                    self._path, self._now(), key=self._key, busy_timeout=self._busy_timeout
                )
                self._identity = identity
            return self._store, identity

    def _drop(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._identity = None
