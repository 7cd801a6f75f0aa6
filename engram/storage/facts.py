"""Facts: what is believed, with the time it holds and the time it was known.

Valid time (`valid_from`, `valid_to`) says when a statement is true. Transaction time
(`recorded_at`, `superseded_at`) says when the store knew it. A fact is active while neither ended.
"""

from __future__ import annotations

from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np

from engram.storage import uids
from engram.storage.fact_records import conflicts, statement, to_fact
from engram.storage.ownership import OF_FACTS
from engram.storage.segment import search_text
from engram.storage.standing import OPEN_FACT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engram.models import Fact
    from engram.storage.agents import Agents
    from engram.storage.changes import Changes
    from engram.storage.connection import Connection
    from engram.storage.fact_records import FactSource, NewFact
    from engram.storage.full_text import FullText
    from engram.storage.projects import Projects

ALWAYS: Final = 2**63 - 1
"""When the time of a fact ends that has no end."""

VISIBLE = "({0}.shared = 1 OR {0}.agent = (SELECT id FROM agent WHERE name = :agent))"
# The subject under each of its names: aliases are what callers declared to be one entity.
_NAMES = """(
    SELECT :subject
    UNION SELECT name FROM entity
        WHERE id = (SELECT entity FROM entity_alias WHERE alias = :subject)
    UNION SELECT alias FROM entity_alias WHERE entity IN (
        SELECT entity FROM entity_alias WHERE alias = :subject
        UNION SELECT id FROM entity WHERE name = :subject))"""
_CANONICAL = (
    "coalesce((SELECT n.name FROM entity_alias AS l JOIN entity AS n ON n.id = l.entity"
    " WHERE l.alias = {0}.subject), {0}.subject)"
)
# Facts as they were known at :known: one superseded later was still open. Only open facts are
# ever superseded, so what is undone here is what `supersede` did.
_KNOWN = """(
    SELECT id, uid, agent, subject, predicate, object, valid_from, recorded_at, confidence,
           reflection, shared, quarantined,
           iif(superseded_at > :known, NULL, valid_to) AS valid_to,
           iif(superseded_at > :known, NULL, superseded_at) AS superseded_at,
           iif(superseded_at > :known, NULL, superseded_by) AS superseded_by
    FROM fact WHERE recorded_at <= :known)"""
_SELECT = f"""
    SELECT f.id, f.uid, f.subject, f.predicate, f.object, f.valid_from, f.valid_to, f.recorded_at,
           f.superseded_at, s.uid, f.confidence, r.uid, a.name, f.shared, f.quarantined
    FROM {_KNOWN} AS f
    LEFT JOIN fact AS s ON s.id = f.superseded_by
         AND (:agent IS NULL OR {VISIBLE.format("s")})
    LEFT JOIN reflection AS r ON r.id = f.reflection
    LEFT JOIN agent AS a ON a.id = f.agent
    WHERE (:agent IS NULL OR {VISIBLE.format("f")})"""  # noqa: S608
_MULTI = "coalesce((SELECT multi FROM predicate WHERE name = {0}.predicate), 0)"
# The whole rule of supersession, for an `old` fact that is about the same as a `new` one: only
# reflection supersedes, and never within one run; an agent's run closes what the agent owns, the
# operator's any; untrusted text does not undo trusted; a predicate of many values gives up only
# the value that is stated again.
_SUPERSEDES = f"""(
    new.reflection IS NOT NULL AND old.reflection IS NOT new.reflection
    AND (new.agent IS NULL OR old.agent IS new.agent)
    AND (old.quarantined = 1 OR new.quarantined = 0)
    AND (old.object = new.object OR NOT {_MULTI.format("old")}))"""


class Facts:
    """The facts of a store; every method runs in the caller's transaction.

    `agent` is whose view it is: a scoped agent sees shared facts and its own, None sees all.
    """

    def __init__(
        self,
        connection: Connection,
        agents: Agents,
        changes: Changes,
        projects: Projects,
        text: FullText,
    ) -> None:
        self._projects = projects
        self._text = text
        self._connection = connection
        self._agents = agents
        self._changes = changes

    def add(self, new: NewFact, agent: str | None, *, at: int | None = None) -> int:
        """Insert a fact and return its key.

        Args:
            new: The fact.
            agent: Its owner.
            at: When it is written, in microseconds; None is `new.recorded_at`.
        """
        self._connection.execute(
            "INSERT INTO fact (uid, agent, subject, predicate, object, valid_from, valid_to,"
            " recorded_at, confidence, reflection, shared, quarantined, search_text)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                uids.to_stored(new.uid),
                self._agents.add(agent),
                new.subject,
                new.predicate,
                new.object,
                new.valid_from,
                new.valid_to,
                new.recorded_at,
                new.confidence,
                new.reflection,
                int(new.shared),
                int(new.quarantined or self._quarantined(new.sources)),
                search_text(statement(new.subject, new.predicate, new.object)),
            ),
        )
        key = self._connection.last_id
        # An episode is named by its row: its id does not stay behind when it is forgotten.
        self._connection.executemany(
            "INSERT INTO fact_source VALUES (?, ?, ?, ?, ?)",
            (
                (key, place, s.source if s.episode is None else None, s.episode, s.provenance)
                for place, s in enumerate(new.sources)
            ),
        )
        self._connection.execute(f"{OF_FACTS} WHERE id = ?", (key,))
        self._projects.add_facts(key, key)
        self._text.add(key, key)
        self._changes.add("assert", key, key, new.recorded_at if at is None else at)
        return key

    def _quarantined(self, sources: Iterable[FactSource]) -> bool:
        episodes = [s.episode for s in sources if s.episode is not None]
        if not episodes:
            return False
        return bool(
            self._connection.execute(
                "SELECT max(e.quarantined) FROM carray(?) AS k"
                " CROSS JOIN episode AS e ON e.id = k.value",
                (apsw.carray(np.array(episodes, dtype=np.int64)),),
            ).get
        )

    def get(self, uid: str, agent: str | None) -> tuple[int, Fact] | None:
        """Return a fact and its key by public id, None unless `agent` may see it."""
        found = self._read("f.uid = :uid", agent, {"uid": uids.to_stored(uid)})
        return found[0] if found else None

    def about(
        self,
        subject: str,
        agent: str | None,
        *,
        as_of: int | None = None,
        known_at: int | None = None,
    ) -> list[Fact]:
        """Return the facts about a subject, under any of its names, in the order they begin.

        Args:
            subject: The exact name, or a declared alias.
            agent: Whose view.
            as_of: Only facts that hold at this valid time; an end is exclusive.
            known_at: The facts as the store knew them then: later ones are left out, and what was
                superseded later is still open.
        """
        condition = f"f.subject IN {_NAMES}"
        if as_of is not None:
            condition += " AND f.valid_from <= :as_of AND coalesce(f.valid_to > :as_of, TRUE)"
        rows = self._read(
            condition,
            agent,
            {
                "subject": subject,
                "as_of": as_of,
                "known": ALWAYS if known_at is None else known_at,
            },
        )
        return [fact for _, fact in rows]

    def page(
        self, agent: str | None, *, active: bool, after: int, limit: int
    ) -> list[tuple[int, Fact]]:
        """Return facts in the order they were recorded, with their keys.

        Args:
            agent: Whose view.
            active: Leave out those that are closed or superseded.
            after: The key of the last fact of the page before, 0 for the first page.
            limit: How many at most.
        """
        rows = self._connection.execute(
            "SELECT f.id FROM fact AS f WHERE f.id > :after"  # noqa: S608
            f" AND (:agent IS NULL OR {VISIBLE.format('f')})"
            f" AND ({OPEN_FACT.format('f')} OR NOT :active) ORDER BY f.id LIMIT :limit",
            {"after": after, "agent": agent, "active": int(active), "limit": limit},
        )
        return sorted(self._fetch([key for (key,) in rows], agent), key=itemgetter(0))

    def active(self, subject: str, predicate: str, agent: str | None) -> list[tuple[int, Fact]]:
        """Return the active facts about a subject and predicate, with their keys."""
        return self._read(
            f"f.subject IN {_NAMES} AND f.predicate = :predicate AND {OPEN_FACT.format('f')}",
            agent,
            {"subject": subject, "predicate": predicate},
        )

    def superseded_by(self, new: NewFact, agent: str | None) -> list[tuple[int, Fact]]:
        """Return the active facts that a fact of a reflection run closes, with their keys.

        The one place of the rule (`_SUPERSEDES`). It changes nothing and may be asked before or
        after `new` is added; same objects among the result are agreement, others contradiction.

        Args:
            new: The fact; one without a `reflection` closes nothing.
            agent: The agent whose run it is, None for the operator's.
        """
        owner = None if agent is None else self._agents.key(agent)
        if agent is not None and owner is None:
            return []
        rows = self._connection.execute(
            f"SELECT old.id FROM fact AS old, (SELECT :reflection AS reflection, :owner AS agent,"  # noqa: S608
            " :quarantined AS quarantined, :object AS object) AS new"
            f" WHERE old.subject IN {_NAMES} AND old.predicate = :predicate"
            f" AND old.uid IS NOT :uid AND {OPEN_FACT.format('old')} AND {_SUPERSEDES}",
            {
                "reflection": new.reflection,
                "owner": owner,
                "quarantined": int(new.quarantined or self._quarantined(new.sources)),
                "subject": new.subject,
                "predicate": new.predicate,
                "object": new.object,
                "uid": uids.to_stored(new.uid),
            },
        )
        return self._fetch([key for (key,) in rows], agent)

    def supersede(self, key: int, by: int, at: int) -> None:
        """Close a fact in favour of a later one.

        Args:
            key: The fact to close.
            by: The fact that takes its place.
            at: When, in microseconds: the end of both its valid and its known time. A fact that
                was to begin later never holds.
        """
        self._close(key, by, at)
        self._changes.add("supersede", key, key, at)

    def _close(self, key: int, by: int, at: int) -> None:
        self._projects.remove_fact(key)
        self._connection.execute(
            "UPDATE fact SET valid_to = max(valid_from, ?), superseded_at = ?, superseded_by = ?"
            " WHERE id = ?",
            (at, at, by, key),
        )

    def remove(self, keys: Sequence[int], now: int) -> None:
        """Erase facts; what they had superseded opens again, unless another fact takes its place.

        Many at once are cheaper than one by one.

        Args:
            keys: The facts.
            now: The time, in microseconds.
        """
        rebuild = self._text.is_cheaper_to_rebuild(len(keys))
        if not rebuild:
            self._text.remove(keys)
        for key in keys:
            self._remove(key, now)
        if rebuild:
            self._text.rebuild()

    def _remove(self, key: int, now: int) -> None:
        one = self._connection.execute
        [(successor, closed_at)] = one(
            "SELECT superseded_by, superseded_at FROM fact WHERE id = ?", (key,)
        )
        predecessors = list(one("SELECT id, subject FROM fact WHERE superseded_by = ?", (key,)))
        self._projects.remove_fact(key)
        one("DELETE FROM fact WHERE id = ?", (key,))
        for older, subject in predecessors:
            heir = self._heir(older, subject)
            if heir is None and successor is not None:
                heir = (successor, closed_at)
            if heir is not None:
                self._close(older, *heir)
            else:
                one(
                    "UPDATE fact SET valid_to = NULL, superseded_at = NULL, superseded_by = NULL"
                    " WHERE id = ?",
                    (older,),
                )
                self._projects.add_facts(older, older)
            self._changes.add("supersede", older, older, now)
        self._changes.add("forget_fact", key, key, now)

    def _heir(self, key: int, subject: str) -> tuple[int, int] | None:
        """Return the first later fact that supersedes one, and when it was recorded."""
        found: tuple[int, int] | None = self._connection.execute(
            "SELECT new.id, new.recorded_at FROM fact AS old JOIN fact AS new"  # noqa: S608
            f" ON new.id > old.id AND new.predicate = old.predicate AND new.subject IN {_NAMES}"
            f" WHERE old.id = :key AND {_SUPERSEDES} ORDER BY new.id LIMIT 1",
            {"key": key, "subject": subject},
        ).fetchone()
        return found

    def contradictions(self, agent: str | None, limit: int | None) -> list[tuple[Fact, Fact]]:
        """Return the pairs of active facts that cannot both hold, in insertion order.

        Same subject under any name, same predicate of one value, different object.
        """
        rows: list[tuple[int, str, str, str]] = list(
            self._connection.execute(
                f"WITH open AS MATERIALIZED (SELECT f.id, {_CANONICAL.format('f')} AS subject,"  # noqa: S608
                f" f.predicate, f.object FROM fact AS f WHERE {OPEN_FACT.format('f')}"
                f" AND NOT {_MULTI.format('f')} AND (:agent IS NULL OR {VISIBLE.format('f')})),"
                " split AS (SELECT subject, predicate FROM open GROUP BY subject, predicate"
                " HAVING min(object) <> max(object))"
                " SELECT id, subject, predicate, object FROM open"
                " JOIN split USING (subject, predicate) ORDER BY id",
                {"agent": agent},
            )
        )
        pairs = list(islice(conflicts(rows), limit))
        facts = dict(self._fetch(sorted({key for pair in pairs for key in pair}), agent))
        return [(facts[one], facts[other]) for one, other in pairs]

    def declare(self, predicate: str, multi: bool) -> None:
        """Say whether a predicate holds many values at once, from now on."""
        self._connection.execute(
            "INSERT INTO predicate VALUES (?, ?) ON CONFLICT DO UPDATE SET multi = excluded.multi",
            (predicate, int(multi)),
        )

    def count(self) -> int:
        """Return how many facts the file holds, superseded ones included."""
        found: int = self._connection.execute("SELECT count(*) FROM fact").get
        return found

    def count_active(self) -> int:
        """Return how many facts of the file are active."""
        found: int = self._connection.execute(
            f"SELECT count(*) FROM fact AS f WHERE {OPEN_FACT.format('f')}"  # noqa: S608
        ).get
        return found

    def fetch(self, keys: list[int], agent: str | None) -> dict[int, Fact]:
        """Return facts by their keys; those that `agent` may not see are left out."""
        return dict(self._fetch(keys, agent))

    def _fetch(self, keys: list[int], agent: str | None) -> list[tuple[int, Fact]]:
        if not keys:
            return []
        wanted = apsw.carray(np.array(keys, dtype=np.int64))
        return self._read("f.id IN (SELECT value FROM carray(:keys))", agent, {"keys": wanted})

    def _read(
        self, condition: str, agent: str | None, bindings: Mapping[str, Any]
    ) -> list[tuple[int, Fact]]:
        """Return the facts that meet a condition over `f`, in the order they begin to hold."""
        rows = list(
            self._connection.execute(
                f"{_SELECT} AND {condition} ORDER BY f.valid_from, f.id",
                {"known": ALWAYS, "agent": agent, **bindings},
            )
        )
        sources = self._sources([row[0] for row in rows])
        return [(row[0], to_fact(row, sources.get(row[0], []))) for row in rows]

    def _sources(self, keys: list[int]) -> dict[int, list[str]]:
        """Return the sources of facts that can still be named."""
        if not keys:
            return {}
        named: dict[int, list[str]] = {}
        rows = self._connection.execute(
            "SELECT s.fact, coalesce(e.uid, s.source) AS source FROM carray(?) AS k"
            " CROSS JOIN fact_source AS s ON s.fact = k.value"
            " LEFT JOIN episode AS e ON e.id = s.episode"
            " WHERE coalesce(e.uid, s.source) IS NOT NULL ORDER BY s.fact, s.position",
            (apsw.carray(np.array(keys, dtype=np.int64)),),
        )
        for key, source in rows:
            named.setdefault(key, []).append(uids.from_stored(source))
        return named
