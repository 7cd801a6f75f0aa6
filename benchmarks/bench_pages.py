"""Checking the pages of a file, beside copying it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import pages

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

DATA = np.random.default_rng(0).integers(0, 256, 64 << 20, np.uint8)


def test_copying(benchmark: BenchmarkFixture) -> None:
    benchmark(np.copyto, np.empty_like(DATA), DATA)


def test_page_sums(benchmark: BenchmarkFixture) -> None:
    benchmark(pages.page_sums, DATA)


def test_rows_on_checked_pages(benchmark: BenchmarkFixture) -> None:
    sums = pages.page_sums(DATA)
    rows = np.sort(np.random.default_rng(1).choice(len(DATA) // 192, 10_000)).astype(np.uint32)
    benchmark(pages.check_rows, DATA, sums, np.ones(len(sums), np.uint8), 0, 192, rows)
