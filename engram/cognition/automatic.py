"""Reflection by itself: after so many episodes, or after a quiet while."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger(__name__)
_MICROSECONDS = 1_000_000


class AutoReflect:
    """Reflects in the background when it is due, one reflection at a time.

    A failed one consumes nothing: its error is logged by name, and it is tried again when the next
    is due. Use it as a context manager or call `close` to stop.

    Args:
        reflect: Reflects.
        now: The time, in microseconds.
        episodes: Due after this many were observed; None never.
        idle: Due when nothing was observed for this many seconds, checked four times in it; None
            never.
    """

    def __init__(
        self,
        reflect: Callable[[], object],
        now: Callable[[], int],
        *,
        episodes: int | None,
        idle: float | None,
    ) -> None:
        self._reflect = reflect
        self._now = now
        self._episodes = episodes
        self._idle = idle
        self._closed = threading.Event()
        # Guards what follows; not held while reflecting.
        self._lock = threading.Lock()
        self._observed = 0
        self._waiting = False
        self._last = now()
        self._thread: threading.Thread | None = None
        if idle is not None:
            threading.Thread(target=self._watch, name="engram-idle", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def observed(self, episodes: int) -> None:
        """Count episodes that were just committed, and reflect when there are enough."""
        with self._lock:
            self._observed += episodes
            self._waiting = True
            self._last = self._now()
            if self._episodes is not None and self._observed >= self._episodes:
                self._start()

    def tick(self) -> None:
        """Reflect when something was observed and it has been quiet for long enough since."""
        with self._lock:
            quiet = self._now() - self._last
            if self._idle is not None and self._waiting and quiet >= self._idle * _MICROSECONDS:
                self._start()

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the reflection that is running, if any, for `timeout` seconds at most."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def close(self) -> None:
        """Start no more reflections; one that is running goes on."""
        self._closed.set()

    def _start(self) -> None:
        if self._closed.is_set() or (self._thread is not None and self._thread.is_alive()):
            return
        self._observed = 0
        self._waiting = False
        self._thread = threading.Thread(target=self._run, name="engram-reflection", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._reflect()
        except Exception as error:  # noqa: BLE001 - there is nobody to raise it to
            if not self._closed.is_set():
                _logger.warning("an automatic reflection failed: %s", type(error).__name__)
            with self._lock:
                self._waiting = True
                self._last = self._now()

    def _watch(self) -> None:
        assert self._idle is not None  # noqa: S101 - the thread exists for it
        while not self._closed.wait(self._idle / 4):
            self.tick()
