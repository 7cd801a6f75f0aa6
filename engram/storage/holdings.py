"""How much a store holds, as those count it who keep memories in layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engram.storage.standing import UNAVAILABLE

if TYPE_CHECKING:
    from engram.storage.connection import Connection


class Held(NamedTuple):
    """What a store holds.

    Attributes:
        layers: Memories that are not forgotten, by layer; layers without any are left out.
        evidence: Check observations that are not forgotten.
        entities: Named entities.
        relationships: Edges between entities.
    """

    layers: dict[str, int]
    evidence: int
    entities: int
    relationships: int


class Holdings:
    """Counts of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self) -> Held:
        """Count; what costs time is the number of memories, by an index without their texts."""
        one = self._connection.execute
        rows: Any = one(
            "SELECT layer, count(*) FROM episode WHERE layer <> 'episodic'"
            " AND forgotten_at IS NULL GROUP BY layer ORDER BY layer"
        )
        layers: dict[str, int] = dict(rows)
        forgotten: int = one(
            "SELECT count(*) FROM episode AS e WHERE e.forgotten_at IS NOT NULL"  # noqa: S608
            f" AND {UNAVAILABLE.format('e')} IS NOT NULL"
        ).get
        episodic = one("SELECT count(*) FROM episode").get - forgotten - sum(layers.values())
        if episodic:
            layers = {"episodic": episodic, **layers}
        return Held(
            layers=layers,
            evidence=one("SELECT count(*) FROM check_observation WHERE forgotten_at IS NULL").get,
            entities=one("SELECT count(*) FROM entity").get,
            relationships=one("SELECT count(*) FROM edge WHERE entity IS NOT NULL").get,
        )
