"""NumPy twins of the kernels over sign bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from engram._native import sketch_arguments as arguments
from engram._native.twins.masks import counting_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["hamming_nearest", "sign_bits"]

_BIT_COUNTS = np.array([value.bit_count() for value in range(256)], np.uint16)


def sign_bits(vectors: NDArray[np.float32], centre: NDArray[np.float32]) -> NDArray[np.uint64]:
    """NumPy twin of `engram._native.hamming.sign_bits`."""
    arguments.centred(vectors, centre)
    count, dims = vectors.shape
    above = np.zeros((count, (dims + 63) // 64 * 64), np.bool_)
    above[:, :dims] = vectors > centre
    packed = np.packbits(above, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


def hamming_nearest(
    bits: NDArray[np.uint64],
    query: NDArray[np.uint64],
    allowed: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    k: SupportsIndex,
    margin: SupportsIndex,
    limit: SupportsIndex,
    distances: NDArray[np.uint16],
) -> NDArray[np.uint32]:
    """NumPy twin of `engram._native.hamming.hamming_nearest`."""
    k, margin, limit = arguments.hamming(bits, query, allowed, owners, k, margin, limit, distances)
    distances[:] = 0
    for word in range(bits.shape[1]):
        differing = np.ascontiguousarray(bits[:, word] ^ query[word])
        distances += _BIT_COUNTS[differing.view(np.uint8)].reshape(-1, 8).sum(1, dtype=np.uint16)
    rows = np.flatnonzero(counting_rows(np.arange(len(bits)), allowed, owners))
    nearest = rows[np.argsort(distances[rows], kind="stable")[:limit]]
    if len(nearest) > k:
        within = distances[nearest].astype(np.int64) - distances[nearest[k - 1]] <= margin
        nearest = nearest[within]
    return np.sort(nearest).astype(np.uint32)
