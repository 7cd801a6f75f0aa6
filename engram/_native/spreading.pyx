# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""One hop of spreading activation over a graph in rows."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t
from libcpp.memory cimport unique_ptr

from engram._native import boundary

__all__ = ["spread"]


cdef extern from "spreading.hpp" namespace "engram" nogil:
    cdef enum class SpreadFault:
        none
        nodes_range
        energy_not_finite
        rows_range
        indices_range

    cppclass Graph:
        const int32_t* starts
        const int32_t* counts
        const int32_t* indices
        const float* weights
        int64_t nodes
        int64_t arcs

    cppclass Hop:
        Hop(const Graph&) except +
        SpreadFault run(const int64_t*, const double*, size_t, double) except +
        size_t size()
        void write(int64_t*, double*) except +


def spread(starts, counts, indices, weights, nodes, energy, decay):
    """Spread energy from some nodes along their arcs: one hop.

    Every node passes

        energy · decay · clamp(weight, 0, 1)

    over each of its arcs. A weight that is not a number counts as 0. For a walk in both directions
    give every edge as two arcs.

    Contributions are added in float64 by node in the given order and then in the order of its row:
    bit for bit equal to the twin.

    Takes O(arcs walked) time and memory, whatever the size of the graph. The GIL is released for
    the whole hop.

    Args:
        starts: int32 [n]; node u has the arcs starts[u]:starts[u] + counts[u], in any places.
        counts: int32 [n].
        indices: int32 [m]; the node at the end of each arc.
        weights: float32 [m].
        nodes: int64 [f]; where the energy is.
        energy: float64 [f], finite.
        decay: Factor of the hop; finite, at least 0.

    Returns:
        The nodes that received more than 0, in the order in which they were reached, int64 [r], and
        what they received, float64 [r].

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, a node, an energy or a number is not as described;
            the message names the argument. Only rows and arcs that the hop meets are checked.
    """
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

    cdef const int32_t[::1] start_view = starts
    cdef const int32_t[::1] count_view = counts
    cdef const int32_t[::1] index_view = indices
    cdef const float[::1] weight_view = weights
    cdef const int64_t[::1] node_view = nodes
    cdef const double[::1] energy_view = energy
    # Borrowed pointers: the views above keep every array alive until this function returns. The
    # pointers of an empty array are never read.
    cdef Graph graph
    graph.starts = &start_view[0]
    graph.counts = &count_view[0]
    graph.indices = &index_view[0]
    graph.weights = &weight_view[0]
    graph.nodes = start_view.shape[0]
    graph.arcs = index_view.shape[0]
    cdef size_t frontier = node_view.shape[0]
    cdef double factor = decay
    # Owned here and freed with the pointer, whichever way the function is left.
    cdef unique_ptr[Hop] hop
    cdef SpreadFault fault
    with nogil:
        hop.reset(new Hop(graph))
        fault = hop.get().run(&node_view[0], &energy_view[0], frontier, factor)
    if fault == SpreadFault.nodes_range:
        raise ValueError("nodes must lie in [0, number of nodes)")
    if fault == SpreadFault.energy_not_finite:
        raise ValueError("energy must be finite")
    if fault == SpreadFault.rows_range:
        raise ValueError("starts and counts must lie within the arcs")
    if fault == SpreadFault.indices_range:
        raise ValueError("indices must lie in [0, number of nodes)")

    cdef size_t reached = hop.get().size()
    found = np.empty(reached, np.int64)
    received = np.empty(reached, np.float64)
    cdef int64_t[::1] node_out = found
    cdef double[::1] received_out = received
    if reached > 0:
        with nogil:
            hop.get().write(&node_out[0], &received_out[0])
    return found, received
