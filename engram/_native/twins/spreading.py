"""NumPy twin of spreading activation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
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
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """NumPy twin of `engram._native.spreading.spread`."""
    boundary.array("indptr", indptr, np.int64)
    boundary.array("indices", indices, np.int32)
    boundary.array("weights", weights, np.float32)
    boundary.array("seeds", seeds, np.int64)
    boundary.array("energy", energy, np.float64)
    boundary.length("weights", weights, len(indices), "arc")
    boundary.length("energy", energy, len(seeds), "seed")
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != len(indices):
        message = "indptr must run from 0 to the number of indices"
        raise ValueError(message)
    depth = boundary.whole("depth", depth, 0)
    decay = boundary.real("decay", decay, 0.0)
    count = len(indptr) - 1
    _check_seeds(seeds, energy, count)

    activation = np.zeros(count)
    visited = np.zeros(count, np.bool_)
    visited[seeds] = True
    charge = np.zeros(count)
    charge[seeds] = energy
    frontier = np.flatnonzero(charge > 0.0)
    while depth > 0 and len(frontier):
        with np.errstate(all="ignore"):
            reached, charge = _hop(frontier, charge * decay, indptr, indices, weights)
            activation += charge
        visited[reached] = True
        frontier = np.flatnonzero(charge > 0.0)
        depth -= 1
    nodes = np.flatnonzero(visited).astype(np.int64, copy=False)
    return nodes, activation[nodes]


def _check_seeds(seeds: NDArray[np.int64], energy: NDArray[np.float64], count: int) -> None:
    if np.any((seeds < 0) | (seeds >= count)):
        message = "seeds must lie in [0, number of nodes)"
        raise ValueError(message)
    if len(np.unique(seeds)) != len(seeds):
        message = "seeds must not repeat a node"
        raise ValueError(message)
    if not np.all(np.isfinite(energy)):
        message = "energy must be finite"
        raise ValueError(message)


def _hop(
    frontier: NDArray[np.int64],
    passed: NDArray[np.float64],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    weights: NDArray[np.float32],
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """The nodes that one hop reaches, and what each node of the graph receives in it."""
    arcs, senders = _arcs_of(frontier, indptr, len(indices))
    reached = indices[arcs]
    received = np.zeros(len(passed))
    if np.any((reached < 0) | (reached >= len(received))):
        message = "indices must lie in [0, number of nodes)"
        raise ValueError(message)
    # Comparisons written so that a weight or a product that is not a number is 0.
    clamped = np.where(weights[arcs] > 0.0, np.minimum(weights[arcs], 1.0), 0.0)
    contribution = passed[senders] * clamped
    # One contribution after the other, in the order of the kernel.
    np.add.at(received, reached, np.where(contribution > 0.0, contribution, 0.0))
    return reached, received


def _arcs_of(
    frontier: NDArray[np.int64], indptr: NDArray[np.int64], arc_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The arcs that leave the frontier, in the order of its rows, and the node each one leaves."""
    starts, stops = indptr[frontier], indptr[frontier + 1]
    if np.any((starts < 0) | (starts > stops) | (stops > arc_count)):
        message = "indptr must be non-decreasing"
        raise ValueError(message)
    degrees = stops - starts
    ends = np.cumsum(degrees)
    arcs = np.arange(degrees.sum()) + np.repeat(starts - (ends - degrees), degrees)
    return arcs, np.repeat(frontier, degrees)
