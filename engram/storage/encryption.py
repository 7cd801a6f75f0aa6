"""Keys: how one opens a file, and how a file gets another.

SQLite3 Multiple Ciphers can change a key in place, but refuses to in WAL mode, and a process that
dies on the way leaves pages of two keys. So the store is copied under the new key, and the copy
takes its place in one rename.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import apsw

from engram.errors import CorruptStore, InvalidArgument
from engram.storage.files import put_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK = 1 << 20

EXISTING = apsw.SQLITE_OPEN_READWRITE
READ_WRITE = EXISTING | apsw.SQLITE_OPEN_CREATE
WITH_URIS = READ_WRITE | apsw.SQLITE_OPEN_URI
"""Lets VACUUM INTO take a key. Only absolute paths are opened so, which never look like URIs."""


def passphrase(key: str) -> bytes:
    """Return the bytes of a key.

    Raises:
        InvalidArgument: It is empty or no Unicode text.
    """
    if not key:
        message = "key must not be empty"
        raise InvalidArgument(message, "pass key=None for a plain store")
    try:
        return key.encode()
    except UnicodeEncodeError:
        message = "key holds characters that are not Unicode text"
        raise InvalidArgument(message) from None


def unlock(connection: apsw.Connection, secret: bytes) -> None:
    """Give a connection its key, before its first statement."""
    connection.execute("PRAGMA cipher = 'sqlcipher'")
    connection.execute("PRAGMA legacy = 4")
    connection.execute(f"PRAGMA hexkey = '{secret.hex()}'")


@contextmanager
def source(path: str, secret: bytes | None, busy_timeout: float) -> Iterator[apsw.Connection]:
    """Open a store once more, to copy it while the store's own connection goes on."""
    connection = apsw.Connection(os.path.realpath(path), flags=WITH_URIS)
    try:
        connection.set_busy_timeout(int(busy_timeout * 1000))
        if secret is not None:
            unlock(connection, secret)
        yield connection
    finally:
        connection.close()


def copy_into(connection: apsw.Connection, dest: Path, secret: bytes | None) -> None:
    """Write one consistent state of a store to a new file under a key of its own.

    Other connections write on meanwhile. The copy has no free pages, so nothing erased is in it.

    Args:
        connection: One that reads names as URIs, see `source`.
        dest: A file that does not exist.
        secret: The copy's key; None leaves it plain.
    """
    key = "key=" if secret is None else f"cipher=sqlcipher&legacy=4&hexkey={secret.hex()}"
    connection.execute("VACUUM INTO ?", (f"file:{quote(str(dest))}?{key}",))


def _unfinished(path: str) -> Path:
    return Path(f"{os.path.realpath(path)}-rekey")


def remove_unfinished(path: str) -> None:
    """Remove what a `change_key` left behind when its process died: its copy, and journals.

    Only for those who have the store open, in WAL mode: they know that nobody is changing its key,
    and that SQLite has no use for the store's own journal; it played one back when it opened.
    """
    copy, store = _unfinished(path), os.path.realpath(path)
    for left in (copy, f"{copy}-journal", f"{store}-journal"):
        Path(left).unlink(missing_ok=True)


def change_key(path: str, old: bytes | None, new: bytes | None, busy_timeout: float) -> None:
    """Put a store under another key, or none; a process that dies leaves the old or the new one.

    Nobody may have the store open, the caller included. A copy that is left behind is removed by
    the next `Connection` that opens the store.

    Raises:
        apsw.BusyError: Another connection has the store open.
        CorruptStore: The copy does not read back; the store is as it was.
    """
    store, copy = Path(os.path.realpath(path)), _unfinished(path)
    with source(path, old, busy_timeout) as connection:
        _lock_out(connection, busy_timeout)
        try:
            remove_unfinished(path)
            copy_into(connection, copy, new)
            _verify(copy, new, connection)
            shutil.copymode(store, copy)
            # Opened before the rename, closed after it: this is the old file, whatever its name.
            with store.open("r+b") as abandoned:
                put_in_place(copy, store)
                _overwrite(abandoned.fileno())
        finally:
            remove_unfinished(path)


def _lock_out(connection: apsw.Connection, busy_timeout: float) -> None:
    """Keep every other connection out until this one closes."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    deadline = time.monotonic() + busy_timeout
    while True:
        # Leaving WAL needs the file alone, and empties and removes -wal. SQLite does not call its
        # busy handler here.
        try:
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            if connection.execute("PRAGMA journal_mode").get == "delete":
                return
        except apsw.BusyError:
            pass
        if time.monotonic() > deadline:
            raise apsw.BusyError
        time.sleep(0.01)


def _verify(copy: Path, secret: bytes | None, original: apsw.Connection) -> None:
    count = "SELECT count(*) FROM sqlite_schema"
    check = apsw.Connection(str(copy))
    try:
        if secret is not None:
            unlock(check, secret)
        sound = check.execute("PRAGMA quick_check").get == "ok"
        same = check.execute(count).get == original.execute(count).get
    finally:
        check.close()
    if not (sound and same):
        message = "the copy under the new key does not read back; the store was left as it was"
        raise CorruptStore(message, "run check() on the store")


def _overwrite(descriptor: int) -> None:
    """Blank the file that lost its name.

    Whoever opened it while it was locked must not take it for the store, and what was readable in
    it is gone from the disk as far as a program can see to that.
    """
    size = os.fstat(descriptor).st_size
    for start in range(0, size, _BLOCK):
        os.pwrite(descriptor, bytes(min(_BLOCK, size - start)), start)
    os.fsync(descriptor)
