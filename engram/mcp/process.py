"""The process: stdin and stdout are the client's alone, and it ends when the client does."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from queue import SimpleQueue
from typing import TYPE_CHECKING

from engram.channel import claim
from engram.errors import MissingExtra
from engram.lifetime import SIGNALLED, Lifetime
from engram.mcp.options import IN_MEMORY, PROJECT, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.channel import Channel
    from engram.mcp.options import Options

__all__ = ["Requests", "serve"]

_PART = 65536


def serve(options: Options) -> None:
    """Serve the client at stdin and stdout until it says no more or is gone, and exit.

    Args:
        options: How the server was started.

    Raises:
        MissingExtra: The MCP SDK is not installed.
    """
    if find_spec("mcp") is None:
        message = "the MCP server needs the MCP SDK"
        raise MissingExtra(message, "pip install 'engram-embedded[mcp]'")
    channel = claim()
    # Before the SDK's own, which prints what it was given.
    logging.basicConfig(level=logging.WARNING, handlers=[_Terse()])
    agents = options.profile != PROJECT
    if agents and options.db == IN_MEMORY:
        say("warning: the store is in memory and lost at the end (--db keeps it in a file)")
    if agents and options.agent_id is None:
        say("warning: no --agent-id: the whole file is served as one tenant's")
    requests = Requests(channel)
    # What is imported stays: looking for garbage in it would take a tenth of the start.
    gc.disable()
    # After the claim, for a library may print when it is imported.
    from engram.mcp.serving import run  # noqa: PLC0415

    gc.enable()
    run(options, requests, channel.answers)
    sys.exit(requests.code)


class _Terse(logging.Handler):
    """Prints what a library says without what it says it about."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print where a record is from and what kind of failure it is about."""
        kind = record.exc_info[0] if record.exc_info else None
        said = record.msg if isinstance(record.msg, str) and record.args else record.name
        say(f"{said}: {kind.__name__}" if kind else said)


class Requests:
    """What the client sends, with an end when it is time to end.

    A thread that reads stdin cannot be interrupted. So one of our own hands on what comes, and its
    reader sees the end of input when the process is to end, whatever is with stdin.

    Args:
        channel: Where the client is.
    """

    def __init__(self, channel: Channel) -> None:
        self.code = 0
        """What the process exits with."""
        reading, self._handing = socket.socketpair()
        self.stream = reading.makefile("rb")
        reading.close()
        # Signals put into it: its `put` may interrupt itself.
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._lifetime = Lifetime(channel.answers, self._leave)
        threading.Thread(
            target=self._relay, args=(channel.requests.fileno(),), name="engram-stdin", daemon=True
        ).start()

    def at_end(self, call: Callable[[], None]) -> None:
        """Have something called once it is time to end, whatever is under way.

        Args:
            call: It gets a thread of its own, and may be called while everything still works.
        """

        def wait() -> None:
            self._ended.get()
            call()

        threading.Thread(target=wait, name="engram-ending", daemon=True).start()

    def _leave(self, number: int) -> None:
        self.code = SIGNALLED + number
        self._finish()

    def _relay(self, requests: int) -> None:
        with suppress(OSError):
            while part := os.read(requests, _PART):
                self._handing.sendall(part)
        self._lifetime.end()
        self._finish()

    def _finish(self) -> None:
        self._ended.put(None)
        with suppress(OSError):
            self._handing.shutdown(socket.SHUT_WR)
