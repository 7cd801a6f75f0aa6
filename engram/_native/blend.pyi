import numpy as np
from numpy.typing import NDArray

__all__ = ["blend"]

def blend(
    vector_keys: NDArray[np.int64],
    vector_scores: NDArray[np.float64],
    text_keys: NDArray[np.int64],
    text_scores: NDArray[np.float64],
    vector_weight: float,
    text_weight: float,
    k: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]: ...
