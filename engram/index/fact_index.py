"""What makes facts found: their words and vectors, and the columns that say which may be.

It is to facts what `EpisodeIndex` is to episodes, of the same parts, in memory only. Whether a fact
holds changes with time, and what supersedes it comes later: those columns lie beside the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import segment as segments
from engram.index.late import completed, without_vectors
from engram.index.selection import Selection, rows_of, settled
from engram.index.tail import Tail
from engram.storage import ColumnBatch, VectorBatch, origins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.index.segment import Segment
    from engram.models import StoredModel
    from engram.storage import FactFilter, FullText, Store

FACT: Final = 1 << 62
"""Added to a fact's key where episodes and facts are told apart by number alone."""

_TAIL_ROWS: Final = 1024
"""Facts beyond which the tail becomes a segment."""

_SEGMENT_ROWS: Final = 32_768
_SMALL_MOST: Final = 8
"""Small segments beyond which they are read anew, as one."""

_REREAD_MOST: Final = 64
"""Changed facts beyond which the columns of all are read anew."""

_FILTERS_KEPT: Final = 8
_EARLIEST: Final = -(2**63)
_LATEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class ChosenFacts:
    """What a filter allows, for as long as nothing is written.

    Attributes:
        keys: int64[n], the facts, ascending.
        parts: The same as rows of each part.
        lacking: int64[m], those of them that have no vector here.
        since: From when on these are the facts that hold, in microseconds.
        until: Until when, exclusive.
    """

    keys: NDArray[np.int64]
    parts: list[Selection]
    lacking: NDArray[np.int64]
    since: int
    until: int


class FactIndex:
    """The facts of a store, by vector, by word and by what filters ask.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        store: The store; only read from.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.model: StoredModel | None = None
        self._clear()

    def _clear(self) -> None:
        """Let go of everything; the next refresh begins anew."""
        self._covered = 0
        self._columns = self.store.fact_search.columns(0, 0)
        self._sources = self.store.fact_search.sources(0, 0)
        self._chosen: dict[FactFilter, ChosenFacts] = {}
        self.segments: list[Segment] = []
        self.tail = Tail(0, self._dim)

    @property
    def _dim(self) -> int:
        # Before there is a model there are no vectors, of any size.
        return 1 if self.model is None else self.model.dim

    @property
    def text(self) -> FullText:
        """What has the facts' words in the store."""
        return self.store.fact_text

    @property
    def parts(self) -> list[Segment | Tail]:
        """The segments, then the tail."""
        return [*self.segments, self.tail]

    def refresh(self) -> None:
        """Apply what was committed that the transaction around this call sees.

        Raises:
            CorruptStore: The store's rows are not what its change log says.
        """
        last, model = self.store.last_change(), self.store.model()
        if last == self._covered and model == self.model:
            return
        try:
            if model != self.model:
                self.model = model
                self._clear()
            self._replay()
        except BaseException:
            # Half a change applied twice would be a wrong index: start over next time.
            self._clear()
            raise
        self._covered = last

    def _replay(self) -> None:
        changed = set[int]()
        for op, first, last in self.store.changes_after(self._covered) if self._covered else ():
            if op in ("assert", "supersede", "forget_fact"):
                # Of those asserted now the first says as much as all.
                changed.add(first)
            elif op in ("forget", "lifecycle"):
                # What facts came from tells how far they are trusted, and whether they show.
                episodes, facts = self._sources.T
                changed.update(facts[(first <= episodes) & (episodes <= last)].tolist())
            if op == "forget_fact":
                self._forget(first, last)
        if self._covered and not changed:
            return
        self._read_columns(sorted(changed))
        self._chosen.clear()
        self._extend()

    def _forget(self, first: int, last: int) -> None:
        for part in self.parts:
            if part.rows and part.first <= last and first <= part.last:
                part.forget(first, last)

    def _read_columns(self, changed: list[int]) -> None:
        """Read the columns of some facts and of all newer ones; of no facts means of all."""
        read, newest = self.store.fact_search.columns, self.tail.last
        sources = self.store.fact_search.sources
        older = [key for key in changed if key <= newest]
        if not changed or len(older) > _REREAD_MOST:
            self._columns, self._sources = read(), sources()
            return
        # Those of an older fact only become fewer, and who is forgotten is not forgotten again.
        self._sources = np.concatenate((self._sources, sources(newest + 1)))
        kept = self._columns.without(older)
        self._columns = kept.with_others([*(read(key, key) for key in older), read(newest + 1)])

    def _extend(self) -> None:
        """Read the facts newer than the newest one in a part."""
        keys = self._columns.keys
        first = int(np.searchsorted(keys, self.tail.last, side="right"))
        if self.tail.rows + len(keys) - first <= _TAIL_ROWS:
            if first < len(keys):
                rows = slice(first, len(keys))
                self.tail.append(self._batch(rows), self._vectors(keys[rows]))
            return
        small = [part for part in self.segments if part.rows < _SEGMENT_ROWS // 2]
        begins = self.tail.first
        if len(small) >= _SMALL_MOST:
            # Only the last ones are small: a load makes one, and what comes later.
            begins = small[0].first
            self.segments = self.segments[: self.segments.index(small[0])]
        first = int(np.searchsorted(keys, begins))
        for begin in range(first, len(keys), _SEGMENT_ROWS):
            rows = slice(begin, begin + _SEGMENT_ROWS)
            self.segments.append(self._segment(rows))
        self.tail = Tail(int(keys[-1]), self._dim)

    def _batch(self, rows: slice) -> ColumnBatch:
        columns = self._columns
        none = np.zeros(len(columns.keys[rows]))
        return ColumnBatch(
            columns.keys[rows],
            columns.agents[rows],
            columns.begins[rows],
            columns.origins[rows],
            none,
            none,
        )

    def _vectors(self, keys: NDArray[np.int64]) -> VectorBatch:
        if self.model is None:
            none = np.empty((0, self._dim), dtype=np.float32)
            return VectorBatch(np.empty(0, dtype=np.int64), none)
        return self.store.fact_search.of(keys, self.model)

    def vectors_of(self, keys: NDArray[np.int64]) -> VectorBatch:
        """Return the store's vectors of some facts, given by ascending keys, int64[n]."""
        return self._vectors(keys)

    def _segment(self, rows: slice) -> Segment:
        batch, text = self._batch(rows), self.store.fact_text
        first, last = batch.keys[[0, -1]].tolist()
        return segments.from_store(
            [batch],
            [self._vectors(batch.keys)],
            text.bodies(first, last),
            text.tokenizer(),
            self._dim,
        )

    def choose(self, allowed: FactFilter, at: int) -> ChosenFacts:
        """Return what a filter allows of the facts that hold at a time; asked again, it is kept.

        Args:
            allowed: The filter.
            at: The time, in microseconds.
        """
        found = self._chosen.pop(allowed, None)
        if found is None or not found.since <= at < found.until:
            found = self._choose(allowed, at)
        if len(self._chosen) >= _FILTERS_KEPT:
            del self._chosen[next(iter(self._chosen))]
        self._chosen[allowed] = found
        return found

    def _choose(self, allowed: FactFilter, at: int) -> ChosenFacts:
        columns = self._columns
        keys = columns.keys[self._allowed(allowed) & (columns.begins <= at) & (at < columns.ends)]
        turns = np.concatenate((columns.begins, columns.ends))
        bare = [without_vectors(part, [(part.first, part.last)]) for part in self.parts]
        return ChosenFacts(
            keys,
            [settled(part, rows_of(part, keys)) for part in self.parts],
            keys[np.isin(keys, np.concatenate(bare))],
            int(turns[turns <= at].max(initial=_EARLIEST)),
            int(turns[turns > at].min(initial=_LATEST)),
        )

    def _allowed(self, allowed: FactFilter) -> NDArray[np.bool_]:
        """Return which facts a filter allows, whenever they hold, bool[n]."""
        columns = self._columns
        mask = ~columns.hidden
        if allowed.nothing:
            mask[:] = False
        if allowed.open:
            mask &= columns.open
        if allowed.agent is not None:
            agent = self.store.agent(allowed.agent)
            mask &= columns.shared if agent is None else columns.shared | (columns.agents == agent)
        if allowed.since is not None:
            mask &= columns.begins >= allowed.since
        if allowed.until is not None:
            mask &= columns.begins <= allowed.until
        if allowed.provenances or allowed.exclude_quarantined:
            trusted = origins(allowed.provenances, exclude_quarantined=allowed.exclude_quarantined)
            mask &= trusted[columns.origins]
        return mask

    def lacking(self, allowed: FactFilter, at: int) -> list[int]:
        """Return the facts that a filter allows and that the store has no vector of, ascending.

        Arguments are those of `choose`. Vectors that came into the store are taken over.
        """
        keys = self.choose(allowed, at).lacking
        if len(keys) and len((late := self._vectors(keys)).episodes):
            self._embed(late)
            keys = self.choose(allowed, at).lacking
        lacking: list[int] = keys.tolist()
        return lacking

    def _embed(self, late: VectorBatch) -> None:
        for place, part in enumerate(self.parts):
            bare = without_vectors(part, [(part.first, part.last)])
            mine = np.isin(late.episodes, bare)
            if not mine.any():
                continue
            found = VectorBatch(late.episodes[mine], late.vectors[mine])
            if isinstance(part, Tail):
                part.embed(found)
            else:
                self.segments[place] = completed(part, found)
        self._chosen.clear()
