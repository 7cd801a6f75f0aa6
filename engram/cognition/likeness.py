"""When two experiences say the same in other words, as far as their words tell.

Two are alike when each of their parts shares more than half of its words with the other's and is
near it in meaning, and neither names a number that the other lacks. A common word, or a common
beginning, makes nothing alike. Where nothing is known of the meaning of one, each part has to share
nine tenths of its words.
"""

from __future__ import annotations

import math
import re
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from engram.storage.segment import searchable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MIN_SHARED: Final = 0.5
"""Jaccard similarity that the words of each part must exceed."""

MIN_SHARED_ALONE: Final = 0.9
"""Jaccard similarity that they must reach where nothing is known of the meaning."""

_WORD: Final = re.compile(r"\w+")
_ROUNDING: Final = 1e-9


class Words(NamedTuple):
    """The words of an experience, as numbers.

    Attributes:
        parts: Of context, action and result, each word once.
        numbers: Part and word of those that hold a digit.
    """

    parts: tuple[array[int], ...]
    numbers: frozenset[tuple[int, int]]


class Vocabulary:
    """The words of many experiences, and in how many parts each is."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._uses: list[int] = []

    def read(self, parts: Iterable[str]) -> Words:
        """Return the words of an experience's parts."""
        found = [_words(part) for part in parts]
        numbered = tuple(array("L", map(self._number, words)) for words in found)
        numbers = frozenset(
            (part, number)
            for part, words in enumerate(found)
            for word, number in zip(words, numbered[part], strict=True)
            if any(map(str.isdigit, word))
        )
        return Words(numbered, numbers)

    def _number(self, word: str) -> int:
        number = self._words.setdefault(word, len(self._words))
        if number == len(self._uses):
            self._uses.append(0)
        self._uses[number] += 1
        return number

    def rarest(self, words: array[int]) -> list[int]:
        """Return the rarest words of a part, the very rarest first.

        Of two parts that share `MIN_SHARED_ALONE` of their words, each has one of the other's.
        """
        most = len(words) - math.ceil(MIN_SHARED_ALONE * len(words) - _ROUNDING) + 1
        return sorted(words, key=lambda number: (self._uses[number], number))[:most]


def _words(text: str) -> list[str]:
    found = _WORD.findall(searchable(text).casefold())
    # Signs alone, as an emoji: only the same say the same.
    return list(dict.fromkeys(found)) or [text.strip()] * bool(text.strip())


def shared_words(asked: Sequence[set[int]], others: Sequence[array[int]]) -> float:
    """Return the least Jaccard similarity of two experiences' parts, 0 once that is too little.

    Args:
        asked: The words of the parts of one.
        others: Those of the other.
    """
    least = 1.0
    for mine, theirs in zip(asked, others, strict=True):
        both = len(mine.intersection(theirs))
        either = len(mine) + len(theirs) - both
        if both <= MIN_SHARED * either and either:
            return 0.0
        if either:
            least = min(least, both / either)
    return least
