"""Vectors as 8-bit codes, and a query in the form that is compared with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram._native import query_codes
from engram.index.segment import UNEVEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index.segment import Segment


class Codes(NamedTuple):
    """The codes of chunks, as `code_candidates` takes them."""

    high: NDArray[np.uint8]
    low: NDArray[np.uint8]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]


class QueryCodes:
    """A query as `code_candidates` takes it.

    Args:
        vector: float32[dim], unit length.

    Attributes:
        vector: The vector.
        asked: Its codes, int16, and their unit.
        rounding: What the codes of the query add at most to the error of a product.
    """

    def __init__(self, vector: NDArray[np.float32]) -> None:
        self.vector = vector
        self.asked = query_codes(vector)
        # Half a unit in each number, against a vector a little longer than one.
        self.rounding = 0.51 * self.asked[1] * math.sqrt(len(vector)) + UNEVEN


def chunks_of(owners: NDArray[np.uint32], rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the chunks of some episodes, ascending."""
    starts = np.searchsorted(owners, rows, side="left")
    counts = np.searchsorted(owners, rows, side="right") - starts
    offsets = np.cumsum(counts) - counts
    chunks = np.repeat(starts - offsets, counts) + np.arange(counts.sum())
    return chunks.astype(np.uint32)


def codes_of_rows(segment: Segment, rows: NDArray[np.uint32] | None) -> Codes:
    """Return the codes of a segment, those of the given rows, None for all, checked.

    Raises:
        Damaged: They are not what was written.
    """
    arrays = segment.arrays
    for name in ("high", "low"):
        if rows is None:
            arrays.check(name, 0, segment.chunks)
        else:
            arrays.check_rows(name, rows)
    return Codes(arrays["high"], arrays["low"], segment.scales, segment.errors)
