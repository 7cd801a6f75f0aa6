"""Frames: one JSON object per line, read in bounded memory and written in ASCII."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engram.transfer.strict_json import parse_unambiguous

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAX_REQUEST_BYTES: Final = 65_536
"""Bytes of a line, its newline counted."""

MAX_DEPTH: Final = 64
"""Objects and arrays that may be open at one place of a line, the outermost counted."""


def read_lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a stream; None stands for one that is too long, read to its end.

    What is after the last newline is a line as well, unless nothing is there. Memory is bounded by
    `MAX_REQUEST_BYTES`, however long a line.
    """
    while line := stream.readline(MAX_REQUEST_BYTES + 1):
        if len(line) <= MAX_REQUEST_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_REQUEST_BYTES)
        yield None


def decode(text: str) -> Any:
    """Return what a line says.

    Raises:
        ValueError: It is not JSON that all readers understand alike, or nests deeper than
            `MAX_DEPTH`.
    """
    return parse_unambiguous(text, MAX_DEPTH)


def encode(document: dict[str, object]) -> bytes:
    """Return the line for an object: ASCII, what is not ASCII as escapes.

    Raises:
        ValueError, TypeError, RecursionError: It has no form in JSON.
    """
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
