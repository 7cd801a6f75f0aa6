"""A small memory of the texts embedded last."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LongestUnused"]

_LONGEST_TEXT = 16_384  # characters; longer texts are rarely repeated and would fill the memory


class LongestUnused:
    """Keeps the vectors of the last `size` texts, and drops those unused for longest.

    Safe to share between threads. What is handed in and out is never copied: callers do not
    write into it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> NDArray[np.float32] | None:
        """Return what was kept for `text`, if it still is."""
        with self._lock:
            found = self._kept.get(text)
            if found is not None:
                self._kept.move_to_end(text)
            return found

    def put(self, text: str, vectors: NDArray[np.float32]) -> None:
        """Keep `vectors` for `text`, unless the text is long."""
        if len(text) > _LONGEST_TEXT or self._size < 1:
            return
        with self._lock:
            self._kept[text] = vectors
            self._kept.move_to_end(text)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
