"""Nearest episodes by vector: an exact scan over columns kept in memory.

The columns mirror the store's embeddings up to a change sequence. Each search first applies the
changes committed since, by any thread or process, so a recall sees every write made before it.
This is the seam where the approximate indexes go: they answer the same `search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engram._native import top_k
from engram.errors import CorruptStore
from engram.index.allowed import allowed_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engram.models import StoredModel
    from engram.storage import EpisodeFilter, Store, VectorBatch

_EVERY_KEY = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Episodes near a query, nearest first, ties in insertion order.

    Attributes:
        episodes: int64[n], keys.
        distances: float64[n], L2 distance of the unit vectors, 0 to 2; of an episode's chunks the
            nearest counts.
    """

    episodes: NDArray[np.int64]
    distances: NDArray[np.float64]


class VectorIndex:
    """The vectors of a store, of whichever model is current.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        store: The store; only read from.
        model: The store's current model.
    """

    def __init__(self, store: Store, model: StoredModel) -> None:
        self._store = store
        self._model = model
        self._clear()

    def _clear(self) -> None:
        self._covered = 0
        self._size = 0
        self._episodes = np.empty(0, dtype=np.int64)
        self._agents = np.empty(0, dtype=np.int64)
        self._times = np.empty(0, dtype=np.int64)
        self._live = np.empty(0, dtype=np.bool_)
        self._vectors = np.empty((0, self._model.dim), dtype=np.float32)

    def refresh(self) -> None:
        """Apply the changes that the transaction around this call sees and the index lacks."""
        last = self._store.last_change()
        if last == self._covered:
            return
        try:
            if self._covered == 0:
                self._load(0, _EVERY_KEY)
            else:
                self._replay()
        except BaseException:
            # Half a change applied twice would be a wrong index: start over next time.
            self._clear()
            raise
        self._covered = last

    def _replay(self) -> None:
        for op, first, last in self._store.changes_after(self._covered):
            if op == "reembed":
                self._change_model()
                return
            if op == "observe":
                self._load(first, last)
            elif op == "forget":
                self._drop(first, last)

    def _change_model(self) -> None:
        """Start over with the store's model: this covers every change there is."""
        model = self._store.model()
        assert model is not None  # noqa: S101 - the change that names it was just read
        self._model = model
        self._clear()
        self._load(0, _EVERY_KEY)

    def _load(self, first: int, last: int) -> None:
        for batch in self._store.embeddings.between(first, last, self._model):
            self._append(batch)

    def _append(self, batch: VectorBatch) -> None:
        start, end = self._size, self._size + len(batch.episodes)
        before = self._episodes[start - 1 : start] if start else batch.episodes[:1]
        if (np.diff(batch.episodes, prepend=before) < 0).any():
            message = "the stored vectors are not in the order of their episodes"
            raise CorruptStore(message, "restore a backup")
        if end > len(self._episodes):
            self._grow(max(end, 2 * len(self._episodes), 64))
        self._episodes[start:end] = batch.episodes
        self._agents[start:end] = batch.agents
        self._times[start:end] = batch.times
        self._vectors[start:end] = batch.vectors
        self._live[start:end] = True
        self._size = end

    def _grow(self, capacity: int) -> None:
        for name in ("_episodes", "_agents", "_times", "_live", "_vectors"):
            old = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), dtype=old.dtype)
            new[: self._size] = old[: self._size]
            setattr(self, name, new)

    def _drop(self, first: int, last: int) -> None:
        used = self._episodes[: self._size]
        low, high = np.searchsorted(used, (first, last + 1))
        self._live[low:high] = False
        if np.count_nonzero(self._live[: self._size]) * 2 < self._size:
            self._compact()

    def _compact(self) -> None:
        """Let go of the dead rows, once they are the larger half."""
        keep = np.flatnonzero(self._live[: self._size])
        for name in ("_episodes", "_agents", "_times", "_live", "_vectors"):
            setattr(self, name, getattr(self, name)[keep])
        self._size = len(keep)

    def search(self, query: NDArray[np.float32], k: int, allowed: EpisodeFilter) -> Neighbours:
        """Return the `k` nearest of the allowed episodes, all of them when there are fewer.

        Args:
            query: float32[dim], unit length, rounded as stored vectors are.
            k: How many, at least 1.
            allowed: Applied before the choice, so it never costs answers.

        Costs time in the number of allowed vectors; call `refresh` first.
        """
        rows = self._rows(allowed)
        episodes, _ = top_k(
            self._vectors[: self._size], query, self._episodes[: self._size], rows, k
        )
        distances = self.distances(query, episodes)
        # Float32 dot products choose the episodes; the exact distances have the last word.
        order = np.lexsort((episodes, distances))
        return Neighbours(episodes[order], distances[order])

    def distances(
        self, query: NDArray[np.float32], episodes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return each episode's distance, float64[n], exact to zero; inf where it has no vector.

        Args:
            query: As for `search`.
            episodes: int64[n], keys in any order.
        """
        used = self._episodes[: self._size]
        starts = np.searchsorted(used, episodes, side="left")
        counts = np.searchsorted(used, episodes, side="right") - starts
        found = np.full(len(episodes), np.inf)
        present = counts > 0
        starts, counts = starts[present], counts[present]
        if len(counts):
            offsets = np.cumsum(counts) - counts
            rows = np.repeat(starts - offsets, counts) + np.arange(counts.sum())
            apart = self._vectors[rows].astype(np.float64) - query
            each = np.sqrt(np.einsum("ij,ij->i", apart, apart))
            found[present] = np.minimum.reduceat(each, offsets)
        return found

    def _rows(self, allowed: EpisodeFilter) -> NDArray[np.int64] | None:
        """Return the rows to scan, None for all of them."""
        used = slice(0, self._size)
        columns = (self._episodes[used], self._agents[used], self._times[used], self._live[used])
        mask = allowed_rows(self._store, allowed, *columns)
        return None if mask.all() else np.flatnonzero(mask)
