from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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

def bm25(
    parts: Sequence[_Part],
    ranges: NDArray[np.int64],
    documents: int,
    mean: float,
    k: int,
    k1: float,
    b: float,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]: ...
def find_terms(
    term_bytes: NDArray[np.uint8], term_ends: NDArray[np.int64], wanted: Sequence[bytes]
) -> NDArray[np.int64]: ...
def row_frequencies(
    rows: NDArray[np.uint32],
    frequencies: NDArray[np.uint8],
    large: NDArray[np.int64],
    large_frequencies: NDArray[np.uint32],
    ranges: NDArray[np.int64],
    wanted: NDArray[np.uint32],
) -> NDArray[np.float32]: ...
