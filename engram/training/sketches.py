"""Short sketches of vectors: most pairs that are not alike are told by them, without a product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Matrix = NDArray[np.float16] | NDArray[np.float32] | NDArray[np.float64]

_Float = TypeVar("_Float", bound="np.floating[Any]")

AXES: Final = 64
"""How many axes a sketch has. The nearer a pair must be, the fewer it takes to rule one out."""

ROUNDING: Final = 4e-6
"""What single precision may lose in a product of unit vectors, with room to spare."""

ROWS: Final = 512
COLUMNS: Final = 8192
"""How many vectors are compared with how many others at once."""

DENSE: Final = 32
"""One in so many pairs: above that, whole blocks of products cost less than picking pairs out."""

_SAMPLE: Final = 8192
_POWER_STEPS: Final = 4
_EXACT_AT_ONCE: Final = 4096
# Keeps the length of a nearly empty rest from being rounded to less than it is.
_REST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Points:
    """Vectors and what bounds their products from above.

    Attributes:
        vectors: float[n, dim], at most of length one.
        basis: float64[dim, axes], orthonormal.
        sketches: float32[n, axes + 1]: the part of a vector that lies in the basis, and the length
            of the rest. By the inequality of Cauchy and Schwarz the product of two sketches is no
            less than that of the vectors.
    """

    vectors: Matrix
    basis: NDArray[np.float64]
    sketches: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Matrix, axes: int = AXES) -> Points:
        """Return points with a basis in which most of their length lies."""
        basis = _principal(vectors, axes)
        sketches = np.empty((len(vectors), basis.shape[1] + 1), np.float32)
        points = cls(vectors, basis, sketches)
        for rows in blocks(len(vectors), COLUMNS):
            points.sketch(rows)
        return points

    def sketch(self, rows: NDArray[np.int64]) -> None:
        """Make the sketches of some vectors anew."""
        whole = self.vectors[rows].astype(np.float64)
        within = whole @ self.basis
        rest = np.einsum("ij,ij->i", whole, whole) - np.einsum("ij,ij->i", within, within)
        self.sketches[rows, :-1] = within
        self.sketches[rows, -1] = np.sqrt(np.maximum(rest, 0.0) + _REST)

    def may_reach(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64], least: float
    ) -> NDArray[np.bool_]:
        """Tell by the sketches which products may reach `least`, bool[rows, columns]."""
        bounds = self.sketches[rows] @ self.sketches[columns].T
        within: NDArray[np.bool_] = bounds >= least - ROUNDING
        return within

    def pairs_may_reach(
        self, left: NDArray[np.int64], right: NDArray[np.int64], least: float
    ) -> NDArray[np.bool_]:
        """Tell it of single pairs, bool[p]."""
        bounds = np.einsum("ij,ij->i", self.sketches[left], self.sketches[right])
        within: NDArray[np.bool_] = bounds >= least - ROUNDING
        return within

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return all products of some vectors with others in single precision."""
        left = self.vectors[rows].astype(np.float32, copy=False)
        right = self.vectors[columns].astype(np.float32, copy=False)
        found: NDArray[np.float32] = left @ right.T
        return found


def products(
    vectors: Matrix, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the products of pairs, float64[p]: the same ones whatever is asked with them."""
    found = np.empty(len(left))
    for at in range(0, len(left), _EXACT_AT_ONCE):
        part = slice(at, at + _EXACT_AT_ONCE)
        one = vectors[left[part]].astype(np.float64)
        found[part] = np.einsum("ij,ij->i", one, vectors[right[part]].astype(np.float64))
    return found


def pairs(
    wanted: NDArray[np.bool_], rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a row and another column that a mask, bool[rows, columns], has."""
    # Much faster than `np.nonzero` of two dimensions.
    row, column = np.divmod(np.flatnonzero(wanted), len(columns))
    others = rows[row] != columns[column]
    return rows[row[others]], columns[column[others]]


def taken(vectors: NDArray[_Float], rows: NDArray[np.int64]) -> NDArray[_Float]:
    """Return some rows, in their order, of a matrix; without a copy where these are all."""
    return vectors if len(rows) == len(vectors) else vectors[rows]


def blocks(count: int, size: int) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers below `count` in their order, some at a time."""
    yield from portions(np.arange(count), size)


def portions(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    """Yield rows in their order, some at a time."""
    for at in range(0, len(rows), size):
        yield rows[at : at + size]


def _principal(vectors: Matrix, count: int) -> NDArray[np.float64]:
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
