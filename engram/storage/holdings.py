"""How much a store holds, as those count it who keep memories in layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from engram.storage.standing import ACTIVE_FACT, UNAVAILABLE

if TYPE_CHECKING:
    from engram.storage.connection import Connection


# The facts that hold, their subjects that are no named entity, and those that join two of both.
_FACTS = (
    "WITH f AS MATERIALIZED (SELECT f.subject, f.object FROM fact AS f"  # noqa: S608
    f" WHERE {ACTIVE_FACT.format('f')}),"
    " named AS MATERIALIZED (SELECT name FROM entity UNION SELECT alias FROM entity_alias),"
    " other AS MATERIALIZED (SELECT subject FROM f EXCEPT SELECT name FROM named)"
    " SELECT (SELECT count(*) FROM f), (SELECT count(*) FROM other),"
    " (SELECT count(*) FROM f WHERE object IN named OR object IN other)"
)


class Held(NamedTuple):
    """What a store holds.

    Attributes:
        layers: Memories that are not forgotten, by layer; layers without any are left out. Facts
            that hold are "semantic".
        evidence: Check observations that are not forgotten.
        entities: Named entities, and other subjects of facts.
        relationships: Edges between entities, and facts about two of them.
    """

    layers: dict[str, int]
    evidence: int
    entities: int
    relationships: int


class Holdings:
    """Counts of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, now: int) -> Held:
        """Count; costs time in the memories, by an index without their texts, and in the facts.

        Args:
            now: The time at which a fact has to hold, in microseconds.
        """
        one = self._connection.execute
        rows: Any = one(
            "SELECT CAST(layer AS BLOB), count(*) FROM episode WHERE layer <> 'episodic'"
            " AND forgotten_at IS NULL GROUP BY layer ORDER BY layer"
        )
        layers: dict[str, int] = {layer.decode(errors="replace"): n for layer, n in rows}
        forgotten: int = one(
            "SELECT count(*) FROM episode AS e WHERE e.forgotten_at IS NOT NULL"  # noqa: S608
            f" AND {UNAVAILABLE.format('e')} IS NOT NULL"
        ).get
        episodic = one("SELECT count(*) FROM episode").get - forgotten - sum(layers.values())
        if episodic:
            layers = {"episodic": episodic, **layers}
        facts, subjects, between = one(_FACTS, {"now": now}).get
        if facts:
            layers["semantic"] = layers.get("semantic", 0) + facts
        return Held(
            layers=layers,
            evidence=one("SELECT count(*) FROM check_observation WHERE forgotten_at IS NULL").get,
            entities=one("SELECT count(*) FROM entity").get + subjects,
            relationships=one("SELECT count(*) FROM edge WHERE entity IS NOT NULL").get + between,
        )
