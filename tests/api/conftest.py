"""Settings, a store with some memories, and processes that serve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from stand_ins import WordEmbedder
from workers import Worker

from engram import Engram


@pytest.fixture
def config(tmp_path: Path, path: Path) -> Path:
    """A settings file; there is no store yet where it says."""
    file = tmp_path / "engram.yaml"
    file.write_text(f"db_path: {path}\nann: {{enabled: false}}\n", encoding="utf-8")
    return file


@pytest.fixture
def project(tmp_path: Path) -> str:
    folder = tmp_path / "atlas"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def store(path: Path) -> Path:
    """An empty store."""
    with Engram(path, embedder=WordEmbedder()):
        pass
    return path


@pytest.fixture
def start(config: Path) -> Iterator[Callable[..., Worker]]:
    """Start a process; all are ended with the test."""
    with ExitStack() as stack:

        def started(file: Path = config, **options: object) -> Worker:
            return stack.enter_context(Worker(file, **options))

        yield started


@pytest.fixture
def worker(store: Path, start: Callable[..., Worker]) -> Worker:
    return start()
