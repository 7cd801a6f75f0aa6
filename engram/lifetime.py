"""How long the process lives: no longer than its client, whatever it is busy with."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_GRACE: Final = 1.0
"""Seconds to end in good order once it is time, before the process ends all the same."""

_LOOK: Final = 500
"""Milliseconds between two looks at whether the parent is still there."""

SIGNALLED: Final = 128
"""What a shell adds to the number of the signal that ended a program."""


class Lifetime:
    """Ends the process on SIGTERM or SIGINT, when its parent is gone or nobody reads its answers.

    A signal, or a watching thread by one, interrupts what the main thread waits for and lets it
    clean up. Where native code keeps it busy, the thread ends the process itself: to the store
    that is a crash, and it is made for crashes. Must be made in the main thread.

    Args:
        answers: The file descriptor that the client reads at its other end.
        leave: What the main thread does at a signal, given its number; None raises `SystemExit`.
    """

    def __init__(self, answers: int, leave: Callable[[int], None] | None = None) -> None:
        self._parent = os.getppid()
        self._answers = answers
        self._grace = _GRACE
        # Signals are told to the thread by a byte each: their number.
        self._told, self._telling = os.pipe()
        os.set_blocking(self._telling, False)
        signal.set_wakeup_fd(self._telling, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave if leave is None else lambda told, _: leave(told))
        threading.Thread(target=self._watch, name="engram-lifetime", daemon=True).start()

    def end(self, grace: float = _GRACE) -> None:
        """Say that the work is done: what is left may take the grace period and no longer.

        Args:
            grace: In seconds.
        """
        self._grace = grace
        os.write(self._telling, b"\0")

    def _watch(self) -> NoReturn:
        poll = select.poll()
        poll.register(self._told, select.POLLIN)
        # Errors are always reported; that its reader is gone is one.
        poll.register(self._answers, 0)
        while not (events := poll.poll(_LOOK)) and os.getppid() == self._parent:
            pass
        if (self._told, select.POLLIN) not in events:
            os.kill(os.getpid(), signal.SIGTERM)
        number = os.read(self._told, 1)[0]
        time.sleep(_GRACE if number else self._grace)
        os._exit(SIGNALLED + number if number else 0)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(SIGNALLED + number)
