from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["invert", "merge"]

_Index: TypeAlias = tuple[
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.uint32],
    NDArray[np.uint8],
    NDArray[np.int64],
    NDArray[np.uint32],
]

def invert(
    bodies: Sequence[bytes | list[bytes]], stems: Callable[[list[bytes]], list[bytes]]
) -> _Index: ...
def merge(parts: Sequence[_Index], live: Sequence[NDArray[np.bool_] | None]) -> _Index: ...
