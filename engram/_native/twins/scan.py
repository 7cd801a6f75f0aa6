"""NumPy twin of the exact scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["top_k"]

# The kernel's definition of a dot product: this many partial sums, folded in halves. A BLAS product
# would be quicker and differ in the last bits, by machine and by its number of threads.
_LANES = 32

# Rows per step, so that temporary arrays stay in the processor's cache.
_BLOCK = 1024


def top_k(
    matrix: NDArray[np.float32],
    query: NDArray[np.float32],
    owners: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """NumPy twin of `engram._native.scan.top_k`."""
    boundary.array("matrix", matrix, np.float32, 2)
    boundary.array("query", query, np.float32)
    boundary.array("owners", owners, np.int64)
    boundary.length("query", query, matrix.shape[1], "column of matrix")
    boundary.length("owners", owners, matrix.shape[0], "row of matrix")
    if rows is not None:
        boundary.array("rows", rows, np.int64)
    k = boundary.whole("k", k, 1)
    scanned = owners if rows is None else owners[_checked(rows, len(matrix))]
    if not len(scanned):
        return np.empty(0, np.int64), np.empty(0, np.float32)
    if np.any(scanned[1:] < scanned[:-1]):
        message = "owners must be non-decreasing over the scanned rows"
        raise ValueError(message)

    similarities = np.concatenate(
        [
            _similarities(
                matrix[first : first + _BLOCK]
                if rows is None
                else matrix[rows[first : first + _BLOCK]],
                query,
            )
            for first in range(0, len(scanned), _BLOCK)
        ]
    )
    similarities[np.isnan(similarities)] = -np.inf
    firsts = np.flatnonzero(np.append(True, scanned[1:] != scanned[:-1]))
    distinct = scanned[firsts]
    highest = np.maximum.reduceat(similarities, firsts)
    best = np.lexsort((distinct, -highest))[:k]
    return distinct[best], highest[best]


def _checked(rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if np.any(rows[1:] <= rows[:-1]):
        message = "rows must be strictly ascending"
        raise ValueError(message)
    if len(rows) and (rows[0] < 0 or rows[-1] >= count):
        message = "rows must lie in [0, number of rows of matrix)"
        raise ValueError(message)
    return rows


def _similarities(block: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    lanes = np.zeros((len(block), _LANES), np.float32)
    with np.errstate(all="ignore"):
        for first in range(0, len(query), _LANES):
            part = query[first : first + _LANES]
            lanes[:, : len(part)] += block[:, first : first + len(part)] * part
        half = _LANES // 2
        while half:
            lanes[:, :half] += lanes[:, half : 2 * half]
            half //= 2
    return lanes[:, 0]
