"""What facts rest on, and how far they are to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import apsw
import numpy as np

from engram.storage import uids
from engram.storage.columns import ORIGIN, SOURCES, UNKNOWN
from engram.storage.facts import VISIBLE
from engram.storage.standing import UNAVAILABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection

FACT_SOURCES: Final = (
    f"SELECT s.fact, max(coalesce(CASE s.provenance {ORIGIN} END, {UNKNOWN})) AS origin,"  # noqa: S608
    " max(coalesce(e.quarantined, 0)) AS marked,"
    f" min(iif(e.id IS NULL, NULL, {UNAVAILABLE.format('e')} IS NOT NULL)) AS hidden"
    " FROM fact_source AS s LEFT JOIN episode AS e ON e.id = s.episode"
    " WHERE s.fact {0} GROUP BY s.fact"
)
"""SQL of what some facts came from, to be joined as `b`.

The place of the least trusted provenance in `SOURCES`, whether some source is quarantined, and
whether all episodes that are left are unavailable.
"""

FACT_ORIGIN: Final = f"coalesce(b.origin, {UNKNOWN})"
FACT_MARK: Final = "max(f.quarantined, coalesce(b.marked, 0))"
"""SQL over `fact AS f` with `b`: whether it, or what it came from, is quarantined."""


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
            f"SELECT f.id, {FACT_ORIGIN}, {FACT_MARK} FROM carray(:keys) AS k"  # noqa: S608
            " CROSS JOIN fact AS f ON f.id = k.value"
            f" LEFT JOIN ({FACT_SOURCES.format('IN (SELECT value FROM carray(:keys))')}) AS b"
            " ON b.fact = f.id",
            {"keys": apsw.carray(np.array(keys, dtype=np.int64))},
        )
        return {key: (SOURCES[origin], bool(mark)) for key, origin, mark in rows}

    def model(self, key: int) -> str | None:
        """Return the language model of the run that extracted a fact."""
        found: str | None = self._connection.execute(
            "SELECT r.model_used FROM fact AS f JOIN reflection AS r ON r.id = f.reflection"
            " WHERE f.id = ?",
            (key,),
        ).get
        return found
