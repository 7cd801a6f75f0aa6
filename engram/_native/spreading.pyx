# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Spreading activation over a graph in compressed sparse rows."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t
from libcpp.memory cimport unique_ptr

from engram._native import boundary

__all__ = ["spread"]


cdef extern from "spreading.hpp" namespace "engram" nogil:
    cdef enum class SpreadFault:
        none
        seeds_range
        seeds_repeated
        energy_not_finite
        indptr_order
        indices_range

    cppclass Graph:
        const int64_t* indptr
        const int32_t* indices
        const float* weights
        int64_t nodes
        int64_t arcs

    cppclass Spreading:
        Spreading(const Graph&) except +
        SpreadFault run(const int64_t*, const double*, size_t, int64_t, double) except +
        size_t size()
        void write(int64_t*, double*) except +


def spread(indptr, indices, weights, seeds, energy, depth, decay):
    """Spread activation from `seeds` along the arcs of a graph.

    In each of up to `depth` hops, every frontier node with energy above 0 passes

        energy · decay · clamp(weight, 0, 1)

    over each of its arcs. What a node receives in a hop is added to its activation and is its
    energy in the next frontier, which holds nothing else; nodes may be visited again. The walk
    stops early when a hop passed nothing on. An arc whose contribution is 0 still visits its
    neighbour; a weight that is not a number counts as 0. For a walk in both directions give every
    edge as two arcs.

    Contributions are added in float64 by frontier node ascending and then in the order of its row,
    first over the hop and then to the activation: bit for bit equal to the twin.

    Takes O(s·log s + arcs walked + hops·n/64) time and 1.25·n bytes plus at most 64 bytes per
    visited node: sums live in pages of 4 nodes made on the first visit, so a short walk over a large
    graph clears no large buffer. The GIL is released for the whole walk.

    Args:
        indptr: int64 [n + 1], from 0 to m, non-decreasing; node u has arcs indptr[u]:indptr[u + 1].
        indices: int32 [m]; the node at the end of each arc.
        weights: float32 [m].
        seeds: int64 [s], each node once, in any order. They start with activation 0.
        energy: float64 [s], finite.
        depth: Most hops; at least 0.
        decay: Factor per hop; finite, at least 0.

    Returns:
        The visited nodes ascending, int64 [r], seeds included, and their activations, float64 [r].

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, a node, an energy or a number is not as described;
            the message names the argument. Only rows and arcs that the walk meets are checked.
    """
    boundary.array("indptr", indptr, np.int64)
    boundary.array("indices", indices, np.int32)
    boundary.array("weights", weights, np.float32)
    boundary.array("seeds", seeds, np.int64)
    boundary.array("energy", energy, np.float64)
    boundary.length("weights", weights, len(indices), "arc")
    boundary.length("energy", energy, len(seeds), "seed")
    if len(indptr) == 0 or indptr[0] != 0 or indptr[len(indptr) - 1] != len(indices):
        raise ValueError("indptr must run from 0 to the number of indices")
    depth = boundary.whole("depth", depth, 0)
    decay = boundary.real("decay", decay, 0.0)

    cdef const int64_t[::1] indptr_view = indptr
    cdef const int32_t[::1] index_view = indices
    cdef const float[::1] weight_view = weights
    cdef const int64_t[::1] seed_view = seeds
    cdef const double[::1] energy_view = energy
    # Borrowed pointers: the views above keep every array alive until this function returns. The
    # pointers of an empty array are never read.
    cdef Graph graph
    graph.indptr = &indptr_view[0]
    graph.indices = &index_view[0]
    graph.weights = &weight_view[0]
    graph.nodes = indptr_view.shape[0] - 1
    graph.arcs = index_view.shape[0]
    cdef size_t seed_count = seed_view.shape[0]
    cdef int64_t hops = depth
    cdef double factor = decay
    # Owned here and freed with the pointer, whichever way the function is left.
    cdef unique_ptr[Spreading] walk
    cdef SpreadFault fault
    with nogil:
        walk.reset(new Spreading(graph))
        fault = walk.get().run(&seed_view[0], &energy_view[0], seed_count, hops, factor)
    if fault == SpreadFault.seeds_range:
        raise ValueError("seeds must lie in [0, number of nodes)")
    if fault == SpreadFault.seeds_repeated:
        raise ValueError("seeds must not repeat a node")
    if fault == SpreadFault.energy_not_finite:
        raise ValueError("energy must be finite")
    if fault == SpreadFault.indptr_order:
        raise ValueError("indptr must be non-decreasing")
    if fault == SpreadFault.indices_range:
        raise ValueError("indices must lie in [0, number of nodes)")

    cdef size_t visited = walk.get().size()
    nodes = np.empty(visited, np.int64)
    activations = np.empty(visited, np.float64)
    cdef int64_t[::1] node_out = nodes
    cdef double[::1] activation_out = activations
    if visited > 0:
        with nogil:
            walk.get().write(&node_out[0], &activation_out[0])
    return nodes, activations
