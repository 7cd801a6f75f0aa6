"""Run `engram-bench` in this process, with an embedder that needs no model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from commands import Run, runner
from stand_ins import WordEmbedder

import engram.embedding
from engram.bench import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> WordEmbedder:
    """The embedder every command gets."""
    embedder = WordEmbedder()
    monkeypatch.setattr(engram.embedding, "resolve", lambda _: embedder)
    return embedder


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    return runner(main, capfdbinary)
