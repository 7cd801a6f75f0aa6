import numpy as np
from numpy.typing import NDArray

__all__ = ["spread"]

def spread(
    starts: NDArray[np.int32],
    counts: NDArray[np.int32],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
    nodes: NDArray[np.int64],
    energy: NDArray[np.float64],
    decay: float,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
