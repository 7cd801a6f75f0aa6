"""Reading a file that somebody else names, and that may be anything."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def file_content(path: Path, most: int) -> bytes:
    """Return the bytes of a file.

    Args:
        path: The file.
        most: Bytes that it may have.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no file, or too large.
    """
    # A pipe is opened without waiting for whoever writes into it, and then refused.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            message = "no regular file"
            raise ValueError(message)
        content = file.read(most + 1)
    if len(content) > most:
        message = "the file is too large"
        raise ValueError(message)
    return content
