"""Merging segments: one in the place of several, without what was forgotten of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram._native import decode, sign_bits
from engram.index import words
from engram.index.mapped import ArraysWriter, HeldArrays, MappedArrays
from engram.index.segment import PER_CHUNK, PER_EPISODE, WORD, Segment, derived, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.index.segment import Named

_SLICE: Final = 65_536
"""Rows copied at a time, so that a merge needs little memory and lets others run."""


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """A merge was given up."""


def merge(
    segments: Sequence[Segment],
    live: Sequence[NDArray[np.bool_] | None],
    path: Path | None,
    identity: str,
    stop: Callable[[], bool],
) -> Segment | None:
    """Return one segment in the place of consecutive ones, without their forgotten episodes.

    Works on what never changes, so it needs no transaction.

    Args:
        segments: In order.
        live: Which of their rows to keep.
        path: The file it gets; None keeps it in memory.
        identity: What its readers must ask for.
        stop: Asked now and then whether to give up.

    Returns:
        The new segment, None when nothing is left.

    Raises:
        Stopped: It was given up; no file is left.
        OSError: The file cannot be written.
    """
    rows = [
        np.arange(one.rows) if mask is None else np.flatnonzero(mask)
        for one, mask in zip(segments, live, strict=True)
    ]
    if not sum(map(len, rows)):
        return None
    small: Named = {
        name: np.concatenate(
            [one.arrays.whole(name)[kept] for one, kept in zip(segments, rows, strict=True)]
        )
        for name in PER_EPISODE
    }
    small |= derived(small["agents"], small["times"])
    chunks = [_chunks(one, mask) for one, mask in zip(segments, live, strict=True)]
    owners = _owners(segments, live, chunks)
    if owners is not None:
        small["owners"] = owners
    largest = max(segments, key=lambda one: one.chunks)
    small["centre"] = np.array(largest.arrays.whole("centre"))
    found = words.merge([one.words for one in segments], live)
    small |= {WORD + name: array for name, array in found.arrays.items()}
    total = sum(map(len, chunks))
    layout = {name: (array.dtype, array.shape) for name, array in small.items()}
    for name in ("bits", *PER_CHUNK):
        like = largest.arrays[name]
        layout[name] = (like.dtype, (total, *like.shape[1:]))
    facts = facts_of(small | {"scales": np.empty(total)}, int(found.lengths.sum()))
    if path is None:
        named = {name: np.empty(shape, dtype) for name, (dtype, shape) in layout.items()}
        _fill(named, small, segments, chunks, stop)
        return Segment(HeldArrays(facts, named))
    with ArraysWriter(path, identity, facts, layout) as file:
        _fill(file, small, segments, chunks, stop)
        file.finish()
    return Segment(MappedArrays(path, identity))


def _chunks(segment: Segment, live: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return the chunks of the episodes to keep."""
    if live is None:
        return np.arange(segment.chunks)
    owners = segment.owners
    return np.flatnonzero(live if owners is None else live[owners])


def _owners(
    segments: Sequence[Segment],
    live: Sequence[NDArray[np.bool_] | None],
    chunks: Sequence[NDArray[np.int64]],
) -> NDArray[np.uint32] | None:
    """Return the new rows of the kept chunks' episodes, None where each has one chunk."""
    if all(one.owners is None for one in segments):
        return None
    parts, before = [], 0
    for one, mask, kept in zip(segments, live, chunks, strict=True):
        old = kept if one.owners is None else one.owners[kept]
        new = np.arange(one.rows) if mask is None else np.cumsum(mask) - 1
        parts.append(new[old] + before)
        before += one.rows if mask is None else int(np.count_nonzero(mask))
    return np.concatenate(parts).astype(np.uint32)


def _fill(
    target: Named | ArraysWriter,
    small: Named,
    segments: Sequence[Segment],
    chunks: Sequence[NDArray[np.int64]],
    stop: Callable[[], bool],
) -> None:
    """Fill the arrays of a merged segment, the large ones in slices."""
    for name, array in small.items():
        target[name][...] = array
    at = 0
    for one, kept in zip(segments, chunks, strict=True):
        same = np.array_equal(one.arrays.whole("centre"), small["centre"])
        for first in range(0, len(kept), _SLICE):
            if stop():
                raise Stopped
            chosen = kept[first : first + _SLICE]
            place = slice(at, at + len(chosen))
            at += len(chosen)
            for name in PER_CHUNK:
                one.arrays.check(name, int(chosen[0]), int(chosen[-1]) + 1)
                target[name][place] = one.arrays[name][chosen]
            if same:
                one.arrays.check("bits", int(chosen[0]), int(chosen[-1]) + 1)
                target["bits"][place] = one.arrays["bits"][chosen]
                continue
            dim = len(small["centre"])
            high, low, scales = (target[name][place] for name in ("high", "low", "scales"))
            vectors = decode(high, low, scales, dim)
            target["bits"][place] = sign_bits(vectors, small["centre"])
