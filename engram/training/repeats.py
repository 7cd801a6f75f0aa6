"""Which memories say nearly the same as an earlier one."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np

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
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.training.sketches import Matrix

NEAR: Final = 0.98
"""The cosine from which two vectors say nearly the same."""

_AXES: Final = 24


def near_pairs(parts: Sequence[Matrix], least: float = NEAR) -> NDArray[np.int64]:
    """Return for each row the first row that is near in every part, where one comes before it.

    Args:
        parts: One or more of float[n, dim], each vector of length one.
        least: The smallest cosine that counts, in each of them.

    Returns:
        int64[p, 2], p < n: the earlier row and the later one, ascending by the later one.
    """
    first, which = distinct(parts)
    points = [Points.of(taken(part, first), _AXES) for part in parts]
    earlier = np.full(len(first), -1, np.int64)
    for rows in blocks(len(first), ROWS):
        open_columns = np.flatnonzero(earlier < 0)
        for columns in portions(open_columns[open_columns > rows[0]], COLUMNS):
            row, column = _candidates(points, rows, columns, least)
            before = row < column
            _find_first(points, row[before], column[before], least, earlier)
    # Identical rows have their first one; the first one has what was found for all of them.
    found = np.where(earlier < 0, -1, first[earlier])[which]
    own = first[which]
    found = np.where((own < np.arange(len(own))) & (found < 0), own, found)
    later = np.flatnonzero(found >= 0)
    return np.stack([found[later], later], axis=1).astype(np.int64)


def _candidates(
    points: Sequence[Points], rows: NDArray[np.int64], columns: NDArray[np.int64], least: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a row and another column that may be near in every part."""
    first, *others = points
    wanted = first.may_reach(rows, columns, least)
    while _many(wanted) and others:
        wanted &= others.pop(0).may_reach(rows, columns, least)
    if _many(wanted):
        for part in points:
            wanted &= part.block(rows, columns) >= least - ROUNDING
    row, column = pairs(wanted, rows, columns)
    for part in others:
        near = part.pairs_may_reach(row, column, least)
        row, column = row[near], column[near]
    return row, column


def _many(wanted: NDArray[np.bool_]) -> bool:
    return bool(np.count_nonzero(wanted) * DENSE > wanted.size)


def _find_first(
    points: Sequence[Points],
    row: NDArray[np.int64],
    column: NDArray[np.int64],
    least: float,
    earlier: NDArray[np.int64],
) -> None:
    """Note for each column the first row that is near; one row of each at a time.

    What the sketches let pass is nearly always right, so this looks at few rows of many.
    """
    order = np.lexsort((row, column))
    row, column = row[order], column[order]
    while len(column):
        leads = np.diff(column, prepend=-1) != 0
        asked, asked_of = row[leads], column[leads]
        good = np.ones(len(asked), np.bool_)
        for part in points:
            good[good] = products(part.vectors, asked[good], asked_of[good]) >= least
        earlier[asked_of[good]] = asked[good]
        rest = ~leads & (earlier[column] < 0)
        row, column = row[rest], column[rest]


def distinct(parts: Sequence[Matrix]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first of all rows that are the same, and which of these each row is."""
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(parts[0]), np.int64)
    for row, vectors in enumerate(zip(*parts, strict=True)):
        key = blake2b(b"".join(map(np.ndarray.tobytes, vectors)), digest_size=16).digest()
        number = which[row] = numbers.setdefault(key, len(first))
        if number == len(first):
            first.append(row)
    return np.array(first, np.int64), which
