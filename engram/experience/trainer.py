"""Running a trainer: a process of its own that reads the store and prints what it learned."""

from __future__ import annotations

import fcntl
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.errors import InvalidArgument, TimedOut, TrainerFailed, TrainerReplyError
from engram.experience.keeping import experience_id, experience_text
from engram.paths import at_home
from engram.storage import INSIGHT_TYPES
from engram.training.messages import Error, Insight, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engram.training.messages import Message

_MOST: Final = 256 * 2**20
"""Bytes that a trainer may print."""

_TOLD: Final = 2000
"""Characters of what it wrote on stderr that a failure repeats."""

_KEY_FILE: Final = "ENGRAM_KEY_FILE"
"""The variable that names the file with a passphrase."""

_PIECE: Final = 65_536
_LOOK: Final = 0.1
"""Seconds between two looks at whether the process ended while something holds its pipes."""


def program(name: str) -> str:
    """Return the file of a trainer.

    Args:
        name: An absolute path, or a name that is looked up beside this interpreter's programs,
            where an installation puts its own, and on PATH; "~" is the home.

    Raises:
        TrainerFailed: There is no such program.
    """
    wanted = at_home(name)
    folders = [str(Path(sys.executable).parent), *os.get_exec_path()]
    found = (
        shutil.which(wanted)
        if os.path.isabs(wanted)  # noqa: PTH117 - of a text
        else next(filter(None, (shutil.which(f"{folder}/{wanted}") for folder in folders)), None)
    )
    if found is None:
        raise TrainerFailed(name, "install the trainer, or name its file")
    return found


@contextmanager
def claimed(store: Path) -> Iterator[int]:
    """Hold the right to train a store, which one has at a time, of all programs.

    Yields:
        An open file. Who inherits it has the right as well, until this ends; or, where the program
        is killed meanwhile, until the heir does.

    Raises:
        TrainerFailed: Somebody has it, or the file beside the store cannot be opened.
    """
    name = f"{os.path.realpath(store)}-training"
    try:
        lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        message = f"the lock beside the store cannot be opened ({type(error).__name__})"
        raise TrainerFailed(message) from None
    # The file stays: who would remove it might remove the lock of the next one.
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            message = "it runs already"
            raise TrainerFailed(message, "wait until it is done") from None
        try:
            yield lock
        finally:
            # Closing would not do where the trainer left something running that has it open.
            fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


class Trainer:
    """One run of a trainer.

    Args:
        command: The program's file and its arguments.
        right: What it inherits of `claimed`.
        passphrase: What it opens the store with, if that is encrypted.

    Raises:
        TrainerFailed: It cannot be started.
    """

    def __init__(self, command: Sequence[str], right: int, passphrase: bytes | None = None) -> None:
        self._name = command[0]
        try:
            with _key_file(passphrase) as (open_files, variables):
                self._process = subprocess.Popen(  # noqa: S603 - the caller's own program
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(right, *open_files),
                    env={**os.environ, **variables},
                    # Whatever it starts is in its group, and ends with it.
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:  # the latter of a NUL in an argument
            message = f"{self._name} cannot be started ({type(error).__name__})"
            raise TrainerFailed(message) from None

    def kill(self) -> None:
        """End the process and whatever it started; harmless when it is over."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def messages(self, timeout: float) -> list[Message]:
        """Wait until the process ends and return what it said.

        Args:
            timeout: Seconds it may take; then it is killed.

        Raises:
            TimedOut: It took longer.
            TrainerFailed: It ended with a failure; the message has what it wrote on stderr.
            TrainerReplyError: It printed something else than messages.
        """
        try:
            said, complaint = self._outputs(time.monotonic() + timeout)
        finally:
            self.kill()
            status = self._process.wait()
            for pipe in (self._process.stdout, self._process.stderr):
                assert pipe is not None  # noqa: S101 - both are pipes
                pipe.close()
        if status:
            raise TrainerFailed(self._failure(status, said, complaint))
        return _read(said)

    def _outputs(self, deadline: float) -> tuple[bytes, bytes]:
        """Return all of stdout, and of stderr the end."""
        process = self._process
        assert process.stdout is not None  # noqa: S101 - both are pipes
        assert process.stderr is not None  # noqa: S101
        said, complaint = bytearray(), bytearray()
        with selectors.DefaultSelector() as waiting:
            waiting.register(process.stdout, selectors.EVENT_READ, said)
            waiting.register(process.stderr, selectors.EVENT_READ, complaint)
            while waiting.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    message = "the trainer gave no result"
                    raise TimedOut(message, "give it more time")
                ready = waiting.select(min(left, _LOOK))
                if not ready and process.poll() is not None:
                    # What it said until it ended is there to be read. The end of the pipes may
                    # never come: what it left running can hold them.
                    ready = waiting.select(0)
                    if not ready:
                        break
                for key, _ in ready:
                    piece = os.read(key.fd, _PIECE)
                    if not piece:
                        waiting.unregister(key.fileobj)
                    key.data.extend(piece)
                del complaint[:-_PIECE]
                if len(said) > _MOST:
                    message = f"the trainer printed more than {_MOST} bytes"
                    raise TrainerReplyError(message)
        while process.poll() is None:
            # It closed both pipes and goes on.
            try:
                process.wait(max(deadline - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                message = "the trainer gave no result"
                raise TimedOut(message, "give it more time") from None
        return bytes(said), bytes(complaint)

    def _failure(self, status: int, said: bytes, complaint: bytes) -> str:
        """Return what is known of why it failed."""
        reasons = [complaint.decode(errors="replace").strip()[-_TOLD:]]
        for line in said.splitlines()[-1:]:
            with suppress(ValueError):
                last = decode(line)
                if isinstance(last, Error):
                    reasons.insert(0, last.message[:_TOLD])
        how = f"status {status}" if status > 0 else f"signal {-status}"
        return ": ".join([f"{self._name} ended with {how}", *filter(None, reasons)])


@contextmanager
def _key_file(passphrase: bytes | None) -> Iterator[tuple[tuple[int, ...], dict[str, str]]]:
    """Open a pipe that holds a passphrase, to be read once by who gets it; nothing without one.

    Yields what the process must keep open, and the variables that it needs to know.

    Raises:
        BlockingIOError: It is longer than a pipe can hold.
    """
    if passphrase is None:
        yield (), {}
        return
    reading, writing = os.pipe()
    try:
        try:
            os.set_blocking(writing, False)
            if os.write(writing, passphrase + b"\n") <= len(passphrase):
                raise BlockingIOError
        finally:
            os.close(writing)
        yield (reading,), {_KEY_FILE: f"/dev/fd/{reading}"}
    finally:
        os.close(reading)


def _check(insight: Insight, ids: set[str]) -> None:
    """Refuse an insight that no import would take again, and one whose id came before.

    Args:
        insight: The insight.
        ids: Those that came before; its own is added.

    Raises:
        ValueError: It cannot be kept; the message has nothing of what it says.
    """
    try:
        experience_id(insight.id, "id")
        for name in ("context", "action", "result"):
            experience_text(getattr(insight, name), name)
        arguments.one_of(insight.insight_type, INSIGHT_TYPES, "insight_type")
    except InvalidArgument as error:
        raise ValueError(error.message) from None
    if insight.id in ids:
        problem = "two insights have one id"
        raise ValueError(problem)
    ids.add(insight.id)


def _read(said: bytes) -> list[Message]:
    """Return the messages in what a trainer printed.

    Raises:
        TrainerReplyError: It is not UTF-8, or a line of it is no message, or cannot be kept.
    """
    try:
        said.decode()
    except UnicodeDecodeError:
        message = "non-utf8 stdout"
        raise TrainerReplyError(message) from None
    found: list[Message] = []
    ids: set[str] = set()
    for number, line in enumerate(said.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            one = decode(line)
            if isinstance(one, Insight):
                _check(one, ids)
        except ValueError as error:
            message = f"line {number}: {error}"
            raise TrainerReplyError(message) from None
        if isinstance(one, Error):
            message = f"line {number}: an error, and yet it ended well"
            raise TrainerReplyError(message)
        found.append(one)
    return found
