"""Distances of episodes from a query: true ones from true vectors, bounds from codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from engram._native import code_candidates
from engram.index.codes import QueryCodes, chunks_of, codes_of_rows
from engram.index.tail import Tail
from engram.storage import VectorBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index.episode_index import EpisodeIndex
    from engram.index.segment import Segment


_ABOUT_ONE: Final = 1e-4


class VectorSource(Protocol):
    """An index: its newest rows are in memory, the others' vectors in the store."""

    @property
    def tail(self) -> Tail:
        """The newest rows."""

    def vectors_of(self, keys: NDArray[np.int64]) -> VectorBatch:
        """Return the store's vectors of some rows, given by ascending keys, int64[n]."""


def true_distances(
    index: VectorSource, vector: NDArray[np.float32], episodes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return each episode's distance, float64[n], exact to zero; inf where it has no vector.

    Args:
        index: The index, of episodes or of facts.
        vector: As for `nearest`.
        episodes: int64[n], keys in any order.
    """
    tail = index.tail
    recent = episodes >= tail.first
    if tail.owners is None and tail.live is None and recent.all():
        # The common case of a small store: a vector for each episode, all in memory.
        return _lengths(tail.vectors[np.searchsorted(tail.keys, episodes)], vector)
    found = np.full(len(episodes), np.inf)
    for batch, here in (
        (_of_tail(tail, episodes[recent]), recent),
        (index.vectors_of(np.sort(episodes[~recent])), ~recent),
    ):
        if not len(batch.episodes):
            continue
        each = _lengths(batch.vectors, vector)
        starts = np.flatnonzero(np.diff(batch.episodes, prepend=-1))
        nearest_chunk = np.minimum.reduceat(each, starts)
        present = batch.episodes[starts]
        asked = np.flatnonzero(here)
        places = np.searchsorted(present, episodes[asked])
        places[places == len(present)] = 0
        known = present[places] == episodes[asked]
        found[asked[known]] = nearest_chunk[places[known]]
    return found


def true_vectors(
    index: VectorSource, keys: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the vectors of some rows' chunks, float32[m, dim], and the key of each, int64[m].

    Args:
        index: The index, of episodes or of facts.
        keys: int64[n], in any order.
    """
    recent = keys >= index.tail.first
    new = _of_tail(index.tail, keys[recent])
    old = index.vectors_of(np.sort(keys[~recent]))
    return np.concatenate((old.vectors, new.vectors)), np.concatenate((old.episodes, new.episodes))


def _lengths(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the distance of each vector from the query, float64[n].

    A zero vector, on either side, is near nothing: as far away as what is at a right angle.
    """
    apart = vectors.astype(np.float64) - query
    squares = np.einsum("ij,ij->i", apart, apart)
    if query.any():
        # Only what is one away from the query can be zero.
        around = np.flatnonzero(np.abs(squares - 1.0) < _ABOUT_ONE)
        squares[around[~vectors[around].any(axis=1)]] = 2.0
    else:
        squares[:] = 2.0
    lengths: NDArray[np.float64] = np.sqrt(squares)
    return lengths


def distance_bounds(
    index: EpisodeIndex, vector: NDArray[np.float32], episodes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return between what each episode's distance certainly lies, two float64[n].

    Takes a fraction of the time of `true_distances`, which reads the store.

    Args:
        index: The index.
        vector: As for `nearest`.
        episodes: int64[n], keys, ascending; all of them are in the index.

    Raises:
        Damaged: A segment's file is not what was written.
    """
    least, most = np.full(len(episodes), np.inf), np.full(len(episodes), np.inf)
    query = QueryCodes(vector)
    for part in index.parts:
        first, end = np.searchsorted(episodes, (part.first, part.last + 1)).tolist()
        keys = episodes[first:end]
        if isinstance(part, Tail):
            least[first:end] = most[first:end] = true_distances(index, vector, keys)
        elif len(keys):
            nearer, further = _bounds(part, np.searchsorted(part.keys, keys), query)
            least[first:end], most[first:end] = nearer, further
    return least, most


def _bounds(
    segment: Segment, places: NDArray[np.int64], query: QueryCodes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the most distance of a segment's episodes, by their codes."""
    rows = places.astype(np.uint32)
    nearer, further = np.full(len(rows), np.inf), np.full(len(rows), np.inf)
    owners = segment.owners
    chunks = rows if owners is None else chunks_of(owners, rows)
    if not len(chunks):
        return nearer, further
    codes = codes_of_rows(segment, chunks)
    # So many results as there are rows: every row is one of them.
    found, products = code_candidates(*codes, *query.asked, chunks, None, None, len(chunks), 1.0)
    error = codes.errors[found] + query.rounding
    mine = found if owners is None else owners[found]
    starts = np.flatnonzero(np.diff(mine.astype(np.int64), prepend=-1))
    highest = np.maximum.reduceat(products + error, starts).astype(np.float64)
    lowest = np.maximum.reduceat(products - error, starts).astype(np.float64)
    least, most = (np.sqrt(np.maximum(0.0, 2.0 - 2.0 * bound)) for bound in (highest, lowest))
    present = np.searchsorted(rows, mine[starts])
    nearer[present], further[present] = least, most
    return nearer, further


def _of_tail(tail: Tail, episodes: NDArray[np.int64]) -> VectorBatch:
    """Return the vectors of some of a tail's episodes, by ascending keys, the forgotten's not."""
    rows = np.searchsorted(tail.keys, np.sort(episodes)).astype(np.uint32)
    if tail.live is not None:
        rows = rows[tail.live[rows]]
    if tail.owners is not None:
        rows = chunks_of(tail.owners, rows)
        return VectorBatch(tail.keys[tail.owners[rows]], tail.vectors[rows])
    return VectorBatch(tail.keys[rows], tail.vectors[rows])
