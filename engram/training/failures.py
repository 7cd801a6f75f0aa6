"""What is said of something that failed."""

from __future__ import annotations

from engram.errors import EngramError


def reason(error: Exception) -> str:
    """Return what failed in words for the program's user, without anything that was read."""
    if isinstance(error, EngramError):
        # A passphrase comes in a file here.
        return str(error).replace("pass the key it was made with as key=", "give --key-file")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"failed unexpectedly ({type(error).__name__})"
