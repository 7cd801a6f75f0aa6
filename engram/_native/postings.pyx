# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Ranked keyword retrieval over postings."""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libcpp.vector cimport vector

from engram._native import boundary

__all__ = ["bm25", "find_terms", "row_frequencies"]


cdef extern from "postings.hpp" namespace "engram" nogil:
    cppclass PostingRange:
        pass

    cppclass RankedPart:
        const uint32_t* lengths
        size_t row_count
        const uint32_t* rows
        const uint8_t* frequencies
        const int64_t* large
        const uint32_t* large_frequencies
        size_t large_count
        const uint8_t* live
        const uint8_t* allowed
        const uint32_t* listed
        size_t listed_count
        const PostingRange* ranges

    cppclass Bm25:
        double k1
        double b

    size_t c_bm25 "engram::bm25"(
        const vector[RankedPart]&, size_t, double, double, const Bm25&, size_t, int64_t*, int64_t*,
        double*
    ) except +
    void c_row_frequencies "engram::row_frequencies"(
        const RankedPart&, size_t, const uint32_t*, size_t, float*
    ) except +
    int64_t find_term(
        const char*, size_t, const int64_t*, size_t, const char*, size_t
    ) except +


def find_terms(term_bytes, term_ends, wanted):
    """Find terms among others that are sorted by their bytes.

    Takes O(log t) comparisons for each.

    Args:
        term_bytes: uint8, t distinct terms, one after the other in the order of their bytes.
        term_ends: int64 [t], where each ends there.
        wanted: Bytes objects.

    Returns:
        The number of each wanted term, -1 where it is not there; int64 [len(wanted)].

    Raises:
        TypeError: An argument is not of its type.
        ValueError: A shape, the memory layout or a term's end is not as described; the message
            names the argument.
    """
    boundary.array("term_bytes", term_bytes, np.uint8)
    boundary.array("term_ends", term_ends, np.int64)
    terms = tuple(wanted)
    numbers = np.full(len(terms), -1, np.int64)
    for term in terms:
        if type(term) is not bytes:
            raise TypeError(f"wanted must be bytes objects, not {type(term).__name__}")
    if len(term_ends) == 0:
        return numbers
    cdef const uint8_t[::1] byte_view = term_bytes
    cdef const int64_t[::1] end_view = term_ends
    cdef int64_t[::1] number_view = numbers
    cdef const char* text = <const char*> &byte_view[0] if byte_view.shape[0] else NULL
    cdef size_t place
    for place in range(len(terms)):
        term = terms[place]
        number_view[place] = find_term(
            text, byte_view.shape[0], &end_view[0], end_view.shape[0],
            PyBytes_AS_STRING(term), PyBytes_GET_SIZE(term),
        )
    return numbers


def row_frequencies(rows, frequencies, large, large_frequencies, ranges, wanted):
    """Return how often some rows have some terms.

    Takes O(log p) steps for each row and term with p postings. The GIL is released meanwhile; the
    arrays must not be written to.

    Args:
        rows: uint32 [p], the row of each posting; those of a term are trusted to ascend: the
            result is undefined if they do not.
        frequencies: uint8 [p], 255 where the number stands aside.
        large: int64 [e], the postings whose numbers stand aside, ascending.
        large_frequencies: uint32 [e], these numbers.
        ranges: int64 [t, 2], the first of the postings of each term and their end.
        wanted: uint32 [n], the rows, in any order.

    Returns:
        float32 [n, t], 0 where a row has not the term.

    Raises:
        TypeError: An argument is not an array of its element type.
        ValueError: A shape or the memory layout is not as described; the message names the
            argument.
    """
    boundary.posting_ranges(rows, frequencies, large, large_frequencies, ranges)
    boundary.array("wanted", wanted, np.uint32)
    cdef size_t terms = len(ranges)
    cdef size_t count = len(wanted)
    found = np.zeros((count, terms), np.float32)
    if terms == 0 or count == 0 or len(rows) == 0:
        return found
    cdef const uint32_t[::1] row_view = rows
    cdef const uint8_t[::1] frequency_view = frequencies
    cdef const int64_t[::1] large_view = large
    cdef const uint32_t[::1] large_frequency_view = large_frequencies
    cdef const int64_t[:, ::1] range_view = ranges
    cdef const uint32_t[::1] wanted_view = wanted
    cdef float[:, ::1] out = found
    # Borrowed pointers: the arguments live until this function returns.
    cdef RankedPart part
    part.rows = &row_view[0]
    part.frequencies = &frequency_view[0]
    part.large_count = large_view.shape[0]
    part.large = &large_view[0] if large_view.shape[0] else NULL
    part.large_frequencies = &large_frequency_view[0] if large_view.shape[0] else NULL
    part.ranges = <const PostingRange*> &range_view[0, 0]
    with nogil:
        c_row_frequencies(part, terms, &wanted_view[0], count, &out[0, 0])
    return found


def bm25(parts, ranges, documents, mean, k, k1, b):
    """Rank rows by BM25 as SQLite's FTS5 computes it; with its constants, bit for bit.

    A row's score is the sum over the query's terms, in their order, of
    `idf * (f * (k1 + 1)) / (f + k1 * (1 - b + b * length / mean))` with f the term's frequency in
    the row and `idf = ln((documents - hits + 0.5) / (hits + 0.5))`, 1e-6 where
    that is not positive. A term's hits are the live rows among its postings in all parts. One
    thread does the work in the order of the terms, so the bits do not depend on the machine.

    Takes O(p + n + r·log k) time for p postings of the terms, n rows of the parts that have many of
    them, and r rows that displace others; in a part with m listed rows at most O(m·log p) for each
    term. The GIL is released meanwhile; the arrays must not be written to.

    Args:
        parts: Tuples (lengths, rows, frequencies, large, large_frequencies, live, allowed), each an
            index as `invert` returns it, without its vocabulary. `live`: bool [n], the rows that
            count as hits and may be returned, or None for all; `allowed`: bool [n] or, ascending,
            uint32 [m], the rows that may be returned where they are live; or None for all.
        ranges: int64 [len(parts), t, 2], the first of the postings of each term in each part and
            their end. A term that the query has twice is two terms here.
        documents: How many live documents there are, at least 1.
        mean: Their mean length; more than 0.
        k: How many rows to return at most; at least 1.
        k1: How much a term's further occurrences in a row count, at least 0; FTS5 has 1.2.
        b: How much a row's length counts, 0 to 1; FTS5 has 0.75.

    Returns:
        The parts, int64 [r], the rows, int64 [r], and their scores, float64 [r], by score
        descending and then part and row ascending; r is min(k, allowed live rows with any of the
        terms).

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, an order or a number is not as described; the
            message names the argument. Where rows are allowed by a list, those of the postings are
            trusted to ascend: the result is undefined if they do not.
    """
    taken = tuple(tuple(part) for part in parts)
    boundary.ranked_parts(taken, ranges)
    documents = boundary.whole("documents", documents, 1)
    mean = boundary.real("mean", mean, 0.0)
    if mean == 0.0:
        raise ValueError("mean must be more than 0")
    k = boundary.whole("k", k, 1)
    cdef Bm25 constants
    constants.k1 = boundary.real("k1", k1, 0.0)
    constants.b = boundary.real("b", b, 0.0, 1.0)

    cdef vector[RankedPart] borrowed
    cdef RankedPart part
    cdef const uint32_t[::1] lengths, rows, large_frequencies, listed
    cdef const uint8_t[::1] frequencies, mask
    cdef const int64_t[::1] large
    cdef const int64_t[:, :, ::1] range_view = ranges
    cdef size_t number
    cdef size_t terms = ranges.shape[1]
    cdef uint32_t no_row = 0
    cdef size_t limit = 0
    # Borrowed pointers: `taken` and `ranges` keep every array alive until this function returns.
    for number in range(len(taken)):
        lengths, rows, frequencies, large, large_frequencies, live, allowed = taken[number]
        part.row_count = lengths.shape[0]
        part.lengths = &lengths[0] if lengths.shape[0] else NULL
        part.rows = &rows[0] if rows.shape[0] else NULL
        part.frequencies = &frequencies[0] if rows.shape[0] else NULL
        part.large_count = large.shape[0]
        part.large = &large[0] if large.shape[0] else NULL
        part.large_frequencies = &large_frequencies[0] if large.shape[0] else NULL
        part.live = part.allowed = NULL
        part.listed = NULL
        part.listed_count = 0
        if live is not None and len(live):
            mask = live.view(np.uint8)
            part.live = &mask[0]
        if allowed is not None and allowed.dtype == np.uint32:
            listed = allowed
            part.listed_count = listed.shape[0]
            part.listed = &listed[0] if listed.shape[0] else &no_row
        elif allowed is not None and len(allowed):
            mask = allowed.view(np.uint8)
            part.allowed = &mask[0]
        part.ranges = <const PostingRange*> &range_view[number, 0, 0] if terms else NULL
        borrowed.push_back(part)
        limit += part.row_count if part.listed == NULL else part.listed_count
    limit = min(limit, k)
    found_parts = np.empty(limit, np.int64)
    found_rows = np.empty(limit, np.int64)
    found_scores = np.empty(limit, np.float64)
    if limit == 0 or terms == 0:
        return found_parts[:0], found_rows[:0], found_scores[:0]

    cdef double document_count = documents
    cdef double mean_length = mean
    cdef int64_t[::1] part_out = found_parts
    cdef int64_t[::1] row_out = found_rows
    cdef double[::1] score_out = found_scores
    cdef size_t found
    with nogil:
        found = c_bm25(
            borrowed, terms, document_count, mean_length, constants, limit,
            &part_out[0], &row_out[0], &score_out[0],
        )
    return found_parts[:found], found_rows[:found], found_scores[:found]
