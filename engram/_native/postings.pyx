# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Ranked keyword retrieval over postings in memory."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from engram._native import boundary

__all__ = ["bm25"]


cdef extern from "postings.hpp" namespace "engram" nogil:
    cppclass Posting:
        pass

    cppclass PostingList:
        const Posting* first
        size_t count
        int64_t term

    cppclass Bm25Input:
        const PostingList* lists
        size_t list_count
        const uint32_t* lengths
        size_t rows
        double documents
        double mean
        const uint8_t* live
        const uint8_t* allowed

    cbool postings_in_range(const Bm25Input&)
    size_t c_bm25 "engram::bm25"(
        const Bm25Input&, double*, size_t, int64_t*, double*
    ) except +


def bm25(postings, terms, lengths, documents, mean, live, allowed, scratch, k):
    """Rank rows by BM25 as SQLite's FTS5 computes it, bit for bit.

    A row's score is the sum over the query's terms, in their order, of
    `idf * (f * (k1 + 1)) / (f + k1 * (1 - b + b * length / mean))` with f the term's frequency in
    the row, k1 = 1.2, b = 0.75 and `idf = ln((documents - hits + 0.5) / (hits + 0.5))`, 1e-6 where
    that is not positive. A term's hits are the live rows among its postings. One thread does the
    work in the order of the lists, so the bits do not depend on the machine.

    Takes O(p + r·log k) time for p postings and the r rows they touch, plus O(n) only where p is
    more than an eighth of n. The GIL is released meanwhile; the arrays must not be written to, and
    two calls must not share `scratch`.

    Args:
        postings: uint32 [c, 2] arrays, C-contiguous: a row and the term's frequency in it. A row
            stands at most once among the lists of a term.
        terms: int64 [len(postings)], non-decreasing; which term of the query each array is of. A
            term that the query has twice is two terms here.
        lengths: uint32 [n]; the number of terms in each row.
        documents: How many documents there are, at least 1.
        mean: Their mean length; more than 0.
        live: bool [n], the rows that count as hits, or None for all.
        allowed: bool [n], the rows that may be returned, a part of the live ones; or None for all
            of those.
        scratch: float64 [n], zeros; zeros again when this returns.
        k: How many rows to return at most; at least 1.

    Returns:
        The rows, int64 [r], and their scores, float64 [r], by score descending and then row
        ascending; r is min(k, allowed rows with any of the terms).

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, the order of `terms`, a row number or a number is
            not as described; the message names the argument.
    """
    lists = tuple(postings)
    for values in lists:
        boundary.array("postings", values, np.uint32, 2)
        if values.shape[1] != 2:
            raise ValueError("postings must have two columns, a row and a frequency")
    boundary.array("terms", terms, np.int64)
    boundary.length("terms", terms, len(lists), "array of postings")
    boundary.array("lengths", lengths, np.uint32)
    documents = boundary.whole("documents", documents, 1)
    mean = boundary.real("mean", mean, 0.0)
    if mean == 0.0:
        raise ValueError("mean must be more than 0")
    for name, mask in (("live", live), ("allowed", allowed)):
        if mask is not None:
            boundary.array(name, mask, np.bool_)
            boundary.length(name, mask, len(lengths), "row")
    boundary.array("scratch", scratch, np.float64)
    boundary.length("scratch", scratch, len(lengths), "row")
    k = boundary.whole("k", k, 1)
    if np.any(terms[1:] < terms[:-1]):
        raise ValueError("terms must be non-decreasing")

    cdef const uint32_t[:, ::1] list_view
    cdef const int64_t[::1] term_view = terms
    cdef const uint32_t[::1] length_view = lengths
    cdef const uint8_t[::1] live_view
    cdef const uint8_t[::1] allowed_view
    cdef double[::1] scratch_view = scratch
    cdef vector[PostingList] borrowed
    cdef PostingList entry
    cdef size_t total = 0
    cdef size_t position
    # Borrowed pointers: `lists` and the views keep every array alive until this function returns.
    for position in range(len(lists)):
        list_view = lists[position]
        if list_view.shape[0]:
            entry.first = <const Posting*> &list_view[0, 0]
            entry.count = list_view.shape[0]
            entry.term = term_view[position]
            borrowed.push_back(entry)
            total += entry.count
    cdef size_t limit = min(k, total, len(lengths))
    found_rows = np.empty(limit, np.int64)
    found_scores = np.empty(limit, np.float64)
    if total == 0:
        return found_rows, found_scores
    if len(lengths) == 0:
        raise ValueError("postings must name rows in [0, number of rows)")

    cdef Bm25Input ranked
    ranked.lists = borrowed.data()
    ranked.list_count = borrowed.size()
    ranked.lengths = &length_view[0]
    ranked.rows = length_view.shape[0]
    ranked.documents = documents
    ranked.mean = mean
    ranked.live = NULL
    ranked.allowed = NULL
    if live is not None:
        live_view = live.view(np.uint8)
        ranked.live = &live_view[0]
    if allowed is not None:
        allowed_view = allowed.view(np.uint8)
        ranked.allowed = &allowed_view[0]
    cdef int64_t[::1] row_out = found_rows
    cdef double[::1] score_out = found_scores
    cdef cbool sound
    cdef size_t found = 0
    with nogil:
        sound = postings_in_range(ranked)
        if sound:
            found = c_bm25(ranked, &scratch_view[0], limit, &row_out[0], &score_out[0])
    if not sound:
        raise ValueError("postings must name rows in [0, number of rows)")
    return found_rows[:found], found_scores[:found]
