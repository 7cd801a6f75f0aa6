"""Run a command in this process and see what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


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


def runner(main: Callable[[list[str]], object], captured: pytest.CaptureFixture[bytes]) -> Run:
    """Return a function that runs `main` with the arguments it is called with."""

    def run_command(*arguments: object) -> Outcome:
        captured.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        written = captured.readouterr()
        assert isinstance(stopped.value.code, int)
        return Outcome(stopped.value.code, written.out.decode(), written.err.decode())

    return run_command
