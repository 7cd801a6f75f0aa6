"""Checksums of pages and reading rows, against their twins."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engram._native import pages
from engram._native.twins import pages as twin

if TYPE_CHECKING:
    from pathlib import Path

Agree = Callable[..., Any]
Refuse = Callable[..., tuple[type[Exception], str]]

PAGE = 4096


def content(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(count).integers(0, 256, count * PAGE, np.uint8)


@pytest.mark.parametrize("count", [0, 1, 2, 33])
def test_sums(agree: Agree, count: int) -> None:
    sums = agree(pages.page_sums, twin.page_sums, content(count))
    assert len(set(sums.tolist())) == count


def test_sums_of_zeros_are_not_zero(agree: Agree) -> None:
    assert agree(pages.page_sums, twin.page_sums, np.zeros(PAGE, np.uint8))[0] != 0


def test_any_change_of_one_byte_changes_the_sum() -> None:
    page = content(1)
    (expected,) = pages.page_sums(page)
    random = np.random.default_rng(0)
    for place in range(PAGE):
        before = page[place]
        page[place] ^= random.integers(1, 256)
        assert pages.page_sums(page)[0] != expected
        page[place] = before
    assert pages.page_sums(page)[0] == expected


def test_two_flipped_bits_do_not_cancel() -> None:
    page = np.zeros(PAGE, np.uint8)
    (expected,) = pages.page_sums(page)
    seen = {int(expected)}
    for step in range(32, PAGE, 32):  # the same lane, the highest bit of a word
        page[[7, step + 7]] ^= 0x80
        seen.add(int(pages.page_sums(page)[0]))
        page[[7, step + 7]] ^= 0x80
    assert len(seen) == PAGE // 32


@pytest.mark.parametrize("kernel", [pages, twin])
def test_pages_are_checked_once(kernel: Any) -> None:
    data = content(8)
    sums = kernel.page_sums(data)
    checked = np.zeros(8, np.uint8)
    assert kernel.check_pages(data, sums, checked, 1, 3) is True
    assert checked.tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    data[2 * PAGE] ^= 1  # not looked at again
    data[5 * PAGE] ^= 1
    assert kernel.check_pages(data, sums, checked, 0, 8) is False
    assert checked.tolist() == [1, 1, 1, 1, 1, 0, 0, 0]
    assert kernel.check_pages(data, sums, checked, 6, 8) is True
    assert kernel.check_pages(data, sums, checked, 5, 5) is True
    empty = np.zeros(0, np.uint8)
    assert kernel.check_pages(empty, kernel.page_sums(empty), empty, 0, 0) is True


@pytest.mark.parametrize("kernel", [pages, twin])
def test_rows_check_the_pages_under_them(kernel: Any) -> None:
    data = content(10)
    sums = kernel.page_sums(data)
    checked = np.zeros(10, np.uint8)
    rows = np.array([1, 0], np.uint32)
    assert kernel.check_rows(data, sums, checked, 4000, 4096, rows) is True
    assert checked.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]
    data[9 * PAGE] ^= 1
    last = np.array([(10 * PAGE - 64) // 48 - 1], np.uint32)
    assert kernel.check_rows(data, sums, checked, 64, 48, last) is False
    assert kernel.check_rows(data, sums, checked, 0, 9000, np.array([1], np.uint32)) is True
    assert checked.tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert kernel.check_rows(data, sums, checked, 0, 1, np.empty(0, np.uint32)) is True


def test_random_rows_check_the_same_pages(agree: Agree) -> None:
    random = np.random.default_rng(1)
    data = content(40)
    sums = pages.page_sums(data)
    data[random.integers(0, len(data), 3)] ^= 8

    def marks(kernel: Any, *places: Any) -> np.ndarray[Any, Any]:
        checked = np.zeros(40, np.uint8)
        right = kernel.check_rows(data, sums, checked, *places)
        return np.append(checked, np.uint8(right))

    for row_bytes in (1, 48, 192, 5000):
        rows = random.integers(0, (len(data) - 100) // row_bytes, 9).astype(np.uint32)
        agree(lambda *a: marks(pages, *a), lambda *a: marks(twin, *a), 100, row_bytes, rows)


def test_reading_rows(agree: Agree, tmp_path: Path) -> None:
    data = content(4)
    (tmp_path / "file").write_bytes(data.tobytes())
    rows = np.array([3, 4, 5, 0, 7, 6, 6, 60], np.uint32)
    with (tmp_path / "file").open("rb") as file:
        found = agree(pages.read_rows, twin.read_rows, file.fileno(), 100, 200, rows)
        assert found.tolist() == data[100:][: 200 * 80].reshape(-1, 200)[rows].tolist()
        empty = agree(pages.read_rows, twin.read_rows, file.fileno(), 0, 7, rows[:0])
        assert empty.shape == (0, 7)
        assert file.tell() == 0


@pytest.mark.parametrize("kernel", [pages, twin])
def test_reading_what_is_not_there_fails(kernel: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    with (tmp_path / "file").open("rb") as file:
        for rows in ([2, 3], [3], [2**32 - 1]):
            with pytest.raises(OSError, match="ends before"):
                kernel.read_rows(file.fileno(), 0, 3, np.array(rows, np.uint32))
        closed = os.dup(file.fileno())
    os.close(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kernel.read_rows(closed, 0, 3, np.array([0], np.uint32))


DATA = content(2)
ROWS = np.array([0], np.uint32)


def test_wrong_arguments_are_refused(refuse: Refuse) -> None:
    sums, checked = pages.page_sums(DATA), np.zeros(2, np.uint8)
    refuse(pages.page_sums, twin.page_sums, DATA[1:])
    refuse(pages.page_sums, twin.page_sums, DATA.astype(np.int8))
    for case in (
        (DATA, sums[:1], checked, 0, 1),
        (DATA, sums, checked[:1], 0, 1),
        (DATA, sums, checked.astype(bool), 0, 1),
        (DATA, sums, checked, -1, 1),
        (DATA, sums, checked, 0, 3),
        (DATA, sums, checked, 1, 0),
    ):
        refuse(pages.check_pages, twin.check_pages, *case)
    for offset, row_bytes, rows in (
        (-1, 1, ROWS),
        (2**62, 1, ROWS),
        (0, 0, ROWS),
        (0, 2**30, ROWS),
        (0, 1, ROWS.astype(np.int64)),
        (2 * PAGE, 1, ROWS),
        (2 * PAGE - 10, 11, ROWS),
        (0, 2**20, np.array([2**32 - 1], np.uint32)),
    ):
        refuse(pages.check_rows, twin.check_rows, DATA, sums, checked, offset, row_bytes, rows)
    refuse(pages.read_rows, twin.read_rows, -1, 0, 1, ROWS)
    refuse(pages.read_rows, twin.read_rows, 0, 0, 1, [0])
