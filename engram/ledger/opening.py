"""What every call of a `Ledger` leans on: a store that is opened when it is needed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from engram import times
from engram.errors import (
    Busy,
    CannotOpen,
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
        self._opened()
        identity = self._identity
        assert identity is not None  # noqa: S101 - it is set with the store
        return identity

    def _now(self) -> int:
        return times.to_micros(self._clock(), "clock()")

    @contextmanager
    def _reading(self) -> Iterator[LedgerStore]:
        """Hold one snapshot of the store."""
        store = self._opened()
        with self._dropping_what_fails(), store.reading():
            yield store

    @contextmanager
    def _writing(self) -> Iterator[LedgerStore]:
        """Hold a transaction that commits everything inside at once, or nothing."""
        store = self._opened()
        with self._dropping_what_fails(), store.writing():
            yield store

    @contextmanager
    def _dropping_what_fails(self) -> Iterator[None]:
        try:
            yield
        except (InvalidArgument, InvalidType) as error:
            # Arguments were checked before: what is refused here is what the store holds.
            raise CorruptStore(error.message, error.hint) from error
        except EngramError as error:
            # A connection that failed once may be of no use; the next call tries anew.
            if isinstance(error, sqlite3.Error) and not isinstance(error, Busy):
                self.close()
            raise

    def _opened(self) -> LedgerStore:
        """Return the store, opened on the file that has its name now.

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
            return self._store

    def _drop(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._identity = None
