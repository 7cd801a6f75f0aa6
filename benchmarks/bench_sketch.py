"""Sign bits and codes over a million rows of 384 numbers, beside what reading them alone takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engram._native import hamming, sketch

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

ROWS, DIMS = 1_000_000, 384


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    random = np.random.default_rng(0)
    few = random.standard_normal((20_000, DIMS), np.float32)
    few /= np.linalg.norm(few, axis=1, keepdims=True)
    codes = [
        np.tile(part, (ROWS // len(few), *[1] * (part.ndim - 1))).reshape(ROWS, *part.shape[1:])
        for part in sketch.encode(few)
    ]
    bits = random.integers(0, 2**64, (ROWS, DIMS // 64), np.uint64)
    query = random.standard_normal(DIMS).astype(np.float32)
    return {
        "vectors": few,
        "codes": codes,
        "bits": bits,
        "query_bits": bits[77].copy(),
        "query": sketch.query_codes(query / np.linalg.norm(query)),
        "distances": np.zeros(ROWS, np.uint16),
        "half": random.random(ROWS) < 0.5,
        "owners": np.arange(ROWS, dtype=np.uint32),
        "rows": {
            n: np.sort(random.choice(ROWS, n, replace=False)).astype(np.uint32)
            for n in (1000, 10_000)
        },
    }


def test_encode(benchmark: BenchmarkFixture, stored: dict[str, Any]) -> None:
    benchmark(sketch.encode, stored["vectors"])


def test_sign_bits(benchmark: BenchmarkFixture, stored: dict[str, Any]) -> None:
    benchmark(hamming.sign_bits, stored["vectors"], stored["vectors"][0])


def test_reading_the_bits(benchmark: BenchmarkFixture, stored: dict[str, Any]) -> None:
    benchmark(stored["bits"].max)


@pytest.mark.parametrize("limit", [1000, 10_000])
@pytest.mark.parametrize("mask", ["none", "half", "half of the owners"])
def test_hamming(
    benchmark: BenchmarkFixture, stored: dict[str, Any], limit: int, mask: str
) -> None:
    allowed = None if mask == "none" else stored["half"]
    owners = stored["owners"] if mask == "half of the owners" else None
    benchmark(
        hamming.hamming_nearest,
        stored["bits"],
        stored["query_bits"],
        allowed,
        owners,
        10,
        25,
        limit,
        stored["distances"],
    )


def test_coarse(benchmark: BenchmarkFixture, stored: dict[str, Any]) -> None:
    high, _, scales, _ = stored["codes"]
    rows = stored["rows"][10_000]
    benchmark(sketch.coarse_nearest, high, scales, stored["query"][0], rows, stored["owners"], 300)


@pytest.mark.parametrize("count", [1000, 10_000])
def test_candidates(benchmark: BenchmarkFixture, stored: dict[str, Any], count: int) -> None:
    benchmark(
        sketch.code_candidates,
        *stored["codes"],
        *stored["query"],
        stored["rows"][count],
        None,
        stored["owners"],
        10,
        1.0,
    )


@pytest.mark.parametrize("certainty", [0.25, 1.0])
def test_candidates_of_all(
    benchmark: BenchmarkFixture, stored: dict[str, Any], certainty: float
) -> None:
    benchmark(
        sketch.code_candidates, *stored["codes"], *stored["query"], None, None, None, 10, certainty
    )
