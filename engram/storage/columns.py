"""Episodes column by column: what the indexes choose by, read in bulk."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from engram.errors import CorruptStore
from engram.provenance import PROVENANCES, UNKNOWN_PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from engram.storage.connection import Connection

_BATCH: Final = 8192
SOURCES: Final = (*PROVENANCES, UNKNOWN_PROVENANCE)
"""All provenances, most trusted first."""

QUARANTINED: Final = 8
"""Added to an origin, which is the place of its provenance in a fixed order, below 8."""

ORIGIN: Final = " ".join(f"WHEN '{name}' THEN {place}" for place, name in enumerate(SOURCES))
"""SQL: the cases of a provenance, each with its place in a fixed order, most trusted first."""

UNKNOWN: Final = SOURCES.index(UNKNOWN_PROVENANCE)
"""Where it came from of what says nothing that is known: a damaged row."""


@dataclass(frozen=True, slots=True)
class ColumnBatch:
    """Some episodes, in insertion order.

    Attributes:
        keys: int64[n], ascending.
        agents: int64[n], -1 where an episode has none.
        times: int64[n], event times in microseconds.
        origins: uint8[n], provenance and quarantine in one number, see `origins`.
        salience: float64[n].
        valence: float64[n].
    """

    keys: NDArray[np.int64]
    agents: NDArray[np.int64]
    times: NDArray[np.int64]
    origins: NDArray[np.uint8]
    salience: NDArray[np.float64]
    valence: NDArray[np.float64]


def origins(provenances: tuple[str, ...], *, exclude_quarantined: bool) -> NDArray[np.bool_]:
    """Return which origins a filter allows, bool[2 * QUARANTINED]; no provenances allow all."""
    allowed = np.zeros(2 * QUARANTINED, dtype=np.bool_)
    for place, name in enumerate(SOURCES):
        allowed[place] = not provenances or name in provenances
    if not exclude_quarantined:
        allowed[QUARANTINED:] = allowed[:QUARANTINED]
    return allowed


class Columns:
    """The columns of a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def between(self, first: int, last: int) -> Iterator[ColumnBatch]:
        """Yield the episodes `first` to `last`, both included.

        Raises:
            CorruptStore: A row holds what no episode has.
        """
        cursor = self._connection.execute(
            "SELECT e.id, coalesce(e.agent, -1), e.occurred_at,"  # noqa: S608
            f" coalesce(CASE e.provenance {ORIGIN} END, {UNKNOWN})"
            f" + {QUARANTINED} * e.quarantined,"
            " e.salience, e.emotional_valence"
            " FROM episode AS e WHERE e.id BETWEEN ? AND ? ORDER BY e.id",
            (first, last),
        )
        while rows := list(islice(cursor, _BATCH)):
            keys, agents, times, origin, salience, valence = zip(*rows, strict=True)
            try:
                batch = ColumnBatch(
                    np.array(keys, dtype=np.int64),
                    np.array(agents, dtype=np.int64),
                    np.array(times, dtype=np.int64),
                    np.array(origin, dtype=np.uint8),
                    np.array(salience, dtype=np.float64),
                    np.array(valence, dtype=np.float64),
                )
            except (TypeError, ValueError, OverflowError):
                message = "a stored episode is damaged"
                raise CorruptStore(message, "restore a backup") from None
            yield batch

    def following(self, key: int, count: int) -> tuple[int, int]:
        """Return the last of the next `count` episodes after a key, and how many there are."""
        last, found = self._connection.execute(
            "SELECT coalesce(max(id), 0), count(*)"
            " FROM (SELECT id FROM episode WHERE id > ? ORDER BY id LIMIT ?)",
            (key, count),
        ).get
        return last, found

    def experiences(
        self, column: Literal["memory_type", "project"], value: str, first: int, last: int
    ) -> NDArray[np.int64]:
        """Return which of the episodes `first` to `last`, both included, are experiences of a kind.

        Ascending. Costs time in the number of experiences among them.
        """
        rows = self._connection.execute(
            f"SELECT episode FROM experience WHERE episode BETWEEN ? AND ? AND {column} = ?"  # noqa: S608
            " ORDER BY episode",
            (first, last, value),
        ).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1)
