"""When the write-ahead log is moved into the file.

SQLite does it after every thousand pages, whatever the store's size, and waits for the disk twice.
A bulk write into a large store would do little else. Here the log may grow with the store: a
checkpoint then writes more pages at a time, and each of the busy ones once instead of many times.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import apsw

_SHARE: Final = 8
"""The log may take an eighth of what the store takes."""
_LEAST: Final = 1_000
_MOST: Final = 8_000
"""Pages; what a killed process leaves in the log is read through at the next opening."""


def checkpoint_by_size(connection: apsw.Connection) -> None:
    """Let the write-ahead log of a connection grow with its file before it is moved into it."""
    connection.set_wal_hook(_after_commit)


def _after_commit(connection: apsw.Connection, name: str, pages: int) -> int:
    if pages >= _LEAST:
        # The commit is done. Where another connection is in the way, the next one tries again.
        with suppress(apsw.Error):
            stored: int = connection.execute("PRAGMA page_count").get
            if pages >= min(_MOST, stored // _SHARE):
                connection.wal_checkpoint(name)
    return apsw.SQLITE_OK
