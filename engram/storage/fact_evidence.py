"""What facts rest on, and how far they are to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import numpy as np

from engram.provenance import UNKNOWN_PROVENANCE, least_trusted
from engram.storage import uids
from engram.storage.facts import VISIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection


class FactEvidence:
    """What a store's facts rest on; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def keys(self, uids_of_facts: Iterable[str], agent: str | None) -> dict[str, int]:
        """Return the keys of facts by public id; what `agent` may not see is left out."""
        found = {}
        for uid in uids_of_facts:
            key = self._connection.execute(
                "SELECT f.id FROM fact AS f WHERE f.uid = :uid"  # noqa: S608
                f" AND (:agent IS NULL OR {VISIBLE.format('f')})",
                {"uid": uids.to_stored(uid), "agent": agent},
            ).get
            if key is not None:
                found[uid] = key
        return found

    def trust(self, keys: Sequence[int]) -> dict[int, tuple[str, bool]]:
        """Return how far facts are to be trusted, by key; what is gone is left out.

        That is the least trusted provenance of all sources ever recorded, forgotten ones included,
        and whether the fact itself or a source that is still there is quarantined.
        """
        if not keys:
            return {}
        rows = self._connection.execute(
            "SELECT f.id, coalesce(s.provenance, :unknown),"
            " max(f.quarantined, coalesce(e.quarantined, 0)) FROM carray(:keys) AS k"
            " CROSS JOIN fact AS f ON f.id = k.value LEFT JOIN fact_source AS s ON s.fact = f.id"
            " LEFT JOIN episode AS e ON e.id = s.episode",
            {
                "keys": apsw.carray(np.array(keys, dtype=np.int64)),
                "unknown": UNKNOWN_PROVENANCE,
            },
        )
        found: dict[int, tuple[str, bool]] = {}
        for key, provenance, mark in rows:
            before, marked = found.get(key, (provenance, False))
            found[key] = least_trusted((before, provenance)), marked or bool(mark)
        return found

    def model(self, key: int) -> str | None:
        """Return the language model of the run that extracted a fact."""
        found: str | None = self._connection.execute(
            "SELECT r.model_used FROM fact AS f JOIN reflection AS r ON r.id = f.reflection"
            " WHERE f.id = ?",
            (key,),
        ).get
        return found
