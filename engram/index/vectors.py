"""Nearest episodes by vector: a plan for each segment, and true vectors for the last word.

Segments hold codes of 8 bits and sign bits, not vectors. A scan of codes yields every row that can
still be among the nearest, with a proven bound, and the store's own vectors of those decide: the
answer is that of a brute-force search over what the store holds. Where so many episodes match that
such a scan would take long, sign bits choose the rows that are worth it: then the answer is very
likely, not certainly, the same. What was done is said in a `Certificate`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from engram._native import (
    coarse_nearest,
    code_candidates,
    hamming_nearest,
    sign_bits,
    top_k,
)
from engram.arrays import distinct
from engram.index.codes import Codes, QueryCodes, chunks_of, codes_of_rows
from engram.index.distances import true_distances
from engram.index.selection import Selection, rows_of, settled
from engram.index.tail import Tail
from engram.models import Certificate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.index.distances import VectorSource
    from engram.index.episode_index import EpisodeIndex
    from engram.index.fact_index import FactIndex
    from engram.index.segment import Segment
    from engram.storage import EpisodeFilter

ACCURACIES: Final = ("exact", "high", "fast")

_SCANNED: Final = 20_000
"""Chunks of a segment up to which all are compared: that takes less than a millisecond."""

_MARGIN: Final = {"high": 1.28, "fast": 0.8}
"""Sign bits by which a row may be further than the k-th best: so many times the root of their
number. What is near is off by chance in some of its bits, with a normal spread of half that root.
Where nothing stands out from the rest many rows lie within the margin, and few where the near ones
do. Measured on sentences: 99 and 97 of 100 nearest are among them."""

_ROWS_MOST: Final = {"high": 10_240, "fast": 2560}
"""Rows that sign bits leave at most, and at least so many for each result of many."""

_ROWS_PER_RESULT: Final = 16

_COARSE: Final = 2
_COARSE_LEAST: Final = 32
"""Rows that half codes leave for whole codes: so many for each result, at least so many."""

_READ_MOST: Final = 4096
"""Rows up to which codes are read one by one."""

_DEVIATIONS: Final = 6.0
"""Of the rounding of a code, which points anywhere, a query sees a share of 1 / sqrt(dimension)
with a normal spread; so many standard deviations are allowed for where nothing is proven."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Episodes near a query, nearest first, ties in insertion order.

    Attributes:
        episodes: int64[n], keys.
        distances: float64[n], L2 distance of the unit vectors, 0 to 2; of an episode's chunks the
            nearest counts.
        certificate: How they were found.
    """

    episodes: NDArray[np.int64]
    distances: NDArray[np.float64]
    certificate: Certificate


class _Query:
    """A query in the forms that the kernels take."""

    def __init__(self, vector: NDArray[np.float32], k: int, accuracy: str, *, frugal: bool) -> None:
        self.frugal = frugal
        self.vector = vector
        self.k = k
        self.accuracy = accuracy
        self.considered = 0
        self.sketched = False

    def reads(self, rows: NDArray[np.uint32]) -> bool:
        """Say whether the codes of some rows are better read than looked up in a mapping."""
        return (self.sketched or self.frugal) and len(rows) <= _READ_MOST

    @cached_property
    def codes(self) -> QueryCodes:
        """The query as codes are compared with."""
        return QueryCodes(self.vector)

    @property
    def most(self) -> int:
        """How many rows the sign bits may leave at most."""
        return max(_ROWS_MOST[self.accuracy], _ROWS_PER_RESULT * self.k)


def nearest(
    index: EpisodeIndex,
    vector: NDArray[np.float32],
    k: int,
    allowed: EpisodeFilter,
    accuracy: str,
) -> Neighbours:
    """Return the `k` nearest of the allowed episodes, all of them when there are fewer.

    Args:
        index: The index, refreshed in the transaction around this call.
        vector: float32[dim], unit length, rounded as stored vectors are.
        k: How many, at least 1.
        allowed: Applied before the choice, so it never costs answers.
        accuracy: One of `ACCURACIES`.

    Raises:
        Damaged: A segment's file is not what was written.
    """
    query = _Query(vector, k, accuracy, frugal=index.frugal)
    chosen = index.select(allowed)
    matching = sum(one.count for one in chosen)
    parts = list(zip(index.parts, chosen, strict=True))
    keys = _by_graph(index, parts, query, allowed) if accuracy == "fast" else None
    if keys is not None:
        found = _ranked(index, vector, k, keys)
        if len(found[0]) == min(k, matching):
            return Neighbours(*found, _certificate(query, "graph", matching, index.documents))
    query.considered = 0
    keys = _scanned(parts, query)
    way = "sketch" if query.sketched else "scan"
    certificate = _certificate(query, way, matching, index.documents)
    return Neighbours(*_ranked(index, vector, k, keys), certificate)


def nearest_facts(
    facts: FactIndex,
    vector: NDArray[np.float32],
    k: int,
    chosen: Sequence[Selection],
    accuracy: str,
) -> tuple[NDArray[np.int64], NDArray[np.float64], Certificate]:
    """Return the `k` nearest of some facts, nearest first, how far they are, and how it was done.

    Args:
        facts: The index, refreshed in the transaction around this call.
        vector: As for `nearest`.
        k: How many, at least 1.
        chosen: The rows of each of its parts that may be found.
        accuracy: As for `nearest`.
    """
    query = _Query(vector, k, accuracy, frugal=False)
    keys = _scanned(list(zip(facts.parts, chosen, strict=True)), query)
    matching = sum(one.count for one in chosen)
    total = sum(part.documents for part in facts.parts)
    way = "sketch" if query.sketched else "scan"
    return *_ranked(facts, vector, k, keys), _certificate(query, way, matching, total, "facts")


def nearest_of(
    index: EpisodeIndex, vector: NDArray[np.float32], k: int, episodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the `k` nearest of some episodes and their distances, as `Neighbours` has them.

    It is certain that nothing nearer was missed. Episodes without vectors are left out.

    Args:
        index: As for `nearest`.
        vector: Likewise.
        k: Likewise.
        episodes: int64[n], keys, ascending, all of them in the store.

    Raises:
        Damaged: A segment's file is not what was written.
    """
    query = _Query(vector, k, "exact", frugal=index.frugal)
    chosen = [(part, settled(part, rows_of(part, episodes))) for part in index.parts]
    keys = _scanned(chosen, query)
    return _ranked(index, vector, k, keys)


def _scanned(
    parts: list[tuple[Segment | Tail, Selection]], query: _Query
) -> list[NDArray[np.int64]]:
    return [_candidates(part, one, query) for part, one in parts if one.count]


def _ranked(
    index: VectorSource, vector: NDArray[np.float32], k: int, found: list[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the `k` nearest of some different episodes by their true vectors, and how far."""
    keys = np.concatenate(found) if found else np.empty(0, dtype=np.int64)
    distances = true_distances(index, vector, keys)
    order = np.lexsort((keys, distances))[:k]
    # An episode without vectors is near nothing.
    order = order[np.isfinite(distances[order])]
    return keys[order], distances[order]


def _by_graph(
    index: EpisodeIndex,
    parts: list[tuple[Segment | Tail, Selection]],
    query: _Query,
    allowed: EpisodeFilter,
) -> list[NDArray[np.int64]] | None:
    """Return episodes near the query by a graph, and all newer ones that can be near.

    None where there is no graph for what is asked: then it is asked for.
    """
    agent = index.partition(allowed)
    if agent is None:
        return None
    found = index.graphs.nearest(agent, query.vector, query.k)
    if found is None:
        vectors = sum(one.count * part.chunks // max(part.rows, 1) for part, one in parts)
        index.graphs.want(index, agent, vectors)
        return None
    keys, watermark = found
    query.considered = len(keys)
    if len(index.hidden()):
        keys = keys[index.allows(allowed, keys)]
    newer = [
        _candidates(part, Selection(len(rows), rows), query)
        for part, one in parts
        if part.last > watermark and len(rows := _newer(part, one, watermark))
    ]
    return [keys, *newer]


def _newer(part: Segment | Tail, one: Selection, watermark: int) -> NDArray[np.uint32]:
    """Return the selected rows of a part whose episodes are newer than a key."""
    first = int(np.searchsorted(part.keys, watermark, side="right"))
    if one.rows is not None:
        return one.rows[np.searchsorted(one.rows, first) :]
    rows = np.arange(first, part.rows, dtype=np.uint32)
    mask = part.live if one.mask is None else one.mask
    return rows if mask is None else rows[mask[first:]]


def _candidates(part: Segment | Tail, one: Selection, query: _Query) -> NDArray[np.int64]:
    """Return the keys of the episodes of a part that can be among the nearest, each once."""
    if isinstance(part, Tail):
        return _nearest_of_tail(part, one, query)
    owners = part.owners
    rows = one.rows if one.rows is None or owners is None else chunks_of(owners, one.rows)
    if not (part.chunks if rows is None else len(rows)):
        # Texts that wait to be embedded.
        return np.empty(0, dtype=np.int64)
    mask = part.live if rows is None and one.mask is None else one.mask
    certainty = 1.0
    if rows is None and query.accuracy != "exact" and part.chunks > _SCANNED:
        if query.most * 2 < one.count:
            rows = _sketched(part, mask, owners, query)
        if rows is not None:
            mask = None
            certainty = min(1.0, _DEVIATIONS / math.sqrt(len(query.vector)))
            query.sketched = True
    query.considered += part.chunks if rows is None else len(rows)
    near = _compared(part, rows, mask, owners, query, certainty)
    keys: NDArray[np.int64] = part.keys[near if owners is None else distinct(owners[near])]
    return keys


def _nearest_of_tail(tail: Tail, one: Selection, query: _Query) -> NDArray[np.int64]:
    """Return the keys of the nearest of a tail's episodes."""
    owners = tail.owners
    rows = one.rows
    if rows is None and (mask := tail.live if one.mask is None else one.mask) is not None:
        rows = np.flatnonzero(mask).astype(np.uint32)
    if rows is not None and owners is not None:
        rows = chunks_of(owners, rows)
    query.considered += tail.chunks if rows is None else len(rows)
    keys = tail.keys if owners is None else tail.keys[owners]
    listed = None if rows is None else rows.astype(np.int64)
    return top_k(tail.vectors, query.vector, keys, listed, query.k)[0]


def _compared(
    part: Segment,
    rows: NDArray[np.uint32] | None,
    mask: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    query: _Query,
    certainty: float,
) -> NDArray[np.uint32]:
    """Return which of some chunks can belong to the nearest episodes, by their codes."""
    asked = query.codes.asked
    if rows is not None and query.reads(rows):
        codes = _read(part, rows, query)
        mine = rows if owners is None else owners[rows]
        return rows[code_candidates(*codes, *asked, None, None, mine, query.k, certainty)[0]]
    codes = codes_of_rows(part, rows)
    near = code_candidates(*codes, *asked, rows, mask, owners, query.k, certainty)[0]
    if query.frugal:
        part.arrays.release("high")
        part.arrays.release("low")
    return near


def _sketched(
    segment: Segment,
    mask: NDArray[np.bool_] | None,
    owners: NDArray[np.uint32] | None,
    query: _Query,
) -> NDArray[np.uint32] | None:
    """Return the rows that sign bits, and then half codes, leave over.

    None where they are of fewer episodes than were asked for: those have many chunks each.
    """
    arrays = segment.arrays
    signs = sign_bits(query.vector[None, :], arrays.whole("centre"))[0]
    bits = arrays.whole("bits") if query.frugal else segment.bits
    margin = round(_MARGIN[query.accuracy] * math.sqrt(len(query.vector)))
    rows: NDArray[np.uint32] = hamming_nearest(
        bits, signs, mask, owners, query.k, margin, query.most, segment.scratch
    )
    if owners is not None and len(distinct(owners[rows])) < query.k:
        return None
    keep = max(_COARSE_LEAST, _COARSE * query.k)
    if len(rows) <= keep:
        return rows
    scales = segment.scales
    if query.frugal:
        mine = rows if owners is None else owners[rows]
        high = arrays.read("high", rows)
        every = np.arange(len(rows), dtype=np.uint32)
        return rows[coarse_nearest(high, scales[rows], query.codes.asked[0], every, mine, keep)]
    arrays.check_rows("high", rows)
    return coarse_nearest(arrays["high"], scales, query.codes.asked[0], rows, owners, keep)


def _read(segment: Segment, rows: NDArray[np.uint32], query: _Query) -> Codes:
    """Return the codes of some rows in copies.

    The lower halves are read from the file: after sign bits so few are needed that mapping them
    would keep half of all codes in memory for them.
    """
    arrays = segment.arrays
    low = arrays.read("low", rows)
    if query.frugal:
        high = arrays.read("high", rows)
    else:
        arrays.check_rows("high", rows)
        high = arrays["high"][rows]
    return Codes(high, low, segment.scales[rows], segment.errors[rows])


_REASONS: Final = {
    "scan": "every matching vector was compared",
    "sketch": "sign bits chose {considered} vectors to compare, for a scan of all would take long",
    "graph": "a graph of the partition led to {considered} vectors, newer ones included",
}


def _certificate(
    query: _Query, strategy: str, matching: int, total: int, noun: str = "episodes"
) -> Certificate:
    """Say what was done for a query."""
    reason = _REASONS[strategy].format(considered=query.considered)
    return Certificate(
        accuracy=query.accuracy,
        strategy=strategy,
        exact=strategy == "scan",
        matching=matching,
        considered=query.considered,
        reason=f"{matching} of {total} {noun} match: {reason}",
    )
