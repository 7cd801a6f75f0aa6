# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Blending of the vector pool and the text pool of a hybrid recall."""

import numpy as np

from libc.stddef cimport size_t
from libc.stdint cimport int64_t

from engram._native import boundary

__all__ = ["blend"]


cdef extern from "blend.hpp" namespace "engram" nogil:
    cdef enum class BlendFault:
        none
        vector_not_finite
        vector_repeated
        text_not_finite
        text_repeated

    cppclass Pool:
        const int64_t* keys
        const double* scores
        size_t size

    BlendFault c_blend "engram::blend"(
        const Pool&, const Pool&, double, double, size_t, int64_t*, double*, size_t&
    ) except +


def blend(vector_keys, vector_scores, text_keys, text_scores, vector_weight, text_weight, k):
    """Blend two scored pools into one ranking of keys.

    Each pool is normalised by (x - lo) / (hi - lo); a pool whose scores are all equal, or that has
    one member, becomes 1.0. Over the union of the keys, with 0 for a side that lacks the key:

        blended = (vector_weight·nv + text_weight·nt) / (vector_weight + text_weight)

    which stays in [0, 1] for every accepted input. Scores too far apart for a float64 difference,
    and weights too large for a float64 sum, are halved first. Bit for bit equal to the twin.

    Takes O((p + q)·log(p + q)) time and O(p + q) memory, with the GIL released.

    Args:
        vector_keys: int64 [p], each key once, in any order.
        vector_scores: float64 [p], finite; larger is better.
        text_keys: int64 [q], each key once, in any order.
        text_scores: float64 [q], finite; larger is better.
        vector_weight: Finite, at least 0; the two weights are not both 0.
        text_weight: Finite, at least 0.
        k: How many keys to return at most; at least 1.

    Returns:
        The keys, int64 [r], and their blended scores, float64 [r], by score descending and then key
        ascending; r is min(k, size of the union).

    Raises:
        TypeError: An argument is not an array of its element type, or not a number.
        ValueError: A shape, the memory layout, a key, a score, a weight or `k` is not as described;
            the message names the argument.
    """
    boundary.array("vector_keys", vector_keys, np.int64)
    boundary.array("vector_scores", vector_scores, np.float64)
    boundary.array("text_keys", text_keys, np.int64)
    boundary.array("text_scores", text_scores, np.float64)
    boundary.length("vector_scores", vector_scores, len(vector_keys), "vector key")
    boundary.length("text_scores", text_scores, len(text_keys), "text key")
    vector_weight = boundary.real("vector_weight", vector_weight, 0.0)
    text_weight = boundary.real("text_weight", text_weight, 0.0)
    if vector_weight == 0.0 and text_weight == 0.0:
        raise ValueError("vector_weight and text_weight must not both be 0")
    k = boundary.whole("k", k, 1)

    cdef const int64_t[::1] vector_key_view = vector_keys
    cdef const double[::1] vector_score_view = vector_scores
    cdef const int64_t[::1] text_key_view = text_keys
    cdef const double[::1] text_score_view = text_scores
    cdef size_t limit = min(k, len(vector_keys) + len(text_keys))
    found_keys = np.empty(limit, np.int64)
    found_scores = np.empty(limit, np.float64)
    if limit == 0:
        return found_keys, found_scores

    # Borrowed pointers: the views above keep every array alive until this function returns. The
    # pointer of an empty pool is never read.
    cdef Pool vector_pool
    vector_pool.keys = &vector_key_view[0]
    vector_pool.scores = &vector_score_view[0]
    vector_pool.size = vector_key_view.shape[0]
    cdef Pool text_pool
    text_pool.keys = &text_key_view[0]
    text_pool.scores = &text_score_view[0]
    text_pool.size = text_key_view.shape[0]
    cdef int64_t[::1] key_out = found_keys
    cdef double[::1] score_out = found_scores
    cdef double vector_factor = vector_weight
    cdef double text_factor = text_weight
    cdef size_t found = 0
    cdef BlendFault fault
    with nogil:
        fault = c_blend(
            vector_pool, text_pool, vector_factor, text_factor, limit,
            &key_out[0], &score_out[0], found,
        )
    if fault == BlendFault.vector_not_finite:
        raise ValueError("vector_scores must be finite")
    if fault == BlendFault.vector_repeated:
        raise ValueError("vector_keys must not repeat a key")
    if fault == BlendFault.text_not_finite:
        raise ValueError("text_scores must be finite")
    if fault == BlendFault.text_repeated:
        raise ValueError("text_keys must not repeat a key")
    return found_keys[:found], found_scores[:found]
