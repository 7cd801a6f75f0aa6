"""Databases of the reference server, as small as the trainer accepts them, and runs over them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from engram.training.messages import Insight, Message, Metric, Progress, decode, encode
from engram.training.run import Task, carry_out

SCHEMA = """
CREATE TABLE memories (
    id TEXT PRIMARY KEY, memory_type TEXT NOT NULL, context TEXT NOT NULL, action TEXT NOT NULL,
    result TEXT NOT NULL, score REAL DEFAULT 0, embedding_context BLOB, embedding_action BLOB,
    embedding_result BLOB, indexed BOOLEAN DEFAULT 0, tags TEXT, project TEXT, parent_id TEXT,
    source_ids TEXT, insight_type TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    used_count INTEGER DEFAULT 0, last_used_at TEXT, superseded_by TEXT
);
CREATE TABLE q_table (
    router_level TEXT NOT NULL, state TEXT NOT NULL, action TEXT NOT NULL, value REAL DEFAULT 0,
    update_count INTEGER DEFAULT 0, updated_at TEXT, PRIMARY KEY (router_level, state, action)
);
CREATE TABLE feedback_tracking (memory_id TEXT, searched_at TEXT, judged BOOLEAN DEFAULT 0,
    judged_at TEXT);
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def hours(count: float) -> str:
    """So many hours after the start, as the reference server writes times."""
    return (START + timedelta(hours=count)).strftime("%Y-%m-%dT%H:%M:%SZ")


def blob(vector: Sequence[float]) -> bytes:
    return np.asarray(vector, dtype="<f4").tobytes()


def near(axis: int, tilt: float = 0.0, dim: int = 8) -> list[float]:
    """A direction along an axis, or a little off it."""
    vector = [0.0] * dim
    vector[axis], vector[-1] = 1.0, tilt
    return vector


class BareDatabase:
    """Rows with defaults; `add` takes any column of `memories`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        # A disk that loses power is no part of these tests.
        self.connection.execute("PRAGMA synchronous = OFF")
        self.connection.executescript(SCHEMA)

    def add(self, uid: object, vector: object = None, **columns: object) -> None:
        row = {
            "id": uid,
            "memory_type": "decision",
            "context": f"context of {uid}",
            "action": f"action of {uid}",
            "result": f"result of {uid}",
            "score": 0.5,
            "embedding_context": blob(vector) if isinstance(vector, (list, np.ndarray)) else vector,
            "used_count": 0,
            "created_at": hours(0),
            "updated_at": hours(0),
            **columns,
        }
        marks = ", ".join("?" * len(row))
        self.connection.execute(
            f"INSERT INTO memories ({', '.join(row)}) VALUES ({marks})", [*row.values()]
        )

    def loosen(self) -> None:
        """Let any column of `memories` hold anything."""
        columns = [row[1] for row in self.connection.execute("PRAGMA table_info(memories)")]
        self.connection.execute("DROP TABLE memories")
        self.connection.execute(f"CREATE TABLE memories ({', '.join(columns)})")

    def judge(self, uid: object, judged: object = 1) -> None:
        self.connection.execute(
            "INSERT INTO feedback_tracking (memory_id, searched_at, judged) VALUES (?, ?, ?)",
            (uid, hours(0), judged),
        )

    def learned(self, *, deep: bool = False) -> list[Message]:
        return learned(self.path, deep=deep)


def learned(path: Path, *, deep: bool = False) -> list[Message]:
    """What a run over a database says; each message as its line reads."""
    said: list[Message] = []
    task = Task(path, path.parent / "models", deep=deep)
    assert carry_out(task, lambda one: said.append(decode(encode(one))), clock=lambda: 0.0) == 0
    return said


def sources(said: list[Message], insight_type: str) -> list[list[str]]:
    """The source ids of the insights of a type, in their order."""
    return [
        (one.source_ids or "").split(",")
        for one in said
        if isinstance(one, Insight) and one.insight_type == insight_type
    ]


def numbers(said: list[Message]) -> dict[str, float]:
    return {one.name: one.value for one in said if isinstance(one, Metric)}


def stages(said: list[Message]) -> list[tuple[str, float]]:
    return [(one.stage, one.percent) for one in said if isinstance(one, Progress)]
