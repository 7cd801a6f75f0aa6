"""A client for Python programs that keep engram in a process of its own.

    with Client("/home/ana/engram.yaml") as client:
        client.request("recall", project_id="/home/ana/atlas")["memories"]

It imports nothing of the engine: the process it starts may be that of another installation.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Final, Self

from engram.errors import ProcessLost, RequestFailed, TimedOut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Client"]

_LEAVING: Final = 5.0
"""Seconds that a process may take to end by itself."""


class Client:
    """A process that answers requests, started when it is needed and again after it ended.

    Safe to share between threads: requests wait for each other. Nothing is ever sent twice.

    Args:
        config: The settings file.
        command: The program and its first arguments; by default the engram of this interpreter.
        timeout: Seconds that a request may take, the start of the process included. The first
            search loads a model.
        environ: The process's environment; None is that of this one.
    """

    def __init__(
        self,
        config: str | os.PathLike[str],
        *,
        command: Sequence[str] = (sys.executable, "-m", "engram"),
        timeout: float = 60.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [*command, "--config", os.path.abspath(config), "api"]  # noqa: PTH100
        self._timeout = timeout
        self._environ = environ
        self._ids = itertools.count(1)
        # Guards _process: one request at a time has it.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the process end; the next request starts another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return
        try:
            # Closes stdin, by which the process knows.
            process.communicate(timeout=_LEAVING)
        except subprocess.TimeoutExpired:
            _kill(process)

    def request(self, operation: str, /, *, timeout: float | None = None, **params: object) -> Any:
        """Return the result of an operation: what its JSON reads as.

        Args:
            operation: Its name, such as "status".
            timeout: Seconds it may take; None is as many as the client says.
            **params: Its arguments.

        Raises:
            RequestFailed: There is no result; `code` says why.
            TimedOut: It took too long.
            ProcessLost: There is no process that answers.
            TypeError, ValueError: An argument has no form in JSON.
        """
        identifier = next(self._ids)
        request = {"id": identifier, "operation": operation, "params": params}
        line = json.dumps(request, allow_nan=False).encode() + b"\n"
        with self._lock:
            limit = self._timeout if timeout is None else timeout
            answer = self._exchange(line, identifier, limit)
        if "error" in answer:
            raise RequestFailed(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def _exchange(self, line: bytes, identifier: int, limit: float) -> dict[str, Any]:
        process = self._process = self._running() or self._started()
        expired = threading.Event()
        timer = threading.Timer(limit, _expire, (process, expired))
        timer.daemon = True
        timer.start()
        answer: dict[str, Any] | None = None
        try:
            answer = _ask(process, line, identifier)
        except (OSError, ValueError):
            message = "the process gave no answer"
            if expired.is_set():
                raise TimedOut(message, f"it had {limit:g} s") from None
            raise ProcessLost(message, "what it wrote to stderr may say why") from None
        finally:
            timer.cancel()
            timer.join()
            # What a process says later must not pass for the answer to another request.
            if answer is None or expired.is_set():
                self._process = None
                _kill(process)
        return answer

    def _running(self) -> subprocess.Popen[bytes] | None:
        process = self._process
        if process is not None and process.poll() is not None:
            _kill(process)  # it is dead; that closes the pipes to it
            return None
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - the caller's own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environ,
            )
        except OSError:
            message = "the process cannot be started"
            raise ProcessLost(message, "check the command") from None


def _ask(process: subprocess.Popen[bytes], line: bytes, identifier: int) -> dict[str, Any]:
    """Return the answer to one request.

    Raises:
        OSError, ValueError: The process is gone, or says something else.
    """
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    process.stdin.write(line)
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    # The answer to a line that is too long has no id, but there is just one line it can be about.
    if not isinstance(answer, dict) or answer.get("id", 0) not in (identifier, None):
        message = "the answer is to something else"
        raise ValueError(message)
    return answer


def _expire(process: subprocess.Popen[bytes], expired: threading.Event) -> None:
    expired.set()
    process.kill()


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()
