"""Ranked keyword search: FTS5, and for large stores that are searched often, postings in memory.

The postings mirror the store's episodes up to a change sequence, like the vectors. They hold the
terms of FTS5's own tokenizer and rank by its formula, so they give its answers, score for score;
FTS5 stays the truth, and answers itself what the postings do not know: phrases.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

import numpy as np

from engram._native import bm25
from engram.errors import CorruptStore
from engram.index.allowed import allowed_rows
from engram.storage import EpisodeFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.storage import Store, TermBatch

    _Run = tuple[NDArray[np.int32], NDArray[np.uint32]]

_EVERY_KEY: Final = 2**63 - 1
_EVERYTHING: Final = EpisodeFilter()

SMALLEST = 4096
"""Stores with fewer episodes are left to FTS5: it answers them within a few milliseconds."""

BUILD_COST = 16
"""Building costs about as much for each episode as FTS5 takes for this many postings."""

_LEAST_TAIL = 4096
_ASIDE: Final = 255


class TextPostings:
    """The words of a store's episodes.

    A store of less than `SMALLEST` episodes never gets postings, and a larger one only once FTS5
    has gone through `BUILD_COST` postings for each of its episodes, in searches of this instance:
    a build costs no more than was spent before it. Work is counted, not time, so the same calls
    always take the same way, and either way gives the same answers. The postings go with the
    instance.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        store: The store; only read from.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spent = 0
        self._uncounted: list[str] = []
        self._clear()

    def _clear(self) -> None:
        self._covered = 0
        self._size = 0
        self._documents = 0
        self._tokens = 0
        self._episodes = np.empty(0, dtype=np.int64)
        self._agents = np.empty(0, dtype=np.int64)
        self._times = np.empty(0, dtype=np.int64)
        self._lengths = np.empty(0, dtype=np.uint32)
        self._live = np.empty(0, dtype=np.bool_)
        self._vocabulary: dict[str, int] = {}
        # Postings are pairs of a row and a frequency: those of a term lie together, those of
        # episodes added since are in the tail.
        self._starts = np.zeros(1, dtype=np.int64)
        self._pairs = np.empty((0, 2), dtype=np.uint32)
        self._tail: dict[int, array[int]] = {}
        self._tail_size = 0

    def search(
        self, query: str, allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the best matches by BM25 among the episodes a filter allows.

        Arguments, result and errors are those of `TextIndex.search`. Costs time in the number of
        postings of the query's terms, little for each.
        """
        text = self._store.text
        if self._covered == 0 and text.span() < SMALLEST:
            return text.search(query, allowed, limit)
        terms = text.terms_of(query)
        if terms is None:
            return text.search(query, allowed, limit)
        if self._covered == 0 and not self._is_worth_building(terms):
            return text.search(query, allowed, limit)
        self._refresh()
        return self._rank(terms, allowed, limit)

    def _is_worth_building(self, terms: list[str]) -> bool:
        """Say whether searches have cost as much as a build, before one for some terms."""
        # A search is counted when the next one comes: a process that makes only one never pays.
        if self._uncounted:
            self._spent += self._store.text.count_postings(self._uncounted)
        self._uncounted = terms
        return self._spent >= BUILD_COST * self._store.text.span()

    def _rank(
        self, terms: Sequence[str], allowed: EpisodeFilter, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        shown = self._shown(allowed)
        if self._tokens == 0 or (shown is not None and not shown.any()):
            return np.empty(0, dtype=np.int64), np.empty(0)
        none = np.empty((0, 2), dtype=np.uint32)
        lists = [np.concatenate((none, *self._postings(term))) for term in terms]
        ends = np.cumsum([0, *map(len, lists)])
        rows, frequencies = np.concatenate((none, *lists)).T
        large = np.flatnonzero(frequencies >= _ASIDE)
        part = (
            self._lengths[: self._size],
            rows.copy(),
            np.minimum(frequencies, _ASIDE).astype(np.uint8),
            large,
            frequencies[large],
            None if self._documents == self._size else self._live[: self._size],
            shown,
        )
        ranges = np.stack((ends[:-1], ends[1:]), axis=1)[np.newaxis]
        mean = self._tokens / self._documents
        _, found, scores = bm25([part], ranges, self._documents, mean, limit)
        return self._episodes[found], scores

    def _postings(self, term: str) -> list[NDArray[np.uint32]]:
        number = self._vocabulary.get(term)
        if number is None:
            return []
        found = []
        if number + 1 < len(self._starts):
            found.append(self._pairs[self._starts[number] : self._starts[number + 1]])
        if number in self._tail:
            # A copy: an array that lends its memory cannot grow.
            found.append(np.array(self._tail[number], dtype=np.uint32).reshape(-1, 2))
        return found

    def _shown(self, allowed: EpisodeFilter) -> NDArray[np.bool_] | None:
        """Return which rows a filter allows, bool[n], None for all live ones."""
        if allowed == _EVERYTHING:
            return None
        used = slice(0, self._size)
        columns = (self._episodes[used], self._agents[used], self._times[used], self._live[used])
        return allowed_rows(self._store, allowed, *columns)

    def _refresh(self) -> None:
        """Apply the changes that the transaction around this call sees and the postings lack."""
        last = self._store.last_change()
        if last == self._covered:
            return
        try:
            if self._covered == 0:
                self._load(0, _EVERY_KEY)
            else:
                for op, first, end in self._store.changes_after(self._covered):
                    if op == "observe":
                        self._load(first, end)
                    elif op == "forget":
                        self._drop(first, end)
        except BaseException:
            # Half a change applied twice would be wrong postings: start over next time.
            self._clear()
            raise
        self._covered = last

    def _load(self, first: int, last: int) -> None:
        runs = [self._append(batch) for batch in self._store.text.terms_between(first, last)]
        added = sum(len(pairs) for _, pairs in runs)
        if self._tail_size + added > max(len(self._pairs) // 2, _LEAST_TAIL):
            self._merge(runs)
            return
        self._tail_size += added
        for terms, pairs in runs:
            cuts = np.flatnonzero(np.diff(terms, prepend=-1, append=-1))
            for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                tail = self._tail.setdefault(int(terms[start]), array("I"))
                tail.frombytes(pairs[start:end].tobytes())

    def _append(self, batch: TermBatch) -> _Run:
        """Add the rows of some episodes; return their postings, the term of each, by term."""
        start, end = self._size, self._size + len(batch.episodes)
        before = self._episodes[start - 1] if start else 0
        if (np.diff(batch.episodes, prepend=before) <= 0).any():
            message = "the stored episodes are not in the order of the change log"
            raise CorruptStore(message, "restore a backup")
        if end > len(self._episodes):
            self._grow(max(end, 2 * len(self._episodes), 64))
        lengths = np.fromiter(map(len, batch.terms), dtype=np.uint32, count=end - start)
        self._episodes[start:end] = batch.episodes
        self._agents[start:end] = batch.agents
        self._times[start:end] = batch.times
        self._lengths[start:end] = lengths
        self._live[start:end] = True
        self._size = end
        self._documents += end - start
        self._tokens += int(lengths.sum())
        vocabulary = self._vocabulary
        terms = np.array(
            [vocabulary.setdefault(t, len(vocabulary)) for listed in batch.terms for t in listed],
            dtype=np.int64,
        )
        each = terms << 32 | np.repeat(np.arange(start, end), lengths)
        distinct, frequencies = np.unique(each, return_counts=True)
        pairs = np.stack((distinct & 0xFFFFFFFF, frequencies), axis=1).astype(np.uint32)
        return (distinct >> 32).astype(np.int32), pairs

    def _grow(self, capacity: int) -> None:
        for name in ("_episodes", "_agents", "_times", "_lengths", "_live"):
            old = getattr(self, name)
            new = np.zeros(capacity, dtype=old.dtype)
            new[: self._size] = old[: self._size]
            setattr(self, name, new)

    def _drop(self, first: int, last: int) -> None:
        low, high = np.searchsorted(self._episodes[: self._size], (first, last + 1))
        gone = low + np.flatnonzero(self._live[low:high])
        self._live[gone] = False
        self._documents -= len(gone)
        self._tokens -= int(self._lengths[gone].sum())
        if self._documents * 2 < self._size:
            self._merge([])
            self._compact()

    def _merge(self, runs: list[_Run]) -> None:
        """Bring the postings of each term together, without those of forgotten episodes."""
        numbers = np.arange(len(self._starts) - 1, dtype=np.int32)
        parts = [(np.repeat(numbers, np.diff(self._starts)), self._pairs)]
        for number, values in self._tail.items():
            tail = np.array(values, dtype=np.uint32).reshape(-1, 2)
            parts.append((np.full(len(tail), number, dtype=np.int32), tail))
        parts += runs
        terms = np.concatenate([part[0] for part in parts])
        pairs = np.concatenate([part[1] for part in parts])
        kept = np.flatnonzero(self._live[pairs[:, 0]])
        # Stable: the parts are in the order of their rows.
        order = kept[np.argsort(terms[kept], kind="stable")]
        self._pairs = pairs[order]
        counts = np.bincount(terms[kept], minlength=len(self._vocabulary))
        self._starts = np.concatenate(([0], np.cumsum(counts)))
        self._tail.clear()
        self._tail_size = 0

    def _compact(self) -> None:
        """Let go of the dead rows, once they are the larger half, and of terms nothing has."""
        live = self._live[: self._size]
        renumbered = (np.cumsum(live) - 1).astype(np.uint32)
        self._pairs[:, 0] = renumbered[self._pairs[:, 0]]
        keep = np.flatnonzero(live)
        for name in ("_episodes", "_agents", "_times", "_lengths", "_live"):
            setattr(self, name, getattr(self, name)[keep])
        self._size = len(keep)
        used = np.diff(self._starts) > 0
        numbers = (np.cumsum(used) - 1).tolist()
        self._vocabulary = {t: numbers[n] for t, n in self._vocabulary.items() if used[n]}
        self._starts = np.append(self._starts[:-1][used], self._starts[-1])
