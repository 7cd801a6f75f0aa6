"""What is loaded at first use and then kept."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LoadedOnce"]

_Loaded = TypeVar("_Loaded")


class LoadedOnce(Generic[_Loaded]):
    """Loads something when it is first asked for, once per process, for all threads.

    A process forked from one that has loaded it loads it anew: an onnxruntime session's threads do
    not survive the fork, so it can neither run nor be destroyed, since joining them would hang. It
    stays where it is, and so may the lock.

    Args:
        load: Returns what to keep. If it raises, the next call tries again.
    """

    def __init__(self, load: Callable[[], _Loaded]) -> None:
        self._load = load
        self._lock = Lock()
        self._loaded: _Loaded | None = None
        self._process = os.getpid()
        self._abandoned: list[object] = []

    def __call__(self) -> _Loaded:
        """Return what was loaded, now or before; raises what loading raises."""
        if self._process != os.getpid():
            self._abandoned.append(self._loaded)
            self._loaded, self._lock, self._process = None, Lock(), os.getpid()
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded
