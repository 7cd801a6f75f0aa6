import numpy as np
from numpy.typing import NDArray

__all__ = ["decay"]

def decay(
    salience: NDArray[np.float64],
    valence: NDArray[np.float64],
    access_count: NDArray[np.int64],
    baseline: NDArray[np.int64],
    now: int,
    lambda_: float,
    alpha: float,
    beta: float,
) -> NDArray[np.float64]: ...
