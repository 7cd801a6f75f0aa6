"""NumPy twin of ranked keyword retrieval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["bm25"]

_K1 = 1.2
_B = 0.75
_LEAST_IDF = 1e-6


def bm25(
    postings: Sequence[NDArray[np.uint32]],
    terms: NDArray[np.int64],
    lengths: NDArray[np.uint32],
    documents: int,
    mean: float,
    live: NDArray[np.bool_] | None,
    allowed: NDArray[np.bool_] | None,
    scratch: NDArray[np.float64],
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """NumPy twin of `engram._native.postings.bm25`."""
    postings = tuple(postings)
    for values in postings:
        boundary.array("postings", values, np.uint32, 2)
        if values.shape[1] != 2:
            message = "postings must have two columns, a row and a frequency"
            raise ValueError(message)
    boundary.array("terms", terms, np.int64)
    boundary.length("terms", terms, len(postings), "array of postings")
    boundary.array("lengths", lengths, np.uint32)
    documents = boundary.whole("documents", documents, 1)
    mean = boundary.real("mean", mean, 0.0)
    if mean == 0.0:
        message = "mean must be more than 0"
        raise ValueError(message)
    for name, mask in (("live", live), ("allowed", allowed)):
        if mask is not None:
            boundary.array(name, mask, np.bool_)
            boundary.length(name, mask, len(lengths), "row")
    boundary.array("scratch", scratch, np.float64)
    boundary.length("scratch", scratch, len(lengths), "row")
    k = boundary.whole("k", k, 1)
    _check(postings, terms, len(lengths))

    scores = np.zeros(len(lengths))
    shown = live if allowed is None else allowed
    with np.errstate(all="ignore"):
        norms = _K1 * (1 - _B + _B * lengths.astype(np.float64) / mean)
        for term in np.unique(terms).tolist():
            rows, counts = _joined(postings, terms == term)
            weight = _idf(rows if live is None else rows[live[rows]], documents)
            if shown is not None:
                rows, counts = rows[shown[rows]], counts[shown[rows]]
            # One posting after the other, in the order of the kernel.
            np.add.at(scores, rows, weight * ((counts * (_K1 + 1.0)) / (counts + norms[rows])))
    found = np.flatnonzero(scores > 0.0)
    best = found[np.lexsort((found, -scores[found]))[:k]].astype(np.int64, copy=False)
    return best, scores[best]


def _check(postings: tuple[NDArray[np.uint32], ...], terms: NDArray[np.int64], count: int) -> None:
    if np.any(terms[1:] < terms[:-1]):
        message = "terms must be non-decreasing"
        raise ValueError(message)
    if any(len(values) and values[:, 0].max() >= count for values in postings):
        message = "postings must name rows in [0, number of rows)"
        raise ValueError(message)


def _joined(
    postings: tuple[NDArray[np.uint32], ...], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The rows of one term and its frequencies in them."""
    pairs = np.concatenate([postings[place] for place in np.flatnonzero(chosen)])
    return pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.float64)


def _idf(hits: NDArray[np.int64], documents: int) -> float:
    ratio = (documents - len(hits) + 0.5) / (len(hits) + 0.5)
    idf = math.log(ratio) if ratio > 0.0 else 0.0
    return idf if idf > 0.0 else _LEAST_IDF
