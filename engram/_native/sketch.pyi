from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

__all__ = ["coarse_nearest", "code_candidates", "decode", "encode", "query_codes"]

def encode(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]: ...
def decode(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    dims: SupportsIndex,
) -> NDArray[np.float32]: ...
def query_codes(query: NDArray[np.float32]) -> tuple[NDArray[np.int16], float]: ...
def coarse_nearest(
    high: NDArray[np.uint8],
    scales: NDArray[np.float32],
    query: NDArray[np.int16],
    rows: NDArray[np.uint32],
    owners: NDArray[np.uint32] | None,
    limit: SupportsIndex,
) -> NDArray[np.uint32]: ...
def code_candidates(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    errors: NDArray[np.float32],
    query: NDArray[np.int16],
    query_scale: float,
    rows: NDArray[np.uint32] | None,
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    certainty: float,
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]: ...
