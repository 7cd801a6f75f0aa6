"""A client for Python programs that keep engram in a process of its own.

    with Client("/home/ana/engram.yaml") as client:
        client.request("recall", project_id="/home/ana/atlas")["memories"]

It imports nothing of the engine: the process it starts may be that of another installation.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeGuard

from engram.errors import ProcessLost, RequestFailed, TimedOut
from engram.times import time_limit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Client"]

_LEAVING: Final = 5.0
"""Seconds that a process may take to end by itself, or to be gone once it is killed."""

_PIECE: Final = 65_536
"""Bytes read at once: what a pipe holds."""


class Client:
    """A process that answers requests, started when it is needed and again after it ended.

    Safe to share between threads: requests wait for each other. Nothing is ever sent twice.

    Args:
        config: The settings file.
        command: The program and its first arguments; by default the engram of this interpreter.
        timeout: Seconds that a request may take, the start of the process included, at most a
            day. The first search loads a model.
        environ: The process's environment; None is that of this one.

    Raises:
        InvalidArgument, InvalidType: `timeout` is no such number.
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
        self._timeout = time_limit(timeout)
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
        assert process.stdin is not None  # noqa: S101 - a pipe
        process.stdin.close()  # by which the process knows
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVING)
        _abandon(process)

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
            InvalidArgument, InvalidType: `timeout` is not what the client takes for one.
            TypeError, ValueError: An argument has no form in JSON.
        """
        limit = self._timeout if timeout is None else time_limit(timeout)
        identifier = next(self._ids)
        request = {"id": identifier, "operation": operation, "params": params}
        line = json.dumps(request, allow_nan=False).encode() + b"\n"
        with self._lock:
            answer = self._exchange(line, identifier, limit)
        if "error" in answer:
            raise RequestFailed(answer["error"]["code"], answer["error"]["message"])
        return answer["result"]

    def _exchange(self, line: bytes, identifier: int, limit: float) -> dict[str, Any]:
        deadline = time.monotonic() + limit
        process = self._process = self._running() or self._started()
        answer: dict[str, Any] | None = None
        message = "the process gave no answer"
        try:
            answer = _ask(process, line, identifier, deadline)
        except TimeoutError:
            raise TimedOut(message, f"it had {limit:g} s") from None
        except (OSError, ValueError, RecursionError):
            raise ProcessLost(message, "what it wrote to stderr may say why") from None
        finally:
            # What a process says later must not pass for the answer to another request.
            if answer is None:
                self._process = None
                _abandon(process)
        return answer

    def _running(self) -> subprocess.Popen[bytes] | None:
        process = self._process
        if process is not None and process.poll() is not None:
            _abandon(process)
            return None
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        try:
            process = subprocess.Popen(  # noqa: S603 - the caller's own command
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environ,
                bufsize=0,
                # Whatever it starts is in its group, and can be ended with it.
                start_new_session=True,
            )
        except OSError:
            message = "the process cannot be started"
            raise ProcessLost(message, "check the command") from None
        assert process.stdin is not None  # noqa: S101 - a pipe
        # Or a write would wait for a process that reads nothing.
        os.set_blocking(process.stdin.fileno(), False)
        return process


def _ask(
    process: subprocess.Popen[bytes], line: bytes, identifier: int, deadline: float
) -> dict[str, Any]:
    """Return the answer to one request.

    Raises:
        TimeoutError: There is none before the deadline.
        OSError, ValueError, RecursionError: The process is gone, or says something else.
    """
    assert process.stdin is not None  # noqa: S101 - both are pipes
    assert process.stdout is not None  # noqa: S101
    unsent = memoryview(line)
    while unsent:
        _wait(process.stdin, select.POLLOUT, deadline)
        unsent = unsent[os.write(process.stdin.fileno(), unsent) :]
    said = bytearray()
    while not said.endswith(b"\n"):
        _wait(process.stdout, select.POLLIN, deadline)
        piece = os.read(process.stdout.fileno(), _PIECE)
        if not piece:
            raise BrokenPipeError
        said += piece
    answer = json.loads(said)
    if not _is_answer(answer, identifier):
        message = "the answer is none, or to something else"
        raise ValueError(message)
    return answer


def _wait(pipe: IO[bytes], event: int, deadline: float) -> None:
    """Wait until a pipe is ready, or until its other end is closed.

    Raises:
        TimeoutError: The deadline has come.
    """
    ready = select.poll()
    ready.register(pipe, event)
    left = deadline - time.monotonic()
    if left <= 0 or not ready.poll(math.ceil(left * 1000)):
        raise TimeoutError


def _is_answer(answer: object, identifier: int) -> TypeGuard[dict[str, Any]]:
    match answer:
        case {"result": _, "error": _}:
            return False
        case {"id": found, "result": _}:
            return bool(found == identifier)
        # The answer to a line that is too long has no id, but there is just one it can be about.
        case {"id": found, "error": {"code": str(), "message": str()}}:
            return found in (identifier, None)
    return False


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, with whatever it started, and close the pipes to it."""
    # Once it has been waited for, its number may be that of somebody else.
    if process.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_LEAVING)
