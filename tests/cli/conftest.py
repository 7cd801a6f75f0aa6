"""Run `engram` commands in this process, each test in a folder of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from engram.cli import main

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        assert (self.code, self.err) == (0, "")
        assert self.out.count("\n") == 1
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The one JSON line on stderr."""
        assert self.out == ""
        assert self.err.count("\n") == 1
        return json.loads(self.err)["error"]


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    def run_command(*arguments: object) -> Outcome:
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        written = capfdbinary.readouterr()
        assert isinstance(stopped.value.code, int)
        return Outcome(stopped.value.code, written.out.decode(), written.err.decode())

    return run_command


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
