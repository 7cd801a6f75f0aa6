"""Groups of experiences that are alike, see `engram.cognition.likeness`.

Every member of a group is like the one that survives, so that a group cannot drift from one sense
to another. Which may be alike is found without comparing the words of all pairs: by products of
their vectors, block by block, and where one has none, by lists of who has which of the rarest
words.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram.cognition.likeness import MIN_SHARED, MIN_SHARED_ALONE, Words, shared_words
from engram.storage.consolidations import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.cognition.likeness import Vocabulary

    PartVectors = NDArray[np.float32]
    """float32[3, dim]: of context, action and result, each of unit length; zero where it is blank
    or was not embedded."""
    Vectors = Callable[[Sequence[int]], Mapping[int, PartVectors]]
    """Returns the vectors of experiences, by key, of those that have any; always one model's."""

MOST_COMPARED: Final = 256
"""With how many survivors the words of an experience are compared at most: with those nearest to it
in meaning, and with as many that share its rarest words."""

_BLOCK: Final = 2048
"""Experiences whose vectors are in memory at once, twice."""
_DIGITS: Final = 5
"""Of a cosine; what comes after them depends on the machine that multiplies."""
_BLUR: Final = 0.5 * 10**-_DIGITS

_Member = tuple[Candidate, Words]


class Similar(NamedTuple):
    """Experiences that are alike: the one that survives, the others, how alike at least."""

    survivor: Candidate
    others: list[Candidate]
    similarity: float


class _Match(NamedTuple):
    """A survivor that an experience is like: how much, and its place, negative: more is better."""

    likeness: float
    before: int


def similar(
    ranked: Sequence[_Member], vocabulary: Vocabulary, vectors: Vectors, threshold: float
) -> list[Similar]:
    """Return the groups of those that are alike, of the same agent, project and type.

    Each joins the survivor that it is most like, and survives where it is like none.

    Args:
        ranked: The experiences, those that should survive first.
        vocabulary: What read their words.
        vectors: Returns vectors.
        threshold: The cosine that each part must reach.
    """
    comparable: dict[object, list[_Member]] = defaultdict(list)
    for candidate, words in ranked:
        said = tuple(map(bool, words.parts))
        if any(said):
            kind = candidate.agent, candidate.project, candidate.memory_type, words.numbers, said
            comparable[kind].append((candidate, words))
    found: list[Similar] = []
    for members in comparable.values():
        if len(members) > 1:
            found += _Grouping(members, vocabulary, vectors, threshold).groups()
    return found


class _Grouping:
    """Experiences that are alike where their words and their vectors say so.

    They are named by their places in the order in which they should survive.
    """

    def __init__(
        self,
        members: Sequence[_Member],
        vocabulary: Vocabulary,
        vectors: Vectors,
        threshold: float,
    ) -> None:
        self._members = members
        self._vectors = vectors
        self._least = threshold - _BLUR
        said = [part for part, words in enumerate(members[0][1].parts) if words]
        # Short ones differ soonest.
        self._parts = sorted(said, key=lambda part: sum(len(one.parts[part]) for _, one in members))
        self._listed = _RarestWords(vocabulary)
        self._embedded: list[int] = []
        self._joined: dict[int, list[tuple[Candidate, float]]] = defaultdict(list)

    def groups(self) -> list[Similar]:
        """Return the groups."""
        for first in range(0, len(self._members), _BLOCK):
            self._take(range(first, min(first + _BLOCK, len(self._members))))
        return [
            Similar(
                self._members[place][0],
                [member for member, _ in members],
                min(likeness for _, likeness in members),
            )
            for place, members in self._joined.items()
        ]

    def _take(self, block: range) -> None:
        """Let the next ones join survivors, or survive."""
        places, mine = self._read(block)
        near = self._near(mine)
        own = _least_cosines(mine, mine, self._least)
        row_of = {place: row for row, place in enumerate(places.tolist())}
        survive = np.zeros(len(places), dtype=np.bool_)
        for place in block:
            row = row_of.get(place)
            words = self._members[place][1]
            asked = [set(part) for part in words.parts]
            matches = self._by_words(asked, words, embedded=row is not None)
            if row is not None:
                beside = survive & (own[row] >= self._least)
                matches += self._by_meaning(
                    asked, near[row].and_those(places[beside], own[row, beside])
                )
            if matches:
                best = max(matches)
                self._joined[-best.before].append((self._members[place][0], best.likeness))
                continue
            self._listed.add(place, words, embedded=row is not None)
            if row is not None:
                survive[row] = True
        self._embedded += places[survive].tolist()

    def _read(self, places: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return those of some places whose parts all have vectors, and these: [parts, n, dim]."""
        keys = [self._members[place][0].key for place in places]
        known = self._vectors(keys)
        found, vectors = [], []
        for place, key in zip(places, keys, strict=True):
            if key in known:
                said = known[key][self._parts]
                if said.any(axis=1).all():
                    found.append(place)
                    vectors.append(said)
        stacked = np.stack(vectors, axis=1) if vectors else np.empty((1, 0, 1), dtype=np.float32)
        return np.array(found, dtype=np.int64), stacked

    def _near(self, mine: NDArray[np.float32]) -> list[_Near]:
        """Return which survivors so far are near to each of some vectors, [parts, n, dim]."""
        near = [_Near()] * mine.shape[1]
        for first in range(0, len(self._embedded), _BLOCK) if near else ():
            places, theirs = self._read(self._embedded[first : first + _BLOCK])
            least = _least_cosines(mine, theirs, self._least)
            above = least >= self._least
            for row in np.flatnonzero(above.any(axis=1)).tolist():
                near[row] = near[row].and_those(places[above[row]], least[row, above[row]])
        return near

    def _by_meaning(self, asked: Sequence[set[int]], near: _Near) -> list[_Match]:
        """Return the nearest survivor that shares enough words too, if any."""
        for place, cosine in near.best_first():
            if shared_words(asked, self._members[place][1].parts) > MIN_SHARED:
                return [_Match(cosine, -place)]
        return []

    def _by_words(self, asked: Sequence[set[int]], words: Words, *, embedded: bool) -> list[_Match]:
        """Return the survivors that share nearly all words, of those it has no cosine with."""
        found = []
        for place in self._listed.sharing(words, embedded=embedded):
            shared = shared_words(asked, self._members[place][1].parts)
            if shared >= MIN_SHARED_ALONE:
                found.append(_Match(shared, -place))
        return found


def _least_cosines(
    mine: NDArray[np.float32], theirs: NDArray[np.float32], least: float
) -> NDArray[np.float32]:
    """Return the least cosine of any part of each pair, float32[n, m], exact from `least` on.

    Args:
        mine: float32[parts, n, dim].
        theirs: float32[parts, m, dim].
        least: Where all are below it, further parts do not matter.
    """
    if not mine.shape[1] or not theirs.shape[1]:
        return np.empty((mine.shape[1], theirs.shape[1]), dtype=np.float32)
    found: NDArray[np.float32] = mine[0] @ theirs[0].T
    for one, other in zip(mine[1:], theirs[1:], strict=True):
        if not (found >= least).any():
            break
        np.minimum(found, one @ other.T, out=found)
    return found


class _Near(NamedTuple):
    """The places of survivors, int64[n], and their cosines, float64[n]: `MOST_COMPARED` at most."""

    places: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    cosines: NDArray[np.float64] = np.empty(0)

    def and_those(self, places: NDArray[np.int64], cosines: NDArray[np.float32]) -> _Near:
        """Return the nearest of these and of some more."""
        if not len(places):
            return self
        every = np.concatenate((self.places, places))
        rounded = np.minimum(np.round(cosines.astype(np.float64), _DIGITS), 1.0)
        likeness = np.concatenate((self.cosines, rounded))
        best = np.lexsort((every, -likeness))[:MOST_COMPARED]
        return _Near(every[best], likeness[best])

    def best_first(self) -> Iterable[tuple[int, float]]:
        """Return places and cosines, the nearest first, then the one that came first."""
        return zip(self.places.tolist(), self.cosines.tolist(), strict=True)


class _RarestWords:
    """Survivors by the rarest words of their parts, those with vectors beside those without."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._places: dict[tuple[bool, int, int], list[int]] = defaultdict(list)

    def add(self, place: int, words: Words, *, embedded: bool) -> None:
        """Add one more."""
        for part, numbers in enumerate(words.parts):
            for word in self._vocabulary.rarest(numbers):
                self._places[embedded, part, word].append(place)

    def sharing(self, words: Words, *, embedded: bool) -> Iterable[int]:
        """Return those that may share nearly all words, once each, `MOST_COMPARED` at most.

        They have one of the rarest words of a part, of that part which has the fewest such. Where
        that are too many, the rarest word counts, and who should survive.

        Args:
            words: The words.
            embedded: Only those without vectors.
        """
        least: list[list[int]] | None = None
        for part, numbers in enumerate(words.parts):
            lists = [
                self._places[one]
                for word in (self._vocabulary.rarest(numbers) if numbers else ())
                for one in ((False, part, word), (True, part, word))[: 1 if embedded else 2]
                if one in self._places
            ]
            if numbers and (least is None or sum(map(len, lists)) < sum(map(len, least))):
                least = lists
        return dict.fromkeys(islice(chain.from_iterable(least or ()), MOST_COMPARED))
