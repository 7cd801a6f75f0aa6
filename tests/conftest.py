from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from stand_ins import Clock, WordEmbedder

from engram import Engram
from engram.index import ranking

# Child processes use the installed package, as the tests do, not the sources beside them.
os.environ["PYTHONSAFEPATH"] = "1"

# Examples come from the test's name, not from chance; machines differ in speed, not in answers.
settings.register_profile(
    "engram",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("engram")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kills", type=int, default=6, help="how often each crash test kills its writer"
    )
    parser.addoption(
        "--frames", type=int, default=2000, help="how many mutated frames a process is sent"
    )
    parser.addoption("--mutations", type=int, default=200, help="how many damaged files are opened")
    parser.addoption(
        "--machine-runs", type=int, default=500, help="how many runs the state machine makes"
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.engram"


@pytest.fixture
def open_memory(path: Path, clock: Clock) -> Iterator[Callable[..., Engram]]:
    """Open the test's store with a stand-in embedder; every instance is closed at the end."""
    with ExitStack() as stack:

        def opened(agent_id: str | None = None, **options: object) -> Engram:
            if "embedder_model" not in options:
                options.setdefault("embedder", WordEmbedder())
            options.setdefault("clock", clock)
            where = options.pop("path", path)
            return stack.enter_context(Engram(where, agent_id=agent_id, **options))

        yield opened


@pytest.fixture
def memory(open_memory: Callable[..., Engram]) -> Engram:
    return open_memory()


@pytest.fixture
def fts5_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank by words with the constants of FTS5's `bm25()`, to compare with what it gives."""
    monkeypatch.setattr(ranking, "K1", 1.2)
    monkeypatch.setattr(ranking, "B", 0.75)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A place to export to, in a folder of its own."""
    (tmp_path / "exports").mkdir()
    return tmp_path / "exports" / "export"


@pytest.fixture
def other(open_memory: Callable[..., Engram], tmp_path: Path) -> Engram:
    """An empty store to import into."""
    return open_memory(path=tmp_path / "other.engram")
