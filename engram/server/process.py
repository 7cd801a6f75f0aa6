"""The process: it starts whole or not at all, serves, and leaves in good order."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from engram.reporting import report, say
from engram.server.limits import Limits
from engram.server.listener import Listener
from engram.server.place import bound, claimed
from engram.server.workers import Methods, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engram.server.settings import ServerSettings

__all__ = ["run", "serve"]

_ENDING: Final = 5.0
"""Seconds from the signal to stop to the end of the process."""

_GRACE: Final = 4.0
"""Those of them for requests under way to be answered.

What is left is for the store to be closed, and for work that nobody waits for any more to end.
"""

_STOP: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that end it in good order; the last one comes when its terminal is closed."""

_SPARE_FILES: Final = 256
"""Open files that the process needs beside its clients'."""

_LAST_STANDARD: Final = 2


def serve(settings: ServerSettings) -> int:
    """Serve a store until a signal says to stop, and return the exit code.

    Raises:
        Failure: The server cannot start.
    """

    def opened() -> Methods:
        # After the place is claimed: it is heavy.
        from engram.server.service import Service  # noqa: PLC0415

        return Service(settings)

    return run(settings.socket_path, Limits.of(settings.server, settings.trainer), opened)


def run(path: Path, limits: Limits, opened: Callable[[], Methods]) -> int:
    """Serve at a path until SIGTERM, SIGINT or SIGHUP, and return the exit code.

    From now on all files that the process makes are this user's only, and a signal ends it in good
    order whenever it comes; further ones change nothing.

    Args:
        path: Where the socket will be, once all is ready.
        limits: What clients may ask for.
        opened: Opens the store, once nobody else can serve at this path.

    Raises:
        Failure: The server cannot start.
    """
    os.umask(0o077)
    _fill_standard()
    _allow_files(limits.max_connections + _SPARE_FILES)
    with claimed(path), _signals() as told:
        methods = opened()
        workers = Workers(methods, limits)
        left = _ENDING
        try:
            with bound(path) as listening:
                left -= asyncio.run(_serve(listening, Listener(workers, limits), told))
        finally:
            in_time = _closed(methods, workers, max(left, 0.0))
    if not in_time:
        # A thread that never ends must not keep the process: to the store that is a crash, and it
        # is made for crashes.
        os._exit(0)
    return 0


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket that can be read from once a signal said to stop; ignore them afterwards."""
    told, telling = socket.socketpair()
    with told, telling:
        for one in (told, telling):
            one.settimeout(0)
        signal.set_wakeup_fd(telling.fileno(), warn_on_full_buffer=False)
        for number in _STOP:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # nohup: it is to outlive its terminal
            # The number goes to the socket; that is all there is to do.
            signal.signal(number, lambda *_: None)
        try:
            yield told
        finally:
            for number in _STOP:
                signal.signal(number, signal.SIG_IGN)
            signal.set_wakeup_fd(-1)


async def _serve(listening: socket.socket, listener: Listener, told: socket.socket) -> float:
    """Serve until a signal says to stop; return how many seconds ago that was."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    since = loop.time()

    def end() -> None:
        nonlocal since
        since = loop.time()
        loop.remove_reader(told)
        stop.set()

    loop.add_reader(told, end)
    loop.set_exception_handler(_unforeseen)
    say("ready")
    await listener.serve(listening, stop, _GRACE)
    return loop.time() - since


def _unforeseen(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    error = context.get("exception")
    report(error if isinstance(error, Exception) else RuntimeError())


def _closed(methods: Methods, workers: Workers, seconds: float) -> bool:
    """Close the store and end all work; return whether that was done within these seconds."""

    def close() -> None:
        try:
            methods.close()
        except Exception as error:  # noqa: BLE001 - the process ends all the same
            report(error)
        workers.close()

    closing = threading.Thread(target=close, name="engram-closing", daemon=True)
    closing.start()
    closing.join(seconds)
    return not closing.is_alive()


def _fill_standard() -> None:
    """Open what is closed of standard input, output and error.

    Or the socket, or the store, would have the number that messages are written to.
    """
    null = os.open(os.devnull, os.O_RDWR)
    while null <= _LAST_STANDARD:
        null = os.dup(null)
    os.close(null)


def _allow_files(number: int) -> None:
    """Let the process have so many open files, or as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
