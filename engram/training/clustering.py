"""Clusters of vectors, and which of them say nearly the same.

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

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

__all__ = ["CUT", "NEAR", "clusters", "near_pairs"]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

CUT: Final = 0.15
"""The largest mean cosine distance at which two clusters become one."""

NEAR: Final = 0.98
"""The cosine from which two vectors say nearly the same."""

# How many axes a sketch has. The nearer a pair must be, the less it takes to rule one out.
_AXES: Final = 64
_AXES_NEAR: Final = 24
_SAMPLE: Final = 8192
_POWER_STEPS: Final = 4
_ROWS: Final = 512
_COLUMNS: Final = 8192
_EXACT_AT_ONCE: Final = 4096
_PORTION: Final = 4096
# Of pairs that sketches do not rule out: above that, portions.
_MOST_CLOSE: Final = 2e8
# One in so many pairs: above that, products of whole blocks cost less than picking pairs out.
_DENSE: Final = 32
# What single precision may lose in a product of unit vectors, with room to spare.
_ROUNDING: Final = 4e-6
# Keeps the length of a nearly empty rest from being rounded to less than it is.
_REST: Final = 1e-6


def clusters(vectors: NDArray[np.float32], cut: float = CUT) -> list[NDArray[np.int64]]:
    """Return the groups of rows that average linkage over the cosine distance makes.

    Args:
        vectors: float32[n, dim], each of length one.
        cut: The largest mean distance between two clusters that still become one.

    Returns:
        Groups of two rows or more, by their first row; rows of a group ascend.
    """
    first, which, counts = _collapsed(vectors)
    labels = first[_agglomerated(vectors[first], counts, 1.0 - cut)[which]]
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    groups = np.split(order, starts[1:])
    return sorted((group for group in groups if len(group) > 1), key=lambda group: int(group[0]))


def near_pairs(vectors: NDArray[np.float32], least: float = NEAR) -> NDArray[np.int64]:
    """Return for each row the first row that says nearly the same, where one comes before it.

    Args:
        vectors: float32[n, dim], each of length one.
        least: The smallest cosine that counts.

    Returns:
        int64[p, 2], p < n: the earlier row and the later one, ascending by the later one.
    """
    first, which, _ = _collapsed(vectors)
    points = _Points.of(vectors[first], _AXES_NEAR)
    earlier = np.full(len(first), -1, np.int64)
    for rows in _blocks(len(first), _ROWS):
        open_columns = np.flatnonzero(earlier < 0)
        for columns in _cut(open_columns[open_columns > rows[0]], _COLUMNS):
            row, column = points.candidates(rows, columns, least)
            before = row < column
            _find_first(points, row[before], column[before], least, earlier)
    # Identical rows have their first one; the first one has what was found for all of them.
    found = np.where(earlier < 0, -1, first[earlier])[which]
    own = first[which]
    found = np.where((own < np.arange(len(own))) & (found < 0), own, found)
    later = np.flatnonzero(found >= 0)
    return np.stack([found[later], later], axis=1).astype(np.int64)


def _find_first(
    points: _Points,
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    least: float,
    earlier: NDArray[np.int64],
) -> None:
    """Note for each column the first row whose product is high enough; one row of each at a time.

    What the sketches let pass is nearly always right, so this looks at few rows of many.
    """
    order = np.lexsort((row, column))
    row, column = row[order], column[order]
    while len(column):
        leads = np.diff(column, prepend=-1) != 0
        asked, asked_of = row[leads], column[leads]
        good = points.products(asked, asked_of) >= least
        earlier[asked_of[good]] = asked[good]
        rest = ~leads & (earlier[column] < 0)
        row, column = row[rest], column[rest]


@dataclass(frozen=True, slots=True)
class _Points:
    """Vectors and what bounds their products from above.

    Attributes:
        vectors: float[n, dim], at most of length one.
        basis: float64[dim, axes], orthonormal.
        sketches: float32[n, axes + 1]: the part of a vector that lies in the basis, and the length
            of the rest. By the inequality of Cauchy and Schwarz the product of two sketches is no
            less than that of the vectors.
    """

    vectors: NDArray[np.float32] | NDArray[np.float64]
    basis: NDArray[np.float64]
    sketches: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: NDArray[np.float32] | NDArray[np.float64], axes: int = _AXES) -> _Points:
        """Return points with a basis in which most of their length lies."""
        basis = _principal(vectors, axes)
        sketches = np.empty((len(vectors), basis.shape[1] + 1), np.float32)
        points = cls(vectors, basis, sketches)
        for rows in _blocks(len(vectors), _COLUMNS):
            points.sketch(rows)
        return points

    def sketch(self, rows: NDArray[np.int64]) -> None:
        """Make the sketches of some vectors anew."""
        whole = self.vectors[rows].astype(np.float64)
        within = whole @ self.basis
        rest = np.einsum("ij,ij->i", whole, whole) - np.einsum("ij,ij->i", within, within)
        self.sketches[rows, :-1] = within
        self.sketches[rows, -1] = np.sqrt(np.maximum(rest, 0.0) + _REST)

    def products(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the products of pairs, float64[p]: the same ones whatever is asked with them."""
        found = np.empty(len(left))
        for at in range(0, len(left), _EXACT_AT_ONCE):
            part = slice(at, at + _EXACT_AT_ONCE)
            one = self.vectors[left[part]].astype(np.float64)
            found[part] = np.einsum("ij,ij->i", one, self.vectors[right[part]].astype(np.float64))
        return found

    def candidates(
        self,
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
        least: float,
        *,
        maxima: bool = False,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return every pair of a row and another column whose product may reach `least`.

        Args:
            rows: int64[r], ascending.
            columns: int64[c], ascending.
            least: The product to reach.
            maxima: Of a block where most may, those are enough that may be the maximum of their
                row or of their column.
        """
        block = self.sketches[rows] @ self.sketches[columns].T
        wanted = block >= least - _ROUNDING
        if np.count_nonzero(wanted) * _DENSE > wanted.size:
            left = self.vectors[rows].astype(np.float32)
            np.matmul(left, self.vectors[columns].astype(np.float32).T, out=block)
            block[rows[:, np.newaxis] == columns] = -2.0
            limit = np.float32(least)
            if maxima:
                highest = np.minimum(block.max(axis=1)[:, np.newaxis], block.max(axis=0))
                limit = np.maximum(limit, highest)
            wanted = block >= limit - np.float32(_ROUNDING)
        row, column = np.divmod(np.flatnonzero(wanted), len(columns))
        others = rows[row] != columns[column]
        return rows[row[others]], columns[column[others]]


class _Nearest:
    """Who is nearest to each point, and how near: the first of those that are equally near.

    Attributes:
        at: int64[n]; -1: nobody within reach.
        product: float64[n].
    """

    def __init__(self, points: _Points, least: float) -> None:
        self._points = points
        self._least = least
        self.at = np.full(len(points.vectors), -1, np.int64)
        self.product = np.full(len(points.vectors), -np.inf)

    def find_all(self) -> None:
        """Compare all points, each pair once."""
        count = len(self.at)
        for rows in _blocks(count, _ROWS):
            for columns in _cut(np.arange(rows[0], count), _COLUMNS):
                self._compare(rows, columns)

    def find(self, rows: NDArray[np.int64], alive: NDArray[np.int64]) -> None:
        """Find the nearest of some points anew, among those alive."""
        self.at[rows] = -1
        self.product[rows] = -np.inf
        for part in _cut(rows, _ROWS):
            for columns in _cut(alive, _COLUMNS):
                self._compare(part, columns)

    def _compare(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> None:
        row, column = self._points.candidates(rows, columns, self._least, maxima=True)
        product = self._points.products(row, column)
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
    points = _Points.of(vectors)
    if not _crowded(points, least):
        return _exactly(points, counts, least)
    labels = np.arange(len(vectors))
    for portion in _cut(np.argsort(points.sketches[:, 0], kind="stable"), _PORTION):
        rows = np.sort(portion)
        labels[rows] = rows[_exactly(_Points.of(vectors[rows]), counts[rows], least)]
    heads, which = np.unique(labels, return_inverse=True)
    weights = np.bincount(which, counts)
    means = np.zeros((len(heads), vectors.shape[1]))
    for rows in _blocks(len(vectors), _COLUMNS):
        np.add.at(means, which[rows], vectors[rows] * counts[rows, np.newaxis])
    means /= weights[:, np.newaxis]
    merged: NDArray[np.int64] = heads[_exactly(_Points.of(means), weights, least)]
    return merged[which]


def _crowded(points: _Points, least: float) -> bool:
    """Tell whether so many pairs may be close that comparing them all would take minutes."""
    count = len(points.vectors)
    if count * count <= _MOST_CLOSE:
        return False
    rows = np.arange(0, count, -(-count // _ROWS))
    close = 0
    for columns in _blocks(count, _COLUMNS):
        bounds = points.sketches[rows] @ points.sketches[columns].T
        close += int(np.count_nonzero(bounds >= least))
    return close / len(rows) * count > _MOST_CLOSE


def _exactly(
    points: _Points, counts: NDArray[np.int64] | NDArray[np.float64], least: float
) -> NDArray[np.int64]:
    """Return for each point the first one of its cluster, int64[n]."""
    vectors = points.vectors
    nearest = _Nearest(points, least)
    nearest.find_all()
    kept = np.flatnonzero(nearest.at >= 0)
    place = np.full(len(vectors), -1, np.int64)
    place[kept] = np.arange(len(kept))
    means = vectors[kept].astype(np.float64)
    points = _Points(means, points.basis, points.sketches[kept])
    known = nearest
    nearest = _Nearest(points, least)
    nearest.at, nearest.product = place[known.at[kept]], known.product[kept]
    into = np.arange(len(kept))
    _merge(points, nearest, counts[kept].astype(np.float64), into)
    labels = np.arange(len(vectors))
    labels[kept] = kept[_roots(into)]
    return labels


def _merge(
    points: _Points, nearest: _Nearest, weights: NDArray[np.float64], into: NDArray[np.int64]
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
    points: _Points,
    weights: NDArray[np.float64],
    one: NDArray[np.int64],
    other: NDArray[np.int64],
) -> None:
    for part in _cut(np.arange(len(one)), _COLUMNS):
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


def _collapsed(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each distinct vector, which of them each row has, and how many."""
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(vectors), np.int64)
    for row, vector in enumerate(vectors):
        key = blake2b(vector.tobytes(), digest_size=16).digest()
        number = which[row] = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(row)
    return np.array(first, np.int64), which, np.bincount(which, minlength=len(first))


def _principal(
    vectors: NDArray[np.float32] | NDArray[np.float64], count: int
) -> NDArray[np.float64]:
    """Return orthonormal axes, float64[dim, axes], that hold about the most length of vectors.

    Which ones they are changes how many products are computed, never a result.
    """
    dim = vectors.shape[1]
    if dim <= count:
        return np.eye(dim)
    step = max(1, len(vectors) // _SAMPLE)
    sample = vectors[::step].astype(np.float32)
    axes = np.random.default_rng(0).standard_normal((dim, count))
    for _ in range(_POWER_STEPS):
        axes, _ = np.linalg.qr(sample.T @ (sample @ axes.astype(np.float32)))
        axes = axes.astype(np.float64)
    return np.linalg.qr(axes)[0]


def _blocks(count: int, size: int) -> Iterator[NDArray[np.int64]]:
    yield from _cut(np.arange(count), size)


def _cut(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    for at in range(0, len(rows), size):
        yield rows[at : at + size]
