"""NumPy twins of the page checksums and of reading rows."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["check_pages", "check_rows", "page_sums", "read_rows"]

_PAGE = 4096
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SEEDS = np.array(
    [0x243F6A8885A308D3, 0x13198A2E03707344, 0xA4093822299F31D0, 0x082EFA98EC4E6C89], np.uint64
)


def page_sums(data: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """NumPy twin of `engram._native.pages.page_sums`."""
    _check_data(data)
    words = np.frombuffer(data, np.uint64).reshape(-1, _PAGE // 8)
    lanes = np.tile(_SEEDS, (len(words), 1))
    for first in range(0, words.shape[1], len(_SEEDS)):
        lanes = _step(lanes, words[:, first : first + len(_SEEDS)])
    sums = lanes[:, 0]
    for lane in range(1, len(_SEEDS)):
        sums = _step(sums, lanes[:, lane])
    return sums.copy()


def check_pages(
    data: NDArray[np.uint8],
    sums: NDArray[np.uint64],
    checked: NDArray[np.uint8],
    first: SupportsIndex,
    last: SupportsIndex,
) -> bool:
    """NumPy twin of `engram._native.pages.check_pages`."""
    _check_file(data, sums, checked)
    begin = boundary.whole("first", first, 0, len(sums))
    end = boundary.whole("last", last, begin, len(sums))
    return all(_check(data, sums, checked, page) for page in range(begin, end))


def check_rows(
    data: NDArray[np.uint8],
    sums: NDArray[np.uint64],
    checked: NDArray[np.uint8],
    offset: SupportsIndex,
    row_bytes: SupportsIndex,
    rows: NDArray[np.uint32],
) -> bool:
    """NumPy twin of `engram._native.pages.check_rows`."""
    _check_file(data, sums, checked)
    start, size = _check_places(offset, row_bytes, rows)
    begins = [start + row * size for row in rows.tolist()]
    if begins and max(begins) + size > len(data):
        message = "rows must lie within data"
        raise ValueError(message)
    return all(
        _check(data, sums, checked, page)
        for begin in begins
        for page in range(begin // _PAGE, (begin + size - 1) // _PAGE + 1)
    )


def read_rows(
    fd: SupportsIndex, offset: SupportsIndex, row_bytes: SupportsIndex, rows: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    """NumPy twin of `engram._native.pages.read_rows`."""
    file = boundary.whole("fd", fd, 0, 2**31 - 1)
    start, size = _check_places(offset, row_bytes, rows)
    found = np.empty((len(rows), size), np.uint8)
    for place, row in zip(found, rows.tolist(), strict=True):
        content = os.pread(file, size, start + row * size)
        if len(content) < size:
            raise OSError(errno.EIO, "the file ends before a listed row does")
        place[:] = np.frombuffer(content, np.uint8)
    return found


def _step(states: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (states ^ words) * _FACTOR
    stepped: NDArray[np.uint64] = (mixed << np.uint64(29)) | (mixed >> np.uint64(35))
    return stepped


def _check(
    data: NDArray[np.uint8], sums: NDArray[np.uint64], checked: NDArray[np.uint8], page: int
) -> bool:
    if not checked[page]:
        content = data[page * _PAGE : (page + 1) * _PAGE]
        if page_sums(content)[0] != sums[page]:
            return False
        checked[page] = 1
    return True


def _check_data(data: NDArray[np.uint8]) -> None:
    boundary.array("data", data, np.uint8)
    if len(data) % _PAGE:
        message = f"data must be whole pages of {_PAGE} bytes, not {len(data)} bytes"
        raise ValueError(message)


def _check_file(
    data: NDArray[np.uint8], sums: NDArray[np.uint64], checked: NDArray[np.uint8]
) -> None:
    _check_data(data)
    boundary.array("sums", sums, np.uint64)
    boundary.length("sums", sums, len(data) // _PAGE, "page")
    boundary.array("checked", checked, np.uint8)
    boundary.length("checked", checked, len(data) // _PAGE, "page")


def _check_places(
    offset: SupportsIndex, row_bytes: SupportsIndex, rows: NDArray[np.uint32]
) -> tuple[int, int]:
    boundary.array("rows", rows, np.uint32)
    # Sums of these stay within 64 bits, as file offsets have to.
    return (
        boundary.whole("offset", offset, 0, 2**61),
        boundary.whole("row_bytes", row_bytes, 1, 2**29),
    )
