"""Drive the real `engram api` process over its pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

# Only to end a test that would hang for ever.
PATIENCE = 60

ISOLATED = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY")


def environment(home: Path, **variables: str) -> dict[str, str]:
    """The environment of a child process that must not see the settings of who runs the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ISOLATED and not name.startswith("ENGRAM_")
    }
    return {**kept, "HOME": str(home), **variables}


def program(*arguments: str, before: Sequence[str] = ()) -> list[str]:
    return [sys.executable, *before, "-m", "engram", *arguments]


SHOUTING = """
    import ctypes, os, subprocess, sys, warnings

    def shout(when):
        print("print", when)
        print("flushed", when, flush=True)
        sys.__stdout__.write("dunder " + when + chr(10))
        libc = ctypes.CDLL(None)
        libc.puts(b"puts " + when.encode())
        libc.write(1, b"write " + when.encode() + bytes([10]), 6 + len(when) + 1)
        os.write(1, b"os.write " + when.encode() + bytes([10]))
        os.system("echo system " + when)
        subprocess.run(["echo", "child", when])
        warnings.warn("warning " + when, stacklevel=1)
"""
"""Code to plant: prints by every way there is."""


class Piped:
    """A running process; what it says is read line by line."""

    def __init__(self, command: Sequence[str], folder: Path, variables: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment(folder, **variables),
            bufsize=0,
        )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()

    def send(self, data: bytes) -> None:
        while data:
            data = data[self.process.stdin.write(data) :]

    def line(self) -> bytes:
        """The next line it says, whole; when it says no more, what is left, which may be b""."""
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, "no answer"
            part = self.process.stdout.read(65536)
            if not part:
                left, self._unread = self._unread, b""
                return left
            self._unread += part
        line, _, self._unread = self._unread.partition(b"\n")
        return line + b"\n"


class Worker(Piped):
    """A running `engram api`; its answers are read line by line."""

    def __init__(
        self,
        config: Path,
        *,
        before: Sequence[str] = (),
        options: Sequence[str] = (),
        **variables: str,
    ) -> None:
        command = program("--config", str(config), "api", *options, before=before)
        super().__init__(command, config.parent, variables)

    def line(self) -> bytes:
        """The next line of its answers, whole."""
        line = super().line()
        assert line.endswith(b"\n"), f"it ended: {self.process.stderr.read().decode()}"
        return line

    def ask(self, operation: str, /, **params: object) -> Any:
        """The answer to a request, its id taken off: it has a result or an error."""
        request = {"id": "asked", "operation": operation, "params": params}
        self.send(json.dumps(request).encode() + b"\n")
        answer = json.loads(self.line())
        assert answer.pop("id") == "asked"
        return answer

    def result(self, operation: str, /, **params: object) -> Any:
        answer = self.ask(operation, **params)
        assert "result" in answer, answer
        return answer["result"]

    def code(self, operation: str, /, **params: object) -> str:
        answer = self.ask(operation, **params)
        assert "error" in answer, answer
        return answer["error"]["code"]

    def finish(self) -> tuple[list[bytes], int, str]:
        """Close its stdin; what it still says, its exit code and what it wrote to stderr."""
        rest, err = self.process.communicate(timeout=PATIENCE)
        return (
            (self._unread + rest).splitlines(keepends=True),
            self.process.returncode,
            err.decode(),
        )


def batch(config: Path, data: bytes, **variables: str) -> list[Any]:
    """The answers to all of `data`, sent at once to a process of its own."""
    with Worker(config, **variables) as worker:
        out, err = worker.process.communicate(data, timeout=PATIENCE)
    assert worker.process.returncode == 0, err
    assert out == b"" or out.endswith(b"\n")
    assert out.isascii()
    return [json.loads(line) for line in out.splitlines()]


def observation(project: str, **changes: object) -> dict[str, object]:
    """The arguments of an evidence_put."""
    now = time.time()
    return {
        "project_id": project,
        "session_id": "s",
        "assumption_id": "a",
        "evidence_id": "e",
        "outcome": "supported",
        "observed_at": now,
        "expires_at": now + 3600,
        "observation": {"actual": 1},
        "provenance": {"producer": "p", "check_type": "c"},
        **changes,
    }


def planted(folder: Path, code: str) -> dict[str, str]:
    """The variables that have a process run code before anything of engram is imported."""
    place = folder / "planted"
    place.mkdir()
    (place / "sitecustomize.py").write_text(textwrap.dedent(code), encoding="utf-8")
    return {"PYTHONPATH": str(place)}
