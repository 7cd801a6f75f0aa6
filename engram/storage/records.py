"""Records: rows under public names, as an export writes them and every import reads them.

A record is what a row says without the store's own keys: other rows are named by their public ids,
agents and labels by their names, and rows that belong to it lie inside. Plain columns are read from
the schema, so one that is added to it is carried along.
"""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from engram.storage import uids
from engram.storage.facts import VISIBLE
from engram.storage.importance import IMPORTANCE, JOIN, UNDECAYED, from_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engram.models import StoredModel
    from engram.storage.connection import Connection

Record = dict[str, Any]


class TakenError(Exception):
    """A record's id is in the store already."""


class UnfitError(Exception):
    """A record does not fit what it belongs to."""


KINDS: Final = (
    "episode",
    "experience",
    "item",
    "reflection",
    "entity",
    "fact",
    "succession",
    "edge",
    "predicate",
    "recall_log",
    "session_checkpoint",
    "check_observation",
    "lifecycle_change",
    "consolidation",
    "consolidation_step",
)
"""What records there are, in an order in which none names a later one."""

_BATCH = 500
_OWN = "(:agent IS NULL OR t.agent = (SELECT id FROM agent WHERE name = :agent))"
_SEEN = f"(:agent IS NULL OR {VISIBLE.format('t')})"
_SCOPES = {
    "episode": _OWN,
    "experience": (
        "(:agent IS NULL OR (SELECT agent FROM episode WHERE id = t.episode)"
        " = (SELECT id FROM agent WHERE name = :agent))"
    ),
    "item": ("(:agent IS NULL OR t.owner = (SELECT id FROM agent WHERE name = :agent))"),
    # Whoever sees a fact sees which run extracted it.
    "reflection": f"({_OWN} OR t.id IN (SELECT t.reflection FROM fact AS t WHERE {_SEEN}))",  # noqa: S608
    "entity": "TRUE",
    "fact": _SEEN,
    "edge": _OWN,
    "predicate": "TRUE",
    "recall_log": _OWN,
    # Projects have these, or the whole file, no agent does.
    "session_checkpoint": ":agent IS NULL",
    "check_observation": ":agent IS NULL",
    "lifecycle_change": ":agent IS NULL",
    "consolidation": ":agent IS NULL",
    "consolidation_step": ":agent IS NULL",
}
# What tells the rows of a table apart, and gives them their order, where that is not a number.
_KEYS = {
    "experience": "t.episode",
    "item": "t.episode",
    "session_checkpoint": "row_number() OVER (ORDER BY t.namespace, t.project_path, t.task)",
    "check_observation": "t.id",
}
# Columns that a record says in another way, or not at all.
_LEFT_OUT = {
    # A heading goes where the vectors go that it is in.
    "episode": {"id", "search_text", "heading"},
    # The digest follows from the rest.
    "experience": {"digest"},
    # It is the agent of the episode.
    "item": {"owner"},
    "judgement": {"episode"},
    "strength": {"episode"},
    "reflection": {"id", "last_episode"},
    "fact": {"id", "superseded_by", "reflection", "search_text"},
    "fact_source": {"fact", "position"},
    "access_log": {"recall"},
    "check_observation": set(),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column that records carry under its own name.

    Attributes:
        name: The name.
        type: The declared type; "ANY" holds public ids.
        required: Whether a record must have it.
        target: The table whose row it names, by public id or, for an agent, by name.
    """

    name: str
    type: str
    required: bool
    target: str | None

    @property
    def selected(self) -> str:
        """The SQL of its value under a public name, over the row `t`."""
        if self.target is None:
            return f"t.{self.name}"
        public = "name" if self.target == "agent" else "uid"
        return f"(SELECT {public} FROM {self.target} WHERE id = t.{self.name})"  # noqa: S608

    @property
    def holds_id(self) -> bool:
        """Whether its values are public ids."""
        return self.type == "ANY" or self.target not in (None, "agent")

    def public(self, value: Any) -> Any:
        """Return a stored value as a record has it."""
        if value is None:
            return None
        if self.holds_id:
            return uids.from_stored(value)
        return base64.b64encode(value).decode() if self.type == "BLOB" else value

    def stored(self, value: Any) -> Any:
        """Return a record's value as the store has it."""
        if value is None:
            return None
        if self.holds_id:
            return uids.to_stored(value)
        return base64.b64decode(value) if self.type == "BLOB" else value


def columns(connection: Connection, table: str) -> tuple[Column, ...]:
    """Return the columns of a table that its records carry, inside a transaction."""
    keys: Any = connection.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    rows: Any = connection.execute(f"PRAGMA table_info({table})").fetchall()
    targets = {row[3]: row[2] for row in keys}
    left_out = _LEFT_OUT.get(table, {"id"})
    plain = (
        Column(name, declared, bool((filled or key) and default is None), targets.get(name))
        for _, name, declared, filled, default, key in rows
        if name not in left_out
    )
    return (_IMPORTANCE, *plain) if table == "strength" else tuple(plain)


# Its values lie in blocks of their own; in records it is the first of what strength says.
_IMPORTANCE = Column("importance", "REAL", required=False, target=None)


class RecordReader:
    """Reads a store, or what one agent sees of it, as records; inside one transaction.

    Args:
        connection: The store's connection.
        agent: Whose view; None is all.
        model: The model whose vectors episodes bring along; None leaves them out.
    """

    def __init__(
        self, connection: Connection, agent: str | None, model: StoredModel | None = None
    ) -> None:
        self._connection = connection
        self._agent = agent
        self._model = model
        # Windows of a reflection share their run's id: facts name them by their place here.
        self._windows: dict[int, int] = {}

    def count(self, kind: str) -> int:
        """Return how many records of a kind there are."""
        table, scope = self._source(kind)
        found: int = self._connection.execute(
            f"SELECT count(*) FROM {table} AS t WHERE {scope}",  # noqa: S608
            {"agent": self._agent},
        ).get
        return found

    def read(self, kind: str) -> Iterator[Record]:
        """Yield the records of a kind in insertion order; values that are NULL are left out.

        Reflections come before facts, whose `reflection` counts them from 0.
        """
        if kind == "succession":
            return self._successions()
        if kind == "predicate":
            return self._predicates()
        return self._rows(kind)

    def _source(self, kind: str) -> tuple[str, str]:
        if kind == "succession":
            later = VISIBLE.format("s")
            return "fact", (
                f"{_SEEN} AND EXISTS (SELECT 1 FROM fact AS s WHERE s.id = t.superseded_by"  # noqa: S608
                f" AND (:agent IS NULL OR {later}))"
            )
        return kind, _SCOPES[kind]

    def _successions(self) -> Iterator[Record]:
        table, scope = self._source("succession")
        rows = self._connection.execute(
            "SELECT t.uid, (SELECT uid FROM fact WHERE id = t.superseded_by)"  # noqa: S608
            f" FROM {table} AS t WHERE {scope} ORDER BY t.id",
            {"agent": self._agent},
        )
        for fact, later in rows:
            yield {"fact": uids.from_stored(fact), "superseded_by": uids.from_stored(later)}

    def _predicates(self) -> Iterator[Record]:
        for name, multi in self._connection.execute("SELECT name, multi FROM predicate"):
            yield {"name": name, "multi": multi}

    def _rows(self, table: str) -> Iterator[Record]:
        carried = columns(self._connection, table)
        key = _KEYS.get(table, "t.id")
        selected = ", ".join([f"{key} AS key", *(column.selected for column in carried)])
        rows = self._connection.execute(
            f"SELECT {selected} FROM {table} AS t WHERE {_SCOPES[table]} ORDER BY key",  # noqa: S608
            {"agent": self._agent},
        )
        inside = getattr(self, f"_in_{table}", None)
        while batch := list(islice(rows, _BATCH)):
            records = {row[0]: _record(carried, row[1:]) for row in batch}
            if inside is not None:
                inside(records)
            yield from records.values()

    def _in_episode(self, records: Mapping[int, Record]) -> None:
        for kind, name in (("actor", "actors"), ("tag", "tags")):
            rows = self._inside(
                records,
                "SELECT l.episode, n.name FROM {keys} CROSS JOIN episode_label AS l"
                " ON l.episode = k.value JOIN label AS n ON n.id = l.label AND n.kind = :kind"
                " ORDER BY l.episode, l.position",
                {"kind": kind},
            )
            for key, names in rows.items():
                records[key][name] = [label for (label,) in names]
        sources = self._inside(
            records,
            "SELECT s.episode, s.source FROM {keys} CROSS JOIN episode_source AS s"
            " ON s.episode = k.value ORDER BY s.episode, s.position",
        )
        for key, found in sources.items():
            records[key]["summary_of"] = [uids.from_stored(source) for (source,) in found]
        for key, judgements in self._members(records, "judgement", "episode", "t.episode").items():
            [records[key]["judgement"]] = judgements
        self._add_strengths(records)
        if self._model is not None:
            self._add_vectors(records, self._model.id)

    def _add_strengths(self, records: Mapping[int, Record]) -> None:
        accesses = self._members(records, "strength", "episode", "t.episode")
        rows = self._inside(
            records,
            f"SELECT e.id, {IMPORTANCE} FROM {{keys}} CROSS JOIN episode AS e ON e.id = k.value"  # noqa: S608
            f" {JOIN}",
        )
        for key, ((stored,),) in rows.items():
            importance = from_stored(stored)
            if importance != UNDECAYED or key in accesses:
                [counted] = accesses.get(key, [{}])
                records[key]["strength"] = {"importance": importance, **counted}

    def _add_vectors(self, records: Mapping[int, Record], model: int) -> None:
        vectors = self._inside(
            records,
            "SELECT v.episode, v.vector, coalesce(v.field, -1) FROM {keys}"
            " CROSS JOIN embedding AS v"
            " ON v.episode = k.value AND v.model = :model ORDER BY v.episode, v.chunk",
            {"model": model},
        )
        for key, found in vectors.items():
            records[key]["vectors"] = [base64.b64encode(vector).decode() for vector, _ in found]
            fields = [field for _, field in found]
            if any(field >= 0 for field in fields):
                records[key]["fields"] = fields
        headings = self._inside(
            records,
            "SELECT e.id, e.heading FROM {keys} CROSS JOIN episode AS e"
            " ON e.id = k.value AND e.heading IS NOT NULL",
        )
        for key, ((heading,),) in headings.items():
            if key in vectors:
                records[key]["heading"] = heading

    def _in_reflection(self, records: Mapping[int, Record]) -> None:
        for key in records:
            self._windows[key] = len(self._windows)
        # A key means nothing elsewhere: the newest episode up to it that is still there does.
        rows = self._inside(
            records,
            "SELECT r.id, (SELECT e.uid FROM episode AS e WHERE e.id <= r.last_episode"
            " AND e.agent IS r.agent ORDER BY e.id DESC LIMIT 1)"
            " FROM {keys} CROSS JOIN reflection AS r ON r.id = k.value",
        )
        for key, ((last,),) in rows.items():
            if last is not None:
                records[key]["last_episode"] = uids.from_stored(last)

    def _in_entity(self, records: Mapping[int, Record]) -> None:
        rows = self._inside(
            records,
            "SELECT l.entity, l.alias FROM {keys} CROSS JOIN entity_alias AS l"
            " ON l.entity = k.value ORDER BY l.entity, l.alias",
        )
        for key, found in rows.items():
            records[key]["aliases"] = [alias for (alias,) in found]

    def _in_fact(self, records: Mapping[int, Record]) -> None:
        for key, sources in self._members(records, "fact_source", "fact", "t.position").items():
            records[key]["sources"] = sources
        rows = self._inside(
            records,
            "SELECT f.id, f.reflection FROM {keys} CROSS JOIN fact AS f ON f.id = k.value"
            " WHERE f.reflection IS NOT NULL",
        )
        for key, ((window,),) in rows.items():
            records[key]["reflection"] = self._windows[window]

    def _in_recall_log(self, records: Mapping[int, Record]) -> None:
        for key, results in self._members(records, "access_log", "recall", "t.rank").items():
            records[key]["results"] = results

    def _members(
        self, records: Mapping[int, Record], table: str, owner: str, order: str
    ) -> dict[int, list[Record]]:
        """Return the rows of a table that belong to each record, as records."""
        carried = [c for c in columns(self._connection, table) if c is not _IMPORTANCE]
        selected = ", ".join([f"t.{owner}", *(column.selected for column in carried)])
        rows = self._inside(
            records,
            f"SELECT {selected} FROM {{keys}} CROSS JOIN {table} AS t ON t.{owner} = k.value"  # noqa: S608
            f" ORDER BY t.{owner}, {order}",
        )
        return {key: [_record(carried, row) for row in found] for key, found in rows.items()}

    def _inside(
        self, records: Mapping[int, Record], sql: str, bindings: Mapping[str, Any] | None = None
    ) -> dict[int, list[tuple[Any, ...]]]:
        """Run a query over the records' keys and return the rest of its rows by their key."""
        found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        rows = self._connection.execute(
            sql.format(keys="json_each(:keys) AS k"),
            {"keys": json.dumps(list(records)), **(bindings or {})},
        )
        for key, *rest in rows:
            found[key].append(tuple(rest))
        return found


def _record(carried: Sequence[Column], values: Sequence[Any]) -> Record:
    return {
        column.name: column.public(value)
        for column, value in zip(carried, values, strict=True)
        if value is not None
    }
