"""What every room means by a unit vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNIT_TOLERANCE = 1e-6  # vectors this close to length one keep their bits


def normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors, float32[..., dim], to length one.

    Vectors already that long keep their bits, so normalising twice changes nothing; zero vectors
    stay zero. The lengths are computed in float64: no finite float32 vector over- or underflows.
    """
    lengths = np.sqrt(np.einsum("...i,...i->...", vectors, vectors, dtype=np.float64))
    scale = np.where((lengths == 0.0) | (np.abs(lengths - 1.0) < _UNIT_TOLERANCE), 1.0, lengths)
    if (scale == 1.0).all():
        return vectors.copy()
    unit: NDArray[np.float32] = (vectors / scale[..., np.newaxis]).astype(np.float32)
    return unit


def cosines(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosines, float64[n], of unit vectors at some L2 distances, float64[n]."""
    found: NDArray[np.float64] = 1.0 - np.square(distances) / 2.0
    return found
