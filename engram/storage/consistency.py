"""The consistency check: what SQLite cannot know about a store, each part against the others."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import apsw
import numpy as np

from engram.errors import CorruptStore
from engram.storage.connection import MEMORY, Connection
from engram.storage.embeddings import STORED
from engram.storage.errors import named_errors
from engram.storage.headings import heading
from engram.storage.importance import UNDECAYED, Importance
from engram.storage.labels import Labels
from engram.storage.observations import Observations
from engram.storage.projects import Projects
from engram.storage.schema import bring_up_to_date
from engram.storage.standing import TEXTLESS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engram.models import StoredModel
    from engram.storage.embedding_models import EmbeddingModels
    from engram.storage.embeddings import Embeddings
    from engram.storage.full_text import FullText

_EVERY_KEY = 2**63 - 1
_VECTORS: Final = 4096
"""Vectors that are looked at together."""
_TOLERANCE: Final = 0.01
"""Rounding to float16 moves a length of one by less than 0.001."""

# What a schema is made of, but for the tables that FTS5 describes.
_PARTS: Final = (
    "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    " UNION SELECT 'column', concat(t.name, '.', c.name)"
    " FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c"
    " WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL %'"
)

# Each counts the rows that cannot be.
_RULES = {
    "vectors do not have their model's dimension": (
        "SELECT count(*) FROM embedding AS v JOIN model AS m ON m.id = v.model"
        " WHERE length(v.vector) <> 2 * m.dim"
    ),
    "vectors of facts do not have their model's dimension": (
        "SELECT count(*) FROM fact_embedding AS v JOIN model AS m ON m.id = v.model"
        " WHERE length(v.vector) <> 2 * m.dim"
    ),
    "facts lack a vector between two others": (
        "SELECT count(*) FROM (SELECT 1 FROM fact_embedding GROUP BY fact"
        " HAVING min(chunk) <> 0 OR max(chunk) <> count(*) - 1)"
    ),
    "episodes lack a vector between two others": (
        "SELECT count(*) FROM (SELECT 1 FROM embedding GROUP BY episode, model"
        " HAVING min(chunk) <> 0 OR max(chunk) <> count(*) - 1)"
    ),
    "edges have an infinite weight": "SELECT count(*) FROM edge WHERE abs(weight) = 9e999",
    "names belong to two entities": (
        "SELECT count(*) FROM entity_alias AS a JOIN entity AS e"
        " ON e.name = a.alias AND e.id <> a.entity"
    ),
    "facts have a successor and no time at which it took their place": (
        "SELECT count(*) FROM fact WHERE superseded_by IS NOT NULL AND superseded_at IS NULL"
    ),
    "facts end before they begin": "SELECT count(*) FROM fact WHERE valid_to < valid_from",
    "facts are their own successor": "SELECT count(*) FROM fact WHERE superseded_by = id",
    "lifecycle changes are of memories that are gone": (
        "SELECT count(*) FROM lifecycle_change AS c"
        " WHERE NOT EXISTS (SELECT 1 FROM episode WHERE uid = c.memory)"
        " AND NOT EXISTS (SELECT 1 FROM check_observation WHERE id = c.memory)"
    ),
    "checkpoints hold something other than text": (
        "SELECT count(*) FROM session_checkpoint AS s WHERE EXISTS (SELECT 1 FROM"
        " json_each(json_array(json(decisions), json(next_steps), json(blockers))) AS l,"
        " json_each(l.value) AS i WHERE i.type <> 'text')"
    ),
    "dormant events chose a memory that is none, or none that is one": (
        "SELECT count(*) FROM dormant_event WHERE (outcome = 'candidate') <> (episode IS NOT NULL)"
    ),
    "dormant events were judged before they were shown": (
        "SELECT count(*) FROM dormant_event WHERE feedback IS NOT NULL AND shown_at IS NULL"
    ),
    "items do not have the text that their parts say": (
        "SELECT count(*) FROM item AS i JOIN episode AS e ON e.id = i.episode"
        " WHERE octet_length(e.content) <> iif(i.parts IS NULL, 0,"
        " (SELECT total(value) + count(*) - 1 FROM json_each(i.parts)))"
    ),
    "turns are of episodes without actors": (
        "SELECT count(*) FROM turn AS t WHERE NOT EXISTS (SELECT 1 FROM episode_label AS l"
        " JOIN label AS n ON n.id = l.label WHERE l.episode = t.episode AND n.kind = 'actor')"
    ),
    "turns are not at the time of their episodes": (
        "SELECT count(*) FROM turn AS t JOIN episode AS e ON e.id = t.episode"
        " WHERE t.occurred_at <> e.occurred_at"
    ),
    "turns go on with what was written after them": (
        "SELECT count(*) FROM turn WHERE conversation > episode OR answers >= episode"
    ),
    "items are not their episode's agent's": (
        "SELECT count(*) FROM item AS i JOIN episode AS e ON e.id = i.episode"
        " WHERE i.owner <> coalesce(e.agent, 0)"
    ),
}


class Consistency:
    """The check of a store; every method runs in the caller's transaction."""

    def __init__(
        self,
        connection: Connection,
        models: EmbeddingModels,
        embeddings: Embeddings,
        texts: Iterable[FullText],
    ) -> None:
        self._connection = connection
        self._models = models
        self._embeddings = embeddings
        self._texts = texts

    def problems(self) -> list[str]:
        """Return what is wrong, in words that quote no stored text; reads everything.

        Nothing may be missing.
        """
        found: list[str] = []
        for part in (
            self._database,
            self._rules,
            self._vectors,
            self._lengths,
            self._importance,
            self._headings,
            lambda: self._changes("observe", "episode"),
            lambda: self._changes("assert", "fact"),
            self._ledger,
        ):
            found += _named(part)
        return found

    def missing(self) -> list[str]:
        """Return which tables, columns, views, indexes and triggers are not there, in words."""
        lost = _schema() - _parts(self._connection)
        gone = {name for kind, name in lost if kind == "table"}
        return [
            f"the {kind} {name} is missing"
            for kind, name in sorted(lost)
            if kind != "column" or name.split(".")[0] not in gone
        ]

    def _database(self) -> Iterator[str]:
        for text in self._texts:
            # FTS5's part trusts the structure that this connection read last, which others have
            # rewritten since; any search reads it anew, or finds what that part is going to say.
            with suppress(apsw.Error):
                text.refresh()
        for (text,) in self._connection.execute("PRAGMA integrity_check"):
            if text != "ok":
                yield text
        if self._connection.execute("PRAGMA foreign_key_check").fetchone():
            yield "a row refers to a missing row"

    def _rules(self) -> Iterator[str]:
        for rule, sql in _RULES.items():
            if number := self._connection.execute(sql).get:
                yield f"{number} {rule}"

    def _vectors(self) -> Iterator[str]:
        model = self._models.current()
        waits = "e.id IN (SELECT episode FROM unembedded)"
        textless = f"e.id IN ({TEXTLESS})"
        needs = f"NOT ({waits} OR {textless})"
        if model is None:
            if self._connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM episode AS e WHERE {needs})"  # noqa: S608
            ).get:
                yield "there are episodes and no embedding model"
            return
        with_vectors = "EXISTS (SELECT 1 FROM embedding WHERE episode = e.id AND model = ?)"
        for condition, problem in (
            (f"{needs} AND NOT {with_vectors}", "episodes have no vectors of the store's model"),
            (f"{waits} AND {with_vectors}", "episodes wait to be embedded and have vectors"),
            (f"{textless} AND {with_vectors}", "items without a text have vectors"),
        ):
            if number := self._connection.execute(
                f"SELECT count(*) FROM episode AS e WHERE {condition}",  # noqa: S608
                (model.id,),
            ).get:
                yield f"{number} {problem}"
        for _ in self._embeddings.between(0, _EVERY_KEY, model):
            pass
        if number := len(self._embeddings.damaged):
            yield f"{number} episodes have a vector that is not finite or not of its model's size"

    def _lengths(self) -> Iterator[str]:
        model = self._models.current()
        if model is None:
            return
        for table, of in (("embedding", "episodes"), ("fact_embedding", "facts")):
            if number := self._not_unit(table, model):
                yield f"{number} vectors of {of} do not have length one"

    def _not_unit(self, table: str, model: StoredModel) -> int:
        rows = self._connection.execute(
            f"SELECT vector FROM {table} WHERE model = ? AND length(vector) = ?",  # noqa: S608
            (model.id, model.dim * STORED.itemsize),
        )
        number = 0
        while some := list(islice(rows, _VECTORS)):
            vectors = np.frombuffer(b"".join(blob for (blob,) in some), STORED)
            vectors = vectors.reshape(-1, model.dim).astype(np.float32)
            lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
            wrong = ~(np.abs(lengths - 1.0) <= _TOLERANCE)
            # An embedder that is no model of files may have nothing to say of a text.
            if model.name in (None, model.fingerprint):
                wrong &= lengths != 0.0
            number += int(wrong.sum())
        return number

    def _importance(self) -> Iterator[str]:
        number = 0
        for keys, importance in Importance(self._connection).stored():
            given = keys[importance != UNDECAYED]
            if not len(given):
                continue
            there = self._connection.execute(
                "SELECT count(*) FROM carray(?) AS k CROSS JOIN episode AS e ON e.id = k.value",
                (apsw.carray(given),),
            ).get
            number += len(given) - there
        if number:
            yield f"{number} episodes that are gone have an importance"

    def _headings(self) -> Iterator[str]:
        rows = self._connection.execute(
            "SELECT id, occurred_at, heading FROM episode WHERE heading IS NOT NULL"
        )
        labels, number = Labels(self._connection), 0
        while some := list(islice(rows, _VECTORS)):
            names = labels.of(np.array([key for key, *_ in some], dtype=np.int64))
            for key, at, told in some:
                actors, _ = names.get(key, ([], []))
                # In a damaged file a time can be any number.
                with suppress(OverflowError):
                    number -= told == heading(actors, at)
            number += len(some)
        if number:
            yield f"{number} episodes have a heading that is not of their actors and time"

    def _ledger(self) -> Iterator[str]:
        missing, spare = Projects(self._connection).differences()
        if missing:
            yield f"{missing} rows are missing in the lists of projects"
        if spare:
            yield f"{spare} rows in the lists of projects belong to no memory they may show"
        if altered := Observations(self._connection).altered():
            yield f"{altered} check observations are not what was stored"

    def _changes(self, op: str, table: str) -> Iterator[str]:
        """Compare the change log with a table: what was written there is in the log."""
        ranges = self._connection.execute(
            "SELECT first, last FROM change WHERE op = ? ORDER BY first, last", (op,)
        )
        missing, covered, begins = 0, 0, 0
        for (key,) in self._connection.execute(f"SELECT id FROM {table} ORDER BY id"):  # noqa: S608
            while covered < key and (found := next(ranges, None)) is not None:
                begins, covered = found
            missing += not begins <= key <= covered
        if missing:
            yield f"{missing} rows of {table} are not in the change log"


def _named(part: Callable[[], Iterator[str]]) -> list[str]:
    """Return what a part of the check finds; what it stumbles over is one more thing."""
    found: list[str] = []
    try:
        with named_errors():
            found.extend(part())
    except CorruptStore as error:
        found.append(error.message)
    return found


def _parts(connection: Connection) -> set[tuple[str, str]]:
    return set(connection.execute(_PARTS))


@cache
def _schema() -> set[tuple[str, str]]:
    """Return what a new store is made of."""
    fresh = Connection(MEMORY)
    try:
        bring_up_to_date(fresh, 0)
        return _parts(fresh)
    finally:
        fresh.close()
