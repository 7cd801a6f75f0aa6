from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dormant import TEA, search
from evidence import ATLAS, well_formed
from stand_ins import Clock

from engram import Engram
from engram.ledger import Ledger


@pytest.fixture
def open_ledger(path: Path, clock: Clock, memory: Engram) -> Iterator[Callable[..., Ledger]]:
    """Open a ledger on the test's store, which is there; every one is closed at the end."""
    with ExitStack() as stack:

        def opened(**options: object) -> Ledger:
            return stack.enter_context(Ledger(path, clock=clock, **options))

        yield opened


@pytest.fixture
def ledger(open_ledger: Callable[..., Ledger]) -> Ledger:
    return open_ledger()


@pytest.fixture
def damage(memory: Engram) -> Callable[..., list[tuple[object, ...]]]:
    """Run SQL on the store that no engram would."""

    def run(sql: str, *bindings: object) -> list[tuple[object, ...]]:
        connection = memory._store._connection
        connection.execute("PRAGMA ignore_check_constraints = ON")
        with memory._store.writing():
            return connection.execute(sql, bindings).fetchall()

    return run


@pytest.fixture
def plans(ledger: Ledger) -> Callable[[Callable[[], object]], list[str]]:
    """Return how SQLite goes about what a call of the ledger reads."""

    def run(call: Callable[[], object]) -> list[str]:
        connection = ledger._opened()[0]._connection._connection
        asked: list[tuple[str, object]] = []
        connection.exec_trace = lambda _, sql, bindings: asked.append((sql, bindings)) or True
        call()
        connection.exec_trace = None
        return [
            row[3]
            for sql, bindings in asked
            if "SELECT" in sql
            for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", bindings or ())
        ]

    return run


@pytest.fixture
def put(ledger):
    def run(project: str = ATLAS, **changes: object):
        return ledger.put_evidence(project, **well_formed(**changes))

    return run


@pytest.fixture
def cite(put):
    """Store an observation under a name that cites others by their ids; return its id."""

    def run(name: str, *sources: str, **changes: object) -> str:
        refs = [f"memory:{source}" for source in sources]
        return put(evidence_id=name, source_refs=refs, **changes).id

    return run


@pytest.fixture
def tea(memory, clock):
    """A memory that nobody asked about for 31 days."""
    uid = memory.observe(TEA)
    clock.advance(days=31)
    return uid


@pytest.fixture
def event(memory, ledger, tea):
    """The event of a search that might have shown it."""
    search(memory, TEA)
    return ledger.review_dormant()[0]
