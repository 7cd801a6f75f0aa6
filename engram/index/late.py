"""Vectors that come after their episodes: taken over into the parts of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram._native import sign_bits
from engram.arrays import distinct
from engram.index.mapped import HeldArrays
from engram.index.segment import Segment, codes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.index.tail import Tail
    from engram.storage import VectorBatch


def without_vectors(part: Segment | Tail, ranges: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return which episodes of a part have no chunk there, int64[n], ascending.

    Args:
        part: The part.
        ranges: Only episodes from one key to another, both included, of any of these.

    Raises:
        Damaged: A segment's file is not what was written.
    """
    found = [np.empty(0, dtype=np.int64)]
    for first, last in ranges:
        owners = part.owners
        if owners is None or last < part.first or part.last < first:
            continue
        low, high = np.searchsorted(part.keys, (first, last + 1)).tolist()
        bare = np.ones(high - low, dtype=np.bool_)
        begin, end = np.searchsorted(owners, (low, high)).tolist()
        bare[owners[begin:end] - low] = False
        found.append(part.keys[low:high][bare])
    return distinct(np.concatenate(found))


def completed(segment: Segment, late: VectorBatch) -> Segment:
    """Return a segment with vectors that some of its episodes had not, in memory.

    Takes time in its size, and none for its words.

    Args:
        segment: The segment, which stays as it is.
        late: The vectors, of episodes of the segment that have none there.

    Raises:
        Damaged: The segment's file is not what was written.
    """
    arrays = segment.arrays
    named = {name: arrays.whole(name) for name in arrays.names}
    there = np.empty(0, dtype=np.uint32) if segment.owners is None else segment.owners
    owners = np.concatenate((there, np.searchsorted(segment.keys, late.episodes)))
    order = np.argsort(owners, kind="stable")
    if not segment.chunks:
        named["centre"] = late.vectors.mean(axis=0)
    added = codes_of(late.vectors) | {"bits": sign_bits(late.vectors, named["centre"])}
    for name, values in added.items():
        named[name] = np.concatenate((named[name], values))[order]
    named["owners"] = owners[order].astype(np.uint32)
    if np.array_equal(named["owners"], np.arange(segment.rows)):
        del named["owners"]
    facts = {**arrays.facts, "chunks": len(owners)}
    return Segment(HeldArrays(facts, named), segment.live)
