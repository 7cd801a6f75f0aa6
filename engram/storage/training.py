"""What the trainer said: its runs, and the insights that stand for the newest of them."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from engram.storage import uids
from engram.storage.agents import OWNED, Agents
from engram.storage.experiences import SUPERSEDED
from engram.storage.standing import INELIGIBLE
from engram.storage.triplets import INSIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection

TRAINER: Final = "trainer"
"""The source type of episodes that a trainer's insights are."""

RUNS_KEPT: Final = 20

RECOMMENDATIONS_KEPT: Final = 10_000
"""Of a run, the first ones; of metrics and artifacts a tenth of that."""

_OTHERS_KEPT: Final = RECOMMENDATIONS_KEPT // 10

_LONGEST: Final = 4_096
"""Characters of a text that a run said, beyond which it is cut off."""

LET_GO: Final = "no run of the trainer brings it"
"""Why training hides an insight, as its history says."""

_LEARNED: Final = {
    "judgement": "score, judged_at",
    "shown": "routing, judged_at, rewarded",
    "recommendation": "run, action, reasoning",
}
Learned = dict[str, list[Any]]
"""Rows that belong to an insight, by their table."""


class NewRun(NamedTuple):
    """A run of the trainer; times in microseconds."""

    started_at: int
    finished_at: int
    failure: str | None = None
    messages: int = 0
    insights: int = 0
    duration_secs: float | None = None


class Run(NamedTuple):
    """A run as it was kept, with what it said beside its insights."""

    uid: str
    run: NewRun
    recommendation_count: int
    recommendations: list[tuple[str, str, str]]
    metrics: list[tuple[str, float]]
    artifacts: list[tuple[str, int, bytes | None]]


class Kept(NamedTuple):
    """An insight as it is kept.

    Attributes:
        key: Its key.
        standing: "let go" where training hid it, and may show it again; "hidden" where others did.
        used_count: How often it was used.
        last_used_at: When it was last, in microseconds.
    """

    key: int
    standing: Literal["shown", "let go", "hidden"]
    used_count: int
    last_used_at: int | None


class Training:
    """The runs of the trainer; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._agents = Agents(connection)

    def add(
        self,
        run: NewRun,
        agent: str | None,
        recommendations: Iterable[tuple[str, str, str]] = (),
        metrics: Iterable[tuple[str, float]] = (),
        artifacts: Iterable[tuple[str, int, bytes | None]] = (),
    ) -> None:
        """Keep a run, and let go of the agent's oldest beyond `RUNS_KEPT`.

        Whatever a trainer says, of one run no more is kept than the limits of this module.

        Args:
            run: The run.
            agent: Whose memories it was about; None: everybody's.
            recommendations: The public id of an episode, what to do with it, and why; those of
                episodes that are not there, or not the agent's, are left out.
            metrics: Names and values.
            artifacts: Paths, sizes in bytes, and SHA-256 digests where the files could be read.
        """
        execute, many = self._connection.execute, self._connection.executemany
        owner = self._agents.add(agent)
        newest = execute("SELECT uid FROM training_run ORDER BY id DESC LIMIT 1").get
        execute(
            "INSERT INTO training_run (uid, agent, started_at, finished_at, failure, messages,"
            " insights, duration_secs) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (uids.following(newest, run.started_at, 1)[0], owner, *run),
        )
        key = self._connection.last_id
        many(
            "INSERT INTO recommendation (run, episode, action, reasoning)"
            " SELECT ?1, id, ?2, ?3 FROM episode WHERE uid = ?4 AND agent IS coalesce(?5, agent)",
            (
                (key, action[:_LONGEST], reasoning[:_LONGEST], uids.to_stored(target), owner)
                for target, action, reasoning in islice(recommendations, RECOMMENDATIONS_KEPT)
            ),
        )
        many(
            "INSERT INTO metric (run, name, value) VALUES (?, ?, ?)",
            ((key, name[:_LONGEST], value) for name, value in islice(metrics, _OTHERS_KEPT)),
        )
        many(
            "INSERT INTO artifact (run, path, size_bytes, sha256) VALUES (?, ?, ?, ?)",
            ((key, path[:_LONGEST], *file) for path, *file in islice(artifacts, _OTHERS_KEPT)),
        )
        execute(
            "DELETE FROM training_run WHERE agent IS ?1 AND id <= ("
            "SELECT id FROM training_run WHERE agent IS ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
            (owner, RUNS_KEPT),
        )

    def runs(self, agent: str | None, limit: int, recommendations: int) -> list[Run]:
        """Return the newest runs of an agent, or of everybody with None, the newest first.

        Each with so many recommendations at most.
        """
        rows: Any = self._connection.execute(
            "SELECT id, uid, started_at, finished_at, failure, messages, insights, duration_secs"
            " FROM training_run WHERE ?1 IS NULL"
            " OR agent = (SELECT id FROM agent WHERE name = ?1) ORDER BY id DESC LIMIT ?2",
            (agent, limit),
        ).fetchall()
        return [
            self._run(key, uids.from_stored(uid), NewRun(*run), recommendations)
            for key, uid, *run in rows
        ]

    def _run(self, key: int, uid: str, run: NewRun, recommendations: int) -> Run:
        def of(sql: str, *more: int) -> Any:
            return self._connection.execute(sql, (key, *more)).fetchall()

        [(count,)] = of("SELECT count(*) FROM recommendation WHERE run = ?")
        first = of(
            "SELECT e.uid, r.action, r.reasoning FROM recommendation AS r"
            " JOIN episode AS e ON e.id = r.episode WHERE r.run = ? ORDER BY r.id LIMIT ?",
            recommendations,
        )
        return Run(
            uid,
            run,
            count,
            [(uids.from_stored(target), *said) for target, *said in first],
            of("SELECT name, value FROM metric WHERE run = ? ORDER BY id"),
            of("SELECT path, size_bytes, sha256 FROM artifact WHERE run = ? ORDER BY id"),
        )

    def passphrase(self) -> bytes | None:
        """Return what a trainer opens the store with, None where it is not encrypted."""
        return self._connection.secret

    def insights(self, agent: str | None) -> dict[str, Kept]:
        """Return the insights that trainers gave an agent, hidden ones too, by public id."""
        rows = self._connection.execute(
            "SELECT e.uid, e.id, CASE"  # noqa: S608
            f" WHEN NOT {INELIGIBLE.format('e')} THEN 'shown'"
            f" WHEN e.status = '{SUPERSEDED}' AND NOT e.quarantined"
            " AND coalesce(e.forgotten_at, e.invalidated_at) IS NULL AND :let_go IS (SELECT reason"
            " FROM lifecycle_change WHERE memory = e.uid ORDER BY id DESC LIMIT 1) THEN 'let go'"
            " ELSE 'hidden' END, x.used_count, x.last_used_at FROM experience AS x"
            " JOIN episode AS e ON e.id = x.episode"
            " WHERE x.memory_type = :type AND e.source_type = :source"
            f" AND {OWNED.format('e')} ORDER BY e.id",
            {"type": INSIGHT, "source": TRAINER, "agent": agent, "let_go": LET_GO},
        )
        return {uids.from_stored(uid): Kept(*row) for uid, *row in rows}

    def take_learned(self, key: int) -> Learned:
        """Take what was learned of an insight away from it, for the one that takes its place."""
        return {
            table: self._connection.execute(
                f"DELETE FROM {table} WHERE episode = ? RETURNING {columns}",  # noqa: S608
                (key,),
            ).fetchall()
            for table, columns in _LEARNED.items()
        }

    def give_learned(self, key: int, learned: Learned) -> None:
        """Give it to another."""
        for table, rows in learned.items():
            columns = _LEARNED[table]
            marks = ", ".join("?" * (columns.count(",") + 2))
            self._connection.executemany(
                f"INSERT INTO {table} (episode, {columns}) VALUES ({marks})",  # noqa: S608
                ((key, *row) for row in rows),
            )

    def judged(self, keys: Sequence[int]) -> set[int]:
        """Return which of some insights were judged."""
        rows = self._connection.execute(
            "SELECT episode FROM json_each(?) AS k JOIN judgement ON episode = k.value"
            " WHERE judged_at IS NOT NULL",
            (json.dumps(list(keys)),),
        )
        return {key for (key,) in rows}
