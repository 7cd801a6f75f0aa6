"""Names in a question: which entities it speaks of, and what is known about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from engram.storage.facts import VISIBLE
from engram.storage.standing import ACTIVE_FACT, INELIGIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection

_NAMED: Final = (
    "SELECT n.id AS id FROM json_each(:names) AS k"
    " CROSS JOIN entity AS n ON n.name = k.value COLLATE NOCASE"
    " UNION SELECT a.entity FROM json_each(:names) AS k"
    " CROSS JOIN entity_alias AS a ON a.alias = k.value COLLATE NOCASE"
)
_MINE: Final = (
    "(:agent IS NULL OR g.agent IS NULL OR g.agent = (SELECT id FROM agent WHERE name = :agent))"
)
# An entity is everybody's row, and known to an agent once something of its own leads there.
_KNOWN: Final = (
    f"(:agent IS NULL OR EXISTS (SELECT 1 FROM edge AS g WHERE g.target = n.id AND {_MINE})"  # noqa: S608
    f" OR EXISTS (SELECT 1 FROM edge AS g WHERE g.entity = n.id AND {_MINE}))"
)
_NEIGHBOURS_MOST: Final = 20


class Names:
    """Entities by the names that questions use; every method runs in the caller's transaction.

    Case is that of ASCII letters: a name in another script is found as it is written.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def entities(self, names: Iterable[str], agent: str | None) -> list[int]:
        """Return the keys of the entities that have one of some names, as name or alias.

        An agent that is scoped gets those that an edge of its own, or of nobody, leads to or from.
        """
        rows = self._connection.execute(
            f"SELECT n.id FROM ({_NAMED}) AS n WHERE {_KNOWN} ORDER BY n.id",  # noqa: S608
            {"names": json.dumps(list(names)), "agent": agent},
        )
        return [key for (key,) in rows]

    def of(self, entities: Sequence[int]) -> list[str]:
        """Return all names of some entities, each one's own first."""
        rows = self._connection.execute(
            "SELECT name FROM (SELECT k.key AS place, 0 AS kind, n.name FROM json_each(?1) AS k"
            " CROSS JOIN entity AS n ON n.id = k.value UNION ALL"
            " SELECT k.key, 1, a.alias FROM json_each(?1) AS k"
            " CROSS JOIN entity_alias AS a ON a.entity = k.value) ORDER BY place, kind, name",
            (json.dumps(entities),),
        )
        return [name for (name,) in rows]

    def neighbours(self, entities: Sequence[int], agent: str | None) -> list[tuple[int, float]]:
        """Return the entities joined to some, the strongest, and how strongly: 0 to 1."""
        rows = self._connection.execute(
            "SELECT id, min(1.0, max(weight)) FROM ("  # noqa: S608
            " SELECT g.target AS id, g.weight FROM json_each(:keys) AS k"
            f" CROSS JOIN edge AS g ON g.entity = k.value WHERE {_MINE} UNION ALL"
            " SELECT g.entity, g.weight FROM json_each(:keys) AS k"
            " CROSS JOIN edge AS g ON g.target = k.value"
            f" WHERE g.entity IS NOT NULL AND {_MINE})"
            " WHERE id NOT IN (SELECT value FROM json_each(:keys))"
            f" GROUP BY id ORDER BY max(weight) DESC, id LIMIT {_NEIGHBOURS_MOST}",
            {"keys": json.dumps(entities), "agent": agent},
        )
        return [(key, weight) for key, weight in rows]

    def episodes(self, entity: int, agent: str | None, limit: int) -> list[int]:
        """Return the keys of the eligible episodes that mention an entity, last joined first."""
        rows = self._connection.execute(
            "SELECT g.episode FROM edge AS g CROSS JOIN episode AS e ON e.id = g.episode"  # noqa: S608
            f" WHERE g.target = :entity AND {_MINE} AND NOT {INELIGIBLE.format('e')}"
            " AND (:agent IS NULL OR e.agent = (SELECT id FROM agent WHERE name = :agent))"
            " ORDER BY g.id DESC LIMIT :limit",
            {"entity": entity, "agent": agent, "limit": limit},
        )
        return [key for (key,) in rows]

    def facts(self, names: Sequence[str], agent: str | None, limit: int, now: int) -> list[int]:
        """Return the keys of the facts about one of some names that hold, newest first.

        Args:
            names: The names.
            agent: Whose view.
            limit: How many at most.
            now: The time at which they hold, in microseconds.
        """
        rows = self._connection.execute(
            "SELECT f.id FROM fact AS f WHERE f.id IN ("  # noqa: S608
            " SELECT s.id FROM json_each(:names) AS k"
            " CROSS JOIN fact AS s ON s.subject = k.value COLLATE NOCASE UNION"
            " SELECT o.id FROM json_each(:names) AS k"
            " CROSS JOIN fact AS o ON o.object = k.value COLLATE NOCASE)"
            f" AND (:agent IS NULL OR {VISIBLE.format('f')}) AND {ACTIVE_FACT.format('f')}"
            " ORDER BY f.id DESC LIMIT :limit",
            {"names": json.dumps(list(names)), "agent": agent, "limit": limit, "now": now},
        )
        return [key for (key,) in rows]
