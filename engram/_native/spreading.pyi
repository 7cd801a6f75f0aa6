import numpy as np
from numpy.typing import NDArray

__all__ = ["spread"]

def spread(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    seeds: NDArray[np.int64],
    energy: NDArray[np.float64],
    depth: int,
    decay: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
