# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Exact nearest-owner scan over float32 vectors."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from engram._native import boundary

__all__ = ["top_k"]


cdef extern from "scan.hpp" namespace "engram" nogil:
    cdef enum class ScanFault:
        none
        rows_order
        rows_range
        owners_order

    cppclass ScanInput:
        const float* matrix
        size_t dims
        const float* query
        const int64_t* rows

    ScanFault scan_fault(const int64_t*, int64_t, const int64_t*, size_t)
    size_t c_top_k "engram::top_k"(
        const ScanInput&, const int64_t*, size_t, size_t, int64_t*, float*
    ) except +


def top_k(matrix, query, owners, rows, k):
    """Rank owners by the best dot product of `query` with their rows.

    An episode may hold several chunk vectors: consecutive scanned rows of one owner collapse to
    their maximum. The scan is exact. Every dot product adds 32 interleaved float32 partial sums and
    folds them in halves, without fused multiply-add, so the bits do not depend on the processor,
    and one thread does the work, so they do not depend on a thread count either. A similarity that
    is not a number ranks as minus infinity.

    Takes O(m·d + m·log k) time and O(min(k, m)) memory, with the GIL released for the whole scan;
    the arrays must not be written to meanwhile.

    Args:
        matrix: float32 [n, d], C-contiguous; one vector per row. Read-only arrays are welcome.
        query: float32 [d].
        owners: int64 [n]; the owner of each row, non-decreasing over the scanned rows.
        rows: int64 [m], strictly ascending row numbers to scan, or None for all n.
        k: How many owners to return at most; at least 1.

    Returns:
        The owners, int64 [r], and their similarities, float32 [r], by similarity descending and
        then owner ascending; r is min(k, distinct owners scanned).

    Raises:
        TypeError: An argument is not an array of its element type, or `k` is not an integer.
        ValueError: A shape, the memory layout, the order of `rows` or `owners`, a row number or `k`
            is not as described; the message names the argument.
    """
    boundary.array("matrix", matrix, np.float32, 2)
    boundary.array("query", query, np.float32)
    boundary.array("owners", owners, np.int64)
    boundary.length("query", query, matrix.shape[1], "column of matrix")
    boundary.length("owners", owners, matrix.shape[0], "row of matrix")
    if rows is not None:
        boundary.array("rows", rows, np.int64)
    k = boundary.whole("k", k, 1)

    cdef const float[:, ::1] matrix_view = matrix
    cdef const float[::1] query_view = query
    cdef const int64_t[::1] owner_view = owners
    cdef const int64_t[::1] row_view
    cdef size_t count = matrix_view.shape[0]
    cdef ScanInput scanned
    scanned.rows = NULL
    if rows is not None:
        row_view = rows
        count = row_view.shape[0]
        scanned.rows = &row_view[0]
    cdef size_t limit = min(k, count)
    found_owners = np.empty(limit, np.int64)
    found_similarities = np.empty(limit, np.float32)
    if count == 0:
        return found_owners, found_similarities

    # Borrowed pointers: the views above keep every array alive until this function returns.
    scanned.matrix = &matrix_view[0, 0]
    scanned.dims = matrix_view.shape[1]
    scanned.query = &query_view[0]
    cdef int64_t[::1] owner_out = found_owners
    cdef float[::1] similarity_out = found_similarities
    cdef ScanFault fault
    cdef size_t found = 0
    with nogil:
        fault = scan_fault(&owner_view[0], matrix_view.shape[0], scanned.rows, count)
        if fault == ScanFault.none:
            found = c_top_k(
                scanned, &owner_view[0], count, limit, &owner_out[0], &similarity_out[0]
            )
    if fault == ScanFault.rows_order:
        raise ValueError("rows must be strictly ascending")
    if fault == ScanFault.rows_range:
        raise ValueError("rows must lie in [0, number of rows of matrix)")
    if fault == ScanFault.owners_order:
        raise ValueError("owners must be non-decreasing over the scanned rows")
    return found_owners[:found], found_similarities[:found]
