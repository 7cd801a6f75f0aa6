"""Experiences that say the same in other words: found by shared words, confirmed by meaning.

Two are alike when each of their parts shares more than half of its words with the other's and is
near it in meaning, and neither names a number that the other lacks. A common word, or a common
beginning, makes nothing alike. Every member of a group is like the one that survives, so that a
group cannot drift from one sense to another.

Only those are compared that share one of their rarer words in every part: of two sets that have
half of their words in common, each has one of these among its rarer half and one word more.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from engram.storage.segment import searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engram.storage.consolidations import Candidate

    PartVectors = NDArray[np.float32]
    """float32[3, dim]: of context, action and result, each of unit length; zero where it is blank
    or was not embedded."""

MIN_SHARED: Final = 0.5
"""Jaccard similarity that the words of each part must exceed."""

MIN_SHARED_ALONE: Final = 0.9
"""Jaccard similarity that they must reach where nothing is known of the meaning."""

_WORTH: Final = 8
"""Comparing two experiences takes as long as going through so many entries of a list."""

_WORD: Final = re.compile(r"\w+")


class Words(NamedTuple):
    """The words of an experience, as numbers.

    Attributes:
        parts: Of context, action and result, each word once.
        numbers: Part and word of those that hold a digit.
    """

    parts: tuple[array[int], ...]
    numbers: frozenset[tuple[int, int]]


class Similar(NamedTuple):
    """Experiences that are alike: the one that survives, the others, how alike at least."""

    survivor: Candidate
    others: list[Candidate]
    similarity: float


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

    def telling(self, words: array[int]) -> list[int]:
        """Return the rarest words of a part: one that shares enough with it has one of them."""
        most = len(words) - -(-len(words) // 2) + 1
        return sorted(words, key=lambda number: (self._uses[number], number))[:most]


def _words(text: str) -> list[str]:
    found = _WORD.findall(searchable(text).casefold())
    # Signs alone, as an emoji: only the same say the same.
    return list(dict.fromkeys(found)) or [text.strip()] * bool(text.strip())


def similar(
    ranked: Sequence[tuple[Candidate, Words]],
    vocabulary: Vocabulary,
    vectors: Callable[[Sequence[int]], Mapping[int, PartVectors]],
    threshold: float,
) -> list[Similar]:
    """Return the groups of those that are alike, of the same agent, project and type.

    Each joins the survivor that it is most like, and survives where it is like none.

    Args:
        ranked: The experiences, those that should survive first.
        vocabulary: What read their words.
        vectors: Returns the vectors of experiences, by key, of those that have any.
        threshold: The cosine that each part must reach.
    """
    survivors = _Survivors(vocabulary)
    joined: dict[int, list[tuple[Candidate, float]]] = defaultdict(list)
    for candidate, words in ranked:
        rarest = survivors.rarest(candidate, words)
        if not rarest:
            continue
        near = survivors.sharing(words, rarest)
        best: tuple[float, int] | None = None
        if near:
            known = vectors([candidate.key, *(survivors.all[place][0].key for place, _ in near)])
            best = _best(words, candidate.key, near, survivors, known, threshold)
        if best is None:
            survivors.add(candidate, words, rarest)
        else:
            joined[best[1]].append((candidate, best[0]))
    return [
        Similar(
            survivors.all[place][0],
            [member for member, _ in members],
            min(likeness for _, likeness in members),
        )
        for place, members in joined.items()
    ]


_Key = tuple[int, int, int]
"""A bucket of experiences that can be alike, a part, a word."""


class _Survivors:
    """Those that are like none before them, by the rarer words of their parts."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.all: list[tuple[Candidate, Words]] = []
        self._vocabulary = vocabulary
        self._buckets: dict[object, int] = {}
        self._places: dict[_Key, list[int]] = defaultdict(list)

    def rarest(self, candidate: Candidate, words: Words) -> list[list[_Key]]:
        """Return the rarer words of each part that is not blank."""
        alike = (candidate.agent, candidate.project, candidate.memory_type, words.numbers)
        bucket = self._buckets.setdefault(alike, len(self._buckets))
        return [
            [(bucket, part, number) for number in self._vocabulary.telling(numbers)]
            for part, numbers in enumerate(words.parts)
            if numbers
        ]

    def sharing(self, words: Words, rarest: list[list[_Key]]) -> list[tuple[int, float]]:
        """Return the places of those that share enough words, and how much at least."""
        asked = [set(part) for part in words.parts]
        found = []
        for place in sorted(self._with_all(rarest)):
            shared = _shared(asked, self.all[place][1].parts)
            if shared > MIN_SHARED:
                found.append((place, shared))
        return found

    def _with_all(self, rarest: list[list[_Key]]) -> set[int]:
        """Return the places of those with a rarer word in common in every part.

        Parts that say little, being nearly everybody's, are not worth going through.
        """
        lists = [[self._places.get(key, []) for key in part] for part in rarest]
        lists.sort(key=lambda part: sum(map(len, part)))
        found = set(chain.from_iterable(lists[0]))
        for part in lists[1:]:
            if sum(map(len, part)) <= _WORTH * len(found):
                found.intersection_update(chain.from_iterable(part))
        return found

    def add(self, candidate: Candidate, words: Words, rarest: list[list[_Key]]) -> None:
        """Add one more."""
        for key in chain.from_iterable(rarest):
            self._places[key].append(len(self.all))
        self.all.append((candidate, words))


def _shared(asked: Sequence[set[int]], others: Sequence[array[int]]) -> float:
    """Return the least Jaccard similarity of a part, 0 once that is too little."""
    least = 1.0
    for mine, theirs in zip(asked, others, strict=True):
        both = len(mine.intersection(theirs))
        either = len(mine) + len(theirs) - both
        if both <= MIN_SHARED * either and either:
            return 0.0
        if either:
            least = min(least, both / either)
    return least


def _best(
    words: Words,
    key: int,
    near: Sequence[tuple[int, float]],
    survivors: _Survivors,
    known: Mapping[int, PartVectors],
    threshold: float,
) -> tuple[float, int] | None:
    """Return how alike the likest of some survivors is, and its place; None where none is."""
    best: tuple[float, int] | None = None
    for place, shared in near:
        other = survivors.all[place][0].key
        cosine = _cosine(words, known.get(key), known.get(other))
        enough = shared >= MIN_SHARED_ALONE if cosine is None else cosine >= threshold
        likeness = shared if cosine is None else cosine
        if enough and (best is None or likeness > best[0]):
            best = likeness, place
    return best


def _cosine(words: Words, mine: PartVectors | None, other: PartVectors | None) -> float | None:
    """Return the least cosine of two experiences' parts, None where a part has no vector.

    Both have words in the same parts, or they would share none there.
    """
    if mine is None or other is None:
        return None
    said = [part for part, numbers in enumerate(words.parts) if numbers]
    if not (mine[said].any(axis=1).all() and other[said].any(axis=1).all()):
        return None
    return min(1.0, float((mine[said] * other[said]).sum(axis=1).min()))
