"""The event log: an NDJSON file that gets one line for every memory written or forgotten.

The lines follow the agent-event envelope v0.2. Each names the one before it by a hash. There is one
chain per file, whoever writes: an advisory lock covers reading its last line and appending to it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import rfc8785

from engram.errors import InvalidArgument
from engram.times import from_micros, to_micros, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

__all__ = [
    "AGENT_ID_MAX_LENGTH",
    "AGENT_ID_PATTERN",
    "ENV_EVENTS_PATH",
    "EVENT_SEVERITY",
    "SCHEMA",
    "SOURCE",
    "EventLog",
    "canonicalize",
    "chain_hash",
    "is_canonical_agent_id",
    "resolve_events_path",
    "verify",
]

SCHEMA = "taipanbox.dev/agent-event/v0.2"
SOURCE = "engram"
EVENT_SEVERITY = {
    "memory_written": "info",
    "memory_forgotten": "info",
    "reflection_run": "info",
    "contradiction_found": "medium",
}
"""The severity of each type; any other type is "info"."""
ENV_EVENTS_PATH = "ENGRAM_EVENTS_PATH"
AGENT_ID_PATTERN = re.compile(r"^agent://[a-z0-9.-]+/[a-z0-9._/-]+$")
AGENT_ID_MAX_LENGTH = 255

_SCHEMAS = frozenset(f"taipanbox.dev/agent-event/{version}" for version in ("v0.1", "v0.2", "v1.0"))
_REQUIRED = ("ts", "source", "type", "agent_id")
_OPENING = b'{"schema":"taipanbox.dev/agent-event/'
_TAIL_BYTES = 1 << 20
_FIRST_READ = 1 << 12
_LOCK_SECONDS = 5.0
_LOCK_POLL_SECONDS = 0.001
_WARNED_IDS = 64

_logger = logging.getLogger("engram.events")


def resolve_events_path(explicit: str | os.PathLike[str] | None) -> str | None:
    """Return the file to log to: the explicit one, else `ENGRAM_EVENTS_PATH`, else none.

    An empty explicit path turns the log off, whatever the environment says.
    """
    path = os.environ.get(ENV_EVENTS_PATH) if explicit is None else os.fsdecode(explicit)
    return path or None


def is_canonical_agent_id(agent_id: str) -> bool:
    """Return whether the envelope's schema accepts this agent id: `agent://domain/name`."""
    return len(agent_id) <= AGENT_ID_MAX_LENGTH and AGENT_ID_PATTERN.fullmatch(agent_id) is not None


def canonicalize(envelope: Mapping[str, object]) -> bytes:
    """Return the bytes of an event that its successor hashes.

    That is RFC 8785 (JCS) of the event without its own `prev_hash`.

    Raises:
        ValueError: It holds something JCS has no form for: NaN, an integer beyond 2**53, a lone
            surrogate, a key that is no string.
    """
    return rfc8785.dumps({k: v for k, v in envelope.items() if k != "prev_hash"})  # type: ignore[misc] # JCS refuses the rest


def chain_hash(envelope: Mapping[str, object]) -> str:
    """Return the `prev_hash` of the event that follows this one.

    Raises:
        ValueError: As for `canonicalize`.
    """
    return "sha256:" + hashlib.sha256(canonicalize(envelope)).hexdigest()


class EventLog:
    """An NDJSON file of events, shared with any other `EventLog` on it, in any process.

    A line is in the file when `emit` returns. It survives the death of the process; a power cut may
    take the last lines, unless `fsync` is set. An event that cannot be written is dropped with a
    warning on the logger `engram.events`: what the memory did stays done.

    Args:
        path: The file, a regular one; made at the first event. Its folder must exist.
        fsync: Wait for the disk after each append.
        clock: Where the events' times come from.

    Attributes:
        path: The file.
        skipped_empty_agent_id: Events dropped because they had no agent id.
        nonconforming_agent_id: Events written with an agent id the envelope's schema refuses.

    Raises:
        InvalidArgument: The path is empty or holds a NUL character.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.path = os.fsdecode(path)
        if not self.path or "\0" in self.path:
            message = "the path of an event log must be neither empty nor hold a NUL character"
            raise InvalidArgument(message)
        self.skipped_empty_agent_id = 0
        self.nonconforming_agent_id = 0
        self._fsync = fsync
        self._clock = clock
        self._warned: set[str] = set()
        # Orders the threads of this log; the lock on the file orders logs and processes.
        self._lock = threading.Lock()

    def emit(
        self,
        event_type: str,
        agent_id: str | None,
        data: Mapping[str, object],
        *,
        run_id: str | None = None,
    ) -> None:
        """Append one event; the arguments are those of `emit_many`."""
        self.emit_many(event_type, agent_id, [data], run_id=run_id)

    def emit_many(
        self,
        event_type: str,
        agent_id: str | None,
        data_items: Iterable[Mapping[str, object]],
        *,
        run_id: str | None = None,
    ) -> None:
        """Append one event per item, all of them in one write.

        Args:
            event_type: One of `EVENT_SEVERITY`, or any other.
            agent_id: Whose memory it was; without one the events are counted and dropped.
            data_items: The `data` of each event.
            run_id: The run the events belong to.

        Raises:
            InvalidArgument: An event has no JSON form; nothing is written.
        """
        items = list(data_items)
        if not items:
            return
        with self._lock:
            if not agent_id:
                self.skipped_empty_agent_id += len(items)
                return
            self._note(agent_id, len(items))
            head: dict[str, object] = {
                "schema": SCHEMA,
                "ts": self._timestamp(),
                "source": SOURCE,
                "type": event_type,
                "severity": EVENT_SEVERITY.get(event_type, "info"),
                "agent_id": agent_id,
            }
            end = {} if run_id is None else {"run_id": run_id}
            events = [_Event({**head, "data": dict(data), **end}) for data in items]
            try:
                self._append(events)
            except OSError as error:
                _logger.warning("%d events not written to %s: %s", len(items), self.path, error)

    def _note(self, agent_id: str, events: int) -> None:
        if is_canonical_agent_id(agent_id):
            return
        self.nonconforming_agent_id += events
        if agent_id not in self._warned and len(self._warned) < _WARNED_IDS:
            self._warned.add(agent_id)
            _logger.warning(
                "agent id %.*r is not agent://<trust-domain>/<name>: a consumer that checks the"
                " envelope will refuse its events",
                AGENT_ID_MAX_LENGTH,
                agent_id,
            )

    def _timestamp(self) -> str:
        utc = from_micros(to_micros(self._clock(), "clock()"))
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _append(self, events: list[_Event]) -> None:
        # Read and write: a pipe is not waited for, and refused when its end cannot be read.
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            with _locked(file, fcntl.LOCK_EX):
                size, prefix, previous = _tail(file)
                lines = [prefix]
                for event in events:
                    lines.append(event.line(previous))
                    previous = event.hash
                _write(file, b"".join(lines), size)
                if self._fsync:
                    os.fsync(file)
        finally:
            os.close(file)


class _Event:
    """An event and what its successor calls it."""

    def __init__(self, envelope: dict[str, object]) -> None:
        self._envelope = envelope
        try:
            self.hash = chain_hash(envelope)
        except (ValueError, RecursionError) as error:
            message = f"an event has no JSON form: {error}"
            raise InvalidArgument(message) from None

    def line(self, previous: str | None) -> bytes:
        link = {} if previous is None else {"prev_hash": previous}
        return json.dumps({**self._envelope, **link}, separators=(",", ":")).encode() + b"\n"


@contextmanager
def _locked(file: int, kind: int) -> Iterator[None]:
    """Hold an advisory lock on an open file.

    Raises:
        TimeoutError: It was held for 5 seconds: by a stopped process, most likely.
        OSError: The file system has no locks.
    """
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > deadline:
                message = f"another process kept the file locked for {_LOCK_SECONDS:g} s"
                raise TimeoutError(message) from None
            time.sleep(_LOCK_POLL_SECONDS)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _tail(file: int) -> tuple[int, bytes, str | None]:
    """Read the end of a locked log, healing what a writer that died left there.

    Of an event that was cut short nothing is kept. One that lacks only its line's end is given
    it, and so is a line that is no event: it may be anything, and is not lost.

    Returns:
        The file's size in bytes, what must be written before the next event, and that event's
        `prev_hash`: None where there is no event to name, and a new chain starts.
    """
    size = os.fstat(file).st_size
    last = _last_line(file, size)
    if not last or last.endswith(b"\n"):
        return size, b"", _hash_of(last)
    named = _hash_of(last)
    if named is None and (last.startswith(_OPENING) or _OPENING.startswith(last)):
        os.ftruncate(file, size - len(last))
        return _tail(file)
    return size, b"\n", named


def _last_line(file: int, size: int) -> bytes:
    """Return the last line that is not blank, or what there is of it in the last MiB."""
    block = b""
    for most in (_FIRST_READ, 1 << 16, _TAIL_BYTES):
        block = os.pread(file, most, max(0, size - most))
        start = block.rstrip().rfind(b"\n") + 1
        if start or len(block) == size:
            # Blank lines after it are part of what is returned, so that its end is seen.
            return block[start:]
    return block


def _write(file: int, content: bytes, size: int) -> None:
    """Append to a locked file all of `content`, or nothing."""
    rest = memoryview(content)
    try:
        while rest:
            rest = rest[os.write(file, rest) :]
    except BaseException:
        # Best effort: whoever appends next heals what cannot be taken back.
        os.ftruncate(file, size)
        raise


def _hash_of(line: bytes) -> str | None:
    """Return the `prev_hash` of what follows a line, None if the line is no JSON object."""
    try:
        return chain_hash(_parse(line))
    except (ValueError, RecursionError):
        return None


def _parse(line: bytes) -> dict[str, object]:
    event = json.loads(line, object_pairs_hook=_without_duplicates)
    if not isinstance(event, dict):
        message = "no JSON object"
        raise ValueError(message)  # noqa: TRY004 - every damaged line is a ValueError
    return event


def _without_duplicates(members: list[tuple[str, object]]) -> dict[str, object]:
    # A second member of the same name would hide the first one from the hash.
    found = dict(members)
    if len(found) != len(members):
        message = "a member appears twice"
        raise ValueError(message)
    return found


def verify(path: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with a log of events, an empty list when it is sound.

    Every line must be an event of schema v0.1, v0.2 or v1.0 that has the members all of them
    require, and must name the one before it; the first names none. Agent ids are not judged. A
    log that is being written is checked as far as it went at the call.

    What the envelope's rule cannot show: an event's hash leaves out its own `prev_hash`, so a line
    can be changed unseen by whoever also corrects the line after it; and lines taken off the end
    leave no trace. Keep the last line's hash elsewhere, or the file on append-only storage, where
    that matters.

    Raises:
        OSError: The file cannot be read.
    """
    problems: list[str] = []
    previous: str | None = None
    first = True
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        found, previous = _examine(line, previous, first=first)
        first = False
        problems += [f"line {number}: {problem}" for problem in found]
    return problems


def _lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with open(path, "rb") as file:  # noqa: PTH123 - a descriptor number is no path
        with _locked(file.fileno(), fcntl.LOCK_SH):
            left = os.fstat(file.fileno()).st_size
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            yield line


def _examine(line: bytes, previous: str | None, *, first: bool) -> tuple[list[str], str | None]:
    """Return what is wrong with a line, and what its successor must call it."""
    problems = [] if line.endswith(b"\n") else ["it has no end: its writer was interrupted"]
    try:
        event = _parse(line)
        named = chain_hash(event)
    except (ValueError, RecursionError):
        return [*problems, "it is no JSON object that can be hashed"], None
    if event.get("schema") not in _SCHEMAS:
        problems.append("its schema is none that is known")
    problems += [
        f"{name} is missing or is no text"
        for name in _REQUIRED
        if not (isinstance(event.get(name), str) and event[name])
    ]
    link = event.get("prev_hash")
    if first and link is not None:
        problems.append("it names an event before it: the start of the log is missing")
    elif not first and link is None:
        problems.append("it starts a new chain: it names no event before it")
    elif link != previous and previous is not None:
        problems.append("prev_hash is not the hash of the line before: one of them was changed")
    return problems, named
