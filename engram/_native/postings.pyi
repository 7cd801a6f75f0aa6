from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["bm25"]

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
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
