"""The one place that opens SQLite: pragmas, keys, busy handling, transactions, error names.

Nothing outside `engram.storage` sees an APSW type: every APSW error leaves as one of
`engram.errors`, without its text, since SQLite's messages can quote values.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from weakref import WeakSet

import apsw

from engram.errors import (
    Busy,
    Forked,
    InvalidArgument,
)
from engram.storage.checkpoints import checkpoint_by_size
from engram.storage.encryption import (
    EXISTING,
    READ_WRITE,
    WITH_URIS,
    change_key,
    copy_into,
    passphrase,
    remove_unfinished,
    source,
    unlock,
)
from engram.storage.errors import named_errors
from engram.storage.files import refuse_what_is_no_file, refuse_what_is_not_there, replacing
from engram.storage.functions import add_functions, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MEMORY = ":memory:"

MAPPED: Final = 128 * 1024 * 1024
"""Bytes of a file that are mapped unless somebody asks for less."""

_CACHE_KIB = 32_000


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
        mapped: Bytes of the file to map into memory at most; an encrypted one is not mapped.
        create: Make the file when nothing is there; without it that is refused.
        durability: "normal" survives the death of the process and can lose the last commits with
            the power, never the store; "full" waits for the disk at every commit.

    Attributes:
        before_writing: Called in every write transaction before anything else; may refuse it.

    Raises:
        CannotOpen: The folder is missing or may not be written to, or the path is no regular file.
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
        mapped: int = MAPPED,
        create: bool = True,
    ) -> None:
        self._mapped = mapped
        self._secret = None if key is None else passphrase(key)
        self._durability = durability
        self._busy_timeout = busy_timeout
        # Absolute: a backup and a new key open the file again, from whatever folder.
        self.path = path if path == MEMORY else str(Path(path).absolute())
        if not self.in_memory:
            refuse_what_is_no_file(Path(self.path))
        if not create:
            refuse_what_is_not_there(Path(self.path))
        self._create = create
        self.before_writing: Callable[[Connection], object] | None = None
        self.lock = threading.RLock()
        self._cursors: WeakSet[apsw.Cursor] = WeakSet()
        self._begun = 0
        self._pid = os.getpid()
        with named_errors():
            self._open()

    @property
    def in_memory(self) -> bool:
        """Whether the store lives and dies with this connection."""
        return self.path == MEMORY

    @property
    def encrypted(self) -> bool:
        """Whether the file is under a key."""
        return self._secret is not None

    @property
    def secret(self) -> bytes | None:
        """The passphrase that the file is under; None where it is not encrypted."""
        return self._secret

    def _open(self) -> None:
        # A store in memory has no other connection to be copied with.
        flags = WITH_URIS if self.in_memory else READ_WRITE if self._create else EXISTING
        # SQLite takes names in UTF-8, whatever the locale says that Python reads them in.
        name = os.fsencode(self.path).decode(errors="surrogateescape")
        self._connection = apsw.Connection(name, flags=flags)
        self._idle: list[apsw.Cursor] = []
        try:
            self._connection.set_busy_timeout(int(self._busy_timeout * 1000))
            # SQLite cannot encrypt a store that has no file.
            if self._secret is not None and not self.in_memory:
                unlock(self._connection, self._secret)
            self._configure()
        except BaseException:
            self._connection.close()
            raise

    def _configure(self) -> None:
        execute = self._connection.execute
        add_functions(self._connection)
        # Else many a statement is compiled again whenever a value is bound, to look whether another
        # plan fits it: without statistics in the file none ever does.
        self._connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        execute("PRAGMA foreign_keys = ON")
        execute("PRAGMA secure_delete = ON")
        execute("PRAGMA temp_store = MEMORY")
        execute("PRAGMA trusted_schema = OFF")
        execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        # Mapped pages would be ciphertext.
        execute(f"PRAGMA mmap_size = {self._mapped if self._secret is None else 0}")
        execute(f"PRAGMA synchronous = {self._durability}")
        if not self.in_memory:
            self._use_wal()
            checkpoint_by_size(self._connection)
            # It can hold what was erased since.
            remove_unfinished(self.path)

    def _use_wal(self) -> None:
        # Two processes that open a new file at once: SQLite does not call its busy handler here.
        deadline = time.monotonic() + self._busy_timeout
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
        cursor = self._connection.execute(sql, bindings)
        self._cursors.add(cursor)
        return cursor

    def executemany(self, sql: str, bindings: Iterable[Any]) -> None:
        """Run one statement for each set of bindings, inside the caller's transaction."""
        # Kept: APSW never lets go of one during which another cursor ended, see `_let_go`, and
        # bindings are often rows. Making the bindings may come here again.
        cursor = self._idle.pop() if self._idle else self._connection.cursor()
        try:
            cursor.executemany(sql, bindings)
        finally:
            self._idle.append(cursor)

    def tokenizer(self, name: str, arguments: list[str]) -> Callable[[bytes], list[str]]:
        """Return one of FTS5's tokenizers, from UTF-8 to terms; for the caller's transaction."""
        return partial(terms, self._connection.fts5_tokenizer(name, arguments))

    @property
    def moment(self) -> tuple[int, int]:
        """What stays the same while the caller's transaction sees the same rows."""
        return self._begun, self._connection.total_changes()

    @property
    def last_id(self) -> int:
        """The id of the row inserted last."""
        return self._connection.last_insert_rowid()

    @property
    def changed(self) -> int:
        """How many rows the last statement inserted, updated or deleted."""
        return self._connection.changes()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold one snapshot of the store: every statement inside sees the same commits."""
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def writing(self, *, wait: float | None = None) -> Iterator[None]:
        """Commit everything inside at once, or nothing of it when an exception leaves.

        Args:
            wait: Seconds to wait for another connection's lock; None is the busy timeout.
        """
        with self._transaction("BEGIN IMMEDIATE", wait):
            if self.before_writing is not None:
                self.before_writing(self)
            yield

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock, in the process the connection belongs to, with errors named."""
        if os.getpid() != self._pid:
            message = "this Engram was opened by another process"
            raise Forked(message, "open the store again in the child process")
        with self.lock, named_errors():
            yield

    @contextmanager
    def _transaction(self, begin: str, wait: float | None = None) -> Iterator[None]:
        with self._turn():
            with self._patience(wait):
                self._connection.execute(begin)
            self._begun += 1
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk or an I/O error can have ended the transaction already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._let_go()

    @contextmanager
    def _patience(self, wait: float | None) -> Iterator[None]:
        """Wait so many seconds for another connection's lock, None for the busy timeout."""
        if wait is not None:
            self._connection.set_busy_timeout(int(wait * 1000))
        try:
            yield
        finally:
            if wait is not None:
                self._connection.set_busy_timeout(int(self._busy_timeout * 1000))

    def _let_go(self) -> None:
        """Close the cursors that are left: APSW 3.54 keeps one for ever during which another ended.

        What was read in part would hold the snapshot of a transaction that is over: later writes
        would fail, and later reads show the old commit. And the end of any cursor takes time in
        the number of those that are not closed.
        """
        for cursor in self._cursors:
            cursor.close(force=True)
        self._cursors.clear()

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the file and empty it; return whether that was possible.

        Another connection's reading can prevent it for as long as it lasts; this waits for the
        busy timeout. Called outside any transaction.
        """
        with self._turn():
            if self.in_memory:
                return True
            try:
                busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
            except apsw.BusyError:
                return False
            return not busy

    def vacuum(self) -> bool:
        """Rebuild the file without free pages; other connections may stay open.

        Needs memory for the whole store: a temporary file could show what an encrypted one hides.
        Called outside any transaction.

        Returns:
            Whether the pages from before are in no file any more; see `checkpoint`.

        Raises:
            Busy: Another connection writes.
        """
        with self._turn():
            self._connection.execute("VACUUM")
        return self.checkpoint()

    def backup(self, dest: str | os.PathLike[str]) -> None:
        """Copy one consistent state to a file, under the same key; writers go on meanwhile.

        Raises:
            InvalidArgument, Busy, CannotOpen: As for `replacing`.
            StoreFull: There is no room for the copy; `dest` is as it was.
        """
        with self._turn():
            if self.in_memory:
                with self.replacing(dest) as copy:
                    copy_into(self._connection, copy, self._secret)
                return
            # A closed instance makes no copies; an open one is not kept busy by them.
            self._connection.execute("SELECT 1")
        with (
            named_errors(),
            self.replacing(dest) as copy,
            source(self.path, self._secret, self._busy_timeout) as connection,
        ):
            copy_into(connection, copy, self._secret)

    @contextmanager
    def replacing(self, dest: str | os.PathLike[str]) -> Iterator[Path]:
        """Yield the name of a file to write that takes the place of `dest`, but not of the store.

        A new file gets the store's permissions. See `engram.storage.files.replacing`.

        Raises:
            InvalidArgument: `dest` is the store itself or its journal.
            Busy: `dest` is a database that is open, or was not closed.
            CannotOpen: `dest` cannot be written.
        """
        self._check_destination(os.path.realpath(dest))
        with replacing(dest, mode_of=None if self.in_memory else Path(self.path)) as file:
            yield file

    def _check_destination(self, dest: str) -> None:
        own = os.path.realpath(self.path)
        same = Path(dest).exists() and Path(own).exists() and Path(dest).samefile(own)
        if not self.in_memory and (same or dest in (own, f"{own}-wal", f"{own}-shm")):
            message = "dest is the store itself"
            raise InvalidArgument(message, "choose another path")
        # SQLite would replay a log it finds beside the new file, whose it is not.
        if any(Path(f"{dest}{end}").exists() for end in ("-wal", "-journal")):
            message = "the destination is a database that is open, or was not closed"
            raise Busy(message, "close it, or choose another path")

    def rekey(self, new_key: str | None) -> None:
        """Put the store under another key, or none, and go on with that.

        Called outside any transaction.

        Raises:
            InvalidArgument: The new key is empty, there is neither an old nor a new one, or the
                store is in memory.
            Busy: Another connection has the store open.
        """
        new = None if new_key is None else passphrase(new_key)
        if self.in_memory:
            message = "a store in memory has no file to rekey"
            raise InvalidArgument(message, "use backup(), or a file")
        if new is None and self._secret is None:
            message = "rekey(None) removes encryption, and the store is not encrypted"
            raise InvalidArgument(message)
        with self._turn():
            # A closed instance stays closed.
            self._connection.execute("SELECT 1")
            self._connection.close()
            try:
                change_key(self.path, self._secret, new, self._busy_timeout)
                self._secret = new
            finally:
                self._open()

    def close(self) -> None:
        """Close the connection; closing twice is harmless."""
        if os.getpid() == self._pid:
            with self.lock:
                self._connection.close()
