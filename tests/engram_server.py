"""A server process in a project of its own, and a client that asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pytest
from socket_server import PATIENCE, Peer

COMMAND = [sys.executable, "-m", "engram", "server"]
DETERMINISTIC = '[embedding]\nprovider = "deterministic"\n'

# Of the environment a server sees only this, so that nobody's settings play a part.
_KEPT = ("PATH", "PYTHONSAFEPATH", "LANG", "LC_ALL", "TMPDIR")


class RefusedError(Exception):
    """There was no result."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.message: str = error["message"]


class Server:
    """A project with a server that runs.

    Args:
        place: An empty folder, or that of a server that ended.
        settings: What is in the user's settings file.
        variables: Of the environment, beside the home.
    """

    def __init__(
        self, place: Path, settings: str = DETERMINISTIC, variables: Mapping[str, str] = {}
    ) -> None:
        self.home = place / "home"
        self.root = place / "work"
        self.socket = Path(variables.get("ENGRAM_SOCKET_PATH", self.root / ".engram/engram.sock"))
        self.store = self.root / ".engram/engram.db"
        (self.root / ".engram").mkdir(parents=True, exist_ok=True)
        (self.home / ".engram").mkdir(parents=True, exist_ok=True)
        (self.home / ".engram/engram.toml").write_text(settings)
        self._variables = variables

    def __enter__(self) -> Self:
        self.process = self.run()
        self.peer = Peer(self.socket)
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=PATIENCE)[1]
        finally:
            self.process.kill()
        assert self.process.returncode == 0, said

    def run(self) -> subprocess.Popen[str]:
        """Start the process and wait until it is ready."""
        process = subprocess.Popen(
            COMMAND,
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.wait(process)
        return process

    def wait(self, process: subprocess.Popen[str]) -> None:
        """Wait until a process is ready."""
        for _ in range(PATIENCE * 50):
            # The socket appears when the server is ready; one that ended is not waited for.
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
                raise AssertionError(process.communicate()[1])
            # A dead server's may be there before.
            with suppress(OSError):
                Peer(self.socket).close()
                return
        process.kill()
        pytest.fail("the server is not ready")

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | {"HOME": str(self.home)} | dict(self._variables)

    def refusal(self) -> str:
        """Start a server that does not come up, and return the line it says why in."""
        done = subprocess.run(
            COMMAND,
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("engram: ")
        assert not self.socket.exists()
        return done.stderr.removeprefix("engram: ").strip()

    def ask(self, method: str, **params: object) -> Any:
        """Return the data of the reply.

        Raises:
            RefusedError: It is a failure.
        """
        return self.given(method, params)

    def given(self, method: str, params: object) -> Any:
        """As `ask`, with any parameters."""
        reply = self.peer.ask(method, params)
        if not reply["ok"]:
            raise RefusedError(reply["error"])
        return reply["data"]

    def memories(self) -> dict[str, dict[str, Any]]:
        """What an export has, by id."""
        return {one["id"]: one for one in self.ask("memory_export")["memories"]}


def texts(number: int) -> dict[str, str]:
    """The three texts of a memory that is like no other one of the first 27.

    The deterministic embedder tells texts apart by their lengths.
    """
    sizes = [(4, 40, 300)[number // 3**place % 3] for place in range(3)]
    return {
        name: f"{word}{number} {word * size}"[: size + 8]
        for (name, word), size in zip(
            (("context", "c"), ("action", "a"), ("result", "r")), sizes, strict=True
        )
    }


def record(memory_id: str, number: int = 0, **members: object) -> dict[str, object]:
    """A memory as exports have it."""
    return {
        "id": memory_id,
        "memory_type": "decision",
        **texts(number),
        "score": 0.0,
        "created_at": "2025-01-02T03:04:05Z",
        "updated_at": "2025-01-02T03:04:05Z",
        "used_count": 0,
        **members,
    }


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[str, str]:
    """Send a signal; what the process said until it ended in good order."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return out, err
