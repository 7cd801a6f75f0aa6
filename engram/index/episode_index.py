"""What makes recall fast: the store's episodes as segments and a tail, up to a change sequence.

SQLite is the truth. Before each search `refresh` applies what was committed since, by any thread or
process, so a search sees every write made before it. Episodes enter at the end and keys only grow,
so a refresh reads what is newer than the newest episode here and marks what was forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram.index import matching
from engram.index import segment as segments
from engram.index.graphs import Graphs
from engram.index.late import completed, without_vectors
from engram.index.mapped import Damaged
from engram.index.selection import LabelRows, Selection, Selector
from engram.index.tail import Tail
from engram.storage import Traces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from engram.index.ranking import WordWeights
    from engram.index.segment import Segment
    from engram.index.shelf import Shelf
    from engram.models import StoredModel
    from engram.storage import EpisodeFilter, FullText, Store, VectorBatch

TAIL_ROWS: Final = 4096
"""Episodes beyond which the tail becomes a segment. Stores with fewer need none: scans of whole
vectors, and of words in memory, answer them within a few milliseconds."""

SEGMENT_ROWS: Final = 65_536
"""Episodes read into one segment at a time."""

_ROW_BYTES: Final = 100
"""What an episode has beside its codes: columns, postings, sign bits."""

DEFAULT_BUDGET: Final = 512 * 2**20

_EVERY_KEY: Final = 2**63 - 1
_FILTERS_KEPT: Final = 8


class EpisodeIndex:
    """The episodes of a store, by vector, by word and by what filters ask.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        store: The store; only read from.
        model: The store's current model.
        shelf: Where segments are kept; see `Shelf`.
        budget: Bytes of memory to get by with.
    """

    def __init__(self, store: Store, model: StoredModel, shelf: Shelf, budget: int) -> None:
        self.store = store
        self.budget = budget
        self.model = model
        self.shelf = shelf
        self.clear()

    def clear(self) -> None:
        """Let go of everything; the next refresh begins anew."""
        self.covered = 0
        self.graphs = Graphs()
        self.segments: list[Segment] = []
        self.tail = Tail(0, self.model.dim)
        self._labels = LabelRows()
        self._selections: dict[EpisodeFilter, list[Selection]] = {}
        self._hidden = np.empty(0, dtype=np.int64)
        self._hidden_to = 0

    @property
    def text(self) -> FullText:
        """What has the episodes' words in the store."""
        return self.store.text

    @property
    def parts(self) -> list[Segment | Tail]:
        """The segments, then the tail."""
        return [*self.segments, self.tail]

    @property
    def documents(self) -> int:
        """How many episodes there are."""
        return sum(part.documents for part in self.parts)

    @property
    def size(self) -> int:
        """The bytes that searching without a filter has in use."""
        return sum(part.chunks for part in self.parts) * (self.model.dim + _ROW_BYTES)

    @property
    def frugal(self) -> bool:
        """Whether codes are read when they are needed, instead of being kept in memory."""
        return self.size > self.budget

    def refresh(self) -> None:
        """Apply the changes that the transaction around this call sees and the index lacks.

        Raises:
            CorruptStore: The store's rows are not what its change log says.
        """
        last = self.store.last_change()
        if last == self.covered:
            return
        try:
            self._extend(self._take_over())
        except BaseException:
            # Half a change applied twice would be a wrong index: start over next time.
            self.clear()
            raise
        self._selections.clear()
        self.covered = last

    def start_over(self) -> None:
        """Let go of everything and build it from the store: a kept file is not what was written."""
        self.shelf.distrust()
        self.clear()
        self.refresh()

    def _take_over(self) -> int | None:
        """Bring what is here, or else what the shelf holds, to this state of the store.

        Returns:
            How many episodes at most are newer than the newest here, None if any number can be.
        """
        try:
            if self.covered:
                return self._replay()
            self._open()
            self._replay()
        except Damaged:
            self.shelf.distrust()
            self.clear()
        return None

    def _open(self) -> None:
        """Take what the shelf holds."""
        found = self.shelf.open(self.store.snapshot(), self.model)
        if found is not None:
            self.covered, self.segments = found.covered, found.segments
            self.tail = Tail(found.after, self.model.dim)
            self.graphs.kept = found.graphs

    def _replay(self) -> int | None:
        if self.covered == 0:
            return None
        newer = 0
        late: list[tuple[int, int]] = []
        for op, first, last in self.store.changes_after(self.covered):
            if op == "reembed":
                model = self.store.model()
                assert model is not None  # noqa: S101 - the change that names it was just read
                self.model = model
                self.clear()
                return None
            if op == "observe":
                newer += last - first + 1
            elif op == "embed":
                late.append((first, last))
            else:
                self._note(op, first, last)
        if late:
            self._complete(late)
        return newer

    def _note(self, op: str, first: int, last: int) -> None:
        """Apply a change of episodes that may be here, the keys `first` to `last`."""
        if op == "lifecycle":
            self._hidden_to = 0
        elif op == "relabel":
            self._labels.forget(first, last)
        elif op == "forget":
            self.store.embeddings.forgotten(first, last)
            for part in self.parts:
                if part.rows and part.first <= last and first <= part.last:
                    part.forget(first, last)

    def _complete(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Take over the vectors of episodes that are here and had none, in ranges of keys."""
        for at, part in enumerate(self.parts):
            bare = without_vectors(part, ranges)
            found = self.store.embeddings.of(bare, self.model)
            if not len(found.episodes):
                continue
            self.graphs.outdate(int(found.episodes[0]))
            if isinstance(part, Tail):
                part.embed(found)
            else:
                self.segments[at] = self.shelf.keep(completed(part, found))
        self._parts_changed()

    def _extend(self, newer: int | None) -> None:
        """Read the episodes newer than the newest one here.

        Args:
            newer: How many there are at most, None if any number can be.
        """
        if newer is not None and self.tail.rows + newer <= TAIL_ROWS:
            if newer:
                self._append(self.tail.last + 1, _EVERY_KEY)
            return
        count = SEGMENT_ROWS
        while count == SEGMENT_ROWS:
            end, count = self.store.columns.following(self.tail.last, SEGMENT_ROWS)
            if self.tail.rows + count > TAIL_ROWS:
                self._add_segment(self.tail.first, end)
            elif count:
                self._append(self.tail.last + 1, end)

    def _append(self, begin: int, end: int) -> None:
        """Add the episodes between two keys, both included, to the tail."""
        for columns in self.store.columns.between(begin, end):
            first, last = columns.keys[[0, -1]].tolist()
            vectors = list(self.store.embeddings.between(first, last, self.model))
            self.tail.append(columns, segments.joined(vectors, self.model.dim))

    def seal(self) -> None:
        """Make a segment of the tail's episodes, in the caller's transaction."""
        first, last = self.tail.first, self.tail.last
        if self.tail.documents:
            self._add_segment(first, last)
        else:
            self.tail = Tail(last, self.model.dim)
            self._parts_changed()

    def _add_segment(self, first: int, last: int) -> None:
        store = self.store
        new = segments.from_store(
            store.columns.between(first, last),
            store.embeddings.between(first, last, self.model),
            store.text.bodies(first, last),
            store.text.tokenizer(),
            self.model.dim,
        )
        damaged = store.embeddings.damaged
        self.segments.append(new if damaged else self.shelf.keep(new))
        self.tail = Tail(last, self.model.dim)
        self._parts_changed()

    def _parts_changed(self) -> None:
        """Let go of what is kept for parts that are gone."""
        self._labels.keep_only(set(self.parts))
        self._selections.clear()

    def put(self, old: Sequence[Segment], new: Segment | None) -> bool:
        """Put a merged segment in the place of those it was made of, in a transaction.

        Returns:
            Whether they were still here.
        """
        if not old or old[0] not in self.segments:
            return False
        at = self.segments.index(old[0])
        if self.segments[at : at + len(old)] != list(old):
            return False
        self.segments[at : at + len(old)] = [] if new is None else [new]
        self._parts_changed()
        return True

    def vectors_of(self, keys: NDArray[np.int64]) -> VectorBatch:
        """Return the store's vectors of some episodes, given by ascending keys, int64[n]."""
        return self.store.embeddings.of(keys, self.model)

    def select(self, allowed: EpisodeFilter) -> list[Selection]:
        """Return what a filter allows of each part; asked again, it costs nothing."""
        found = self._selections.pop(allowed, None)
        if found is None:
            selector = Selector(self.store, allowed, self._labels, self.hidden())
            found = [selector.select(part) for part in self.parts]
        if len(self._selections) >= _FILTERS_KEPT:
            del self._selections[next(iter(self._selections))]
        self._selections[allowed] = found
        return found

    def hidden(self) -> NDArray[np.int64]:
        """Return the keys of the episodes that are there and not available, ascending."""
        if self._hidden_to < self.tail.last:
            known = self._hidden if self._hidden_to else self._hidden[:0]
            more = self.store.episodes.unavailable(self._hidden_to)
            self._hidden = np.concatenate((known, more))
            self._hidden_to = self.tail.last
        return self._hidden

    def allows(self, allowed: EpisodeFilter, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some episodes, int64[n] by ascending key, a filter allows, bool[n]."""
        shown = np.zeros(len(keys), dtype=np.bool_)
        for part, one in zip(self.parts, self.select(allowed), strict=True):
            first, end = np.searchsorted(keys, (part.first, part.last + 1)).tolist()
            rows = np.searchsorted(part.keys, keys[first:end])
            rows[rows == part.rows] = 0
            here = part.keys[rows] == keys[first:end] if part.rows else np.zeros(0, np.bool_)
            if one.rows is not None:
                here &= np.isin(rows, one.rows)
            elif one.mask is not None:
                here &= one.mask[rows]
            shown[first:end] = here
        return shown

    def partition(self, allowed: EpisodeFilter) -> int | None:
        """Return the agent whose episodes are all that a filter allows, -1 for no agent's.

        None where it allows others, or asks for more than an agent.
        """
        if not allowed.only_scope:
            return None
        if allowed.agent is not None:
            return self.store.agent(allowed.agent)
        found = [part.agent_ids for part in self.parts if part.rows]
        if not found or any(len(ids) > 1 or ids[0] != found[0][0] for ids in found):
            return None
        return int(found[0][0])

    def traces(self, agent: str | None, most: int) -> Iterator[Traces]:
        """Yield what importance is computed from, of an agent's episodes or everyone's, ascending.

        Each step is asked for in a transaction of the caller's and holds what is there then.

        Args:
            agent: Whose episodes; None is everyone's.
            most: Episodes in a step at most.
        """
        owner = None if agent is None else self.store.agent(agent)
        if agent is not None and owner is None:
            return
        after = 0
        while True:
            self.refresh()
            part = next((one for one in self.parts if one.rows and one.last > after), None)
            if part is None:
                return
            try:
                found, after = _traces(part, owner, after, most)
            except Damaged:
                self.start_over()
                continue
            if len(found.episodes):
                yield found

    def match(
        self, query: str, allowed: EpisodeFilter, limit: int, *, every_word: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches by BM25 among the episodes a filter allows.

        Arguments, result and errors are those of `TextIndex.search`; the scores differ, by the
        constants of BM25. Costs time in the number of postings of the query's terms.
        """
        return matching.match(self, query, allowed, limit, every_word=every_word)

    def weigh(self, terms: Sequence[str], keys: NDArray[np.int64]) -> WordWeights:
        """Return what some episodes, int64[n] in any order, have of some terms.

        For those of a query, as `FullText.words_of` has them, its `scores` are those of `match`.
        Episodes that are not here have nothing.
        """
        return matching.weigh(self, terms, keys)

    def match_beginnings(
        self, query: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches of words that begin as those of a query do, likewise.

        See `TextIndex.search_beginnings`. Costs time in the number of postings of these words,
        which lie side by side: the vocabulary is sorted.
        """
        return matching.match_beginnings(self, query, allowed, limit)


def _traces(part: Segment | Tail, owner: int | None, after: int, most: int) -> tuple[Traces, int]:
    """Return the next traces of a part after a key, and the key that they reach to."""
    mine = None if owner is None else part.agent_rows(owner)
    keys = part.keys if mine is None else part.keys[mine]
    first = int(np.searchsorted(keys, after, side="right"))
    places = slice(first, first + most)
    rows = np.arange(part.rows)[places] if mine is None else mine[places]
    reached = int(part.keys[rows[-1]]) if len(rows) == most else part.last
    if part.live is not None:
        rows = rows[part.live[rows]]
    found = Traces(
        episodes=part.keys[rows],
        salience=part.column("salience")[rows],
        valence=part.column("valence")[rows],
        happened=part.times[rows],
    )
    return found, reached
