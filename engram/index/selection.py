"""Which rows of a segment a filter allows: few as a list, many as a mask, all as neither.

Agent, event time and origin are columns of the index. Labels, and what an episode is as an
experience, are looked up in the store once and kept as roaring bitmaps of rows: a segment's rows
never change, and an episode's labels seldom.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from pyroaring import BitMap

from engram.index.segment import ZONE, Segment
from engram.storage import QUARANTINED, origins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.index.tail import Tail
    from engram.storage import EpisodeFilter, Store

FEW: Final = 4096
"""Allowed rows of a segment up to which they are listed: going through them costs less than a scan
of all."""

_FEW_OF: Final = 50
"""Listed as well: up to one row in so many."""

_LABELS_KEPT: Final = 64
"""Bitmaps kept for a segment."""

Kind = Literal["actor", "tag", "any_case_tag", "memory_type", "project"]
"""What bitmaps are kept of."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of one segment that a filter allows, forgotten ones left out.

    Attributes:
        count: How many.
        rows: uint32[count], ascending, where they are few.
        mask: bool[n], where they are many but not all.
    """

    count: int
    rows: NDArray[np.uint32] | None = None
    mask: NDArray[np.bool_] | None = None


class Selector:
    """Applies one filter to the segments of an index.

    Args:
        store: The store, in a transaction.
        allowed: The filter.
        labels: The bitmaps kept so far, by segment; this adds to them.
        hidden: int64[n], ascending, the keys of the episodes that are there and not available.
    """

    def __init__(
        self,
        store: Store,
        allowed: EpisodeFilter,
        labels: LabelRows,
        hidden: NDArray[np.int64],
    ) -> None:
        self._hidden = hidden
        self._allowed = allowed
        self._labels = labels
        self._store = store
        self._agent = None if allowed.agent is None else store.agent(allowed.agent)
        self._nobody = allowed.agent is not None and self._agent is None
        self._origins = None
        if allowed.provenances or allowed.exclude_quarantined:
            self._origins = origins(
                allowed.provenances, exclude_quarantined=allowed.exclude_quarantined
            )
        # Of each kind any of the names will do.
        self._wanted: list[tuple[Kind, tuple[str, ...]]] = [
            *(("tag", (name,)) for name in allowed.tags),
            *(("any_case_tag", (name,)) for name in allowed.any_case_tags),
            *(("actor", (name,)) for name in allowed.actors),
        ]
        if allowed.memory_types:
            self._wanted.append(("memory_type", allowed.memory_types))
        if allowed.project is not None:
            self._wanted.append(("project", (allowed.project,)))

    def select(self, segment: Segment | Tail) -> Selection:
        """Return what the filter allows of a segment."""
        if self._nobody or not segment.documents:
            return Selection(0, np.empty(0, dtype=np.uint32))
        hidden = rows_of(segment, self._hidden)
        listed = self._listed(segment, hidden)
        if listed is not None:
            return settled(segment, self._filtered(segment, listed, hidden))
        mask = self._in_time(segment)
        if isinstance(mask, Selection):
            return settled(segment, self._filtered(segment, mask.rows, hidden))
        if self._origins is not None:
            by_origin = self._origins[segment.origins]
            mask = by_origin if mask is None else mask & by_origin
        if segment.live is not None:
            mask = segment.live if mask is None else mask & segment.live
        if len(hidden):
            mask = np.ones(segment.rows, dtype=np.bool_) if mask is None else mask.copy()
            mask[hidden] = False
        if mask is None:
            return Selection(segment.rows)
        count = int(np.count_nonzero(mask))
        if count <= _few(segment.rows):
            return Selection(count, np.flatnonzero(mask).astype(np.uint32))
        return Selection(count, None, mask)

    def _listed(
        self, segment: Segment | Tail, hidden: NDArray[np.uint32]
    ) -> NDArray[np.uint32] | None:
        """Return the rows with the agent and the labels asked for, None where that is all."""
        if self._allowed.standing == "withheld":
            return self._withheld(segment, hidden)
        agent = None if self._agent is None else segment.agent_rows(self._agent)
        if not self._wanted:
            return agent
        found = BitMap.intersection(*(self._labelled(segment, *one) for one in self._wanted))
        if agent is not None and len(agent) < len(found):
            return _rows(found & _bitmap(agent))
        rows = _rows(found)
        return rows if agent is None else rows[segment.agents[rows] == self._agent]

    def _withheld(self, segment: Segment | Tail, hidden: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the rows that are hidden or quarantined, of the agent and with the labels."""
        quarantined = np.flatnonzero(segment.origins >= QUARANTINED).astype(np.uint32)
        rows = np.union1d(hidden, quarantined)
        if self._agent is not None:
            rows = rows[segment.agents[rows] == self._agent]
        for wanted in self._wanted:
            rows = rows[np.isin(rows, _rows(self._labelled(segment, *wanted)))]
        return rows

    def _labelled(self, segment: Segment | Tail, kind: Kind, names: tuple[str, ...]) -> BitMap:
        """Return the rows that have any of some labels."""
        return BitMap.union(*(self._labels.of(self._store, segment, kind, one) for one in names))

    def _filtered(
        self,
        segment: Segment | Tail,
        rows: NDArray[np.uint32] | None,
        hidden: NDArray[np.uint32],
    ) -> NDArray[np.uint32]:
        """Return those of some rows that time, origin, liveness and standing let through."""
        assert rows is not None  # noqa: S101 - the callers list them
        if len(hidden) and self._allowed.standing == "available":
            rows = rows[~np.isin(rows, hidden)]
        since, until = self._allowed.since, self._allowed.until
        if since is not None:
            rows = rows[segment.times[rows] >= since]
        if until is not None:
            rows = rows[segment.times[rows] <= until]
        if self._origins is not None:
            rows = rows[self._origins[segment.origins[rows]]]
        return rows if segment.live is None else rows[segment.live[rows]]

    def _in_time(self, segment: Segment | Tail) -> NDArray[np.bool_] | Selection | None:
        """Return the rows in the time asked for: a mask, a list of candidates, None for all.

        Only zones that the bounds cut through are looked into.
        """
        since, until = self._allowed.since, self._allowed.until
        if since is None and until is None:
            return None
        earliest, latest = segment.zones()
        inside = np.ones(len(earliest), dtype=np.bool_)
        reached = inside.copy()
        if since is not None:
            inside &= earliest >= since
            reached &= latest >= since
        if until is not None:
            inside &= latest <= until
            reached &= earliest <= until
        if inside.all():
            return None
        zones = np.flatnonzero(reached)
        if len(zones) * ZONE <= _few(segment.rows):
            rows = (zones[:, None] * ZONE + np.arange(ZONE)).reshape(-1)
            return Selection(0, rows[rows < segment.rows].astype(np.uint32))
        mask = np.repeat(reached, ZONE)[: segment.rows]
        for zone in np.flatnonzero(reached & ~inside).tolist():
            part = slice(zone * ZONE, (zone + 1) * ZONE)
            times = segment.times[part]
            if since is not None:
                mask[part] &= times >= since
            if until is not None:
                mask[part] &= times <= until
        return mask


def rows_of(segment: Segment | Tail, keys: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the rows that some episodes, int64[n] by ascending key, have in a segment."""
    first, end = np.searchsorted(keys, (segment.first, segment.last + 1)).tolist()
    if first == end:
        return np.empty(0, dtype=np.uint32)
    mine = keys[first:end]
    rows = np.searchsorted(segment.keys, mine)
    rows[rows == segment.rows] = 0
    found: NDArray[np.uint32] = rows[segment.keys[rows] == mine].astype(np.uint32)
    return found


def times_of(parts: Sequence[Segment | Tail], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when each of some rows of an index happened, int64[n], in microseconds.

    Args:
        parts: The parts of the index.
        keys: int64[n], ascending, each of them in a part.

    Raises:
        Damaged: A segment's file is not what was written.
    """
    found = [part.times[rows] for part in parts if len(rows := rows_of(part, keys))]
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


def _few(rows: int) -> int:
    return max(FEW, rows // _FEW_OF)


def settled(segment: Segment | Tail, rows: NDArray[np.uint32]) -> Selection:
    """Return listed rows as what suits their number."""
    if len(rows) == segment.rows:
        return Selection(len(rows))
    if len(rows) <= _few(segment.rows):
        return Selection(len(rows), rows)
    mask = np.zeros(segment.rows, dtype=np.bool_)
    mask[rows] = True
    return Selection(len(rows), None, mask)


def _bitmap(rows: NDArray[np.uint32]) -> BitMap:
    # An array of this kind is the one that is not read element by element.
    return BitMap(array("I", rows.tobytes()))


def _rows(bitmap: BitMap) -> NDArray[np.uint32]:
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32)


class LabelRows:
    """The rows that have a label, by segment.

    Not thread-safe: used inside the store's transactions, which take turns.
    """

    def __init__(self) -> None:
        # The bitmap of each label, and the last key it covers.
        self._kept: dict[Segment | Tail, dict[tuple[Kind, str], tuple[BitMap, int]]] = {}

    def of(self, store: Store, segment: Segment | Tail, kind: Kind, name: str) -> BitMap:
        """Return the rows of a segment whose episodes have a label, forgotten ones maybe too."""
        kept = self._kept.setdefault(segment, {})
        found, covered = kept.pop((kind, name), (None, segment.first - 1))
        if found is None or covered < segment.last:
            keys = _labelled(store, kind, name, covered + 1, segment.last)
            new = _bitmap(np.searchsorted(segment.keys, keys).astype(np.uint32))
            found = new if found is None else found | new
        if len(kept) >= _LABELS_KEPT:
            del kept[next(iter(kept))]
        kept[kind, name] = found, segment.last
        return found

    def forget(self, first: int, last: int) -> None:
        """Let go of the bitmaps of segments with any of the episodes `first` to `last`."""
        self._kept = {
            one: kept for one, kept in self._kept.items() if one.last < first or last < one.first
        }

    def keep_only(self, segments: set[Segment | Tail]) -> None:
        """Let go of the bitmaps of all other segments."""
        self._kept = {one: kept for one, kept in self._kept.items() if one in segments}


def _labelled(store: Store, kind: Kind, name: str, first: int, last: int) -> NDArray[np.int64]:
    """Return which of the episodes `first` to `last` the store says have a label, ascending."""
    if kind == "memory_type" or kind == "project":
        return store.columns.experiences(kind, name, first, last)
    if kind == "any_case_tag":
        return store.labels.any_case(name, first, last)
    return store.labels.episodes(kind, name, first, last)
