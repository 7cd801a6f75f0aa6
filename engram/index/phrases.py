"""Where the phrases of queries are: asked of the full-text table once, and kept.

A word of a query with punctuation inside ("don't", "on-call") is a phrase to the table, which knows
where in a text each word stands; the index does not. Neither a segment's rows nor their texts ever
change, so an answer for a segment stays right, and the same few phrases come again and again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index.segment import Segment
    from engram.index.tail import Tail
    from engram.storage import FullText, Phrase

    _Occurrences = tuple[NDArray[np.uint32], NDArray[np.int64]]

_KEPT: Final = 64
"""Phrases kept for a segment."""


class PhraseRows:
    """The rows that have a phrase, by segment.

    Not thread-safe: used inside the store's transactions, which take turns.
    """

    def __init__(self) -> None:
        # The rows of each phrase, how often they have it, and the last key that this covers.
        self._kept: dict[Segment | Tail, dict[Phrase, tuple[_Occurrences, int]]] = {}

    def of(self, text: FullText, segment: Segment | Tail, phrase: Phrase) -> _Occurrences:
        """Return the rows of a segment that have a phrase, ascending, and how often.

        Forgotten episodes may be among them.
        """
        kept = self._kept.setdefault(segment, {})
        none = np.empty(0, dtype=np.uint32), np.empty(0, dtype=np.int64)
        found, covered = kept.pop(phrase, (none, segment.first - 1))
        if covered < segment.last:
            keys, counts = text.phrase(phrase, covered + 1, segment.last)
            rows = np.searchsorted(segment.keys, keys).astype(np.uint32)
            found = np.concatenate((found[0], rows)), np.concatenate((found[1], counts))
        if len(kept) >= _KEPT:
            del kept[next(iter(kept))]
        kept[phrase] = found, segment.last
        return found

    def keep_only(self, segments: set[Segment | Tail]) -> None:
        """Let go of what is kept for all other segments."""
        self._kept = {one: kept for one, kept in self._kept.items() if one in segments}
