"""What a server says on stderr: never what is stored, and never at the price of waiting."""

from __future__ import annotations

import errno
import logging
import os
import select
import threading
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Repeats", "report", "say", "take_over"]

_FRAMES: Final = 3
"""Places of ours that an error's line names."""

_RARELY: Final = 60.0
"""Seconds in which the same line is not said again."""

_LINES: Final = 1000
"""Lines whose last time is known."""

# Between finding that there is room and writing, no other thread may take it.
_SAYING: Final = threading.Lock()


class Repeats:
    """Lines that come again and again, each let through once in a while.

    Args:
        clock: Seconds since some point in the past.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # When each line was let through, and how often it came since.
        self._lines: dict[str, tuple[float, int]] = {}

    def due(self, line: str) -> str | None:
        """Return a line with how often it was held back before; None if it is held back now."""
        now = self._clock()
        with self._lock:
            since, held = self._lines.pop(line, (-_RARELY, 0))
            if now - since < _RARELY:
                self._lines[line] = since, held + 1
                return None
            while len(self._lines) >= _LINES:
                del self._lines[next(iter(self._lines))]
            self._lines[line] = now, 0
        return f"{line} ({held} more since the last time)" if held else line


_REPEATS: Final = Repeats()


def say(text: str, program: str = "engram") -> None:
    """Write a line to stderr, unless nobody takes it right now.

    Args:
        text: What is said.
        program: Who says it.
    """
    # What is longer might wait for a reader although there is room.
    line = f"{program}: {text}".encode(errors="replace")[: select.PIPE_BUF - 1] + b"\n"
    with _SAYING, suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, line)


def report(error: BaseException, program: str = "engram") -> None:
    """Say what kind of error there was and where: its message may quote what is stored.

    Args:
        error: The error.
        program: Who says it.
    """
    number = error.errno if isinstance(error, OSError) else None
    name = errno.errorcode.get(number, "") if number is not None else ""
    places = " < ".join(_places(error))
    line = " ".join(filter(None, (type(error).__name__, name, places and f"at {places}")))
    _say_rarely(line, program)


def take_over() -> None:
    """Have `say` write what this process logs, warns of, and would write of threads that fail.

    Streams wait for whoever reads them, and so would the request that had something to say.
    """
    logging.getLogger().addHandler(_Saying())
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_failed


class _Saying(logging.Handler):
    """Says what is logged, in a line."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            _say_rarely(" ".join(record.getMessage().split()))
        except Exception as error:  # noqa: BLE001 - what logs must not fail for that
            report(error)


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is not None:
        report(failure.exc_value)


def _say_rarely(line: str, program: str = "engram") -> None:
    due = _REPEATS.due(line)
    if due is not None:
        say(due, program)


def _places(error: BaseException) -> list[str]:
    """Return where an error came from, of the engine's own code: the innermost place first."""
    walked = traceback.walk_tb(error.__traceback__)
    named = [(str(frame.f_globals.get("__name__", "")), line) for frame, line in walked]
    own = [f"{module}:{line}" for module, line in named if module.startswith("engram.")]
    return own[: -_FRAMES - 1 : -1]
