"""What facts rest on: their sources, and how far these are to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import numpy as np

from engram.provenance import least_trusted
from engram.storage import uids
from engram.storage.fact_records import Evidence, FactSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.storage.connection import Connection


class FactEvidence:
    """The sources of a store's facts; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, key: int) -> Evidence:
        """Return what a fact rests on."""
        rows = list(
            self._connection.execute(
                "SELECT coalesce(e.uid, s.source), s.episode, s.provenance,"
                " coalesce(e.quarantined, 0) FROM fact_source AS s"
                " LEFT JOIN episode AS e ON e.id = s.episode WHERE s.fact = ? ORDER BY s.position",
                (key,),
            )
        )
        model = self._connection.execute(
            "SELECT r.model_used FROM fact AS f JOIN reflection AS r ON r.id = f.reflection"
            " WHERE f.id = ?",
            (key,),
        ).get
        return Evidence(
            tuple(
                FactSource(None if uid is None else uids.from_stored(uid), episode, provenance)
                for uid, episode, provenance, _ in rows
            ),
            model,
            any(mark for *_, mark in rows),
        )

    def trust(self, keys: Sequence[int]) -> dict[int, tuple[str, bool]]:
        """Return of facts the least trusted provenance, and whether a source is quarantined.

        A fact that has no source is left out.
        """
        rows = self._connection.execute(
            "SELECT s.fact, s.provenance, coalesce(e.quarantined, 0) FROM carray(?) AS k"
            " CROSS JOIN fact_source AS s ON s.fact = k.value"
            " LEFT JOIN episode AS e ON e.id = s.episode",
            (apsw.carray(np.array(keys, dtype=np.int64)),),
        )
        found: dict[int, tuple[list[str], bool]] = {}
        for key, provenance, mark in rows:
            provenances, marked = found.get(key, ([], False))
            found[key] = [*provenances, provenance], marked or bool(mark)
        return {key: (least_trusted(sources), mark) for key, (sources, mark) in found.items()}
