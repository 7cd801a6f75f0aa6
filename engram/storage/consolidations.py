"""Consolidation: which experiences it looks at, what it did to them, and how that is taken back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from engram.storage import uids
from engram.storage.experiences import ARCHIVED, SUPERSEDED
from engram.storage.lifecycle import FORGET, RESTORE, Found, status_given
from engram.storage.merged_tags import ADDED
from engram.storage.standing import INELIGIBLE
from engram.storage.triplets import INSIGHT, parts_of, wire_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection
    from engram.storage.lifecycle import Lifecycle
    from engram.storage.merged_tags import Brought, MergedTags

Action = Literal["merge", "archive", "delete"]

_ROW = (
    "SELECT e.id, e.uid, e.agent, e.occurred_at, x.memory_type, x.project, x.digest, x.used_count,"  # noqa: S608
    " coalesce(j.score, 0.0), x.given_times ->> 'created_at', x.parent IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM episode AS p WHERE p.uid = x.parent),"
    " e.content, x.context_bytes, x.action_bytes"
    " FROM {rows} JOIN episode AS e ON e.id = x.episode"
    " LEFT JOIN judgement AS j ON j.episode = e.id"
    f" WHERE x.memory_type <> '{INSIGHT}' AND NOT {INELIGIBLE.format('e')} AND {{condition}}"
    " ORDER BY e.id"
)
_STEP = (
    "SELECT s.id, s.uid, r.uid, s.action, s.memories, s.reason, s.performed_by, s.before, s.at,"
    " s.undone_at IS NOT NULL"
    " FROM consolidation_step AS s CROSS JOIN consolidation AS r ON r.id = s.run"
    " CROSS JOIN episode AS e ON e.uid = stored_id(s.memories ->> '$[#-1]')"
    " WHERE (:agent IS NULL OR e.agent = (SELECT id FROM agent WHERE name = :agent))"
)
_HISTORY: Final = {"merge": status_given(SUPERSEDED), "archive": status_given(ARCHIVED)}
"""What the history of a memory calls an action; a deletion is `FORGET` there."""


class Candidate(NamedTuple):
    """An experience as consolidation looks at it; times in microseconds.

    Attributes:
        key: Its key.
        id: Its public id.
        agent: The key of whose it is.
        created_at: When it happened.
        memory_type: Its type, never "insight".
        project: Its project.
        digest: What identical ones share: type, project and texts.
        used_count: How often it was stored again.
        score: How useful it was found, 0 until it is judged.
        given_created: `created_at` as an import spelled it, if otherwise.
        orphaned: It names a parent that is not in the store.
    """

    key: int
    id: str
    agent: int | None
    created_at: int
    memory_type: str
    project: str | None
    digest: bytes
    used_count: int
    score: float
    given_created: str | None
    orphaned: bool


class Run(NamedTuple):
    """A run of consolidation: its key, its public id, who does it and when, in microseconds."""

    key: int
    id: str
    performed_by: str
    at: int


@dataclass(frozen=True, slots=True)
class ConsolidationStep:
    """What a run of consolidation did to one memory.

    Attributes:
        id: The step's id.
        run_id: The id of its run, which `undo` takes.
        action: "merge", "archive" or "delete".
        memory_ids: Of a merge the survivor and the one it absorbed, else the one memory.
        reason: Why.
        performed_at: When: ISO 8601, in UTC, whole seconds.
        performed_by: Who asked for it.
        undone: It was taken back.
    """

    id: str
    run_id: str
    action: Action
    memory_ids: tuple[str, ...]
    reason: str
    performed_at: str
    performed_by: str
    undone: bool


class Done(NamedTuple):
    """A step as the store has it: its key, itself, and what was so before it."""

    key: int
    step: ConsolidationStep
    before: dict[str, list[str]]


class Consolidations:
    """The consolidation runs of a store; every method runs in the caller's transaction.

    Args:
        connection: The store's connection.
        lifecycle: Hides memories and shows them again.
        tags: Gives survivors their tags and takes them back.
    """

    def __init__(self, connection: Connection, lifecycle: Lifecycle, tags: MergedTags) -> None:
        self._connection = connection
        self._lifecycle = lifecycle
        self._tags = tags

    def candidates(
        self, agent: str | None, after: int, limit: int
    ) -> list[tuple[Candidate, tuple[str, str, str]]]:
        """Return the next experiences that may be consolidated, by key, each with its texts.

        Insights, and what is hidden or quarantined, may not.

        Args:
            agent: Whose; None is everyone's.
            after: The key to go on after.
            limit: How many at most.
        """
        scope = "" if agent is None else " AND e.agent = (SELECT id FROM agent WHERE name = :agent)"
        rows = self._connection.execute(
            _ROW.format(rows="experience AS x", condition=f"x.episode > :after{scope}")
            + " LIMIT :limit",
            {"after": after, "limit": limit, **({} if agent is None else {"agent": agent})},
        )
        return [(_candidate(row), parts_of(*row[-3:])) for row in rows]

    def current(self, episodes: Iterable[int]) -> dict[int, Candidate]:
        """Return those of some experiences that may still be consolidated, as they are now."""
        rows = self._connection.execute(
            _ROW.format(
                rows="json_each(:keys) AS k CROSS JOIN experience AS x ON x.episode = k.value",
                condition="TRUE",
            ),
            {"keys": json.dumps(list(episodes))},
        )
        return {row[0]: _candidate(row) for row in rows}

    def begin(self, performed_by: str, at: int) -> Run:
        """Note a new run."""
        uid = self._new_id("consolidation", at)
        self._connection.execute("INSERT INTO consolidation (uid, at) VALUES (?, ?)", (uid, at))
        return Run(self._connection.last_id, uids.from_stored(uid), performed_by, at)

    def _new_id(self, table: str, at: int) -> bytes:
        newest = self._connection.execute(
            f"SELECT uid FROM {table} ORDER BY id DESC LIMIT 1"  # noqa: S608
        ).get
        [uid] = uids.following(newest, at, 1)
        return uid

    def merge(
        self, run: Run, survivor: Candidate, absorbed: Sequence[tuple[Candidate, str]]
    ) -> None:
        """Hide experiences behind another one, which gets their tags.

        Args:
            run: The run.
            survivor: The other one.
            absorbed: Those that are hidden, each with the reason.
        """
        brought = self._tags.give(survivor.key, [one.key for one, _ in absorbed], run.at)
        successor = uids.to_stored(survivor.id)
        for (one, reason), added in zip(absorbed, brought, strict=True):
            self._connection.execute(
                "UPDATE experience SET superseded_by = ? WHERE episode = ?", (successor, one.key)
            )
            ids = [survivor.id, one.id]
            self._hide(run, "merge", ids, one, reason, {"status": SUPERSEDED}, {ADDED: added})

    def archive(self, run: Run, memory: Candidate, reason: str) -> None:
        """Put an experience away."""
        self._hide(run, "archive", [memory.id], memory, reason, {"status": ARCHIVED}, {})

    def delete(self, run: Run, memory: Candidate, reason: str) -> None:
        """Forget an experience, which stays in the file so that this can be taken back."""
        self._hide(run, "delete", [memory.id], memory, reason, {"forgotten_at": run.at}, {})

    def _hide(
        self,
        run: Run,
        action: Action,
        ids: list[str],
        memory: Candidate,
        reason: str,
        columns: dict[str, object],
        before: dict[str, list[str]],
    ) -> None:
        self._lifecycle.set(
            Found("episode", memory.key),
            memory.id,
            run.at,
            action=_HISTORY.get(action, FORGET),
            reason=_mark(run.id),
            columns=columns,
        )
        self._connection.execute(
            "INSERT INTO consolidation_step (uid, run, action, memories, reason, performed_by,"
            " before, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self._new_id("consolidation_step", run.at),
                run.key,
                action,
                json.dumps(ids, ensure_ascii=False),
                reason,
                run.performed_by,
                json.dumps(before, ensure_ascii=False),
                run.at,
            ),
        )

    def steps(self, agent: str | None, *, run_id: str | None = None, limit: int = -1) -> list[Done]:
        """Return the steps whose memory an agent sees, hidden or not, newest first.

        Args:
            agent: Whose; None is everyone's.
            run_id: Of which run; None is all.
            limit: How many at most; -1 is all.
        """
        condition = "" if run_id is None else " AND r.uid = :run"
        rows = self._connection.execute(
            f"{_STEP}{condition} ORDER BY s.id DESC LIMIT :limit",
            {
                "agent": agent,
                "limit": limit,
                **({} if run_id is None else {"run": uids.to_stored(run_id)}),
            },
        )
        return [_done(row) for row in rows]

    def undo(self, steps: Iterable[Done], at: int) -> int:
        """Take steps back, as far as their memories still are as these had left them.

        Args:
            steps: The steps, none undone before.
            at: The time, in microseconds.

        Returns:
            How many were taken back.
        """
        undone = [done for done in steps if self._restore(done, at)]
        brought: Brought = {}
        for done in undone:
            if done.step.action == "merge":
                added = done.before.get(ADDED, ())
                brought.setdefault(done.step.memory_ids[0], set()).update(added)
        self._tags.take(brought, at)
        return len(undone)

    def _restore(self, done: Done, at: int) -> bool:
        memory, mark = done.step.memory_ids[-1], _mark(done.step.run_id)
        found = self._lifecycle.find(memory)
        history = self._lifecycle.history(memory)
        if found is None or not history or history[-1][1] != mark:
            return False
        self._lifecycle.set(
            found,
            memory,
            at,
            action=RESTORE,
            reason=f"undo of {mark}",
            columns={"forgotten_at": None} if done.step.action == "delete" else {"status": None},
        )
        self._connection.execute(
            "UPDATE consolidation_step SET undone_at = ? WHERE id = ?", (at, done.key)
        )
        return True


def _mark(run_id: str) -> str:
    """Return what the history of a memory names as the reason."""
    return f"consolidation {run_id}"


def _candidate(row: tuple[object, ...]) -> Candidate:
    found = Candidate._make(row[:11])
    return found._replace(id=uids.from_stored(found.id), orphaned=bool(found.orphaned))


def _done(row: tuple[Any, ...]) -> Done:
    key, uid, run, action, memories, reason, performed_by, before, at, undone = row
    step = ConsolidationStep(
        id=uids.from_stored(uid),
        run_id=uids.from_stored(run),
        action=action,
        memory_ids=tuple(json.loads(memories)),
        reason=reason,
        performed_at=wire_time(at),
        performed_by=performed_by,
        undone=bool(undone),
    )
    return Done(key, step, json.loads(before))
