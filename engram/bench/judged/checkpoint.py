"""The file of records as it grows: one line a question, on the disk before the next is asked."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

import msgspec

from engram.bench.judged.records import times_file
from engram.cli.failures import BadFileError, ExistingFileError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Checkpoint"]


class Checkpoint:
    """A file of records, and the file of times beside it.

    Times are written first: a line of times without its record is cut off.

    Args:
        file: The file of records.
        header: What was measured and how; its first line.
        resume: Go on with the files, if they are there.
        overwrite: Begin anew if they are.

    Attributes:
        done: The questions that are answered, in order.

    Raises:
        ExistingFileError: The file is there, and is neither to be gone on with nor replaced; or it
            has records of another run.
        BadFileError: A line of it is no record.
        OSError: It cannot be written.
    """

    def __init__(
        self,
        file: Path,
        header: dict[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        first = _line(header)
        lines = [] if overwrite or not file.exists() else _whole_lines(file)
        if file.exists() and not (resume or overwrite):
            message = f"{file} exists"
            raise ExistingFileError(message, "go on with it by --resume, or give --overwrite")
        if lines and lines[0] != first:
            message = f"{file} has records of other data, another model or other settings"
            raise ExistingFileError(message, "give another --records, or --overwrite")
        times = times_file(file)
        self.done = [_question(line, number, file) for number, line in enumerate(lines[1:], 2)]
        kept = _whole_lines(times)[: len(self.done)] if self.done and times.exists() else []
        self._records = _opened(file, lines)
        self._times = _opened(times, kept)
        if not lines:
            _append(self._records, first)

    def close(self) -> None:
        """Close the files."""
        self._records.close()
        self._times.close()

    def add(self, record: dict[str, Any], times: dict[str, Any]) -> None:
        """Write what a question got, and how long that took.

        Raises:
            OSError: It cannot be written.
        """
        _append(self._times, _line(times))
        _append(self._records, _line(record))


def _line(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content, order="sorted") + b"\n"


def _whole_lines(file: Path) -> list[bytes]:
    """Return the lines of a file, without one that a process which was stopped half wrote."""
    lines = file.read_bytes().splitlines(keepends=True)
    return lines[:-1] if lines and not lines[-1].endswith(b"\n") else lines


def _opened(file: Path, lines: list[bytes]) -> IO[bytes]:
    """Open a file to append to it behind its first lines."""
    opened = file.open("r+b" if lines else "wb")
    opened.truncate(sum(map(len, lines)))
    opened.seek(0, os.SEEK_END)
    return opened


def _append(opened: IO[bytes], line: bytes) -> None:
    opened.write(line)
    opened.flush()
    os.fsync(opened.fileno())


def _question(line: bytes, number: int, file: Path) -> str:
    try:
        return str(msgspec.json.decode(line, type=dict[str, Any])["question"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        message = f"{file}, line {number} is no record"
        raise BadFileError(message) from None
