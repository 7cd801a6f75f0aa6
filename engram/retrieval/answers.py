"""Answers of searches that were just given, for as long as nobody writes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from engram.retrieval.search import SearchHit


class Answers:
    """The last answers, each with the change that the store was at; empty ones are kept as well.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[Hashable, tuple[int, list[SearchHit]]] = OrderedDict()

    def get(self, asked: Hashable, change: int) -> list[SearchHit] | None:
        """Return an answer that was given when the store was at a change, None without one."""
        with self._lock:
            found = self._kept.get(asked)
            if found is None or found[0] != change:
                return None
            self._kept.move_to_end(asked)
            return found[1]

    def put(self, asked: Hashable, change: int, answer: list[SearchHit], size: int) -> None:
        """Keep an answer, and of all of them the `size` last used."""
        with self._lock:
            self._kept[asked] = change, answer
            self._kept.move_to_end(asked)
            while len(self._kept) > size:
                self._kept.popitem(last=False)
