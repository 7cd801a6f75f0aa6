"""Answers of searches that were just given, for as long as nobody writes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


class Answers:
    """The last answers at one state of the store: keys and scores; empty ones as well.

    What is asked is the caller's to name, by a digest rather than by a text that may be erased.
    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._change = -1
        self._kept: OrderedDict[Hashable, list[tuple[int, float]]] = OrderedDict()

    def get(self, asked: Hashable, change: int) -> list[tuple[int, float]] | None:
        """Return an answer that was given when the store was at a change, None without one."""
        with self._lock:
            if change != self._change or asked not in self._kept:
                return None
            self._kept.move_to_end(asked)
            return self._kept[asked]

    def put(
        self, asked: Hashable, change: int, answer: Sequence[tuple[int, float]], size: int
    ) -> None:
        """Keep an answer, and of all at the same change the `size` last used."""
        with self._lock:
            if change != self._change:
                self._change = change
                self._kept.clear()
            self._kept[asked] = list(answer)
            self._kept.move_to_end(asked)
            while len(self._kept) > size:
                self._kept.popitem(last=False)
