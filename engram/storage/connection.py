"""The one place that opens SQLite: pragmas, keys, busy handling, transactions, error names.

Nothing outside `engram.storage` sees an APSW type: every APSW error leaves as one of
`engram.errors`, without its text, since SQLite's messages can quote values.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import apsw

from engram.errors import (
    Busy,
    CannotOpen,
    Closed,
    CorruptStore,
    EngramError,
    Forked,
    InvalidArgument,
    NotAStore,
    StoreFull,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MEMORY = ":memory:"

_MMAP_BYTES = 256 * 1024 * 1024
_CACHE_KIB = 32_000

_ERRORS: dict[type[apsw.Error], tuple[type[EngramError], str, str]] = {
    apsw.BusyError: (
        Busy,
        "another connection kept the store locked for longer than the busy timeout",
        "try again, or raise busy_timeout",
    ),
    apsw.LockedError: (Busy, "another call of this process keeps the store locked", "try again"),
    apsw.FullError: (
        StoreFull,
        "the disk is full; the write was undone",
        "free some space and write again",
    ),
    apsw.CantOpenError: (
        CannotOpen,
        "the store cannot be opened",
        "check that the folder exists and may be written to",
    ),
    apsw.ReadOnlyError: (CannotOpen, "the store is read-only", "check the file's permissions"),
    apsw.PermissionsError: (CannotOpen, "the store may not be accessed", "check permissions"),
    apsw.IOError: (CannotOpen, "reading or writing the store failed", "check the disk"),
    apsw.NotADBError: (
        NotAStore,
        "the file is not an engram store, or it is encrypted and the key is missing or wrong",
        "pass the key it was made with as key=",
    ),
    apsw.CorruptError: (
        CorruptStore,
        "the store is damaged",
        "restore a backup; a copy of the file may still be readable in part",
    ),
}


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn an APSW error into the matching `EngramError`."""
    try:
        yield
    except apsw.ConnectionClosedError:
        message = "this Engram is closed"
        raise Closed(message, "open a new one") from None
    except UnicodeDecodeError:
        # Its text would quote the damaged one.
        message = "a stored text is damaged"
        raise CorruptStore(message, "restore a backup") from None
    except apsw.Error as error:
        for kind, (named, message, hint) in _ERRORS.items():
            if isinstance(error, kind):
                raise named(message, hint) from error
        message = f"the store refused a statement ({type(error).__name__})"
        raise EngramError(message) from error


def _passphrase(key: str) -> bytes:
    if not key:
        message = "key must not be empty"
        raise InvalidArgument(message, "pass key=None for a plain store")
    try:
        return key.encode()
    except UnicodeEncodeError:
        message = "key holds characters that are not Unicode text"
        raise InvalidArgument(message) from None


class Connection:
    """One SQLite connection, its lock and its transactions.

    Thread-safe: a transaction holds the lock from BEGIN to COMMIT, so threads take turns. The
    connection belongs to the process that opened it; after a fork every call raises `Forked`.

    Args:
        path: A file, made when missing, or ":memory:".
        key: The passphrase; None leaves the file unencrypted. SQLCipher 4 compatible: the UTF-8
            bytes go through PBKDF2, except for the raw-key spellings `x'…'` and `raw:…` that
            SQLCipher and SQLite3 Multiple Ciphers define.
        busy_timeout: Seconds to wait for another connection's lock.
        durability: "normal" survives the death of the process and can lose the last commits with
            the power, never the store; "full" waits for the disk at every commit.

    Raises:
        CannotOpen: The folder is missing or may not be written to.
        NotAStore: The file is no database, or the key is missing or wrong.
        InvalidArgument: The key is empty.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: str | None = None,
        busy_timeout: float = 10.0,
        durability: Literal["normal", "full"] = "normal",
    ) -> None:
        passphrase = None if key is None else _passphrase(key)
        self.path = path if path == MEMORY else str(Path(path))
        self.lock = threading.RLock()
        self._pid = os.getpid()
        with named_errors():
            self._connection = apsw.Connection(self.path)
            try:
                self._connection.set_busy_timeout(int(busy_timeout * 1000))
                if passphrase is not None:
                    self._unlock(passphrase)
                self._configure(durability, busy_timeout, encrypted=passphrase is not None)
            except BaseException:
                self._connection.close()
                raise

    @property
    def in_memory(self) -> bool:
        """Whether the store lives and dies with this connection."""
        return self.path == MEMORY

    def _unlock(self, passphrase: bytes) -> None:
        # SQLite cannot encrypt a store that has no file.
        if not self.in_memory:
            self._connection.execute("PRAGMA cipher = 'sqlcipher'")
            self._connection.execute("PRAGMA legacy = 4")
            self._connection.execute(f"PRAGMA hexkey = '{passphrase.hex()}'")

    def _configure(self, durability: str, busy_timeout: float, *, encrypted: bool) -> None:
        execute = self._connection.execute
        execute("PRAGMA foreign_keys = ON")
        execute("PRAGMA secure_delete = ON")
        execute("PRAGMA temp_store = MEMORY")
        execute("PRAGMA trusted_schema = OFF")
        execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        # Mapped pages would be ciphertext.
        execute(f"PRAGMA mmap_size = {0 if encrypted else _MMAP_BYTES}")
        execute(f"PRAGMA synchronous = {durability}")
        if not self.in_memory:
            self._use_wal(busy_timeout)

    def _use_wal(self, busy_timeout: float) -> None:
        # Two processes that open a new file at once: SQLite does not call its busy handler here.
        deadline = time.monotonic() + busy_timeout
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            else:
                return

    def execute(self, sql: str, bindings: Any = ()) -> apsw.Cursor:
        """Run one statement inside the caller's transaction."""
        return self._connection.execute(sql, bindings)

    def executemany(self, sql: str, bindings: Iterable[Any]) -> None:
        """Run one statement for each set of bindings, inside the caller's transaction."""
        self._connection.executemany(sql, bindings)

    @property
    def last_id(self) -> int:
        """The id of the row inserted last."""
        return self._connection.last_insert_rowid()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one snapshot of the store: every statement inside sees the same commits."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Commit everything inside at once, or nothing of it when an exception leaves."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        if os.getpid() != self._pid:
            message = "this Engram was opened by another process"
            raise Forked(message, "open the store again in the child process")
        with self.lock, named_errors():
            self._connection.execute(begin)
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk or an I/O error can have ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        if os.getpid() == self._pid:
            with self.lock:
                self._connection.close()
