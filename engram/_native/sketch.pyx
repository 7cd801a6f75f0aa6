# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Vectors as one byte per number, and which rows can be nearest judged by those.

At 384 dimensions a row has 192 bytes of high halves, enough for a rough order, and as many of low
halves; with both, what a dot product can be is known within about one percent of the norms.
"""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from engram._native import sketch_arguments as arguments

__all__ = ["coarse_nearest", "code_candidates", "decode", "encode", "query_codes"]


cdef extern from "hamming.hpp" namespace "engram" nogil:
    cppclass RowMask:
        const uint8_t* allowed
        size_t count
        const uint32_t* owners


cdef extern from "sketch.hpp" namespace "engram" nogil:
    cppclass EncodedRows:
        uint8_t* high
        uint8_t* low
        float* scales
        float* errors

    void c_encode "engram::encode"(const float*, size_t, size_t, const EncodedRows&)
    void c_decode "engram::decode"(
        const uint8_t*, const uint8_t*, const float*, size_t, size_t, float*
    )
    double c_query_codes "engram::query_codes"(const float*, size_t, int16_t*)

    cppclass QueryCodes:
        int64_t sizes

    cppclass CodeRows:
        const uint8_t* high
        const uint8_t* low
        const float* scales
        const float* errors
        size_t bytes
        const uint32_t* rows
        size_t count

    QueryCodes summed_query(const int16_t*, size_t)
    const int64_t query_reach


cdef extern from "candidates.hpp" namespace "engram" nogil:
    cdef enum class SketchFault:
        none
        rows_order
        rows_range
        owners_order

    cppclass Candidate:
        uint32_t row
        float similarity

    SketchFault rows_fault(const uint32_t*, size_t, size_t)
    SketchFault c_coarse_nearest "engram::coarse_nearest"(
        const CodeRows&, const QueryCodes&, const RowMask&, size_t, vector[uint32_t]&
    ) except +
    SketchFault c_code_candidates "engram::code_candidates"(
        const CodeRows&, const QueryCodes&, double, const RowMask&, size_t, double,
        vector[Candidate]&
    ) except +


def encode(vectors):
    """Store each number of each vector in one byte, and say how far that is from the truth.

    A row's scale is its largest size over 127; a number becomes the nearest multiple of the scale,
    half to even. The byte's halves go to two planes: in each block of 32 numbers, 16 bytes, byte j
    has number j in its low half and number j + 16 in its high half. Padding stands for zeros.

    Takes O(m·d) time with the GIL released.

    Args:
        vectors: float32 [m, d], C-contiguous and finite.

    Returns:
        The high halves and the low halves, uint8 [m, 16·ceil(d/32)] each, the scales, float32 [m],
        and the errors, float32 [m]: at least the Euclidean distance of each vector from what its
        codes stand for.

    Raises:
        TypeError: `vectors` is not an array of float32.
        ValueError: Its shape or memory layout is not as described.
    """
    arguments.vectors(vectors)
    cdef const float[:, ::1] vector_view = vectors
    cdef size_t count = vector_view.shape[0]
    cdef size_t dims = vector_view.shape[1]
    bytes_per_row = (vectors.shape[1] + 31) // 32 * 16
    high = np.empty((len(vectors), bytes_per_row), np.uint8)
    low = np.empty_like(high)
    scales = np.empty(len(vectors), np.float32)
    errors = np.empty(len(vectors), np.float32)
    if count == 0:
        return high, low, scales, errors
    cdef uint8_t[:, ::1] high_out = high
    cdef uint8_t[:, ::1] low_out = low
    cdef float[::1] scale_out = scales
    cdef float[::1] error_out = errors
    cdef EncodedRows out
    # Borrowed pointers: the views keep every array alive until this function returns.
    out.high = &high_out[0, 0]
    out.low = &low_out[0, 0]
    out.scales = &scale_out[0]
    out.errors = &error_out[0]
    with nogil:
        c_encode(&vector_view[0, 0], count, dims, out)
    return high, low, scales, errors


def decode(high, low, scales, dims):
    """Return the vectors that codes stand for: scale · (code - 128), in float32.

    Takes O(m·d) time with the GIL released.

    Args:
        high: uint8 [m, 16·ceil(dims/32)]; the high halves, as `encode` gives them.
        low: uint8 of the same shape; the low halves.
        scales: float32 [m].
        dims: The length of a vector; at least 0.

    Returns:
        float32 [m, dims].

    Raises:
        TypeError: An argument is not an array of its element type, or `dims` is not an integer.
        ValueError: A shape, the memory layout or `dims` is not as described.
    """
    dims = arguments.stored_codes(high, low, scales, dims)
    vectors = np.empty((len(high), dims), np.float32)
    if vectors.size == 0:
        return vectors
    cdef const uint8_t[:, ::1] high_view = high
    cdef const uint8_t[:, ::1] low_view = low
    cdef const float[::1] scale_view = scales
    cdef float[:, ::1] vector_out = vectors
    # Borrowed pointers: the views keep every array alive until this function returns.
    with nogil:
        c_decode(
            &high_view[0, 0], &low_view[0, 0], &scale_view[0], vector_out.shape[0],
            vector_out.shape[1], &vector_out[0, 0],
        )
    return vectors


def query_codes(query):
    """Return a query as 16-bit numbers, in the order in which codes unpack, and their scale.

    The scale is the smallest at which a number fits and no sum over a row can exceed 32 bits. The
    order is for `coarse_nearest` and `code_candidates` only.

    Args:
        query: float32 [d], finite; d at most 2^20.

    Returns:
        The codes, int16 [64·ceil(d/64)], and the scale, a float; 0.0 for a query of zeros.

    Raises:
        TypeError: `query` is not an array of float32.
        ValueError: Its shape, its memory layout or its length is not as described.
    """
    arguments.query(query)
    codes = np.zeros((len(query) + 63) // 64 * 64, np.int16)
    if len(query) == 0:
        return codes, 0.0
    cdef const float[::1] query_view = query
    cdef int16_t[::1] code_out = codes
    # Borrowed pointers: the views keep both arrays alive until this function returns.
    return codes, c_query_codes(&query_view[0], query_view.shape[0], &code_out[0])


def coarse_nearest(high, scales, query, rows, owners, limit):
    """Return the listed rows that are nearest judged by the high halves of their codes alone.

    The low half counts as 7.5. An owner with several rows stands where its best one does, and the
    cut is at the owner in place `limit`: the rows that reach it are returned, so none of an owner's
    best rows is lost to the others of it and no owner to many rows of another. Ties at the cut go
    to earlier owners.

    Takes O(r·d) time and O(r) memory with the GIL released; the arrays must not be written to
    meanwhile.

    Args:
        high: uint8 [n, b], b a multiple of 16; as `encode` gives them.
        scales: float32 [n].
        query: int16 [64·ceil(b/32)]; the codes that `query_codes` gave.
        rows: uint32 [r], strictly ascending row numbers.
        owners: uint32 [n], the owner of each row, non-decreasing over `rows`, or None where a row
            is its own.
        limit: How many owners to keep at most; at least 1.

    Returns:
        uint32, ascending; min(limit, r) rows without `owners`, more where one has several.

    Raises:
        TypeError: An argument is not an array of its element type, or `limit` is not an integer.
        ValueError: A shape, the memory layout, the order of `rows` or `owners`, a row number,
            the sum of the query's codes or `limit` is not as described.
    """
    limit = arguments.coarse(high, scales, query, rows, owners, limit)
    cdef CodeRows stored = code_rows(high, None, scales, None, rows)
    cdef QueryCodes wanted = checked_query(query)
    cdef RowMask mask = row_mask(None, owners)
    cdef size_t most = limit
    cdef size_t total = len(high)
    cdef vector[uint32_t] found
    cdef SketchFault fault
    with nogil:
        fault = rows_fault(stored.rows, stored.count, total)
        if fault == SketchFault.none:
            fault = c_coarse_nearest(stored, wanted, mask, most, found)
    refuse(fault)
    return row_array(found)


def code_candidates(
    high, low, scales, errors, query, query_scale, rows, allowed, owners, k, certainty
):
    """Return all rows that can still be among the k nearest owners, judged by their codes.

    An owner is as near as its nearest row. With s the dot product of what the codes stand for and e
    how far the true one can be from it, every owner is at least at its greatest s - e, and a row
    with s + e below the k-th largest of those belongs to none of the k nearest. With a `certainty`
    of 1.0 that is proven (the argument is in candidates.hpp), for scores computed in float32 as
    `top_k` does as well as for exact ones: score the true vectors of these rows, and the k best
    owners, ties included, are those of a scan over everything. With less, errors count for less and
    fewer rows come back.

    Takes O(m·d + m·log k) time for m scanned rows, and memory for the rows that were candidates
    when it was their turn, with the GIL released; the arrays must not be written to meanwhile.

    Args:
        high: uint8 [n, b], b a multiple of 16; as `encode` gives them.
        low: uint8 [n, b].
        scales: float32 [n].
        errors: float32 [n].
        query: int16 [64·ceil(b/32)]; the codes that `query_codes` gave.
        query_scale: Their scale; at least 0.
        rows: uint32 [m], strictly ascending row numbers to scan, or None for all n.
        allowed: bool [number of owners], the owners that count, or None for all of them; one that
            has no element here does not count.
        owners: uint32 [n], the owner of each row, non-decreasing over the scanned rows, or None
            where a row is its own.
        k: How many owners are wanted; at least 1.
        certainty: The part of each row's error to reckon with, at least 0.

    Returns:
        The rows, uint32 [c], ascending, and their approximate dot products with the query,
        float32 [c].

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, the order of `rows` or `owners`, a row number, the
            sum of the query's codes or a number is not as described.
    """
    k, query_scale, certainty = arguments.candidates(
        high, low, scales, errors, query, query_scale, rows, allowed, owners, k, certainty
    )
    cdef CodeRows stored = code_rows(high, low, scales, errors, rows)
    cdef QueryCodes wanted = checked_query(query)
    cdef RowMask mask = row_mask(allowed, owners)
    cdef double scale = query_scale
    cdef double certain = certainty
    cdef size_t most = k
    cdef size_t total = len(high)
    cdef vector[Candidate] found
    cdef SketchFault fault
    with nogil:
        fault = rows_fault(stored.rows, stored.count, total)
        if fault == SketchFault.none:
            fault = c_code_candidates(stored, wanted, scale, mask, most, certain, found)
    refuse(fault)
    found_rows = np.empty(found.size(), np.uint32)
    similarities = np.empty(found.size(), np.float32)
    cdef uint32_t[::1] row_out = found_rows
    cdef float[::1] similarity_out = similarities
    cdef size_t i
    for i in range(found.size()):
        row_out[i] = found[i].row
        similarity_out[i] = found[i].similarity
    return found_rows, similarities


# The pointers that these functions return are borrowed from their arguments, which the caller keeps
# alive for as long as it uses them. An array without elements gives one that nothing reads.

cdef RowMask row_mask(allowed, owners):
    cdef const uint8_t[::1] allowed_view
    cdef const uint32_t[::1] owner_view
    cdef RowMask mask
    mask.allowed = NULL
    mask.count = 0
    mask.owners = NULL
    if allowed is not None:
        allowed_view = allowed.view(np.uint8)
        mask.allowed = &allowed_view[0]
        mask.count = allowed_view.shape[0]
    if owners is not None:
        owner_view = owners
        mask.owners = &owner_view[0]
    return mask


cdef CodeRows code_rows(high, low, scales, errors, rows):
    cdef const uint8_t[:, ::1] plane = high
    cdef const float[::1] numbers = scales
    cdef const uint32_t[::1] listed
    cdef CodeRows stored
    stored.high = &plane[0, 0]
    stored.bytes = plane.shape[1]
    stored.count = plane.shape[0]
    stored.scales = &numbers[0]
    stored.low = NULL
    stored.errors = NULL
    stored.rows = NULL
    if low is not None:
        plane = low
        stored.low = &plane[0, 0]
    if errors is not None:
        numbers = errors
        stored.errors = &numbers[0]
    if rows is not None:
        listed = rows
        stored.rows = &listed[0]
        stored.count = listed.shape[0]
    return stored


cdef QueryCodes checked_query(query) except *:
    cdef const int16_t[::1] codes = query
    cdef QueryCodes wanted = summed_query(&codes[0], codes.shape[0])
    if wanted.sizes > query_reach:
        raise ValueError("query must have codes whose sizes add up to at most 8421504")
    return wanted


cdef void refuse(SketchFault fault) except *:
    if fault == SketchFault.rows_order:
        raise ValueError("rows must be strictly ascending")
    if fault == SketchFault.rows_range:
        raise ValueError("rows must lie in [0, number of rows of high)")
    if fault == SketchFault.owners_order:
        raise ValueError("owners must be non-decreasing over the scanned rows")


cdef object row_array(const vector[uint32_t]& found):
    rows = np.empty(found.size(), np.uint32)
    cdef uint32_t[::1] out = rows
    if found.size():
        memcpy(&out[0], found.data(), found.size() * sizeof(uint32_t))
    return rows
