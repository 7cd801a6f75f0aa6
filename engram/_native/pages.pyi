from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_pages", "check_rows", "page_sums", "read_rows"]

def page_sums(data: NDArray[np.uint8]) -> NDArray[np.uint64]: ...
def check_pages(
    data: NDArray[np.uint8],
    sums: NDArray[np.uint64],
    checked: NDArray[np.uint8],
    first: SupportsIndex,
    last: SupportsIndex,
) -> bool: ...
def check_rows(
    data: NDArray[np.uint8],
    sums: NDArray[np.uint64],
    checked: NDArray[np.uint8],
    offset: SupportsIndex,
    row_bytes: SupportsIndex,
    rows: NDArray[np.uint32],
) -> bool: ...
def read_rows(
    fd: SupportsIndex, offset: SupportsIndex, row_bytes: SupportsIndex, rows: NDArray[np.uint32]
) -> NDArray[np.uint8]: ...
