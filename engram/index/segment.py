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

from engram._native import encode, sign_bits
from engram.index import words
from engram.index.mapped import ArraysWriter, HeldArrays, MappedArrays
from engram.storage import VectorBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engram.index.mapped import Arrays
    from engram.storage import ColumnBatch

    Named = dict[str, NDArray[Any]]

ZONE: Final = 1024
UNEVEN: Final = np.float32(4e-6)
"""Unit vectors are that long to about a millionth: by so much products and distances may differ."""

WORD: Final = "word."
PER_EPISODE: Final = ("keys", "agents", "times", "origins", "salience", "valence")
PER_CHUNK: Final = ("high", "low", "scales", "errors")


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
        self._checked_words: set[tuple[str, int, int]] = set()
        self.words = words.WordSegment(
            {name[len(WORD) :]: arrays[name] for name in arrays.names if name.startswith(WORD)},
            self._check_words,
        )
        if live is not None:
            self._drop(np.flatnonzero(~live))

    def _check_words(self, name: str, first: int, last: int) -> None:
        """Check the elements `first` to `last`, both included, of an array of the words."""
        if (name, first, last) in self._checked_words:
            return
        array = self.arrays[WORD + name]
        if last - first + 1 == len(array):
            self.arrays.whole(WORD + name)
        else:
            self.arrays.check(WORD + name, first, last + 1)
        self._checked_words.add((name, first, last))

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
    def agent_ids(self) -> NDArray[np.int64]:
        """The agents that have episodes here, ascending, -1 for those of none."""
        return self.arrays.whole("agent_ids")

    def agent_rows(self, agent: int) -> NDArray[np.uint32] | None:
        """Return an agent's rows, ascending; None when they are all the rows there are."""
        ids = self.agent_ids
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

    def release_postings(self) -> None:
        """Let go of the memory that postings take; they come back when they are needed."""
        self.arrays.release(f"{WORD}rows")
        self.arrays.release(f"{WORD}frequencies")

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


def codes_of(vectors: NDArray[np.float32]) -> Named:
    """Return the codes of vectors, float32[m, dim], as columns."""
    named: Named = dict(zip(PER_CHUNK, encode(vectors), strict=True))
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
    named: Named = {
        name: np.concatenate([getattr(batch, name) for batch in batches]) for name in PER_EPISODE
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
    named |= derived(named["agents"], named["times"])
    named |= {WORD + name: array for name, array in found.arrays.items()}
    return Segment(HeldArrays(facts_of(named, int(found.lengths.sum())), named))


def facts_of(named: Mapping[str, NDArray[Any]], tokens: int) -> dict[str, int]:
    """Return what is kept beside a segment's arrays."""
    keys = named["keys"]
    return {
        "rows": len(keys),
        "chunks": len(named["scales"]),
        "first": int(keys[0]),
        "last": int(keys[-1]),
        "tokens": tokens,
    }


def derived(agents: NDArray[np.int32], times: NDArray[np.int64]) -> Named:
    """Return the arrays that follow from the agents and the times."""
    ids, counts = np.unique(agents, return_counts=True)
    named: Named = {
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
