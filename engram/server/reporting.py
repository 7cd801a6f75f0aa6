"""What the server says on stderr: never more than kinds of errors, and never at any price."""

from __future__ import annotations

import errno
import os
import select
from contextlib import suppress

__all__ = ["report", "say"]


def say(text: str) -> None:
    """Write a line to stderr, unless nobody takes it right now."""
    with suppress(OSError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"engram: {text}\n".encode())


def report(error: Exception) -> None:
    """Say what kind of error there was: its message may quote what is stored."""
    number = error.errno if isinstance(error, OSError) else None
    name = errno.errorcode.get(number, "") if number is not None else ""
    say(f"{type(error).__name__} {name}".rstrip())
