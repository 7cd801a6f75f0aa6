"""What the kernels over sketches and their twins accept; see `boundary`."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from engram._native import boundary

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "QUERY_REACH",
    "candidates",
    "centred",
    "coarse",
    "hamming",
    "query",
    "stored_codes",
    "vectors",
]

QUERY_REACH = (2**31 - 1) // 255
"""What the absolute query codes may add up to: 255 times it fits 32 bits."""


def vectors(value: object) -> None:
    """Check the argument of `encode`."""
    boundary.array("vectors", value, np.float32, 2)


def stored_codes(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    dims: SupportsIndex,
) -> int:
    """Check the arguments of `decode`, and return `dims`."""
    count = boundary.whole("dims", dims, 0)
    _codes(high, low, scales)
    _columns("high", high, (count + 31) // 32 * 16)
    return count


def centred(value: NDArray[np.float32], centre: NDArray[np.float32]) -> None:
    """Check the arguments of `sign_bits`."""
    boundary.array("vectors", value, np.float32, 2)
    boundary.array("centre", centre, np.float32)
    boundary.length("centre", centre, value.shape[1], "column of vectors")


def query(value: NDArray[np.float32]) -> None:
    """Check the argument of `query_codes`."""
    boundary.array("query", value, np.float32)
    boundary.whole("query's length", len(value), 0, 2**20)


def hamming(
    bits: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    margin: SupportsIndex,
    limit: SupportsIndex,
    distances: NDArray[np.uint16],
) -> tuple[int, int, int]:
    """Check the arguments of `hamming_nearest`, and return its numbers."""
    boundary.array("bits", bits, np.uint64, 2)
    boundary.array("query", wanted, np.uint64)
    boundary.length("query", wanted, bits.shape[1], "column of bits")
    boundary.whole("query's length", len(wanted), 1, 1023)
    _mask(allowed, owners, len(bits), "row of bits")
    boundary.array("distances", distances, np.uint16)
    boundary.length("distances", distances, len(bits), "row of bits")
    first = boundary.whole("k", k, 1)
    return first, boundary.whole("margin", margin, 0), boundary.whole("limit", limit, first)


def coarse(
    high: NDArray[np.uint8],
    scales: NDArray[np.float32],
    wanted: NDArray[np.int16],
    rows: NDArray[np.uint32],
    owners: NDArray[np.uint32] | None,
    limit: SupportsIndex,
) -> int:
    """Check the arguments of `coarse_nearest`, and return `limit`."""
    _codes(high, high, scales)
    _query(high, wanted)
    boundary.array("rows", rows, np.uint32)
    _mask(None, owners, len(high), "row of high")
    return boundary.whole("limit", limit, 1)


def candidates(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    errors: NDArray[np.float32],
    wanted: NDArray[np.int16],
    query_scale: float,
    rows: NDArray[np.uint32] | None,
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    certainty: float,
) -> tuple[int, float, float]:
    """Check the arguments of `code_candidates`, and return its numbers."""
    _codes(high, low, scales)
    boundary.array("errors", errors, np.float32)
    boundary.length("errors", errors, len(high), "row of high")
    _query(high, wanted)
    if rows is not None:
        boundary.array("rows", rows, np.uint32)
    _mask(allowed, owners, len(high), "row of high")
    return (
        boundary.whole("k", k, 1),
        boundary.real("query_scale", query_scale, 0.0),
        boundary.real("certainty", certainty, 0.0),
    )


def _codes(high: NDArray[np.uint8], low: NDArray[np.uint8], scales: NDArray[np.float32]) -> None:
    boundary.array("high", high, np.uint8, 2)
    boundary.array("low", low, np.uint8, 2)
    boundary.array("scales", scales, np.float32)
    if low.shape != high.shape:
        message = f"low must have the shape of high, {high.shape}, not {low.shape}"
        raise ValueError(message)
    boundary.length("scales", scales, len(high), "row of high")


def _columns(name: str, value: NDArray[np.generic], expected: int) -> None:
    if value.shape[1] != expected:
        message = f"{name} must have {expected} columns, not {value.shape[1]}"
        raise ValueError(message)


def _query(high: NDArray[np.uint8], wanted: NDArray[np.int16]) -> None:
    if high.shape[1] % 16:
        message = f"high must have a multiple of 16 columns, not {high.shape[1]}"
        raise ValueError(message)
    boundary.array("query", wanted, np.int16)
    boundary.length("query", wanted, (high.shape[1] + 31) // 32 * 64, "number in a row of high")


def _mask(
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    rows: int,
    per: str,
) -> None:
    if allowed is not None:
        boundary.array("allowed", allowed, np.bool_)
    if owners is not None:
        boundary.array("owners", owners, np.uint32)
        boundary.length("owners", owners, rows, per)
