"""Which memories followed from which: as they say, or as likeness and nearness in time suggest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.training.sketches import AXES, ROUNDING, Points, products

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.training.rows import Corpus, Row

_WINDOW: Final = 6 * 3_600_000_000
_LEAST_COSINE: Final = 0.7
_BLOCK: Final = 256
"""Rows whose successors are looked for at once."""
_KEPT: Final = 64
"""Successors that are remembered of each."""
_FIRST_COLUMNS: Final = 512
_MOST_COLUMNS: Final = 4096

_SKETCHED_FROM: Final = 100_000_000
"""Pairs within the window from which on sketches are worth making."""


def explicit_chains(rows: Sequence[Row]) -> list[list[int]]:
    """Return the chains that parents tell of, as places in `rows`.

    Each begins with a memory that has no parent and follows the first child, and the first child
    of that. Roots in the order they are met.
    """
    known = {row.id for row in rows}
    first_child: dict[str, int] = {}
    for at, row in enumerate(rows):
        if row.parent_id is not None and row.parent_id in known:
            first_child.setdefault(row.parent_id, at)
    chains = []
    for at, row in enumerate(rows):
        if row.parent_id is None and row.id in first_child:
            chain = [at]
            while (child := first_child.get(rows[chain[-1]].id)) is not None:
                chain.append(child)
            chains.append(chain)
    return chains


def implicit_chains(corpus: Corpus, taken: set[int]) -> list[list[int]]:
    """Return the chains of memories that are alike and follow each other, as places in the rows.

    From each memory that is in no chain yet the next one in time is looked for that is not either,
    was made within six hours and has a cosine of 0.7 or more; then the next one after that.

    Args:
        corpus: The memories; those without a vector or a time are in no chain.
        taken: Places of those that are in chains already.
    """
    timed = [
        (created, owner, at)
        for at, owner in enumerate(corpus.owners.tolist())
        if (created := corpus.rows[owner].created) is not None and owner not in taken
    ]
    timed.sort(key=lambda one: one[0])
    if not timed:
        return []
    times = np.array([created for created, _, _ in timed], dtype=np.int64)
    vectors = corpus.vectors[[at for _, _, at in timed]]
    return [[timed[at][1] for at in chain] for chain in _chains(times, vectors)]


def _chains(times: NDArray[np.int64], vectors: NDArray[np.float32]) -> list[list[int]]:
    successors = _Successors(times, vectors)
    chains = []
    for start in range(len(times)):
        if successors.taken[start]:
            continue
        chain = [start]
        while (following := successors.of(chain[-1], start)) is not None:
            successors.taken[chain[-1]] = successors.taken[following] = True
            chain.append(following)
        if len(chain) > 1:
            chains.append(chain)
    return chains


class _Successors:
    """Finds what follows a row: the first later one that is near in time, alike and not taken.

    Every row is asked for at most once, so the rows of a block are looked at together: one product
    of matrices instead of many of vectors.

    Attributes:
        taken: bool[n], the rows that are in a chain.
    """

    def __init__(self, times: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        self.taken = np.zeros(len(times), dtype=np.bool_)
        self._ends = np.searchsorted(times, times + _WINDOW, side="right")
        self._vectors = vectors
        self._found: dict[int, NDArray[np.int64]] = {}
        pairs = int((self._ends - np.arange(len(times))).sum())
        worth = pairs >= _SKETCHED_FROM and vectors.shape[1] > 2 * AXES
        self._points = Points.of(vectors) if worth else None

    def of(self, row: int, start: int) -> int | None:
        """Return what follows a row; rows before `start` will not be asked for any more."""
        while True:
            if row not in self._found:
                self._look(row, start)
            found = self._found.pop(row)
            free = found[~self.taken[found]]
            if len(free):
                return int(free[0])
            if len(found) < _KEPT:
                return None
            # More may follow, for those that were found are taken by now.

    def _look(self, row: int, start: int) -> None:
        """Find the first `_KEPT` that may follow each row of a block."""
        block = row - row % _BLOCK
        rows = np.arange(block, min(block + _BLOCK, len(self.taken)))
        rows = rows[(rows == row) | (~self.taken[rows] & (rows >= start))]
        found: list[list[NDArray[np.int64]]] = [[] for _ in rows]
        counts = np.zeros(len(rows), dtype=np.int64)
        open_ = np.arange(len(rows))
        begin, width = int(rows[0]) + 1, _FIRST_COLUMNS
        while len(open_):
            end = min(begin + width, int(self._ends[rows[open_]].max()))
            columns = begin + np.flatnonzero(~self.taken[begin:end])
            left, right = self._follow(rows[open_], columns)
            begins = np.flatnonzero(np.diff(left, prepend=-1))
            for at, some in zip(left[begins].tolist(), np.split(right, begins[1:]), strict=False):
                found[open_[at]].append(columns[some])
            counts[open_] += np.bincount(left, minlength=len(open_))
            begin, width = max(end, begin), min(2 * width, _MOST_COLUMNS)
            open_ = open_[(counts[open_] < _KEPT) & (self._ends[rows[open_]] > begin)]
        for one, parts in zip(rows.tolist(), found, strict=True):
            later = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
            self._found[one] = later[:_KEPT].copy()

    def _follow(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which rows may be followed by which columns, as places in both; by rows."""
        if self._points is not None:
            near = self._points.may_reach(rows, columns, _LEAST_COSINE)
            # Where more are alike, whole products cost less than one for each pair.
            if 20 * np.count_nonzero(near) < near.size:
                left, right = self._later(near, rows, columns)
                return self._checked(left, right, np.ones(len(left), np.bool_), rows, columns)
        block = self._vectors[rows] @ self._vectors[columns].T
        left, right = self._later(block >= _LEAST_COSINE - ROUNDING, rows, columns)
        doubtful = block[left, right] < _LEAST_COSINE + ROUNDING
        return self._checked(left, right, doubtful, rows, columns)

    def _later(
        self, near: NDArray[np.bool_], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return those of the pairs that are near whose column is later, within the window."""
        # Much faster than `np.nonzero` of two dimensions.
        left, right = np.divmod(np.flatnonzero(near), len(columns))
        later = (columns[right] > rows[left]) & (columns[right] < self._ends[rows[left]])
        return left[later], right[later]

    def _checked(
        self,
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        doubtful: NDArray[np.bool_],
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Leave out doubtful pairs that are not alike in float64, which no blocking changes."""
        alike = np.ones(len(left), dtype=np.bool_)
        asked = np.flatnonzero(doubtful)
        cosines = products(self._vectors, rows[left[asked]], columns[right[asked]])
        alike[asked] = cosines >= _LEAST_COSINE
        return left[alike], right[alike]
