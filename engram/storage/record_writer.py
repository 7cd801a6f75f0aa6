"""Writing records: the one way by which every import reaches the tables."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from engram.errors import InvalidArgument
from engram.storage import uids
from engram.storage.episodes import NewEpisode
from engram.storage.experience_records import ExperienceRecords
from engram.storage.fact_writing import FactRecords
from engram.storage.headings import headed
from engram.storage.importance import UNDECAYED, Importance
from engram.storage.item_records import ItemRecords
from engram.storage.ledger_records import LedgerRecords
from engram.storage.projects import Projects
from engram.storage.records import Column, Record, TakenError, UnfitError, columns
from engram.storage.segment import search_text
from engram.storage.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engram.storage.agents import Agents
    from engram.storage.changes import Changes
    from engram.storage.connection import Connection
    from engram.storage.full_text import FullText
    from engram.storage.graph import Graph
    from engram.storage.labels import Labels

_WRITTEN_AT_ONCE = 1_000
"""Values of importance that are kept until their blocks are written."""
_GROWING = ("episode", "reflection", "fact", "edge", "recall_log")


class RecordWriter:
    """Writes checked records into a store, in one transaction of the caller's.

    Args:
        connection: The store's connection.
        agents: The store's agents.
        labels: The store's labels.
        graph: The store's graph.
        text: The full-text index of the episodes.
        fact_text: That of the facts.
        changes: The store's change log.
        model: Key of the model whose vectors the episodes bring.
        merge: Skip what the store holds already instead of refusing it.
    """

    def __init__(
        self,
        connection: Connection,
        agents: Agents,
        labels: Labels,
        graph: Graph,
        text: FullText,
        fact_text: FullText,
        changes: Changes,
        *,
        model: int | None,
        merge: bool,
    ) -> None:
        self._connection = connection
        self._agents = agents
        self._labels = labels
        self._graph = graph
        self._text = text
        self._fact_text = fact_text
        self._changes = changes
        self._projects = Projects(connection)
        self._turns = Turns(connection)
        self._model = model
        self._merge = merge
        # What is in the store before the import has no larger keys than these.
        self._last = {table: self._newest(table) for table in _GROWING}
        self._columns: dict[str, dict[str, Column]] = {}
        # Entities that the store knows under their name and another id.
        self._entities: dict[bytes | str, int] = {}
        self._importance: dict[int, float] = {}
        # Edges that were there and became heavier: a set in order.
        self._grown: dict[int, None] = {}
        ledger = LedgerRecords(connection, self._insert, merge=merge)
        after = self._last["episode"]
        experiences = ExperienceRecords(connection, self._insert, self._is_taken, after=after)
        facts = FactRecords(
            connection,
            agents,
            self._insert,
            self._key,
            self._is_taken,
            after=self._last,
            merge=merge,
        )
        items = ItemRecords(connection, self._insert, after=after, merge=merge)
        self._add: dict[str, Callable[[Record], bool]] = {
            "episode": self._add_episode,
            "experience": experiences.add,
            "item": items.add,
            "reflection": facts.add_reflection,
            "entity": self._add_entity,
            "fact": facts.add_fact,
            "succession": facts.add_succession,
            "edge": self._add_edge,
            "predicate": facts.add_predicate,
            "recall_log": self._add_recall,
            "session_checkpoint": ledger.add_checkpoint,
            "check_observation": ledger.add_observation,
            "lifecycle_change": ledger.add_change,
            "consolidation": partial(experiences.add_consolidated, "consolidation"),
            "consolidation_step": partial(experiences.add_consolidated, "consolidation_step"),
        }
        self.written: Counter[str] = Counter()

    def add(self, kind: str, record: Record, where: str) -> bool:
        """Write a record and return whether it was new.

        Args:
            kind: One of `KINDS`, in their order.
            record: The record; an episode's `vectors` are the bytes to store, its `fields` say
                which part of an experience each is of, -1: of none, and its `heading` is in them.
            where: Its place in the import, for messages.

        Raises:
            InvalidArgument: Its id is taken and nothing is to be merged, or the schema refuses a
                value.
        """
        try:
            added = self._add[kind](record)
        except TakenError:
            message = f"{where}: the store holds this id already"
            raise InvalidArgument(message, "pass merge=True to skip what is there") from None
        except (apsw.ConstraintError, UnfitError):
            message = f"{where}: the store refuses a value"
            raise InvalidArgument(message, "the record breaks a rule of the schema") from None
        self.written[kind] += added
        return added

    def finish(self, now: int) -> None:
        """Make what was written findable and note it in the change log."""
        self._write_importance()
        for table, op in (("episode", "observe"), ("fact", "assert"), ("edge", "link")):
            first, last = self._last[table] + 1, self._newest(table)
            if last >= first:
                if table == "episode":
                    self._text.add(first, last)
                    self._projects.add(first, last)
                elif table == "fact":
                    self._fact_text.add(first, last)
                    self._projects.add_facts(first, last)
                self._changes.add(op, first, last, now)
        for edge in self._grown:
            if edge <= self._last["edge"]:
                self._changes.add("link", edge, edge, now)

    def _write_importance(self) -> None:
        Importance(self._connection).set(
            np.array(list(self._importance), dtype=np.int64),
            np.array(list(self._importance.values()), dtype=np.float64),
        )
        self._importance.clear()

    def _newest(self, table: str) -> int:
        """Return the largest key a table ever had."""
        found: int | None = self._connection.execute(
            f"SELECT max((SELECT coalesce(max(id), 0) FROM {table}),"  # noqa: S608
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?), 0))",
            (table,),
        ).get
        return found or 0

    def _insert(self, table: str, record: Mapping[str, Any], **more: Any) -> int:
        """Insert the columns of a record, and some the record does not say itself."""
        if table not in self._columns:
            self._columns[table] = {c.name: c for c in columns(self._connection, table)}
        values: dict[str, Any] = {
            name: self._value(column, record[name])
            for name, column in self._columns[table].items()
            if record.get(name) is not None
        } | more
        self._connection.execute(
            f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",  # noqa: S608
            tuple(values.values()),
        )
        return self._connection.last_id

    def _value(self, column: Column, value: Any) -> Any:
        if column.target == "agent":
            return self._agents.add(value)
        if column.target is not None:
            return self._key(column.target, value)
        return column.stored(value)

    def _key(self, table: str, uid: str) -> int | None:
        stored = uids.to_stored(uid)
        if table == "entity" and stored in self._entities:
            return self._entities[stored]
        found: int | None = self._connection.execute(
            f"SELECT id FROM {table} WHERE uid = ? LIMIT 1",  # noqa: S608
            (stored,),
        ).get
        return found

    def _is_taken(self, table: str, uid: str) -> bool:
        """Return whether an id is in the store, which is only right in a merge."""
        if self._key(table, uid) is None:
            return False
        if not self._merge:
            raise TakenError
        return True

    def _add_episode(self, record: Record) -> bool:
        if self._is_taken("episode", record["uid"]) or (self._merge and "vectors" not in record):
            return False
        heading, content = record.get("heading"), record["content"]
        text = search_text(headed(heading, content))
        key = self._insert("episode", record, heading=heading, search_text=text)
        self._labels.add([key], [record.get("actors", ())], [record.get("tags", ())])
        self._add_turn(key, record)
        self._connection.executemany(
            "INSERT INTO episode_source VALUES (?, ?, ?)",
            [(key, at, uids.to_stored(uid)) for at, uid in enumerate(record.get("summary_of", ()))],
        )
        strength = dict(record.get("strength") or {})
        if (importance := strength.pop("importance", UNDECAYED)) != UNDECAYED:
            self._importance[key] = importance
        if len(self._importance) == _WRITTEN_AT_ONCE:
            self._write_importance()
        if strength:
            self._insert("strength", strength, episode=key)
        if "judgement" in record:
            self._insert("judgement", record["judgement"], episode=key)
        self._connection.executemany(
            "INSERT INTO embedding (episode, chunk, model, vector, field)"
            " VALUES (?, ?, ?, ?, nullif(?, -1))",
            [
                (key, chunk, self._model, vector, field)
                for chunk, (vector, field) in enumerate(
                    zip(record["vectors"], record.get("fields") or repeat(-1), strict=False)
                )
            ],
        )
        return True

    def _add_turn(self, key: int, record: Record) -> None:
        said = NewEpisode(
            record["content"],
            record["occurred_at"],
            tuple(record.get("actors", ())),
            tuple(record.get("tags", ())),
            provenance=record["provenance"],
            quarantined=bool(record.get("quarantined")),
            summary_of=tuple(record.get("summary_of", ())),
        )
        self._turns.add([key], [said], self._agents.add(record.get("agent")))

    def _add_entity(self, record: Record) -> bool:
        if self._is_taken("entity", record["uid"]):
            return False
        known = self._graph.find(record["name"])
        key = self._insert("entity", record) if known is None else known
        if known is not None:
            self._entities[uids.to_stored(record["uid"])] = known
            self._connection.execute(
                "UPDATE entity SET first_seen = coalesce(min(first_seen, ?1), first_seen, ?1),"
                " last_seen = coalesce(max(last_seen, ?2), last_seen, ?2) WHERE id = ?3",
                (record.get("first_seen"), record.get("last_seen"), known),
            )
        for alias in record.get("aliases", ()):
            if self._graph.find(alias) is None:
                self._connection.execute("INSERT INTO entity_alias VALUES (?, ?)", (alias, key))
        return known is None

    def _add_edge(self, record: Record) -> bool:
        source, target = self._source(record), self._key("entity", record["target"])
        # Old stores hold edges of rows they have lost, and two entities can have become one here.
        if source is None or target is None or source == ("entity", target):
            return False
        weight = record.get("weight", 1.0)
        end, key = source
        there = self._connection.execute(
            f"SELECT id FROM edge WHERE {end} = ? AND target = ? AND relation = ? AND agent IS ?",  # noqa: S608
            (key, target, record["relation"], self._agents.add(record.get("agent"))),
        ).get
        if there is None:
            plain = {name: value for name, value in record.items() if name not in _ENDS}
            self._insert("edge", plain, **{end: key, "target": target})
            return True
        if self._merge:
            return False
        if not self._entities:
            raise TakenError
        self._connection.execute(
            "UPDATE edge SET weight = weight + ? WHERE id = ?", (weight, there)
        )
        self._grown[there] = None
        return False

    def _source(self, record: Record) -> tuple[str, int] | None:
        """Return the table and the key of what an edge leaves."""
        for end in ("episode", "entity"):
            uid = record.get(end, record.get("source"))
            key = None if uid is None else self._key(end, uid)
            if key is not None:
                return end, key
        return None

    def _add_recall(self, record: Record) -> bool:
        results = record.get("results", ())
        keys = [(self._key("episode", result["episode"]), result["rank"]) for result in results]
        found = [(key, rank) for key, rank in keys if key is not None]
        if len(found) < len(keys):
            # The query goes with any episode it returned.
            record = record | {"query": None}
        if self._merge:
            # The log has no ids: what it says of episodes that were here before may be here too.
            found = [(key, rank) for key, rank in found if key > self._last["episode"]]
        if not found and (self._merge or keys):
            return False
        log = self._insert("recall_log", record)
        self._connection.executemany(
            "INSERT INTO access_log (episode, recall, rank) VALUES (?, ?, ?)",
            [(key, log, rank) for key, rank in found],
        )
        return True


_ENDS = ("episode", "entity", "target", "source")
