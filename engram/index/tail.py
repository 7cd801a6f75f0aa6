"""The tail: the newest episodes, column by column, in memory, until a segment takes them over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engram.arrays import distinct
from engram.errors import CorruptStore
from engram.index.segment import ZONE
from engram.index.words import WordTail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from engram.storage import ColumnBatch, VectorBatch

_LEAST = 64


class _Column:
    """An array that grows."""

    def __init__(self, like: NDArray[Any]) -> None:
        self._room = np.empty((_LEAST, *like.shape[1:]), like.dtype)
        self.size = 0

    def extend(self, values: NDArray[Any]) -> None:
        end = self.size + len(values)
        if end > len(self._room):
            room = np.empty((max(end, 2 * len(self._room)), *values.shape[1:]), self._room.dtype)
            room[: self.size] = self._room[: self.size]
            self._room = room
        self._room[self.size : end] = values
        self.size = end

    @property
    def values(self) -> NDArray[Any]:
        return self._room[: self.size]


class Tail:
    """Consecutive episodes that no segment has yet; it has the columns of a `Segment`.

    Not thread-safe: used inside the store's transactions, which take turns.

    Args:
        after: The key of the last episode that is not here.
        dim: Numbers in a vector.
    """

    def __init__(self, after: int, dim: int) -> None:
        self.first = after + 1
        self.last = after
        self.documents = 0
        self.words = WordTail()
        self._words_to = after
        self._gone = False
        self._single = True
        self._columns = {
            name: _Column(np.empty(0, kind))
            for name, kind in (
                ("keys", np.int64),
                ("agents", np.int32),
                ("times", np.int64),
                ("origins", np.uint8),
                ("salience", np.float64),
                ("valence", np.float64),
                ("owners", np.uint32),
                ("live", np.bool_),
            )
        }
        self._columns["vectors"] = _Column(np.empty((0, dim), dtype=np.float32))

    def append(self, columns: ColumnBatch, vectors: VectorBatch) -> None:
        """Add the next episodes.

        Args:
            columns: The episodes; at least one.
            vectors: Their vectors.

        Raises:
            CorruptStore: They are not in the order of their keys.
        """
        if (np.diff(columns.keys, prepend=self.last) <= 0).any():
            message = "the stored episodes are not in the order of the change log"
            raise CorruptStore(message, "restore a backup")
        before, chunks = self.rows, self.chunks
        for name in ("keys", "agents", "times", "origins", "salience", "valence"):
            self._columns[name].extend(getattr(columns, name))
        self._columns["live"].extend(np.ones(len(columns.keys), dtype=np.bool_))
        owners = before + np.searchsorted(columns.keys, vectors.episodes)
        self._columns["owners"].extend(owners)
        self._columns["vectors"].extend(vectors.vectors)
        self._single = self._single and np.array_equal(owners, np.arange(chunks, self.rows))
        self.last = int(columns.keys[-1])
        self.documents += len(columns.keys)

    def embed(self, late: VectorBatch) -> None:
        """Take over vectors of episodes that are here and have none yet."""
        owners = np.concatenate((self["owners"], np.searchsorted(self.keys, late.episodes)))
        order = np.argsort(owners, kind="stable")
        vectors = np.concatenate((self.vectors, late.vectors))[order]
        for name, values in (("owners", owners[order].astype(np.uint32)), ("vectors", vectors)):
            self._columns[name] = _Column(values[:0])
            self._columns[name].extend(values)
        self._single = np.array_equal(self["owners"], np.arange(self.rows))

    def read_words(
        self, read: Callable[[int, int], Sequence[bytes]], tokenize: Callable[[bytes], list[str]]
    ) -> None:
        """Index the words of what was added since the last time.

        Args:
            read: Returns the searchable texts of the episodes between two keys, both included.
            tokenize: The full-text table's tokenizer.
        """
        if self._words_to == self.last:
            return
        done = len(self.words)
        lives = self._live[done:]
        given = read(self._words_to + 1, self.last)
        if len(given) != np.count_nonzero(lives):
            message = "the stored episodes are not those of the change log"
            raise CorruptStore(message, "restore a backup")
        # A forgotten episode has no text any more and keeps its row.
        bodies = [b""] * len(lives)
        for place, body in zip(np.flatnonzero(lives).tolist(), given, strict=True):
            bodies[place] = body
        self.words.append(bodies, tokenize)
        self._words_to = self.last

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column by its name."""
        return self._columns[name].values

    def column(self, name: str) -> NDArray[np.float64]:
        """Return the column `salience` or `valence`, float64[n]."""
        return self[name]

    @property
    def rows(self) -> int:
        """How many episodes there are, forgotten ones included."""
        return self._columns["keys"].size

    @property
    def chunks(self) -> int:
        """How many chunks they have."""
        return self._columns["vectors"].size

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The chunks' vectors, float32[m, dim], unit length."""
        return self["vectors"]

    @property
    def keys(self) -> NDArray[np.int64]:
        """The episodes' keys, int64[n], ascending."""
        return self["keys"]

    @property
    def agents(self) -> NDArray[np.int32]:
        """The episodes' agents, int32[n], -1 where there is none."""
        return self["agents"]

    @property
    def times(self) -> NDArray[np.int64]:
        """The episodes' event times, int64[n], in microseconds."""
        return self["times"]

    @property
    def origins(self) -> NDArray[np.uint8]:
        """Where the episodes came from, uint8[n]."""
        return self["origins"]

    @property
    def owners(self) -> NDArray[np.uint32] | None:
        """The row of each chunk's episode, uint32[m]; None where chunk and episode are one."""
        return None if self._single else self["owners"]

    @property
    def _live(self) -> NDArray[np.bool_]:
        return self["live"]

    @property
    def live(self) -> NDArray[np.bool_] | None:
        """Which episodes are still there, bool[n]; None is all."""
        return self._live if self._gone else None

    @property
    def tokens(self) -> int:
        """How many words the indexed episodes have that are still there."""
        lengths = self.words.lengths
        return int(lengths[self._live[: len(lengths)]].sum())

    @property
    def agent_ids(self) -> NDArray[np.int32]:
        """The agents that have episodes here, ascending, -1 for those of none."""
        return distinct(self.agents)

    def agent_rows(self, agent: int) -> NDArray[np.uint32] | None:
        """Return an agent's rows, ascending; None when they are all the rows there are."""
        rows = np.flatnonzero(self.agents == agent)
        return None if len(rows) == self.rows else rows.astype(np.uint32)

    def zones(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the earliest and the latest event time of each zone of `ZONE` episodes."""
        starts = np.arange(0, self.rows, ZONE)
        if not len(starts):
            return self.times, self.times
        return np.minimum.reduceat(self.times, starts), np.maximum.reduceat(self.times, starts)

    def forget(self, first: int, last: int) -> None:
        """Mark the episodes with keys `first` to `last`, both included, as gone."""
        low, high = np.searchsorted(self.keys, (first, last + 1)).tolist()
        gone = int(np.count_nonzero(self._live[low:high]))
        self._live[low:high] = False
        self.documents -= gone
        self._gone = self._gone or gone > 0
