"""NumPy twin of ranked keyword retrieval."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engram._native import boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["bm25", "find_terms", "row_frequencies"]

_Part: TypeAlias = tuple[
    NDArray[np.uint32],
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.bool_] | None,
    NDArray[np.bool_] | NDArray[np.uint32] | None,
]

_LEAST_IDF: Final = 1e-6
_ASIDE: Final = 255


def bm25(
    parts: Sequence[_Part],
    ranges: NDArray[np.int64],
    documents: int,
    mean: float,
    k: int,
    k1: float,
    b: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """NumPy twin of `engram._native.postings.bm25`."""
    taken: tuple[_Part, ...] = tuple(parts)
    boundary.ranked_parts(taken, ranges)
    documents = boundary.whole("documents", documents, 1)
    mean = boundary.real("mean", mean, 0.0)
    if mean == 0.0:
        message = "mean must be more than 0"
        raise ValueError(message)
    k = boundary.whole("k", k, 1)
    k1 = boundary.real("k1", k1, 0.0)
    b = boundary.real("b", b, 0.0, 1.0)
    weights = [_weight(taken, ranges[:, term], documents) for term in range(ranges.shape[1])]
    found = []
    for part, part_ranges in zip(taken, ranges, strict=True):
        norms = k1 * (1 - b + b * part[0].astype(np.float64) / mean)
        found.append(_rank(part, part_ranges, weights, k1, norms))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    places = np.repeat(np.arange(len(found)), [len(rows) for rows, _ in found])
    rows = np.concatenate([rows for rows, _ in found])
    scores = np.concatenate([scores for _, scores in found])
    best = np.lexsort((rows, places, -scores))[:k]
    return places[best].astype(np.int64), rows[best].astype(np.int64), scores[best]


def find_terms(
    term_bytes: NDArray[np.uint8], term_ends: NDArray[np.int64], wanted: Sequence[bytes]
) -> NDArray[np.int64]:
    """NumPy twin of `engram._native.postings.find_terms`."""
    boundary.array("term_bytes", term_bytes, np.uint8)
    boundary.array("term_ends", term_ends, np.int64)
    terms = tuple(wanted)
    for term in terms:
        if type(term) is not bytes:
            message = f"wanted must be bytes objects, not {type(term).__name__}"
            raise TypeError(message)

    def known(number: int) -> bytes:
        first, end = (0 if number == 0 else term_ends[number - 1]), term_ends[number]
        if not 0 <= first <= end <= len(term_bytes):
            message = "term_ends must ascend within term_bytes"
            raise ValueError(message)
        return term_bytes[first:end].tobytes()

    count = len(term_ends)
    places = [bisect_left(range(count), term, key=known) for term in terms]
    numbers = [
        place if place < count and known(place) == term else -1
        for place, term in zip(places, terms, strict=True)
    ]
    return np.array(numbers, dtype=np.int64)


def row_frequencies(
    rows: NDArray[np.uint32],
    frequencies: NDArray[np.uint8],
    large: NDArray[np.int64],
    large_frequencies: NDArray[np.uint32],
    ranges: NDArray[np.int64],
    wanted: NDArray[np.uint32],
) -> NDArray[np.float32]:
    """NumPy twin of `engram._native.postings.row_frequencies`."""
    boundary.posting_ranges(rows, frequencies, large, large_frequencies, ranges)
    boundary.array("wanted", wanted, np.uint32)
    found = np.zeros((len(wanted), len(ranges)), np.float32)
    for term, (first, end) in enumerate(ranges.tolist()):
        having = rows[first:end]
        at = np.searchsorted(having, wanted)
        known = np.flatnonzero(at < len(having))
        known = known[having[at[known]] == wanted[known]]
        places = first + at[known]
        counts = frequencies[places].astype(np.int64)
        aside = counts == _ASIDE
        if not np.isin(places[aside], large).all():
            _refuse_large()
        counts[aside] = large_frequencies[np.searchsorted(large, places[aside])]
        found[known, term] = counts
    return found


def _refuse_large() -> None:
    message = "large must name every posting whose frequency is 255"
    raise ValueError(message)


def _refuse_rows() -> None:
    message = "rows must ascend within a term, in [0, number of rows)"
    raise ValueError(message)


def _weight(parts: Sequence[_Part], ranges: NDArray[np.int64], documents: int) -> float:
    hits = 0
    for (lengths, rows, *_, live, _), (first, end) in zip(parts, ranges.tolist(), strict=True):
        if live is None:
            hits += end - first
            continue
        if end > first and rows[first:end].max() >= len(lengths):
            _refuse_rows()
        hits += int(np.count_nonzero(live[rows[first:end]]))
    ratio = (documents - hits + 0.5) / (hits + 0.5)
    idf = math.log(ratio) if ratio > 0.0 else 0.0
    return idf if idf > 0.0 else _LEAST_IDF


def _rank(
    part: _Part,
    ranges: NDArray[np.int64],
    weights: list[float],
    k1: float,
    norms: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows of a part that may be found, and their scores."""
    lengths, every_row, every_frequency, large, large_frequencies, live, allowed = part
    shown = np.ones(len(lengths), np.bool_) if live is None else live
    if allowed is not None:
        shown = shown & _mask(allowed, len(lengths))
    true = every_frequency.astype(np.float64)
    if not np.isin(np.flatnonzero(every_frequency == _ASIDE), large).all():
        _refuse_large()
    true[large] = large_frequencies
    scores = np.zeros(len(lengths))
    for (first, end), weight in zip(ranges.tolist(), weights, strict=True):
        rows, f = every_row[first:end], true[first:end]
        if end > first and (rows.max() >= len(lengths) or np.any(np.diff(rows.astype(int)) <= 0)):
            _refuse_rows()
        scores[rows] += weight * ((f * (k1 + 1.0)) / (f + norms[rows]))
    found = np.flatnonzero(shown & (scores > 0.0))
    return found.astype(np.int64, copy=False), scores[found]


def _mask(allowed: NDArray[np.bool_] | NDArray[np.uint32], rows: int) -> NDArray[np.bool_]:
    if allowed.dtype == np.bool_:
        return allowed.view(np.bool_)
    if len(allowed) and (allowed[-1] >= rows or np.any(allowed[1:] <= allowed[:-1])):
        message = "allowed must ascend, in [0, number of rows)"
        raise ValueError(message)
    mask = np.zeros(rows, np.bool_)
    mask[allowed] = True
    return mask
