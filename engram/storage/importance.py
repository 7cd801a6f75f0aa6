"""Importance as of the last decay: blocks of consecutive episodes, one small blob each.

A decay changes every episode's importance and nothing else of it, so the values lie together: a
million are 4,167 rows. One episode's is one look-up and a slice.
"""

from __future__ import annotations

import math
import struct
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engram.storage.connection import Connection

BLOCK: Final = 240
"""Episodes of a block: two blocks fill a page, of an encrypted store too. Part of the format."""
UNDECAYED: Final = 1.0
"""The importance of an episode before its first decay; a block of nothing else is not stored."""

IMPORTANCE: Final = f"substr(i.importances, 8 * (e.id % {BLOCK}) + 1, 8)"
"""SQL of the bytes that `from_stored` reads, over an episode `e` joined with `JOIN`."""
JOIN: Final = f"LEFT JOIN importance AS i ON i.block = e.id / {BLOCK}"

_UNKNOWN_SHARE = 0.5
_DOUBLE = struct.Struct("<d")
_EMPTY = BLOCK * _DOUBLE.pack(UNDECAYED)
_BLOCKS_AT_ONCE = 256


def share(value: float) -> float:
    """Return a number as one from 0 to 1: in a damaged file it can be any, or none."""
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else _UNKNOWN_SHARE


def from_stored(stored: bytes | None) -> float:
    """Return an importance from its 8 bytes, None where the episode's block is not stored."""
    if stored is None:
        return UNDECAYED
    value: float = _DOUBLE.unpack(stored)[0]
    return value


class BlockOfRows:
    """The SQL aggregate `importance_block(place, importance)`, by which rows became blocks."""

    def __init__(self) -> None:
        self._values = np.full(BLOCK, UNDECAYED, dtype="<f8")

    def step(self, *row: Any) -> None:
        """Take one row."""
        place, importance = row
        self._values[place] = importance

    def final(self) -> bytes:
        """Return the block."""
        return self._values.tobytes()


class Importance:
    """The importance of a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, episodes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the importance of episodes, int64[n], as float64[n], in their order."""
        if not len(episodes):
            return np.empty(0)
        rows: Any = self._connection.execute(
            f"SELECT {IMPORTANCE} FROM (SELECT value AS id FROM carray(?)) AS e {JOIN}",  # noqa: S608
            (apsw.carray(episodes),),
        ).fetchall()
        undecayed = _DOUBLE.pack(UNDECAYED)
        return np.frombuffer(b"".join(row[0] or undecayed for row in rows), dtype="<f8")

    def set(self, episodes: NDArray[np.int64], importance: NDArray[np.float64]) -> None:
        """Store the importance of episodes, which must exist; only blocks that change are written.

        Args:
            episodes: int64[n], ascending.
            importance: float64[n].
        """
        if not len(episodes):
            return
        block = episodes // BLOCK
        begins = np.concatenate(([True], block[1:] != block[:-1]))
        blocks, place = block[begins], np.cumsum(begins) - 1
        values = self._read(blocks)
        before = values.copy()
        values[place, episodes % BLOCK] = importance
        changed = np.any(values != before, axis=1)
        empty = changed & np.all(values == UNDECAYED, axis=1)
        self._connection.executemany(
            "DELETE FROM importance WHERE block = ?", [(b,) for b in blocks[empty].tolist()]
        )
        written = np.flatnonzero(changed & ~empty)
        self._connection.executemany(
            "INSERT INTO importance (block, importances) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET importances = excluded.importances",
            [(int(blocks[at]), values[at].tobytes()) for at in written],
        )

    def clear(self, episode: int) -> None:
        """Forget the importance of an episode that is erased."""
        block, place = divmod(episode, BLOCK)
        stored: bytes | None = self._connection.execute(
            "SELECT importances FROM importance WHERE block = ?", (block,)
        ).get
        if stored is None:
            return
        cleared = stored[: 8 * place] + _DOUBLE.pack(UNDECAYED) + stored[8 * place + 8 :]
        if cleared == _EMPTY:
            self._connection.execute("DELETE FROM importance WHERE block = ?", (block,))
        elif cleared != stored:
            self._connection.execute(
                "UPDATE importance SET importances = ? WHERE block = ?", (cleared, block)
            )

    def stored(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield keys, int64[n], and importance, float64[n], of all blocks, ascending, in parts."""
        rows = self._connection.execute("SELECT block, importances FROM importance ORDER BY block")
        while part := list(islice(rows, _BLOCKS_AT_ONCE)):
            firsts = np.array([block for block, _ in part], dtype=np.int64) * BLOCK
            keys = (firsts[:, np.newaxis] + np.arange(BLOCK)).reshape(-1)
            yield keys, np.frombuffer(b"".join(values for _, values in part), dtype="<f8")

    def _read(self, blocks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return blocks, int64[b] ascending, as float64[b, BLOCK]."""
        values = np.full((len(blocks), BLOCK), UNDECAYED, dtype="<f8")
        rows: Any = self._connection.execute(
            "SELECT i.block, i.importances FROM carray(?) AS k"
            " CROSS JOIN importance AS i ON i.block = k.value",
            (apsw.carray(blocks),),
        ).fetchall()
        if rows:
            at = np.searchsorted(blocks, [block for block, _ in rows])
            stored = np.frombuffer(b"".join(found for _, found in rows), dtype="<f8")
            values[at] = stored.reshape(-1, BLOCK)
        return values
