"""Erasing a person: everything under any of their names, in any agent's memory."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from engram.storage import uids
from engram.storage.folding import folded, mentions
from engram.storage.segment import match_every_term

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engram.storage.access import AccessLog
    from engram.storage.changes import Changes
    from engram.storage.connection import Connection
    from engram.storage.dependents import Dependents
    from engram.storage.facts import Facts

_COUNTED = {
    table: f"SELECT count(*) FROM {table}"  # noqa: S608
    for table in (
        "episode",
        "episode_label",
        "episode_source",
        "label",
        "strength",
        "embedding",
        "turn",
        "access_log",
        "fact",
        "fact_source",
        "fact_embedding",
        "entity",
        "entity_alias",
        "edge",
        "session_checkpoint",
        "check_observation",
        "lifecycle_change",
        "experience",
        "item",
        "judgement",
        "shown",
        "recommendation",
        "consolidation_step",
        "metric",
        "artifact",
    )
} | {"query": "SELECT count(query) FROM recall_log"}

# What JSON says, without the escapes in which it says it.
_SAYS = "(SELECT group_concat(concat_ws(char(10), key, atom), char(10)) FROM json_tree({}))"
_BESIDE = (
    f"concat_ws(char(10), {_SAYS.format('metadata')}, source_path, source_raw, project_path,"
    " status_reason, invalidated_reason)"
)
_SWEPT = {
    "session_checkpoint": (
        f"concat_ws(char(10), project_path, task, summary, {_SAYS.format('decisions')},"
        f" {_SAYS.format('next_steps')}, {_SAYS.format('blockers')})"
    ),
    "check_observation": (
        "concat_ws(char(10), project_path, evidence_id, session_id, assumption_id,"
        f" {_SAYS.format('observation')}, {_SAYS.format('provenance')},"
        f" {_SAYS.format('source_refs')})"
    ),
    "lifecycle_change": "concat_ws(char(10), action, reason)",
    "consolidation_step": (f"concat_ws(char(10), reason, performed_by, {_SAYS.format('before')})"),
    "recommendation": "concat_ws(char(10), action, reasoning)",
    "metric": "name",
    "artifact": "path",
}
_BESIDE_EXPERIENCE = f"concat_ws(char(10), project, source_ids, {_SAYS.format('given_times')})"
_NAMED = "(SELECT value FROM json_each(:names))"
_GONE = "(SELECT value FROM json_each(:episodes))"
_FACTS_ABOUT = (
    f"SELECT id FROM fact WHERE folded(subject) IN {_NAMED} OR folded(object) IN {_NAMED}"  # noqa: S608
)
# Facts with a source that is erased now and none that stays. A source that was forgotten before
# has neither an episode nor a name.
_FACTS_FROM = (
    "SELECT fact FROM (SELECT fact, iif(episode IS NULL,"  # noqa: S608
    f" iif(folded(coalesce(source, '')) IN {_NAMED}, 1, NULL), episode IN {_GONE}) AS goes,"
    " episode IS NOT NULL OR source IS NOT NULL AS known FROM fact_source)"
    " GROUP BY fact HAVING total(goes) > 0 AND total(goes) = total(known)"
)


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure took away.

    Attributes:
        episodes: Public ids, in insertion order.
        facts: Public ids, in insertion order.
        removed: How many rows each table lost.
    """

    episodes: list[str]
    facts: list[str]
    removed: dict[str, int]


class EntityErasure:
    """Finds and erases what a store holds about an entity, in the caller's transaction.

    Args:
        connection: The store's connection.
        changes: The store's change log.
        facts: The store's facts.
        access: The store's access log.
        dependents: Says what rests on episodes.
        remove_episodes: Erases episodes, given their keys and the time, from every table.
    """

    def __init__(
        self,
        connection: Connection,
        changes: Changes,
        facts: Facts,
        access: AccessLog,
        dependents: Dependents,
        remove_episodes: Callable[[list[int], int], object],
    ) -> None:
        self._connection = connection
        self._changes = changes
        self._facts = facts
        self._access = access
        self._dependents = dependents
        self._remove_episodes = remove_episodes

    def erase(self, name: str, now: int, *, content_sweep: bool) -> Erased:
        """Erase everything that is an entity's, under any spelling of any of its names.

        Args:
            name: The entity's name, or an alias.
            now: The time, in microseconds.
            content_sweep: Also what only mentions a name.
        """
        before = self._count()
        entities, names = self._names(name)
        gone = self._dependents.of(self._episodes(names, sweep=content_sweep), summaries=True)
        episodes = list(gone)
        facts = self._facts_to_go(names, episodes, sweep=content_sweep)
        erased = list(gone.values()), self._fact_ids(facts)
        self._facts.remove(facts, now)
        self._remove_episodes(episodes, now)
        self._connection.execute(
            f"UPDATE fact_source SET source = NULL WHERE source IS NOT NULL"  # noqa: S608
            f" AND folded(source) IN {_NAMED}",
            {"names": json.dumps(names)},
        )
        for entity in entities:
            self._connection.execute("DELETE FROM entity WHERE id = ?", (entity,))
            self._changes.add("forget_entity", entity, entity, now)
        if content_sweep:
            self._sweep(names, now)
        self._access.forget_queries(partial(mentions, names=names))
        after = self._count()
        removed = {table: before[table] - after[table] for table in before}
        return Erased(*erased, {table: lost for table, lost in removed.items() if lost})

    def _sweep(self, names: Sequence[str], now: int) -> None:
        """Erase what lies beside memories and mentions a name; see `_SWEPT`."""
        gone = 0
        for table, text in _SWEPT.items():
            self._connection.execute(
                f"DELETE FROM {table} WHERE mentions({text}, ?)",  # noqa: S608
                (json.dumps(names),),
            )
            gone += self._connection.changed
        self._connection.execute(
            "DELETE FROM lifecycle_change WHERE memory NOT IN (SELECT id FROM check_observation)"
            " AND memory NOT IN (SELECT uid FROM episode)"
        )
        if gone:
            self._changes.add("forget_text", 0, 0, now)

    def _count(self) -> dict[str, int]:
        return {table: self._connection.execute(sql).get for table, sql in _COUNTED.items()}

    def _names(self, name: str) -> tuple[list[int], list[str]]:
        """Return the keys of the entities that bear a name, and all names of theirs, folded."""
        names, entities = {folded(name)}, set[int]()
        while True:
            found: Any = self._connection.execute(
                "WITH named AS (SELECT id FROM entity WHERE folded(name) IN"  # noqa: S608
                f" {_NAMED} UNION SELECT entity FROM entity_alias WHERE folded(alias) IN {_NAMED})"
                " SELECT id, name FROM entity WHERE id IN named"
                " UNION ALL SELECT entity, alias FROM entity_alias WHERE entity IN named",
                {"names": json.dumps(sorted(names))},
            ).fetchall()
            entities.update(key for key, _ in found)
            more = {folded(one) for _, one in found} - names - {""}
            if not more:
                return sorted(entities), sorted(names)
            names |= more

    def _episodes(self, names: Sequence[str], *, sweep: bool) -> set[int]:
        """Return the episodes whose actors are named; with `sweep` those that mention a name."""
        named = (
            "mentions(n.name, :names)" if sweep else f"n.kind = 'actor' AND n.folded IN {_NAMED}"
        )
        rows = self._connection.execute(
            "SELECT l.episode FROM label AS n CROSS JOIN episode_label AS l ON l.label = n.id"  # noqa: S608
            f" WHERE {named}",
            {"names": json.dumps(names)},
        )
        episodes = {key for (key,) in rows}
        if sweep:
            for name in names:
                episodes |= _mentioning(name, self._candidates(name))
            episodes |= _mentioning_any(
                names,
                self._connection.execute(
                    f"SELECT id, {_BESIDE} AS beside FROM episode WHERE beside <> ''"  # noqa: S608
                    f" UNION ALL SELECT episode, {_BESIDE_EXPERIENCE} AS beside FROM experience"
                    " WHERE beside <> ''"
                    f" UNION ALL SELECT episode, {_SAYS.format('item.value')} AS beside FROM item"
                    " WHERE beside <> ''"
                ),
            )
        return episodes

    def _candidates(self, name: str) -> Iterable[tuple[int, str]]:
        """Return episodes and texts among which are all that contain a name."""
        expression = match_every_term(name)
        if not expression:
            return self._connection.execute("SELECT id, content FROM episode")
        return self._connection.execute(
            "SELECT e.id, e.content FROM episode_fts AS f CROSS JOIN episode AS e ON e.id = f.rowid"
            " WHERE episode_fts MATCH ?",
            (expression,),
        )

    def _facts_to_go(self, names: Sequence[str], episodes: list[int], *, sweep: bool) -> list[int]:
        """Return the facts about the names, and those left without a source, ascending."""
        about = {"names": json.dumps(names)}
        facts = {key for (key,) in self._connection.execute(_FACTS_ABOUT, about)}
        rows = self._connection.execute(_FACTS_FROM, {**about, "episodes": json.dumps(episodes)})
        facts |= {key for (key,) in rows}
        if sweep:
            texts = self._connection.execute(
                "SELECT id, concat_ws(char(10), subject, object, project_path) FROM fact"
            )
            facts |= _mentioning_any(names, texts)
        return sorted(facts)

    def _fact_ids(self, keys: list[int]) -> list[str]:
        rows = self._connection.execute(
            "SELECT f.uid FROM json_each(?) AS k CROSS JOIN fact AS f ON f.id = k.value",
            (json.dumps(keys),),
        )
        return [uids.from_stored(uid) for (uid,) in rows]


def _mentioning(name: str, texts: Iterable[tuple[int, str]]) -> set[int]:
    return _mentioning_any([name], texts)


def _mentioning_any(names: Sequence[str], texts: Iterable[tuple[int, str]]) -> set[int]:
    return {key for key, text in texts if mentions(text, names)}
