"""Clusters of vectors.

Average linkage over the cosine distance without the matrix of all distances: the mean distance
between two clusters is one minus the product of their mean vectors, and merging never brings a
cluster closer to a third than the nearer of its parts was. So pairs that are each other's nearest
can be merged many at a time, and a cluster with nobody within reach is finished for good.

Whether a pair is worth its exact product is decided by a short sketch of each vector. Memory grows
with the number of vectors, never with that of close pairs; time is that of one product of the
sketches, and of the whole vectors where most of them are alike. Where that would take minutes, some
ten thousands that are all alike, vectors are first clustered in portions and then the portions'
clusters: what is merged is always within the cut, but may not be the nearest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.training.repeats import distinct
from engram.training.sketches import (
    COLUMNS,
    DENSE,
    ROUNDING,
    ROWS,
    Points,
    blocks,
    pairs,
    portions,
    products,
    taken,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

CUT: Final = 0.15
"""The largest mean cosine distance at which two clusters become one."""

_PORTION: Final = 4096
# Of pairs that sketches do not rule out: above that, portions.
_MOST_CLOSE: Final = 2e8


def clusters(vectors: NDArray[np.float32], cut: float = CUT) -> list[NDArray[np.int64]]:
    """Return the groups of rows that average linkage over the cosine distance makes.

    Args:
        vectors: float32[n, dim], each of length one.
        cut: The largest mean distance between two clusters that still become one.

    Returns:
        Groups of two rows or more, by their first row; rows of a group ascend.
    """
    first, which = distinct([vectors])
    counts = np.bincount(which, minlength=len(first))
    labels = first[_agglomerated(taken(vectors, first), counts, 1.0 - cut)[which]]
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    groups = np.split(order, starts[1:])
    return sorted((group for group in groups if len(group) > 1), key=lambda group: int(group[0]))


def _candidates(
    points: Points, rows: NDArray[np.int64], columns: NDArray[np.int64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a row and another column whose product may reach `least`.

    Args:
        points: The vectors.
        rows: int64[r], ascending.
        columns: int64[c], ascending. Of a block where most products may, those pairs are enough
            that may be the maximum of their row or of their column.
        least: The product to reach.
    """
    wanted = points.may_reach(rows, columns, least)
    if np.count_nonzero(wanted) * DENSE > wanted.size:
        block = points.block(rows, columns)
        block[rows[:, np.newaxis] == columns] = -2.0
        highest = np.minimum(block.max(axis=1)[:, np.newaxis], block.max(axis=0))
        wanted = block >= np.maximum(highest, np.float32(least)) - np.float32(ROUNDING)
    return pairs(wanted, rows, columns)


class _Nearest:
    """Who is nearest to each point, and how near: the first of those that are equally near.

    Attributes:
        at: int64[n]; -1: nobody within reach.
        product: float64[n].
    """

    def __init__(self, points: Points, least: float) -> None:
        self._points = points
        self._least = least
        self.at = np.full(len(points.vectors), -1, np.int64)
        self.product = np.full(len(points.vectors), -np.inf)

    def find_all(self) -> None:
        """Compare all points, each pair once."""
        count = len(self.at)
        for rows in blocks(count, ROWS):
            for columns in portions(np.arange(rows[0], count), COLUMNS):
                self._compare(rows, columns)

    def find(self, rows: NDArray[np.int64], alive: NDArray[np.int64]) -> None:
        """Find the nearest of some points anew, among those alive."""
        self.at[rows] = -1
        self.product[rows] = -np.inf
        for part in portions(rows, ROWS):
            for columns in portions(alive, COLUMNS):
                self._compare(part, columns)

    def _compare(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        row, column = _candidates(self._points, rows, columns, self._least)
        product = products(self._points.vectors, row, column)
        close = product >= self._least
        row, column, product = row[close], column[close], product[close]
        self._note(row, column, product)
        self._note(column, row, product)

    def _note(
        self, of: NDArray[np.int64], other: NDArray[np.int64], product: NDArray[np.float64]
    ) -> None:
        order = np.lexsort((other, -product, of))
        lead = order[np.diff(of[order], prepend=-1) != 0]
        of, other, product = of[lead], other[lead], product[lead]
        nearer = product > self.product[of]
        nearer |= (product == self.product[of]) & (other < self.at[of])
        self.at[of[nearer]] = other[nearer]
        self.product[of[nearer]] = product[nearer]

    def mutual(self, alive: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs that are each other's nearest, the earlier point of each first."""
        other = self.at[alive]
        pairs = (self.at[other] == alive) & (alive < other)
        return alive[pairs], other[pairs]


def _agglomerated(
    vectors: NDArray[np.float32], counts: NDArray[np.int64], least: float
) -> NDArray[np.int64]:
    """Return for each distinct vector the first one of its cluster, int64[n]."""
    points = Points.of(vectors)
    if not _crowded(points, least):
        return _exactly(points, counts, least)
    labels = np.arange(len(vectors))
    for portion in portions(np.argsort(points.sketches[:, 0], kind="stable"), _PORTION):
        rows = np.sort(portion)
        labels[rows] = rows[_exactly(Points.of(vectors[rows]), counts[rows], least)]
    heads, which = np.unique(labels, return_inverse=True)
    weights = np.bincount(which, counts)
    means = np.zeros((len(heads), vectors.shape[1]))
    for rows in blocks(len(vectors), COLUMNS):
        np.add.at(means, which[rows], vectors[rows] * counts[rows, np.newaxis])
    means /= weights[:, np.newaxis]
    merged: NDArray[np.int64] = heads[_exactly(Points.of(means), weights, least)]
    return merged[which]


def _crowded(points: Points, least: float) -> bool:
    """Tell whether so many pairs may be close that comparing them all would take minutes."""
    count = len(points.vectors)
    if count * count <= _MOST_CLOSE:
        return False
    rows = np.arange(0, count, -(-count // ROWS))
    close = 0
    for columns in blocks(count, COLUMNS):
        bounds = points.sketches[rows] @ points.sketches[columns].T
        close += int(np.count_nonzero(bounds >= least))
    return close / len(rows) * count > _MOST_CLOSE


def _exactly(
    points: Points, counts: NDArray[np.int64] | NDArray[np.float64], least: float
) -> NDArray[np.int64]:
    """Return for each point the first one of its cluster, int64[n]."""
    vectors = points.vectors
    nearest = _Nearest(points, least)
    nearest.find_all()
    kept = np.flatnonzero(nearest.at >= 0)
    place = np.full(len(vectors), -1, np.int64)
    place[kept] = np.arange(len(kept))
    means = vectors[kept].astype(np.float64)
    points = Points(means, points.basis, points.sketches[kept])
    known = nearest
    nearest = _Nearest(points, least)
    nearest.at, nearest.product = place[known.at[kept]], known.product[kept]
    into = np.arange(len(kept))
    _merge(points, nearest, counts[kept].astype(np.float64), into)
    labels = np.arange(len(vectors))
    labels[kept] = kept[_roots(into)]
    return labels


def _merge(
    points: Points, nearest: _Nearest, weights: NDArray[np.float64], into: NDArray[np.int64]
) -> None:
    """Merge until no two clusters are within reach; `into` gets who took whom in."""
    alive = np.arange(len(into))
    fresh = True
    while len(alive):
        one, other = nearest.mutual(alive)
        if not len(one):
            if fresh:
                return
            # Rounding let a merged cluster come nearer by its last bit: look at all of them again.
            nearest.find(alive, alive)
            fresh = True
            continue
        _take_in(points, weights, one, other)
        into[other] = one
        gone = np.zeros(len(into), np.bool_)
        gone[other] = True
        changed = gone.copy()
        changed[one] = True
        alive = alive[~gone[alive]]
        stale = alive[changed[alive] | changed[nearest.at[alive]]]
        nearest.find(stale, alive)
        alive = alive[nearest.at[alive] >= 0]
        fresh = len(stale) == len(alive)


def _take_in(
    points: Points,
    weights: NDArray[np.float64],
    one: NDArray[np.int64],
    other: NDArray[np.int64],
) -> None:
    for part in portions(np.arange(len(one)), COLUMNS):
        left, right = one[part], other[part]
        both = weights[left] + weights[right]
        total = points.vectors[left] * weights[left, np.newaxis]
        total += points.vectors[right] * weights[right, np.newaxis]
        points.vectors[left] = total / both[:, np.newaxis]
        weights[left] = both
        points.sketch(left)


def _roots(into: NDArray[np.int64]) -> NDArray[np.int64]:
    """Follow links that lead to lower numbers to their ends."""
    while True:
        further = into[into]
        if (further == into).all():
            return into
        into = further
