"""Connections to a running server: one for each request that is under way."""

from __future__ import annotations

import itertools
import json
import math
import os
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self, TypeGuard

from engram.errors import ProcessLost, RequestFailed, TimedOut
from engram.times import time_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PATIENCE", "Connecting"]

PATIENCE: Final = 60.0
"""Seconds that a request may take unless something else is said: more than the server gives it."""

_PIECE: Final = 65_536
"""Bytes read at once."""


class Connecting:
    """Sends requests to a server; connects when it is needed, and anew after a loss.

    Args:
        path: The server's socket.
        timeout: Seconds that a request may take, at most a day; None is `PATIENCE`.

    Raises:
        InvalidArgument, InvalidType: `timeout` is no such number.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float | None = None) -> None:
        self._path = os.path.abspath(path)  # noqa: PTH100 - of text that may be no UTF-8
        self._timeout = None if timeout is None else time_limit(timeout)
        self._ids = itertools.count(1)
        # Guards the connections that nobody uses right now, and the process they belong to.
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._process = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect; the next request connects again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def call(self, method: str, /, **params: object) -> Any:
        """Return the data of a method's reply: what its JSON reads as.

        Args:
            method: Its name.
            **params: Its parameters; None is as good as left out.

        Raises:
            RequestFailed: There is no result; `number` says why.
            TimedOut: It took too long; whether it was carried out is not known.
            ProcessLost: There is no server that answers; whether it was carried out is not known.
            TypeError, ValueError: A parameter has no form in JSON, or nests too deep.
        """
        return self.request(method, params)

    def request(
        self,
        method: str,
        params: Mapping[str, object],
        *,
        timeout: float | None = None,
        long: bool = False,
    ) -> Any:
        """Return what `call` does.

        Args:
            method: Its name.
            params: Its parameters; None is as good as left out.
            timeout: Seconds it may take, at most a day; None is as many as the client says.
            long: Whether it may take as long as the server lets it, where neither `timeout` nor
                the client says anything. A server that ends is noticed at once.

        Raises:
            RequestFailed, TimedOut, ProcessLost, TypeError, ValueError: As for `call`.
            InvalidArgument, InvalidType: `timeout` is not what the client takes for one.
        """
        seconds = self._timeout if timeout is None else time_limit(timeout)
        if seconds is None:
            seconds = math.inf if long else PATIENCE
        deadline = time.monotonic() + seconds
        request_id = f"{os.getpid()}-{next(self._ids)}"
        request = {"id": request_id, "method": method, "params": dict(params)}
        line = _line(request)
        reply = self._exchange(line, request_id, deadline)
        if not reply["ok"]:
            raise RequestFailed(reply["error"]["code"], reply["error"]["message"])
        return reply["data"]

    def _exchange(self, line: bytes, request_id: str, deadline: float) -> dict[str, Any]:
        message = "the server gave no answer"
        try:
            connection = self._connection(deadline)
            try:
                reply = _ask(connection, line, request_id, deadline)
            except BaseException:
                # What the server says later must not pass for the answer to another request.
                connection.close()
                raise
        except TimeoutError:
            raise TimedOut(message, "it may still carry out what was asked") from None
        except (OSError, ValueError, RecursionError):
            raise ProcessLost(message, "is it running? start it with: engram server") from None
        with self._lock:
            self._idle.append(connection)
        return reply

    def _connection(self, deadline: float) -> socket.socket:
        """Return a connection that nobody else uses."""
        with self._lock:
            if self._process != os.getpid():
                # They are the parent's, whose requests would mix with these.
                self._process, self._idle = os.getpid(), []
            while self._idle:
                connection = self._idle.pop()
                if _is_open(connection):
                    return connection
                connection.close()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left(deadline))
            connection.connect(self._path)
        except BaseException:
            connection.close()
            raise
        return connection


def _line(request: Mapping[str, object]) -> bytes:
    """Return the line for a request.

    Raises:
        TypeError, ValueError: A parameter has no form in JSON, or nests too deep for one.
    """
    try:
        return json.dumps(request, allow_nan=False).encode() + b"\n"
    except RecursionError:
        message = "a parameter nests too deep"
        raise ValueError(message) from None


def _left(deadline: float) -> float | None:
    """Return the seconds until a deadline; None for one that never comes.

    Raises:
        TimeoutError: It has come.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return None if left == math.inf else left


def _is_open(connection: socket.socket) -> bool:
    """Return whether the server is at the other end, and has nothing to say unasked."""
    connection.settimeout(0)
    with suppress(OSError):
        try:
            connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
    return False


def _ask(
    connection: socket.socket, line: bytes, request_id: str, deadline: float
) -> dict[str, Any]:
    """Return the reply to one request.

    Raises:
        TimeoutError: There is none before the deadline.
        OSError, ValueError, RecursionError: The server is gone, or says something else.
    """
    connection.settimeout(_left(deadline))
    connection.sendall(line)
    said = bytearray()
    while not said.endswith(b"\n"):
        connection.settimeout(_left(deadline))
        piece = connection.recv(_PIECE)
        if not piece:
            raise BrokenPipeError
        said += piece
    reply = json.loads(said)
    if not _is_reply(reply, request_id):
        message = "the reply is none, or to something else"
        raise ValueError(message)
    return reply


def _is_reply(reply: object, request_id: str) -> TypeGuard[dict[str, Any]]:
    match reply:
        case {"id": found, "ok": True, "data": _, "error": None}:
            return bool(found == request_id)
        # The answer to a line that is too long has no id, but there is just one it can be about.
        case {"id": found, "ok": False, "error": {"code": int(), "message": str()}}:
            return found in (request_id, "")
    return False
