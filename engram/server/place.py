"""The place of the socket: held by one server at a time, and private."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import socket
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from engram.server.failures import SOCKET, Failure
from engram.server.project import MAX_SOCKET_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["bound", "claimed"]

_PATIENCE: Final = 1.0
"""Seconds to find out whether somebody listens."""

_BACKLOG: Final = 512
"""Clients that may wait to be accepted."""


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold the place of a socket, where then nothing is; what a dead server left is removed.

    Args:
        path: Where the socket will be. Folders above it are made, for this user only.

    Raises:
        Failure: Another server has it, something else lies there, or it can be no place for one.
    """
    with _explained("the socket's folder cannot be used"):
        _make_folder(path.parent)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    # The file stays: who would remove it might remove the lock of the next one.
    try:
        with _explained("the socket's lock cannot be taken"):
            _lock(lock)
        with _explained("the old socket cannot be removed"):
            _clear(path)
        yield
    finally:
        os.close(lock)


@contextmanager
def bound(path: Path) -> Iterator[socket.socket]:
    """Yield a socket that listens at a claimed place, for this user only; remove it in the end.

    Raises:
        Failure: It cannot be made.
    """
    # Who sees the file at its place can connect: it listens already.
    draft = _draft(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listening:
        with _explained("the socket cannot be made"):
            _clear(draft)
            mask = os.umask(0o177)
            try:
                listening.bind(os.fspath(draft))
            finally:
                os.umask(mask)
            listening.listen(_BACKLOG)
            draft.chmod(0o600)
            ours = draft.lstat()
            draft.rename(path)
        listening.settimeout(0)
        try:
            yield listening
        finally:
            # Somebody may have put another one there.
            with suppress(OSError):
                if os.path.samestat(ours, path.lstat()):
                    path.unlink()


def _draft(path: Path) -> Path:
    """Return where a socket is made: a path that no other socket's is, as long as one may be."""
    name = f"~{hashlib.blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}"
    room = MAX_SOCKET_BYTES - len(os.fsencode(path)) + len(os.fsencode(path.name))
    return path.with_name(name[: max(room, 1)])


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _lock(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _running() from None


def _clear(path: Path) -> None:
    """Remove the socket of a server that is dead.

    Raises:
        Failure: It is alive, or it is no socket.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        message = "socket error: something that is no socket lies in its place"
        raise Failure(SOCKET, message)
    if not _is_dead(path):
        raise _running()
    path.unlink()


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PATIENCE)
        try:
            probe.connect(os.fspath(path))
        except ConnectionRefusedError:
            return True
        except (BlockingIOError, TimeoutError):  # it has many clients waiting
            return False
    return False


def _running() -> Failure:
    return Failure(SOCKET, "socket error: a server is already running")


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Have an error of the system end as a failure that says what could not be done."""
    try:
        yield
    except OSError as error:
        kind = errno.errorcode.get(error.errno or 0, type(error).__name__)
        message = f"socket error: {what}: {kind}"
        raise Failure(SOCKET, message) from None
