"""SQLite's errors under engram's names, without their text, which can quote values."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from engram.errors import (
    Busy,
    CannotOpen,
    Closed,
    CorruptStore,
    EngramError,
    NotAStore,
    StoreFull,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

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
# All statements are ours, and say what a sound store has: these are refused only in another.
_DAMAGED = ("no such table", "no such column", "vtable constructor failed", "malformed JSON")


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
        if str(error).startswith(_DAMAGED):
            message = "the store lacks a part, or holds what it cannot"
            raise CorruptStore(message, "run `engram verify`, or restore a backup") from error
        message = f"the store refused a statement ({type(error).__name__})"
        raise EngramError(message) from error
