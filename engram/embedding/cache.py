"""A small memory of what was computed of the texts used last."""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LONGEST_TEXT", "LongestUnused", "digest_of"]

LONGEST_TEXT = 16_384
"""Characters of a text something is kept for: longer texts are rarely repeated."""

_Kept = TypeVar("_Kept")


_ALL: WeakSet[LongestUnused[Any]] = WeakSet()


def _renew() -> None:
    for cache in _ALL:
        cache.renew()


os.register_at_fork(after_in_child=_renew)


def digest_of(text: str) -> bytes:
    """Return what stands for a text in memory, where the text itself must not outlive its store."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _one(kept: object) -> int:
    return 1


class LongestUnused(Generic[_Kept]):
    """Keeps something for each of the last texts, and drops what is unused for longest.

    Of a text it keeps a digest, so that one that was erased is not found here. Safe to share
    between threads. What is handed in and out is never copied: callers do not write into it.

    Args:
        size: How much is kept, measured by `weigh`.
        weigh: How much one thing counts; by default each counts one.
    """

    def __init__(self, size: int, weigh: Callable[[_Kept], int] = _one) -> None:
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self._lock = Lock()
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        _ALL.add(self)

    def renew(self) -> None:
        """Begin anew in a process that was forked, maybe while another thread was in here."""
        self._lock = Lock()
        self._kept = OrderedDict()
        self._weight = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> _Kept | None:
        """Return what was kept for `text`, if it still is."""
        key = digest_of(text)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, text: str, kept: _Kept) -> None:
        """Keep something for `text`, unless the text is long or there is no room for it."""
        weight = self._weigh(kept)
        if len(text) > LONGEST_TEXT or weight > self._size:
            return
        key = digest_of(text)
        with self._lock:
            replaced = self._kept.pop(key, None)
            self._weight += weight - (0 if replaced is None else self._weigh(replaced))
            self._kept[key] = kept
            while self._weight > self._size:
                _, dropped = self._kept.popitem(last=False)
                self._weight -= self._weigh(dropped)
