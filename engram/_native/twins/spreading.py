"""NumPy twin of one hop of spreading activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
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
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """NumPy twin of `engram._native.spreading.spread`."""
    boundary.array("starts", starts, np.int32)
    boundary.array("counts", counts, np.int32)
    boundary.array("indices", indices, np.int32)
    boundary.array("weights", weights, np.float32)
    boundary.array("nodes", nodes, np.int64)
    boundary.array("energy", energy, np.float64)
    boundary.length("counts", counts, len(starts), "node")
    boundary.length("weights", weights, len(indices), "arc")
    boundary.length("energy", energy, len(nodes), "node")
    decay = boundary.real("decay", decay, 0.0)
    if np.any((nodes < 0) | (nodes >= len(starts))):
        message = "nodes must lie in [0, number of nodes)"
        raise ValueError(message)
    if not np.all(np.isfinite(energy)):
        message = "energy must be finite"
        raise ValueError(message)

    arcs, senders = _arcs_of(starts[nodes], counts[nodes], len(indices))
    reached = indices[arcs]
    if np.any((reached < 0) | (reached >= len(starts))):
        message = "indices must lie in [0, number of nodes)"
        raise ValueError(message)
    with np.errstate(all="ignore"):
        # Comparisons written so that a weight or a product that is not a number is 0.
        clamped = np.where(weights[arcs] > 0.0, np.minimum(weights[arcs], 1.0), 0.0)
        contribution = (energy * decay)[senders] * clamped
        given = contribution > 0.0
        found, first, place = np.unique(reached[given], return_index=True, return_inverse=True)
        received = np.zeros(len(found))
        # One contribution after the other, in the order of the kernel.
        np.add.at(received, place, contribution[given])
    order = np.argsort(first)
    return found[order].astype(np.int64), received[order]


def _arcs_of(
    starts: NDArray[np.int32], counts: NDArray[np.int32], arc_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arcs of rows, in order, and the place of the row that each belongs to."""
    begins, degrees = starts.astype(np.int64), counts.astype(np.int64)
    if np.any((begins < 0) | (degrees < 0) | (begins + degrees > arc_count)):
        message = "starts and counts must lie within the arcs"
        raise ValueError(message)
    ends = np.cumsum(degrees)
    arcs = np.arange(degrees.sum()) + np.repeat(begins - (ends - degrees), degrees)
    return arcs, np.repeat(np.arange(len(begins)), degrees)
