"""NumPy twins of the kernels over codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from engram._native import sketch_arguments as arguments
from engram._native.twins.masks import counting_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["coarse_nearest", "code_candidates", "decode", "encode", "query_codes"]

_LANES = 8


def encode(
    vectors: NDArray[np.float32],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32], NDArray[np.float32]]:
    """NumPy twin of `engram._native.sketch.encode`."""
    arguments.vectors(vectors)
    count, dims = vectors.shape
    blocks = (dims + 31) // 32
    padded = np.zeros((count, 32 * blocks), np.float32)
    padded[:, :dims] = vectors
    scales = np.abs(padded).max(axis=1, initial=0.0) / np.float32(127)
    steps = np.zeros_like(padded)
    np.divide(padded, scales[:, np.newaxis], out=steps, where=scales[:, np.newaxis] > 0)
    steps = np.rint(np.clip(steps, -128, 127))
    lost = (padded.astype(np.float64) - scales.astype(np.float64)[:, np.newaxis] * steps) ** 2
    lanes = np.zeros((count, _LANES))
    for first in range(0, padded.shape[1], _LANES):
        lanes += lost[:, first : first + _LANES]
    for half in (4, 2, 1):
        lanes[:, :half] += lanes[:, half : 2 * half]
    exact = np.sqrt(lanes[:, 0]) * (1 + 2.0**-30)
    errors = exact.astype(np.float32)
    below = errors < exact
    errors[below] = np.nextafter(errors[below], np.float32(np.inf))
    codes = (steps + 128).astype(np.uint8).reshape(count, blocks, 2, 16)
    first, second = codes[:, :, 0], codes[:, :, 1]
    high = (first >> 4) | (second & 0xF0)
    low = (first & 0x0F) | (second << 4)
    return high.reshape(count, 16 * blocks), low.reshape(count, 16 * blocks), scales, errors


def decode(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    dims: SupportsIndex,
) -> NDArray[np.float32]:
    """NumPy twin of `engram._native.sketch.decode`."""
    dims = arguments.stored_codes(high, low, scales, dims)
    steps = _codes(high, low)[:, :dims].astype(np.float32) - np.float32(128)
    return scales[:, np.newaxis] * steps


def query_codes(query: NDArray[np.float32]) -> tuple[NDArray[np.int16], float]:
    """NumPy twin of `engram._native.sketch.query_codes`."""
    arguments.query(query)
    numbers = query.astype(np.float64)
    sizes = np.abs(numbers)
    total = float(np.cumsum(sizes)[-1]) if len(query) else 0.0  # one after the other
    largest = float(sizes.max(initial=0.0))
    scale = max(largest / 32767.0, total / (arguments.QUERY_REACH - len(query)))
    codes = np.zeros((len(query) + 63) // 64 * 64, np.int16)
    if scale > 0:
        steps = np.clip(numbers / scale, -32767.0, 32767.0)
        codes[: len(query)] = np.rint(steps).astype(np.int16)
    # Number 32·block + 16·half + 2·place + odd of a group goes to half, odd, block, place.
    return codes.reshape(-1, 2, 2, 8, 2).transpose(0, 2, 4, 1, 3).reshape(-1), scale


def coarse_nearest(
    high: NDArray[np.uint8],
    scales: NDArray[np.float32],
    query: NDArray[np.int16],
    rows: NDArray[np.uint32],
    owners: NDArray[np.uint32] | None,
    limit: SupportsIndex,
) -> NDArray[np.uint32]:
    """NumPy twin of `engram._native.sketch.coarse_nearest`."""
    limit = arguments.coarse(high, scales, query, rows, owners, limit)
    _check_query(query)
    _check_rows(rows, len(high))
    owner = _owners(rows, owners)
    if len(rows) == 0:
        return rows.copy()
    halves = _codes(high[rows], np.zeros_like(high[rows])).astype(np.int64) >> 4
    sums = 32 * (halves @ _in_order(query)[: halves.shape[1]]) - 241 * query.sum(dtype=np.int64)
    scores = scales[rows].astype(np.float64) * sums
    firsts = _firsts(owner)
    turn = np.cumsum(np.append(False, owner[1:] != owner[:-1]))
    best = np.maximum.reduceat(scores, firsts)
    last = np.lexsort((np.arange(len(best)), -best))[: min(limit, len(best))][-1]
    if limit >= len(best):
        return rows.copy()
    kept: NDArray[np.uint32] = rows[
        (scores > best[last]) | ((scores == best[last]) & (turn <= last))
    ]
    return kept


def code_candidates(
    high: NDArray[np.uint8],
    low: NDArray[np.uint8],
    scales: NDArray[np.float32],
    errors: NDArray[np.float32],
    query: NDArray[np.int16],
    query_scale: float,
    rows: NDArray[np.uint32] | None,
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    certainty: float,
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """NumPy twin of `engram._native.sketch.code_candidates`."""
    k, query_scale, certainty = arguments.candidates(
        high, low, scales, errors, query, query_scale, rows, allowed, owners, k, certainty
    )
    _check_query(query)
    scanned = np.arange(len(high), dtype=np.uint32) if rows is None else rows
    _check_rows(scanned, len(high))
    _owners(scanned, owners)
    scanned = scanned[counting_rows(scanned, allowed, owners)]
    if len(scanned) == 0:
        return scanned.copy(), np.empty(0, np.float32)
    codes = _codes(high[scanned], low[scanned]).astype(np.int64)
    sums = codes @ _in_order(query)[: codes.shape[1]] - 128 * query.sum(dtype=np.int64)
    scale = scales[scanned].astype(np.float64)
    similarities = query_scale * scale * sums
    off = _uncertainty(query, query_scale, certainty, errors[scanned].astype(np.float64), scale)
    reached = np.maximum.reduceat(similarities - off, _firsts(_owners(scanned, owners)))
    least = np.sort(reached)[-k] if k <= len(reached) else -np.inf
    kept = similarities + off >= least
    return scanned[kept], similarities[kept].astype(np.float32)


def _uncertainty(
    query: NDArray[np.int16],
    scale: float,
    certainty: float,
    errors: NDArray[np.float64],
    scales: NDArray[np.float64],
) -> NDArray[np.float64]:
    count = float(len(query))
    squares = float((query.astype(np.int64) ** 2).sum())
    norm = scale * (np.sqrt(squares) + 0.5 * np.sqrt(count))
    per_error = certainty * norm * (1 + 2.0**-30)
    per_scale = scale * count * (72.0 + count / 64.0)
    result: NDArray[np.float64] = per_error * errors + per_scale * scales
    return result


def _codes(high: NDArray[np.uint8], low: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Codes in the order of the numbers, padding included."""
    count, columns = high.shape
    first = ((high & 0x0F) << 4) | (low & 0x0F)
    second = (high & 0xF0) | (low >> 4)
    halves = [plane.reshape(count, columns // 16, 16) for plane in (first, second)]
    blocks = np.stack(halves, axis=2)
    return blocks.reshape(count, 2 * columns)


def _in_order(query: NDArray[np.int16]) -> NDArray[np.int64]:
    """A query's codes in the order of the numbers."""
    return query.reshape(-1, 2, 2, 2, 8).transpose(0, 3, 1, 4, 2).reshape(-1).astype(np.int64)


def _check_query(query: NDArray[np.int16]) -> None:
    if np.abs(query.astype(np.int64)).sum() > arguments.QUERY_REACH:
        message = "query must have codes whose sizes add up to at most 8421504"
        raise ValueError(message)


def _check_rows(rows: NDArray[np.uint32], count: int) -> None:
    if np.any(rows[1:] <= rows[:-1]):
        message = "rows must be strictly ascending"
        raise ValueError(message)
    if len(rows) and rows[-1] >= count:
        message = "rows must lie in [0, number of rows of high)"
        raise ValueError(message)


def _owners(rows: NDArray[np.uint32], owners: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
    """The owners of the scanned rows, in order."""
    owner: NDArray[np.uint32] = rows if owners is None else owners[rows]
    if np.any(owner[1:] < owner[:-1]):
        message = "owners must be non-decreasing over the scanned rows"
        raise ValueError(message)
    return owner


def _firsts(owner: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
