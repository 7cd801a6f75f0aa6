# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Texts to an inverted index of their words, and several such indexes to one."""

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from engram._native import boundary

__all__ = ["invert", "merge"]


cdef extern from "tokens.hpp" namespace "engram" nogil:
    cppclass Text:
        const char* first
        size_t size

    cppclass Body:
        Text text
        cbool split

    cppclass WordsView:
        const uint32_t* lengths
        size_t row_count
        const char* term_bytes
        size_t byte_count
        const int64_t* term_ends
        size_t term_count
        const int64_t* starts
        const uint32_t* rows
        const uint8_t* frequencies
        size_t posting_count
        const int64_t* large
        const uint32_t* large_frequencies
        size_t large_count
        const uint8_t* live

    cppclass Words:
        vector[uint32_t] lengths
        vector[char] term_bytes
        vector[int64_t] term_ends
        vector[int64_t] starts
        vector[uint32_t] rows
        vector[uint8_t] frequencies
        vector[int64_t] large
        vector[uint32_t] large_frequencies

    cppclass Tokens:
        void read(const vector[Body]&) except +
        size_t word_count()
        Text word(size_t)
        void stem(const vector[Text]&) except +

    Words c_invert "engram::invert"(Tokens&) except +
    Words c_merge "engram::merge"(const vector[WordsView]&) except +


cdef copied(const void* values, size_t count, dtype):
    result = np.empty(count, dtype)
    cdef uint8_t[::1] view
    if count:
        view = result.view(np.uint8)
        memcpy(&view[0], values, view.shape[0])
    return result


cdef arrays(const Words& words):
    return (
        copied(words.lengths.data(), words.lengths.size(), np.uint32),
        copied(words.term_bytes.data(), words.term_bytes.size(), np.uint8),
        copied(words.term_ends.data(), words.term_ends.size(), np.int64),
        copied(words.starts.data(), words.starts.size(), np.int64),
        copied(words.rows.data(), words.rows.size(), np.uint32),
        copied(words.frequencies.data(), words.frequencies.size(), np.uint8),
        copied(words.large.data(), words.large.size(), np.int64),
        copied(words.large_frequencies.data(), words.large_frequencies.size(), np.uint32),
    )


def invert(bodies, stems):
    """Find the words of texts and where each of them is.

    The words of a text in ASCII are those of FTS5's unicode61, the longest runs of letters and
    digits, in small letters; `stems` says which term each is. The terms of another text are for the
    caller to find. Only the first 32,768 bytes of a word or a term count.

    Takes O(bytes + tokens + t·log t) time for t distinct terms. The GIL is released meanwhile, but
    for the one call of `stems`.

    Args:
        bodies: Row i is the i-th: the bytes of a text in ASCII, other bytes end a word; or a list
            of terms, bytes without a zero, repeats included.
        stems: Called once, with the distinct words of the texts in ASCII, a list of bytes; returns
            the term of each, a list of bytes.

    Returns:
        The arrays of the index, for p pairs of a term and a row that has it: `lengths`, uint32 [n],
        the tokens of each row; `term_bytes`, uint8, the distinct terms one after the other in the
        order of their bytes; `term_ends`, int64 [t], where each ends there; `starts`, int64
        [t + 1], where the postings of each begin, and p; `rows`, uint32 [p], ascending within a
        term; `frequencies`, uint8 [p], how often the term is in the row, or 255 where that is 255
        or more; `large`, int64 [e], ascending, the postings with such a frequency; and
        `large_frequencies`, uint32 [e], theirs.

    Raises:
        TypeError: A body is not bytes and not a list of bytes, or `stems` returns no list of bytes.
        ValueError: A listed term has a zero, `stems` returns more or fewer terms than words, or
            there are more terms than 32 bits can number.
    """
    texts = tuple(bodies)
    split = {
        row: boundary.joined(body) for row, body in enumerate(texts) if type(body) is not bytes
    }
    cdef vector[Body] borrowed
    cdef vector[Text] stemmed
    cdef Body entry
    cdef Text text_view
    cdef Tokens tokens
    cdef Words words
    cdef size_t number
    borrowed.reserve(len(texts))
    # Borrowed pointers: `texts` and `split` keep every object alive, and bytes do not change.
    for row, text in enumerate(texts):
        entry.split = type(text) is not bytes
        if entry.split:
            text = split[row]
        entry.text.first = PyBytes_AS_STRING(text)
        entry.text.size = PyBytes_GET_SIZE(text)
        borrowed.push_back(entry)
    with nogil:
        tokens.read(borrowed)
    known = []
    for number in range(tokens.word_count()):
        text_view = tokens.word(number)
        known.append(PyBytes_FromStringAndSize(text_view.first, text_view.size))
    # `terms` keeps what the pointers in `stemmed` are borrowed from.
    terms = boundary.stemmed(stems(known), len(known))
    stemmed.reserve(len(terms))
    for term in terms:
        text_view.first = PyBytes_AS_STRING(term)
        text_view.size = PyBytes_GET_SIZE(term)
        stemmed.push_back(text_view)
    with nogil:
        tokens.stem(stemmed)
        words = c_invert(tokens)
    return arrays(words)


def merge(parts, live):
    """Join several indexes into that of their living rows, in the order of the parts.

    Rows are numbered anew, and a term that no living row has is not in the result. Takes O(total
    size + t·parts) time for t terms. The GIL is released meanwhile; the arrays must not be written
    to.

    Args:
        parts: Tuples of the arrays that `invert` returns.
        live: One for each part: bool, an element for each of its rows, False where the row is left
            out; or None for all rows.

    Returns:
        The arrays of the joined index, as `invert` returns them.

    Raises:
        TypeError: An argument is not an array of its element type.
        ValueError: A number of arrays, a shape, the memory layout or the contents are not as
            described; the message names the argument.
    """
    taken = tuple(tuple(part) for part in parts)
    masks = tuple(live)
    boundary.word_indexes(taken, masks)

    cdef vector[WordsView] views
    cdef WordsView view
    cdef const uint32_t[::1] lengths, rows, large_frequencies
    cdef const uint8_t[::1] term_bytes, frequencies, mask
    cdef const int64_t[::1] term_ends, starts, large
    cdef Words words
    # Borrowed pointers: `taken` and `masks` keep every array alive until this function returns.
    for part, rows_live in zip(taken, masks):
        lengths, term_bytes, term_ends, starts, rows, frequencies, large, large_frequencies = part
        view.row_count = lengths.shape[0]
        view.lengths = &lengths[0] if lengths.shape[0] else NULL
        view.byte_count = term_bytes.shape[0]
        view.term_bytes = <const char*> &term_bytes[0] if term_bytes.shape[0] else NULL
        view.term_count = term_ends.shape[0]
        view.term_ends = &term_ends[0] if term_ends.shape[0] else NULL
        view.starts = &starts[0]
        view.posting_count = rows.shape[0]
        view.rows = &rows[0] if rows.shape[0] else NULL
        view.frequencies = &frequencies[0] if rows.shape[0] else NULL
        view.large_count = large.shape[0]
        view.large = &large[0] if large.shape[0] else NULL
        view.large_frequencies = &large_frequencies[0] if large.shape[0] else NULL
        view.live = NULL
        if rows_live is not None and len(rows_live):
            mask = rows_live.view(np.uint8)
            view.live = &mask[0]
        views.push_back(view)
    with nogil:
        words = c_merge(views)
    return arrays(words)
