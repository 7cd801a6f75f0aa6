"""A segment: a run of consecutive episodes, column by column, that never changes.

Only its liveness does: forgotten episodes are marked until a merge leaves them out. Its arrays are
in memory or in a mapped file (`engram.index.mapped`); either way they are derived from the store.

| array | type | one per |
|---|---|---|
| `keys`, `times` | int64 | episode: key, event time in microseconds |
| `agents` | int32 | episode: -1 where it has none |
| `origins` | uint8 | episode: see `engram.storage.columns` |
| `salience`, `valence` | float64 | episode |
| `agent_ids`, `agent_starts`, `agent_order` | int64, int64, uint32 | agent: its rows, ascending |
| `earliest`, `latest` | int64 | zone of `ZONE` episodes: the bounds of their times |
| `owners` | uint32 | chunk: its episode's row; missing where each episode has one chunk |
| `centre` | float32 | dimension: what the sign bits are taken against |
| `bits` | uint64 | chunk: signs, 64 to a word |
| `high`, `low` | uint8 | chunk: the halves of its 8-bit codes, see `engram._native.encode` |
| `scales`, `errors` | float32 | chunk: code unit, bound of the rounding |
| `word.*` | | see `engram.index.words` |
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engram._native import decode, encode, sign_bits
from engram.index import words
from engram.index.mapped import ArraysWriter, HeldArrays, MappedArrays
from engram.storage import VectorBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.index.mapped import Arrays
    from engram.storage import ColumnBatch

    _Named = dict[str, NDArray[Any]]

ZONE: Final = 1024
UNEVEN: Final = np.float32(4e-6)
"""Unit vectors are that long to about a millionth: by so much products and distances may differ."""

_WORD: Final = "word."
_SLICE: Final = 65_536
"""Rows copied at a time, so that a merge needs little memory and lets others run."""

_PER_EPISODE: Final = ("keys", "agents", "times", "origins", "salience", "valence")
_PER_CHUNK: Final = ("high", "low", "scales", "errors")


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """A merge was given up."""


class Segment:
    """A run of episodes.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        arrays: Its arrays.
        live: bool[n], which of its episodes are still there; None is all.

    Raises:
        Damaged: From any method, when a mapped file is not what was written.
    """

    def __init__(self, arrays: Arrays, live: NDArray[np.bool_] | None = None) -> None:
        self.arrays = arrays
        self.rows: int = arrays.facts["rows"]
        self.chunks: int = arrays.facts["chunks"]
        self.first: int = arrays.facts["first"]
        self.last: int = arrays.facts["last"]
        self.live: NDArray[np.bool_] | None = None
        self.documents = self.rows
        self.tokens: int = arrays.facts["tokens"]
        self._checked_words: set[tuple[str, int]] = set()
        self.words = words.WordSegment(
            {name[len(_WORD) :]: arrays[name] for name in arrays.names if name.startswith(_WORD)},
            self._check_words,
        )
        if live is not None:
            self._drop(np.flatnonzero(~live))

    def _check_words(self, name: str, first: int, last: int) -> None:
        """Check the elements `first` to `last`, both included, of an array of the words."""
        if (name, first) in self._checked_words:
            return
        array = self.arrays[_WORD + name]
        if last - first + 1 == len(array):
            self.arrays.whole(_WORD + name)
        else:
            self.arrays.check(_WORD + name, first, last + 1)
        # An array is either checked as a whole or by ranges that begin where a term does.
        self._checked_words.add((name, first))

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """The episodes' keys, int64[n], ascending."""
        return self.arrays.whole("keys")

    @cached_property
    def agents(self) -> NDArray[np.int32]:
        """The episodes' agents, int32[n], -1 where there is none."""
        return self.arrays.whole("agents")

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """The episodes' event times, int64[n], in microseconds."""
        return self.arrays.whole("times")

    @cached_property
    def origins(self) -> NDArray[np.uint8]:
        """Where the episodes came from, uint8[n]."""
        return self.arrays.whole("origins")

    def column(self, name: str) -> NDArray[np.float64]:
        """Return the column `salience` or `valence`, float64[n]."""
        column: NDArray[np.float64] = self.arrays.whole(name)
        return column

    @cached_property
    def owners(self) -> NDArray[np.uint32] | None:
        """The row of each chunk's episode, uint32[m]; None where chunk and episode are one."""
        return self.arrays.whole("owners") if "owners" in self.arrays else None

    @cached_property
    def bits(self) -> NDArray[np.uint64]:
        """The chunks' sign bits, in memory of their own: a scan of a mapping takes half longer."""
        bits = np.array(self.arrays.whole("bits"))
        self.arrays.release("bits")
        return bits

    @cached_property
    def scales(self) -> NDArray[np.float32]:
        """The chunks' code units, in memory of their own: rows of a scan lie anywhere in them."""
        return np.array(self.arrays.whole("scales"))

    @cached_property
    def errors(self) -> NDArray[np.float32]:
        """The bounds of the chunks' rounding, likewise."""
        return np.array(self.arrays.whole("errors"))

    @cached_property
    def scratch(self) -> NDArray[np.uint16]:
        """Room for a number per chunk, for the kernel that fills it first."""
        return np.empty(self.chunks, dtype=np.uint16)

    @property
    def agent_ids(self) -> list[int]:
        """The agents that have episodes here, -1 for those of none."""
        ids: list[int] = self.arrays.whole("agent_ids").tolist()
        return ids

    def agent_rows(self, agent: int) -> NDArray[np.uint32] | None:
        """Return an agent's rows, ascending; None when they are all the rows there are."""
        ids = self.arrays.whole("agent_ids")
        place = int(np.searchsorted(ids, agent))
        if place == len(ids) or ids[place] != agent:
            return np.empty(0, dtype=np.uint32)
        if len(ids) == 1:
            return None
        first, last = self.arrays.whole("agent_starts")[place : place + 2].tolist()
        self.arrays.check("agent_order", first, last)
        rows: NDArray[np.uint32] = self.arrays["agent_order"][first:last]
        return rows

    def zones(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the earliest and the latest event time of each zone of `ZONE` episodes."""
        return self.arrays.whole("earliest"), self.arrays.whole("latest")

    def forget(self, first: int, last: int) -> None:
        """Mark the episodes with keys `first` to `last`, both included, as gone."""
        low, high = np.searchsorted(self.keys, (first, last + 1)).tolist()
        gone = np.arange(low, high)
        self._drop(gone if self.live is None else gone[self.live[low:high]])

    def _drop(self, gone: NDArray[np.int64]) -> None:
        if not len(gone):
            return
        if self.live is None:
            self.live = np.ones(self.rows, dtype=np.bool_)
        self.live[gone] = False
        self.documents -= len(gone)
        self.tokens -= int(self.words.lengths[gone].sum())


def codes_of(vectors: NDArray[np.float32]) -> _Named:
    """Return the codes of vectors, float32[m, dim], as columns."""
    named: _Named = dict(zip(_PER_CHUNK, encode(vectors), strict=True))
    named["errors"] = named["errors"] + UNEVEN
    return named


def joined(batches: Sequence[VectorBatch], dim: int) -> VectorBatch:
    """Return vectors in one batch."""
    if len(batches) == 1:
        return batches[0]
    return VectorBatch(
        np.concatenate([np.empty(0, dtype=np.int64), *(one.episodes for one in batches)]),
        np.concatenate([np.empty((0, dim), dtype=np.float32), *(one.vectors for one in batches)]),
    )


def from_store(
    columns: Iterable[ColumnBatch],
    vectors: Iterable[VectorBatch],
    bodies: Sequence[bytes],
    tokenize: Callable[[bytes], list[str]],
    dim: int,
) -> Segment:
    """Return the segment of some episodes as the store has them.

    Args:
        columns: The episodes, in order; at least one.
        vectors: Their vectors, in order.
        bodies: Their searchable texts in UTF-8.
        tokenize: The full-text table's tokenizer.
        dim: Numbers in a vector.
    """
    batches = list(columns)
    named: _Named = {
        name: np.concatenate([getattr(batch, name) for batch in batches]) for name in _PER_EPISODE
    }
    named["agents"] = named["agents"].astype(np.int32)
    found = words.build(bodies, tokenize)
    given = joined(list(vectors), dim)
    named |= codes_of(given.vectors)
    centre = given.vectors.sum(axis=0, dtype=np.float64) / max(len(given.vectors), 1)
    named["centre"] = centre.astype(np.float32)
    named["bits"] = sign_bits(given.vectors, named["centre"])
    owners = np.searchsorted(named["keys"], given.episodes)
    if len(owners) != len(bodies) or (owners != np.arange(len(bodies))).any():
        named["owners"] = owners.astype(np.uint32)
    named |= _derived(named["agents"], named["times"])
    named |= {_WORD + name: array for name, array in found.arrays.items()}
    return Segment(HeldArrays(_facts(named, int(found.lengths.sum())), named))


def _facts(named: Mapping[str, NDArray[Any]], tokens: int) -> dict[str, int]:
    keys = named["keys"]
    return {
        "rows": len(keys),
        "chunks": len(named["scales"]),
        "first": int(keys[0]),
        "last": int(keys[-1]),
        "tokens": tokens,
    }


def _derived(agents: NDArray[np.int32], times: NDArray[np.int64]) -> _Named:
    """Return the arrays that follow from the agents and the times."""
    ids, counts = np.unique(agents, return_counts=True)
    named: _Named = {
        "agent_ids": ids.astype(np.int64),
        "agent_starts": np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
    }
    if len(ids) > 1:
        named["agent_order"] = np.argsort(agents, kind="stable").astype(np.uint32)
    zones = np.arange(0, len(times), ZONE)
    named["earliest"] = np.minimum.reduceat(times, zones)
    named["latest"] = np.maximum.reduceat(times, zones)
    return named


def write(segment: Segment, path: Path, identity: str) -> Segment:
    """Put a segment's arrays into a file and return it from there.

    Raises:
        OSError: The file cannot be written.
    """
    arrays = segment.arrays
    layout = {name: (arrays[name].dtype, arrays[name].shape) for name in arrays.names}
    with ArraysWriter(path, identity, arrays.facts, layout) as file:
        for name in arrays.names:
            file[name][...] = arrays[name]
        file.finish()
    return Segment(MappedArrays(path, identity), segment.live)


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
    small: _Named = {
        name: np.concatenate(
            [one.arrays.whole(name)[kept] for one, kept in zip(segments, rows, strict=True)]
        )
        for name in _PER_EPISODE
    }
    small |= _derived(small["agents"], small["times"])
    chunks = [_chunks(one, mask) for one, mask in zip(segments, live, strict=True)]
    owners = _owners(segments, live, chunks)
    if owners is not None:
        small["owners"] = owners
    largest = max(segments, key=lambda one: one.chunks)
    small["centre"] = np.array(largest.arrays.whole("centre"))
    found = words.merge([one.words for one in segments], live)
    small |= {_WORD + name: array for name, array in found.arrays.items()}
    total = sum(map(len, chunks))
    layout = {name: (array.dtype, array.shape) for name, array in small.items()}
    for name in ("bits", *_PER_CHUNK):
        like = largest.arrays[name]
        layout[name] = (like.dtype, (total, *like.shape[1:]))
    facts = _facts(small | {"scales": np.empty(total)}, int(found.lengths.sum()))
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
    target: _Named | ArraysWriter,
    small: _Named,
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
            for name in _PER_CHUNK:
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
