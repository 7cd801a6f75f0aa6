"""Python twin of the making of inverted indexes."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engram._native import boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["invert", "merge"]

_Index: TypeAlias = tuple[
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint32],
]
_Occurrences: TypeAlias = dict[bytes, list[tuple[int, int]]]

_WORD: Final = re.compile(rb"[0-9A-Za-z]+")
_LONGEST_TERM: Final = 32_768
_ASIDE: Final = 255


def invert(
    bodies: Sequence[bytes | list[bytes]], stems: Callable[[list[bytes]], list[bytes]]
) -> _Index:
    """NumPy twin of `engram._native.tokens.invert`."""
    listed = [_tokens(body) for body in tuple(bodies)]
    known = list(dict.fromkeys(word for words, _ in listed for word in words))
    stemmed = boundary.stemmed(stems(list(known)), len(known))
    term_of = {word: term[:_LONGEST_TERM] for word, term in zip(known, stemmed, strict=True)}
    found: _Occurrences = {}
    for row, (words, terms) in enumerate(listed):
        for term, frequency in Counter([*map(term_of.__getitem__, words), *terms]).items():
            found.setdefault(term, []).append((row, frequency))
    return _arrays([len(words) + len(terms) for words, terms in listed], found)


def _tokens(body: bytes | list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the words of a text in ASCII, and the terms of another."""
    if type(body) is bytes:
        return [word[:_LONGEST_TERM].lower() for word in _WORD.findall(body)], []
    return [], [term[:_LONGEST_TERM] for term in boundary.joined(body).split(b"\0")[:-1]]


def merge(parts: Sequence[_Index], live: Sequence[NDArray[np.bool_] | None]) -> _Index:
    """NumPy twin of `engram._native.tokens.merge`."""
    taken = tuple(tuple(part) for part in parts)
    masks = tuple(live)
    boundary.word_indexes(taken, masks)
    lengths: list[int] = []
    found: _Occurrences = {}
    for part, mask in zip(parts, masks, strict=True):
        kept = np.ones(len(part[0]), np.bool_) if mask is None else mask
        numbers = len(lengths) + np.cumsum(kept) - 1
        lengths += part[0][kept].tolist()
        for term, rows, frequencies in _postings(part):
            if len(rows) and rows.max() >= len(kept):
                message = "rows must be in [0, number of lengths)"
                raise ValueError(message)
            living = kept[rows]
            pairs = zip(numbers[rows[living]].tolist(), frequencies[living].tolist(), strict=True)
            found.setdefault(term, []).extend(pairs)
    return _arrays(lengths, {term: pairs for term, pairs in found.items() if pairs})


def _postings(part: _Index) -> Iterator[tuple[bytes, NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield each term with its rows and its true frequencies there."""
    _, term_bytes, term_ends, starts, rows, frequencies, large, large_frequencies = part
    ends = [0, *term_ends.tolist()]
    if min(np.diff(ends), default=0) < 0 or ends[-1] > len(term_bytes):
        message = "term_ends must ascend within term_bytes"
        raise ValueError(message)
    if starts[0] < 0 or np.any(np.diff(starts) < 0) or starts[-1] > len(rows):
        message = "starts must ascend within rows"
        raise ValueError(message)
    if not np.array_equal(np.flatnonzero(frequencies == _ASIDE), large):
        message = "large must name every posting whose frequency is 255"
        raise ValueError(message)
    true = frequencies.astype(np.int64)
    true[large] = large_frequencies
    for number in range(len(term_ends)):
        term = term_bytes[ends[number] : ends[number + 1]].tobytes()
        range_ = slice(starts[number], starts[number + 1])
        yield term, rows[range_], true[range_]


def _arrays(lengths: list[int], found: _Occurrences) -> _Index:
    terms = sorted(found)
    pairs = [pair for term in terms for pair in found[term]]
    rows, frequencies = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    large = np.flatnonzero(frequencies >= _ASIDE).astype(np.int64, copy=False)
    return (
        np.array(lengths, dtype=np.uint32),
        np.frombuffer(bytearray(b"".join(terms)), dtype=np.uint8),
        np.cumsum([len(term) for term in terms], dtype=np.int64),
        np.cumsum([0, *(len(found[term]) for term in terms)], dtype=np.int64),
        rows.astype(np.uint32),
        np.minimum(frequencies, _ASIDE).astype(np.uint8),
        large,
        frequencies[large].astype(np.uint32),
    )
