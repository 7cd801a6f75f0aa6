"""The entity graph: entities under their names, and edges that lead to them.

Edges belong to the agent that wrote them, entities and aliases to the whole file. Spreading recall
walks edges in both directions.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from engram.storage import uids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from engram.storage.agents import Agents
    from engram.storage.changes import Changes
    from engram.storage.connection import Connection

MENTIONS: Final = "mentions"
LEARNING_RATE: Final = 0.1
"""The share of the way to full weight that an edge gains in one co-recall."""

_CONFLICT = "(episode, target, relation, coalesce(agent, 0)) WHERE episode IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges as columns, in insertion order.

    Attributes:
        episodes: int64[n], the episode an edge leaves, 0 where it leaves an entity.
        entities: int64[n], the entity it leaves, 0 where it leaves an episode.
        targets: int64[n], the entity it leads to.
        weights: float32[n].
    """

    episodes: NDArray[np.int64]
    entities: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float32]


class Graph:
    """The entity graph of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection, agents: Agents, changes: Changes) -> None:
        self._connection = connection
        self._agents = agents
        self._changes = changes

    def find(self, name: str) -> int | None:
        """Return the key of the entity with an exact name or alias."""
        found: int | None = self._connection.execute(
            "SELECT id FROM entity WHERE name = ?1"
            " UNION ALL SELECT entity FROM entity_alias WHERE alias = ?1 LIMIT 1",
            (name,),
        ).get
        return found

    def entity(self, name: str, at: int) -> int:
        """Return the key of an entity seen at a time in microseconds; a new one is "unknown"."""
        found = self.find(name)
        if found is None:
            self._connection.execute(
                "INSERT INTO entity (uid, name, type, first_seen, last_seen)"
                " VALUES (?, ?, 'unknown', ?, ?)",
                (uids.to_stored(str(uuid.uuid4())), name, at, at),
            )
            return self._connection.last_id
        self._connection.execute(
            "UPDATE entity SET first_seen = min(coalesce(first_seen, ?1), ?1),"
            " last_seen = max(coalesce(last_seen, ?1), ?1) WHERE id = ?2",
            (at, found),
        )
        return found

    def names(self, name: str) -> list[str]:
        """Return every name of an entity, its own first; an unknown name stands for itself."""
        key = self.find(name)
        if key is None:
            return [name]
        rows = self._connection.execute(
            "SELECT name FROM (SELECT 0 AS place, name FROM entity WHERE id = ?1"
            " UNION ALL SELECT 1, alias FROM entity_alias WHERE entity = ?1) ORDER BY place, name",
            (key,),
        )
        return [one for (one,) in rows]

    def mention(self, episode: int, entity: int, weight: float, agent: str | None, at: int) -> None:
        """Join an episode to an entity it mentions; a second mention adds to the weight.

        Args:
            episode: Key of the episode.
            entity: Key of the entity.
            weight: How sure the mention is, above 0.
            agent: Who writes, and alone walks the edge when scoped.
            at: The time, in microseconds.
        """
        edge = self._connection.execute(
            "INSERT INTO edge (agent, episode, target, relation, weight, created_at)"  # noqa: S608
            f" VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT {_CONFLICT}"
            " DO UPDATE SET weight = weight + excluded.weight RETURNING id",
            (self._agents.add(agent), episode, entity, MENTIONS, weight, at),
        ).get
        self._changes.add("link", edge, edge, at)

    def alias(self, name: str, alias: str, at: int) -> None:
        """Declare two names to be one entity's; what the store knows under both becomes one.

        Args:
            name: The name the entity keeps; one that is new, or an alias itself, works too.
            alias: The other name; if it is an entity already, the two are merged.
            at: The time, in microseconds.
        """
        kept, other = self.entity(name, at), self.find(alias)
        if kept == other or name == alias:
            return
        if other is None:
            self._connection.execute("INSERT INTO entity_alias VALUES (?, ?)", (alias, kept))
        else:
            self._merge(kept, other)
        self._changes.add("alias", kept, other or 0, at)

    def _merge(self, kept: int, other: int) -> None:
        one, keys = self._connection.execute, {"kept": kept, "other": other}
        one(
            "INSERT INTO edge (agent, episode, target, relation, weight, created_at)"  # noqa: S608
            " SELECT agent, episode, :kept, relation, weight, created_at FROM edge"
            f" WHERE target = :other AND episode IS NOT NULL ON CONFLICT {_CONFLICT}"
            " DO UPDATE SET weight = weight + excluded.weight",
            keys,
        )
        # An edge between the two would lead from the entity to itself.
        one(
            "INSERT INTO edge (agent, entity, target, relation, weight, created_at)"
            " SELECT agent, source, target, relation, weight, created_at FROM (SELECT agent,"
            " iif(entity = :other, :kept, entity) AS source,"
            " iif(target = :other, :kept, target) AS target, relation, weight, created_at"
            " FROM edge WHERE entity = :other OR (target = :other AND entity IS NOT NULL))"
            " WHERE source <> target"
            " ON CONFLICT (entity, target, relation, coalesce(agent, 0)) WHERE entity IS NOT NULL"
            " DO UPDATE SET weight = weight + excluded.weight",
            keys,
        )
        [(name, kind, first, last)] = one(
            "SELECT name, type, first_seen, last_seen FROM entity WHERE id = :other", keys
        )
        one("UPDATE entity_alias SET entity = :kept WHERE entity = :other", keys)
        one("DELETE FROM entity WHERE id = :other", keys)
        one("INSERT INTO entity_alias VALUES (?, ?)", (name, kept))
        one(
            "UPDATE entity SET type = iif(type = 'unknown', :type, type),"
            " first_seen = min(coalesce(first_seen, :first), coalesce(:first, first_seen)),"
            " last_seen = max(coalesce(last_seen, :last), coalesce(:last, last_seen))"
            " WHERE id = :kept",
            {"type": kind, "first": first, "last": last, "kept": kept},
        )

    def strengthen(self, episodes: Sequence[int], agent: str | None) -> bool:
        """Strengthen what episodes that were recalled together have in common.

        Hebb's rule ("The Organization of Behavior", 1949): what is active together is joined more
        firmly. Bounded softly, `weight + rate (1 - weight)`, as Gerstner and Kistler describe
        ("Mathematical formulations of Hebbian learning", Biological Cybernetics 87, 2002): every
        co-recall closes the same share of the distance to 1, so no edge grows past it. An edge
        counts when it leads to an entity that at least one other of the episodes leads to as well.

        Args:
            episodes: Keys of the episodes one recall returned.
            agent: Whose recall it was: a scoped agent strengthens its own edges, None any.

        Returns:
            Whether an edge changed.
        """
        owner = None if agent is None else self._agents.key(agent)
        if len(episodes) < 2 or (agent is not None and owner is None):
            return False
        self._connection.execute(
            "WITH near AS MATERIALIZED (SELECT g.id, g.episode, g.target FROM carray(:keys) AS k"
            " CROSS JOIN edge AS g ON g.episode = k.value"
            " WHERE (:owner IS NULL OR g.agent = :owner))"
            " UPDATE edge SET weight = weight + :rate * (1.0 - weight)"
            " WHERE weight < 1.0 AND id IN (SELECT id FROM near WHERE target IN"
            " (SELECT target FROM near GROUP BY target HAVING count(DISTINCT episode) > 1))",
            {
                "keys": apsw.carray(np.array(episodes, dtype=np.int64)),
                "owner": owner,
                "rate": LEARNING_RATE,
            },
        )
        return self._connection.changed > 0

    def edges(self, agent: str | None) -> Edges:
        """Return the edges an agent walks: its own, or with None everyone's."""
        return self._read("edge AS g WHERE TRUE", {}, agent)

    def edges_of(
        self, episodes: NDArray[np.int64], entities: NDArray[np.int64], agent: str | None
    ) -> Edges:
        """Return the edges an agent walks that leave some episodes, or join some entities.

        Args:
            episodes: int64[n], keys.
            entities: int64[m], keys; edges between one of them and another entity.
            agent: Whose edges; None is everyone's.
        """
        keys = {
            "episodes": json.dumps(episodes.tolist()),
            "entities": json.dumps(entities.tolist()),
        }
        return self._read(
            "edge AS g WHERE g.id IN (SELECT id FROM edge"
            " WHERE episode IN (SELECT value FROM json_each(:episodes))"
            " UNION ALL SELECT id FROM edge"
            " WHERE entity IN (SELECT value FROM json_each(:entities))"
            " UNION ALL SELECT id FROM edge WHERE entity IS NOT NULL"
            " AND target IN (SELECT value FROM json_each(:entities)))",
            keys,
            agent,
        )

    def edges_between(self, ranges: Sequence[tuple[int, int]]) -> Edges:
        """Return all edges whose ids lie in one of some ranges, both ends included."""
        return self._read(
            "json_each(:ranges) AS r CROSS JOIN edge AS g"
            " ON g.id BETWEEN r.value ->> 0 AND r.value ->> 1 WHERE TRUE",
            {"ranges": json.dumps(ranges)},
            None,
        )

    def _read(self, source: str, bindings: dict[str, Any], agent: str | None) -> Edges:
        """Return the edges of a FROM clause over `edge AS g`, as far as an agent walks them."""
        owner = None if agent is None else self._agents.key(agent)
        rows = self._connection.execute(
            "SELECT coalesce(g.episode, 0), coalesce(g.entity, 0), g.target, g.weight"  # noqa: S608
            f" FROM {source} AND (:all OR g.agent = :owner) ORDER BY g.id",
            {**bindings, "all": agent is None, "owner": owner},
        )
        # Row by row: all the rows of a million edges are ten times their columns.
        numbers = np.fromiter(chain.from_iterable(rows), dtype=np.float64)
        episodes, entities, targets, weights = numbers.reshape(-1, 4).T
        return Edges(
            episodes.astype(np.int64),
            entities.astype(np.int64),
            targets.astype(np.int64),
            weights.astype(np.float32),
        )

    def recalled(self, ranges: Sequence[tuple[int, int]]) -> NDArray[np.int64] | None:
        """Return the episodes of logged recalls, int64[n], None if a recall is logged no more.

        Args:
            ranges: First and last recall of each range.
        """
        bindings = {"ranges": json.dumps(ranges)}
        within = "BETWEEN r.value ->> 0 AND r.value ->> 1"
        logged = self._connection.execute(
            f"SELECT count(*) FROM json_each(:ranges) AS r JOIN recall_log AS l ON l.id {within}",  # noqa: S608
            bindings,
        ).get
        if logged < sum(last - first + 1 for first, last in ranges):
            return None
        rows = self._connection.execute(
            "SELECT DISTINCT a.episode FROM json_each(:ranges) AS r"  # noqa: S608
            f" CROSS JOIN access_log AS a ON a.recall {within} ORDER BY a.episode",
            bindings,
        )
        return np.array([episode for (episode,) in rows], dtype=np.int64)

    def count(self) -> int:
        """Return how many entities the file holds."""
        found: int = self._connection.execute("SELECT count(*) FROM entity").get
        return found
