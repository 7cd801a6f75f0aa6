import numpy as np
from numpy.typing import NDArray

__all__ = ["top_k"]

def top_k(
    matrix: NDArray[np.float32],
    query: NDArray[np.float32],
    owners: NDArray[np.int64],
    rows: NDArray[np.int64] | None,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]: ...
