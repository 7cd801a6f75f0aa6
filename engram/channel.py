"""The channel to the client: what was standard input and output, out of everybody else's reach.

Imported before anything that might print, so it imports next to nothing itself.
"""

from __future__ import annotations

import os
import sys
from typing import BinaryIO, NamedTuple

_LAST_STANDARD = 2


class Channel(NamedTuple):
    """Where requests come from and answers go.

    Attributes:
        requests: The stream of lines.
        answers: The file descriptor of the other direction.
    """

    requests: BinaryIO
    answers: int

    def send(self, line: bytes) -> None:
        """Write a line at once and whole.

        Raises:
            OSError: Nobody reads any more.
        """
        left = memoryview(line)
        while left:
            left = left[os.write(self.answers, left) :]


def claim() -> Channel:
    """Take standard input and output for the client alone.

    From now on what anybody prints goes to standard error, native libraries and child processes
    included, and who reads standard input finds it empty.

    Raises:
        OSError: There is no more room for open files.
    """
    # Before any other, so that where standard error is missing this is what has its number.
    null = os.open(os.devnull, os.O_RDWR)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    if null > _LAST_STANDARD:
        os.close(null)
    sys.stdout = sys.stderr
    for descriptor in (requests, answers):
        os.set_blocking(descriptor, True)
    return Channel(os.fdopen(requests, "rb"), answers)
