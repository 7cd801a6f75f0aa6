from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

__all__ = ["hamming_nearest", "sign_bits"]

def sign_bits(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]: ...
def hamming_nearest(
    bits: NDArray[np.uint64],
    query: NDArray[np.uint64],
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    margin: SupportsIndex,
    limit: SupportsIndex,
    distances: NDArray[np.uint16],
) -> NDArray[np.uint32]: ...
