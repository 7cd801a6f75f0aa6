# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: embedsignature=False, freethreading_compatible=True
"""Checksums of a mapped file's pages, and reading rows of a file that is not mapped."""

import errno
import os

import numpy as np

from libc.errno cimport errno as last_error
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool

from engram._native import boundary

__all__ = ["check_pages", "check_rows", "page_sums", "read_rows"]


cdef extern from "pages.hpp" namespace "engram" nogil:
    const size_t page_bytes
    void c_page_sums "engram::page_sums"(const uint8_t*, size_t, uint64_t*)

    cppclass PagedFile:
        const uint8_t* data
        const uint64_t* sums
        uint8_t* checked
        cbool check(size_t, size_t)

    cppclass RowPlaces:
        uint64_t offset
        uint64_t row_bytes
        const uint32_t* rows
        size_t count

    cdef enum class ReadFault:
        none
        ended
        failed

    cbool rows_within(const RowPlaces&, uint64_t)
    cbool c_check_rows "engram::check_rows"(const PagedFile&, const RowPlaces&)
    ReadFault c_read_rows "engram::read_rows"(int, const RowPlaces&, uint8_t*)


def page_sums(data):
    """Return a checksum of each page of 4096 bytes.

    Each change within an aligned word of 8 bytes, so of any one byte, changes the sum; other
    changes are missed once in 2^64. It protects from accidents, not from somebody who means it.

    Takes O(n) time with the GIL released.

    Args:
        data: uint8 [4096·n].

    Returns:
        uint64 [n].

    Raises:
        TypeError: `data` is not an array of uint8.
        ValueError: Its rank or length is not as described.
    """
    _check_data(data)
    sums = np.empty(len(data) // page_bytes, np.uint64)
    if len(sums) == 0:
        return sums
    cdef const uint8_t[::1] data_view = data
    cdef uint64_t[::1] sum_out = sums
    # Borrowed pointers: the views keep both arrays alive until this function returns.
    with nogil:
        c_page_sums(&data_view[0], sum_out.shape[0], &sum_out[0])
    return sums


def check_pages(data, sums, checked, first, last):
    """Compare pages with their sums, those that were not compared before.

    Stops at the first page that is wrong. Takes O(last - first) time and O(4096) more for each page
    that is compared, with the GIL released. Threads may share `checked`.

    Args:
        data: uint8 [4096·n].
        sums: uint64 [n]; what `page_sums` gave for the data as it should be.
        checked: uint8 [n], written to: 1 for a page that was compared and is right, else 0.
        first: The first page; at least 0.
        last: The page after the last one; from `first` to n.

    Returns:
        Whether all of them are right.

    Raises:
        TypeError: An argument is not an array of its element type, or not an integer.
        ValueError: A shape or a number is not as described.
    """
    _check_file(data, sums, checked)
    first = boundary.whole("first", first, 0, len(sums))
    last = boundary.whole("last", last, first, len(sums))
    if first == last:
        return True
    cdef PagedFile paged = paged_file(data, sums, checked)
    cdef size_t begin = first
    cdef size_t end = last
    cdef cbool right
    with nogil:
        right = paged.check(begin, end)
    return bool(right)


def check_rows(data, sums, checked, offset, row_bytes, rows):
    """Compare the pages under rows of an array with their sums, those not compared before.

    Stops at the first page that is wrong. Takes O(r) time and O(4096) more for each page that is
    compared, with the GIL released. Threads may share `checked`.

    Args:
        data: uint8 [4096·n]; the whole file.
        sums: uint64 [n]; what `page_sums` gave for the data as it should be.
        checked: uint8 [n], written to: 1 for a page that was compared and is right, else 0.
        offset: The byte at which the array begins; at least 0.
        row_bytes: The bytes of a row; at least 1.
        rows: uint32 [r]; row numbers in any order.

    Returns:
        Whether all of the pages are right.

    Raises:
        TypeError: An argument is not an array of its element type, or not an integer.
        ValueError: A shape or a number is not as described, or a row lies outside the file.
    """
    _check_file(data, sums, checked)
    offset, row_bytes = _check_places(offset, row_bytes, rows)
    if len(rows) == 0:
        return True
    cdef RowPlaces places = row_places(offset, row_bytes, rows)
    cdef size_t total = len(data)
    cdef cbool inside
    cdef cbool right = False
    cdef PagedFile paged = paged_file(data, sums, checked)
    with nogil:
        inside = rows_within(places, total)
        if inside:
            right = c_check_rows(paged, places)
    if not inside:
        raise ValueError("rows must lie within data")
    return bool(right)


def read_rows(fd, offset, row_bytes, rows):
    """Read rows of an array in a file, without mapping it.

    Neighbours in the list that are neighbours in the file are read at once. The GIL is released;
    the file's position is neither used nor moved.

    Args:
        fd: A file descriptor that is open for reading; it stays the caller's.
        offset: The byte at which the array begins; at least 0.
        row_bytes: The bytes of a row; at least 1.
        rows: uint32 [r]; row numbers in any order.

    Returns:
        uint8 [r, row_bytes].

    Raises:
        TypeError: `rows` is not an array of uint32, or a number not an integer.
        ValueError: A number is out of range.
        OSError: The file cannot be read, or ends before a row does.
    """
    fd = boundary.whole("fd", fd, 0, 2**31 - 1)
    offset, row_bytes = _check_places(offset, row_bytes, rows)
    found = np.empty((len(rows), row_bytes), np.uint8)
    if len(rows) == 0:
        return found
    cdef RowPlaces places = row_places(offset, row_bytes, rows)
    cdef uint8_t[:, ::1] out = found
    cdef int file = fd
    cdef int error = 0
    cdef ReadFault fault
    with nogil:
        fault = c_read_rows(file, places, &out[0, 0])
        if fault == ReadFault.failed:
            error = last_error
    if fault == ReadFault.failed:
        raise OSError(error, os.strerror(error))
    if fault == ReadFault.ended:
        raise OSError(errno.EIO, "the file ends before a listed row does")
    return found


def _check_data(data):
    boundary.array("data", data, np.uint8)
    if len(data) % page_bytes:
        raise ValueError(f"data must be whole pages of {page_bytes} bytes, not {len(data)} bytes")


def _check_file(data, sums, checked):
    _check_data(data)
    boundary.array("sums", sums, np.uint64)
    boundary.length("sums", sums, len(data) // page_bytes, "page")
    boundary.array("checked", checked, np.uint8)
    boundary.length("checked", checked, len(data) // page_bytes, "page")


def _check_places(offset, row_bytes, rows):
    boundary.array("rows", rows, np.uint32)
    # Sums of these stay within 64 bits, as file offsets have to.
    return boundary.whole("offset", offset, 0, 2**61), boundary.whole(
        "row_bytes", row_bytes, 1, 2**29
    )


# The pointers that these functions return are borrowed from their arguments, which the caller keeps
# alive for as long as it uses them.

cdef PagedFile paged_file(data, sums, checked):
    cdef const uint8_t[::1] data_view = data
    cdef const uint64_t[::1] sum_view = sums
    cdef uint8_t[::1] checked_view = checked
    cdef PagedFile paged
    paged.data = NULL
    paged.sums = NULL
    paged.checked = NULL
    if len(sums):
        paged.data = &data_view[0]
        paged.sums = &sum_view[0]
        paged.checked = &checked_view[0]
    return paged


cdef RowPlaces row_places(offset, row_bytes, rows):
    cdef const uint32_t[::1] listed = rows
    cdef RowPlaces places
    places.offset = offset
    places.row_bytes = row_bytes
    places.rows = &listed[0]
    places.count = listed.shape[0]
    return places
