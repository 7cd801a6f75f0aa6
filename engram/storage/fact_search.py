"""What facts are found by: their columns, vectors and texts, read in bulk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw
import numpy as np

from engram.arrays import distinct
from engram.errors import CorruptStore
from engram.storage.columns import QUARANTINED
from engram.storage.embeddings import STORED, VectorBatch, sound_batch
from engram.storage.fact_evidence import FACT_MARK, FACT_ORIGIN, FACT_SOURCES
from engram.storage.fact_records import statement
from engram.storage.facts import ALWAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.models import StoredModel
    from engram.storage.connection import Connection

_EVERY: Final = (0, ALWAYS)
_COLUMNS: Final = (
    "SELECT f.id, coalesce(f.agent, -1), f.shared, f.valid_from,"  # noqa: S608
    f" coalesce(f.valid_to, {ALWAYS}), f.superseded_at IS NULL,"
    f" {FACT_ORIGIN} + {QUARANTINED} * {FACT_MARK}, coalesce(b.hidden, 0) FROM fact AS f"
    f" LEFT JOIN ({FACT_SOURCES.format('BETWEEN :first AND :last')}) AS b ON b.fact = f.id"
    " WHERE f.id BETWEEN :first AND :last ORDER BY f.id"
)

# The facts are read as lists in text: a row for each takes three times as long.
_ABOUT: Final = (
    "WITH k AS MATERIALIZED (SELECT value FROM carray(?)), n AS (SELECT e.id AS entity, e.name"
    " FROM k CROSS JOIN entity AS e ON e.id = k.value UNION ALL SELECT a.entity, a.alias"
    " FROM k CROSS JOIN entity_alias AS a ON a.entity = k.value) SELECT n.entity,"
    " (SELECT group_concat(f.id) FROM fact AS f WHERE f.subject = n.name),"
    " (SELECT group_concat(f.id) FROM fact AS f WHERE f.object = n.name) FROM n"
)


class FactColumns(NamedTuple):
    """Facts, in insertion order.

    Attributes:
        keys: int64[n], ascending.
        agents: int64[n], -1 where a fact has none.
        shared: bool[n].
        begins: int64[n], when the valid time begins, in microseconds.
        ends: int64[n], when it ends, exclusive; `ALWAYS` where it does not.
        open: bool[n], whether nothing superseded it.
        origins: uint8[n], the least trusted provenance and quarantine, see `origins`.
        hidden: bool[n], whether all episodes that it came from and that are left are unavailable.
    """

    keys: NDArray[np.int64]
    agents: NDArray[np.int64]
    shared: NDArray[np.bool_]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    open: NDArray[np.bool_]
    origins: NDArray[np.uint8]
    hidden: NDArray[np.bool_]

    def without(self, keys: Sequence[int]) -> FactColumns:
        """Return these facts but for some, given by their keys."""
        kept = ~np.isin(self.keys, keys)
        columns: Any = self
        return FactColumns(*(column[kept] for column in columns))

    def with_others(self, others: Sequence[FactColumns]) -> FactColumns:
        """Return these facts and others."""
        order = np.argsort(np.concatenate([each.keys for each in (self, *others)]))
        columns: Any = zip(self, *others, strict=True)
        return FactColumns(*(np.concatenate(each)[order] for each in columns))


_TYPES: Final = (
    *(np.int64, np.int64, np.bool_, np.int64),
    *(np.int64, np.bool_, np.uint8, np.bool_),
)


class FactSearch:
    """What facts are found by; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def columns(self, first: int = _EVERY[0], last: int = _EVERY[1]) -> FactColumns:
        """Return the columns of the facts `first` to `last`, both included.

        Raises:
            CorruptStore: A row holds what no fact has.
        """
        rows: Any = self._connection.execute(_COLUMNS, {"first": first, "last": last}).fetchall()
        values = zip(*rows, strict=True) if rows else ([] for _ in _TYPES)
        try:
            return FactColumns(
                *(np.array(each, dtype=kind) for each, kind in zip(values, _TYPES, strict=True))
            )
        except (TypeError, ValueError, OverflowError):
            message = "a stored fact is damaged"
            raise CorruptStore(message, "restore a backup") from None

    def sources(self, first: int = _EVERY[0], last: int = _EVERY[1]) -> NDArray[np.int64]:
        """Return the episodes that the facts `first` to `last` came from, both included.

        int64[n, 2], each an episode and a fact; episodes that are gone are not there.
        """
        rows = self._connection.execute(
            "SELECT episode, fact FROM fact_source"
            " WHERE fact BETWEEN ? AND ? AND episode IS NOT NULL",
            (first, last),
        ).fetchall()
        return np.array(rows, dtype=np.int64).reshape(-1, 2)

    def of(self, keys: NDArray[np.int64], model: StoredModel) -> VectorBatch:
        """Return the model's vectors of some facts, given by ascending keys, int64[n].

        A damaged one is left out: its fact counts as one without.
        """
        rows: list[Any] = []
        if len(keys):
            rows = self._connection.execute(
                "SELECT v.fact, v.vector FROM carray(?) AS k CROSS JOIN fact_embedding AS v"
                " ON v.fact = k.value AND v.model = ?",
                (apsw.carray(keys), model.id),
            ).fetchall()
        batch, _, damaged = sound_batch(rows, model.dim)
        return self.of(keys[~np.isin(keys, list(damaged))], model) if damaged else batch

    def confidence(self, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how sure facts are, given by ascending keys, int64[n]; all of them are there."""
        rows: Any = []
        if len(keys):
            rows = self._connection.execute(
                "SELECT f.confidence FROM carray(?) AS k CROSS JOIN fact AS f ON f.id = k.value",
                (apsw.carray(keys),),
            ).fetchall()
        return np.array(rows, dtype=np.float64).reshape(-1)

    def about(
        self, entities: NDArray[np.int64], among: NDArray[np.int64], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the newest facts whose subject or object is one of some entities, by any name.

        Costs time in the number of facts about them, whoever may see these.

        Args:
            entities: The keys of the entities, int64[n].
            among: The facts that count, ascending keys, int64[m].
            limit: How many facts of each entity at most.

        Returns:
            Entities and facts in step, int64[l] each.
        """
        found: dict[int, list[NDArray[np.int64]]] = {}
        if len(entities) and len(among):
            for entity, *lists in self._connection.execute(_ABOUT, (apsw.carray(entities),)):
                found.setdefault(entity, []).extend(
                    np.fromstring(keys, dtype=np.int64, sep=",") for keys in lists if keys
                )
        owners, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for entity, lists in found.items():
            facts = np.concatenate([keys[0], *lists])
            counts = among.take(np.searchsorted(among, facts), mode="clip") == facts
            # A fact can be about an entity twice.
            keys.append(distinct(facts[counts])[-limit:])
            owners.append(np.full(len(keys[-1]), entity))
        return np.concatenate(owners), np.concatenate(keys)

    def statements(self, keys: Sequence[int]) -> list[tuple[int, str]]:
        """Return the texts of facts, given by ascending keys, with these; what is gone is not."""
        rows = self._connection.execute(
            "SELECT f.id, f.subject, f.predicate, f.object FROM carray(?) AS k"
            " CROSS JOIN fact AS f ON f.id = k.value",
            (apsw.carray(np.array(keys, dtype=np.int64)),),
        )
        return [(key, statement(*parts)) for key, *parts in rows]

    def put(
        self,
        keys: Sequence[int],
        vectors: NDArray[np.float32],
        counts: NDArray[np.int64],
        model: int,
    ) -> None:
        """Store the chunk vectors of facts in the place of those they have; what is gone is not.

        Args:
            keys: n facts, ascending.
            vectors: float32[m, dim], the chunks of all facts in order.
            counts: int64[n], how many chunks each has; they sum to m.
            model: The model that made them.
        """
        still = [key for key, _ in self.statements(keys)]
        self._connection.executemany(
            "DELETE FROM fact_embedding WHERE fact = ?", ((key,) for key in still)
        )
        ends = np.cumsum(counts).tolist()
        stored = vectors.astype(STORED)
        spans = dict(zip(keys, zip(ends, counts.tolist(), strict=True), strict=True))
        self._connection.executemany(
            "INSERT INTO fact_embedding (fact, chunk, model, vector) VALUES (?, ?, ?, ?)",
            (
                (key, chunk, model, stored[spans[key][0] - spans[key][1] + chunk].tobytes())
                for key in still
                for chunk in range(spans[key][1])
            ),
        )
