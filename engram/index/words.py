"""The words of episodes: immutable segments, and a growing tail.

A segment is eight arrays and nothing else, so it can be written to a file and mapped back: no
structure is built when it is opened, and terms are found by binary search. Rows are places in a
segment or tail, in insertion order; which episodes they are is for the caller to know.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram._native import find_terms, invert
from engram._native import merge as merge_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Tokenize = Callable[[bytes], list[str]]
    """From a text in UTF-8 to its terms as the full-text table keeps them, repeats included."""

    Occurrences = tuple[NDArray[np.uint32], NDArray[np.int64]]
    """The rows that have something, ascending, and how often each has it."""

    Check = Callable[[str, int, int], None]
    """Called with the name of an array and the first and last element that will be read."""


class Index(NamedTuple):
    """The arrays of a segment; `engram._native.tokens.invert` says what they hold."""

    lengths: NDArray[np.uint32]
    term_bytes: NDArray[np.uint8]
    term_ends: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    large: NDArray[np.int64]
    large_frequencies: NDArray[np.uint32]


ARRAYS: Final = Index._fields
"""The names of a segment's arrays."""

_POSTINGS: Final = ("rows", "frequencies")
ASIDE: Final = 255
"""A frequency from which on the number stands aside, as in `invert`."""

_NO_TERM: Final = b"\xff"
"""No text in UTF-8 has this byte, and none is greater."""
_BATCH: Final = 1000
"""Words whose stems are asked for at a time."""

_ROWS_PER_POSTING: Final = 16
"""Rows for each posting beyond which sorting the postings costs less than a number per row."""


class Postings(NamedTuple):
    """Where some terms are, as `engram._native.postings.bm25` takes it.

    Attributes:
        lengths: uint32[n], the number of tokens in each row.
        rows: uint32[p]; the postings of a term ascend.
        frequencies: uint8[p], 255 where the number stands aside.
        large: int64[e], the postings whose numbers stand aside, ascending.
        large_frequencies: uint32[e], these numbers.
        ranges: int64[terms, 2], the first posting of each term and their end.
    """

    lengths: NDArray[np.uint32]
    rows: NDArray[np.uint32]
    frequencies: NDArray[np.uint8]
    large: NDArray[np.int64]
    large_frequencies: NDArray[np.uint32]
    ranges: NDArray[np.int64]


def _unchecked(name: str, first: int, last: int) -> None:
    """Accept what is in memory."""


class WordSegment:
    """The words of consecutive episodes; never changes.

    Args:
        arrays: By the names in `ARRAYS`; kept and not copied.
        check: Called before elements of an array are read, in each call anew: once for the whole
            of each array but `rows` and `frequencies`, and for each range of those. An exception
            of it goes to the caller.
    """

    def __init__(
        self, arrays: Mapping[str, NDArray[np.generic]], check: Check = _unchecked
    ) -> None:
        self._index = Index._make(arrays[name] for name in ARRAYS)
        self._check = check

    def __len__(self) -> int:
        return len(self._index.lengths)

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays by their names, unchecked: all there is to the segment."""
        return self._index._asdict()

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """The number of tokens in each row, uint32[n]."""
        self._check_whole(["lengths"])
        return self._index.lengths

    def whole(self) -> Index:
        """Return all arrays after a check of all of them."""
        self._check_whole(ARRAYS)
        return self._index

    def postings(self, terms: Sequence[str]) -> Postings:
        """Return where some terms are, without copying; O(log t) steps for each."""
        index = self._searchable()
        wanted = [term.encode(errors="surrogateescape") for term in terms]
        numbers = find_terms(index.term_bytes, index.term_ends, wanted)
        ranges = np.stack((index.starts[numbers], index.starts[numbers + 1]), axis=1)
        ranges[numbers < 0] = 0
        for first, end in ranges.tolist():
            self._check_postings(first, end)
        return Postings(
            index.lengths,
            index.rows,
            index.frequencies,
            index.large,
            index.large_frequencies,
            ranges,
        )

    def completions(self, beginning: str) -> Occurrences:
        """Return the rows with any term that begins in some way, and how many each has.

        The terms are sorted, so all their postings are one range. Takes O(log t) steps, and time
        in the number of postings.
        """
        index = self._searchable()
        least = beginning.encode(errors="surrogateescape")
        numbers = range(len(index.term_ends))
        ends = [bisect_left(numbers, one, key=self._term) for one in (least, least + _NO_TERM)]
        first, end = index.starts[ends].tolist()
        self._check_postings(first, end)
        low, high = np.searchsorted(index.large, (first, end))
        counts = index.frequencies[first:end].astype(np.int64)
        counts[index.large[low:high] - first] = index.large_frequencies[low:high]
        return _summed(index.rows[first:end], counts, len(self))

    def _term(self, number: int) -> bytes:
        index = self._index
        first = index.term_ends[number - 1] if number else 0
        return index.term_bytes[first : index.term_ends[number]].tobytes()

    def _searchable(self) -> Index:
        """Return the arrays after a check of all that finds terms."""
        self._check_whole(name for name in ARRAYS if name not in _POSTINGS)
        return self._index

    def _check_postings(self, first: int, end: int) -> None:
        if first < end:
            for name in _POSTINGS:
                self._check(name, first, end - 1)

    def _check_whole(self, names: Iterable[str]) -> None:
        for name in names:
            size = len(getattr(self._index, name))
            if size:
                self._check(name, 0, size - 1)


class _TermRows:
    """The postings of one term in a tail."""

    __slots__ = ("frequencies", "large", "rows")

    def __init__(self) -> None:
        self.rows = array("I")
        self.frequencies = array("B")
        self.large: list[tuple[int, int]] = []

    def add(self, row: int, frequency: int) -> None:
        if frequency >= ASIDE:
            self.large.append((len(self.rows), frequency))
        self.rows.append(row)
        self.frequencies.append(min(frequency, ASIDE))


class WordTail:
    """The words of the latest episodes, which further ones are added to.

    Not thread-safe. To make a segment of it, `build` one from the same texts.
    """

    def __init__(self) -> None:
        self._terms: dict[str, _TermRows] = {}
        # Those that were asked for so far, see `completions`.
        self._sorted: list[str] = []
        self._lengths = np.empty(0, dtype=np.uint32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """The number of tokens in each row, uint32[n]; a view that `append` leaves behind."""
        return self._lengths[: self._size]

    def append(self, bodies: Sequence[bytes], tokenize: Tokenize) -> None:
        """Add rows; O(tokens) time."""
        # Before the first change: a tokenizer that fails leaves the tail as it was.
        listed = [tokenize(body) for body in bodies]
        for terms in listed:
            counts: dict[str, int] = {}
            for term in terms:
                counts[term] = counts.get(term, 0) + 1
            for term, frequency in counts.items():
                found = self._terms.get(term)
                if found is None:
                    found = self._terms[term] = _TermRows()
                found.add(self._size, frequency)
            if self._size == len(self._lengths):
                self._lengths = np.resize(self._lengths, max(64, 2 * self._size))
            self._lengths[self._size] = len(terms)
            self._size += 1

    def postings(self, terms: Sequence[str]) -> Postings:
        """Return where some terms are, in a copy."""
        rows, frequencies = array("I"), array("B")
        large: list[tuple[int, int]] = []
        ranges = np.zeros((len(terms), 2), dtype=np.int64)
        for place, term in enumerate(terms):
            found = self._terms.get(term)
            if found is not None:
                first = len(rows)
                rows += found.rows
                frequencies += found.frequencies
                large += [(first + posting, number) for posting, number in found.large]
                ranges[place] = first, len(rows)
        aside = np.array(large, dtype=np.int64).reshape(-1, 2)
        return Postings(
            self.lengths,
            np.array(rows, dtype=np.uint32),
            np.array(frequencies, dtype=np.uint8),
            aside[:, 0].copy(),
            aside[:, 1].astype(np.uint32),
            ranges,
        )

    def completions(self, beginning: str) -> Occurrences:
        """Return the rows with any term that begins in some way, and how many each has."""
        if len(self._sorted) < len(self._terms):
            # What was sorted before takes no time to sort again.
            self._sorted += islice(self._terms, len(self._sorted), None)
            self._sorted.sort()
        later = islice(self._sorted, bisect_left(self._sorted, beginning), None)
        found = self.postings(list(takewhile(lambda term: term.startswith(beginning), later)))
        counts = found.frequencies.astype(np.int64)
        counts[found.large] = found.large_frequencies
        return _summed(found.rows, counts, self._size)


def _summed(rows: NDArray[np.uint32], counts: NDArray[np.int64], size: int) -> Occurrences:
    """Return each of some rows once, ascending, with the sum of its counts.

    Args:
        rows: uint32[p], below `size`.
        counts: int64[p], above 0.
        size: How many rows there are.
    """
    if len(rows) * _ROWS_PER_POSTING < size:
        distinct, places = np.unique(rows, return_inverse=True)
        return distinct, np.bincount(places, counts).astype(np.int64)
    sums = np.bincount(rows, counts, minlength=size)
    found = np.flatnonzero(sums)
    return found.astype(np.uint32), sums[found].astype(np.int64)


def build(bodies: Sequence[bytes], tokenize: Tokenize) -> WordSegment:
    """Return a segment of texts, a row for each; O(bytes + t·log t) time for t distinct terms.

    Args:
        bodies: The texts as the full-text table has them, in UTF-8, in insertion order.
        tokenize: Asked for the terms of the texts that are not ASCII, and for those of the distinct
            words of the others.
    """

    def stems(words: list[bytes]) -> list[bytes]:
        batches = (words[first : first + _BATCH] for first in range(0, len(words), _BATCH))
        return [term for batch in batches for term in _terms(tokenize, b" ".join(batch))]

    listed = [body if body.isascii() else _terms(tokenize, body) for body in bodies]
    return _segment(invert(listed, stems))


def _terms(tokenize: Tokenize, body: bytes) -> list[bytes]:
    # A single accent is a term without a character.
    return [term.encode(errors="surrogateescape") for term in tokenize(body)]


def merge(segments: Sequence[WordSegment], live: Sequence[NDArray[np.bool_] | None]) -> WordSegment:
    """Return the segment of the live rows of several, renumbered in order; O(size) time.

    Args:
        segments: The segments, in insertion order.
        live: For each of them bool[n], False for the rows to leave out, or None. What only such
            rows have, postings or terms, is gone from the result.
    """
    return _segment(merge_indexes([segment.whole() for segment in segments], live))


def _segment(arrays: tuple[NDArray[np.generic], ...]) -> WordSegment:
    return WordSegment(Index._make(arrays)._asdict())
