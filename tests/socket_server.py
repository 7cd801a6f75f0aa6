"""Serve a socket in this process, with methods that tests can hold up; and talk to any socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from engram.server.failures import DISPATCH, NOT_FOUND, Failure
from engram.server.limits import Limits
from engram.server.listener import Listener
from engram.server.place import bound, claimed
from engram.server.sections import Process, Trainer
from engram.server.workers import Workers

# Only to end a test that would hang for ever.
PATIENCE = 60

SECRET = "secret words"


ANOTHER_USER = """
import os, socket
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.connect("engram.sock")
try:
    client.sendall(b'{"id":"a","method":"echo"}\\n')
    print(client.recv(100))
except ConnectionError:
    print(b"")
"""


class StandIn:
    """Methods without a store: what they do is what a test needs to see."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.carried_out: list[object] = []
        self.rounds = threading.Semaphore(0)
        self.closed = False

    def call(self, method: str, params: object) -> object:
        match method:
            case "echo":
                self.carried_out.append(params)
                return params
            case "hold" | "train":
                self.entered.release()
                assert self.gate.wait(PATIENCE)
                self.carried_out.append(params)
                return "held"
            case "large":
                return "x" * params["size"]
            case "missing":
                raise Failure(NOT_FOUND, "not found: memory abc-123")
            case "broken":
                raise RuntimeError(SECRET)
            case "nonsense":
                return {"nan": float("nan")}
        raise Failure(DISPATCH, f"dispatch error: unknown method: {method}")

    def is_long(self, method: str, params: object) -> bool:
        return method == "train"

    def background(self) -> None:
        self.rounds.release()

    def close(self) -> None:
        self.closed = True


class Peer:
    """A client that is free to send anything."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self._lines = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._lines.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def finish(self) -> None:
        """Send no more, and still read."""
        self.socket.shutdown(socket.SHUT_WR)

    def reply(self) -> Any:
        """The next reply, whose form is checked."""
        line = self._lines.readline()
        assert line.endswith(b"\n"), line
        reply = json.loads(line)
        assert list(reply) == ["id", "ok", "data", "error"]
        assert json.dumps(reply, separators=(",", ":")).encode() + b"\n" == line
        assert isinstance(reply["id"], str)
        if reply["ok"] is True:
            assert reply["error"] is None
        else:
            assert reply["ok"] is False
            assert reply["data"] is None
            assert list(reply["error"]) == ["code", "message"]
            assert reply["error"]["message"].startswith(f"[{reply['error']['code']}] ")
        return reply

    def rest(self) -> bytes:
        """Everything until the server ends the connection."""
        return self._lines.read()

    def ask(self, method: str, params: object = None, request_id: str = "asked") -> Any:
        self.send(request(method, params, request_id))
        reply = self.reply()
        assert reply["id"] == request_id
        return reply


def open_files() -> int:
    """How many files this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def until(true: Callable[[], object]) -> None:
    """Ask again and again until something is so; it is a failure if that never comes."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came about"


def request(method: str, params: object = None, request_id: str = "asked") -> bytes:
    document = {"id": request_id, "method": method, "params": params}
    return json.dumps(document).encode() + b"\n"


@contextmanager
def serving(path: Path, methods: Any, *, grace: float = PATIENCE, **limits: Any) -> Iterator[None]:
    """Serve a socket from a thread of this process."""
    allowed = replace(Limits.of(Process(), Trainer()), **{"upkeep_seconds": 0.0, **limits})
    workers = Workers(methods, allowed)
    listener = Listener(workers, allowed)
    with claimed(path), bound(path) as listening, asyncio.Runner() as runner:
        stop = asyncio.Event()
        thread = threading.Thread(target=runner.run, args=(listener.serve(listening, stop, grace),))
        thread.start()
        try:
            yield
        finally:
            runner.get_loop().call_soon_threadsafe(stop.set)
            thread.join(PATIENCE)
            assert not thread.is_alive()
            workers.close()
