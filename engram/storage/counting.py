"""How much a store holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram.models import Counts
from engram.times import from_micros

if TYPE_CHECKING:
    from engram.storage.connection import Connection
    from engram.storage.facts import Facts
    from engram.storage.graph import Graph


def count(connection: Connection, agent: str | None, facts: Facts, graph: Graph) -> Counts:
    """Count what a store holds, in the caller's transaction.

    Args:
        connection: The store's connection.
        agent: For whom; None is for all.
        facts: The store's facts.
        graph: The store's graph.
    """
    one = connection.execute
    scope = "TRUE" if agent is None else "agent = (SELECT id FROM agent WHERE name = ?1)"
    bindings = () if agent is None else (agent,)
    reflected = one(
        f"SELECT max(finished_at) FROM reflection WHERE {scope}",  # noqa: S608
        bindings,
    ).get
    return Counts(
        episodes=one(f"SELECT count(*) FROM episode WHERE {scope}", bindings).get,  # noqa: S608
        embedded=one(
            "SELECT count(DISTINCT episode) FROM embedding"  # noqa: S608
            f" WHERE episode IN (SELECT id FROM episode WHERE {scope})",
            bindings,
        ).get,
        facts=facts.count(),
        active_facts=facts.count_active(),
        entities=graph.count(),
        reflections=one(
            f"SELECT count(DISTINCT uid) FROM reflection WHERE {scope}",  # noqa: S608
            bindings,
        ).get,
        last_reflection=None if reflected is None else from_micros(reflected),
        store_bytes=one("PRAGMA page_count").get * one("PRAGMA page_size").get,
    )
