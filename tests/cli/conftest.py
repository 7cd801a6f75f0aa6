"""Run `engram` commands in this process, each test in a folder of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from commands import Run, runner

from engram.cli import main

if TYPE_CHECKING:
    from pathlib import Path

_BORROWED = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"}


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of its own, and no setting of anybody's in the environment."""
    for name in list(os.environ):
        if name.startswith("ENGRAM_") or name in _BORROWED:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    # Put back at the end: commands may set them.
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.setenv(name, "")
    return home


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    return runner(main, capfdbinary)


@pytest.fixture
def store(path: Path, run: Run) -> Path:
    """A store with three episodes: two of agent `ana`, one of `ben`."""
    for content, *options in (
        ("The ferry to Kos leaves at noon", "--actors", "Ana", "Ben", "--tags", "travel",
         "--timestamp", "2026-01-01T12:00:00Z", "--agent-id", "ana", "--provenance", "user"),
        ("Pancakes need two eggs", "--tags", "food", "--timestamp", "2026-02-01",
         "--agent-id", "ana"),
        ("Ben keeps bees", "--timestamp", "2026-03-01T00:00+05:30", "--agent-id", "ben"),
    ):  # fmt: skip
        assert run("observe", path, content, *options).code == 0
    return path
