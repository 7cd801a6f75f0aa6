"""The client at the other end of stdin and stdout, and the end when it is time to end."""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import socket
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from engram.lifetime import SIGNALLED, Lifetime
from engram.mcp.options import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engram.channel import Channel

__all__ = ["Client"]

_PART: Final = 65536

_ANSWERING: Final = 1.3
"""Seconds after the end of what the client sends in which it is answered all the same."""

_ENDING: Final = 1.8
"""Seconds after which the process has ended; with what a busy machine takes, it is two."""

# The first is always reported; a socket may be closed in one direction alone.
_NO_WRITER: Final = select.POLLHUP | getattr(select, "POLLRDHUP", 0)


class Client:
    """What the client sends and is answered.

    A thread that reads stdin cannot be interrupted. So one of our own hands on what comes, and its
    reader sees the end of input when the process is to end, whatever is with stdin.

    Args:
        channel: Where the client is.
    """

    def __init__(self, channel: Channel) -> None:
        self.code = 0
        """What the process exits with."""
        self._channel = channel
        reading, self._handing = socket.socketpair()
        self.requests = reading.makefile("rb")
        """Its messages, a line each."""
        reading.close()
        # Whether it will send no more, and whether all that it sent was handed on.
        self._ended = self._read = False
        self._unanswered: set[int | str] = set()
        self._answering = threading.Lock()
        self._failed = False
        # Signals put into it: its `put` may interrupt itself.
        self._news: SimpleQueue[None] = SimpleQueue()
        self._lifetime = Lifetime(channel.answers, self._leave)

    def serve(self, close: Callable[[], None]) -> None:
        """Begin to read what it sends; only from now on it can be answered.

        Args:
            close: What is called once it is time to end, whatever is under way. It gets a thread
                of its own, and may be called while everything still works.
        """
        # Here and not first in a thread: what it brings may print, and soon what is printed is
        # for a while what the SDK says to the client.
        import engram.mcp.messages  # noqa: F401, PLC0415 - the claim comes first

        def end() -> None:
            self._await_end()
            with suppress(OSError):
                self._handing.shutdown(socket.SHUT_WR)
            close()

        for name, part in (("end", end), ("stdin", self._relay), ("hangup", self._watch)):
            threading.Thread(target=part, name=f"engram-{name}", daemon=True).start()

    def answer(self, line: bytes) -> None:
        """Write a message, whole.

        When it cannot be written, it is time to end: the SDK would wait for the next request
        first, which may never come.

        Raises:
            BrokenPipeError: It cannot be written.
        """
        from engram.mcp.messages import answered_id  # noqa: PLC0415 - the claim comes first

        try:
            with self._answering:
                self._channel.send(line)
        except OSError as error:
            # Whoever closes the stream tries once more.
            if not self._failed:
                self._failed = True
                say(f"the client cannot be answered: {error.strerror}")
                os.kill(os.getpid(), signal.SIGTERM)
            raise BrokenPipeError(errno.EPIPE, error.strerror) from error
        answered = answered_id(line)
        if answered is not None:
            self._unanswered.discard(answered)
        if self._ended and not self._unanswered:
            self._news.put(None)

    def _leave(self, number: int) -> None:
        self.code = SIGNALLED + number
        self._news.put(None)

    def _await_end(self) -> None:
        """Wait for a signal, or until all that the client sent is answered or took too long."""
        end = math.inf
        while not (self.code or (self._read and not self._unanswered)):
            if self._ended:
                end = min(end, time.monotonic() + _ANSWERING)
            left = end - time.monotonic()
            if left <= 0:
                return
            with suppress(Empty):
                self._news.get(timeout=None if left == math.inf else left)

    def _hear_the_end(self) -> None:
        """The client says no more: from now on it is a matter of two seconds."""
        self._ended = True
        self._lifetime.end(_ENDING)
        self._news.put(None)

    def _watch(self) -> None:
        """Notice that the client is gone, however much of what it sent is unread."""
        poll = select.poll()
        poll.register(self._channel.requests, _NO_WRITER)
        # Of a file nothing comes: its end is read.
        if any(events & _NO_WRITER for _, events in poll.poll()):
            self._hear_the_end()

    def _relay(self) -> None:
        try:
            with suppress(OSError):
                for line in _lines(self._channel.requests.fileno()):
                    self._hand_on(line)
        finally:
            # Whatever went wrong: a server that hears nothing any more must not stay.
            self._read = True
            self._hear_the_end()

    def _hand_on(self, line: bytes) -> None:
        from engram.mcp.messages import RefusedError, request_id  # noqa: PLC0415 - as above

        if not line.strip():
            return
        try:
            asked = request_id(line)
        except RefusedError as refused:
            if refused.answer is not None:
                self.answer(refused.answer)
            return
        if asked is not None:
            self._unanswered.add(asked)
        # Which to JSON is a space, and to the SDK the end of a line.
        self._handing.sendall(line.replace(b"\r", b" ") + b"\n")


def _lines(descriptor: int) -> Iterator[bytes]:
    """Yield the lines that come, without their newlines; what is after the last is one as well.

    Not by a stream of Python's: at exit, one that a thread still reads ends the process badly.

    Raises:
        OSError: It cannot be read.
    """
    from engram.mcp.messages import LONGEST  # noqa: PLC0415 - the claim comes first

    pieces: list[bytes] = []
    size = 0
    while part := os.read(descriptor, _PART):
        for place, piece in enumerate(part.split(b"\n")):
            if place:
                yield b"".join(pieces)
                pieces, size = [], 0
            # Of a line that is too long no more is kept than shows it.
            if size <= LONGEST:
                pieces.append(piece)
                size += len(piece)
    yield b"".join(pieces)
