"""Which of the files that can be imported one is, by how it begins."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Literal

from engram.errors import InvalidArgument
from engram.transfer.lines import FORMAT
from engram.transfer.strict_json import NamedTwiceError, parse

if TYPE_CHECKING:
    from collections.abc import Iterator


def form_of(file: IO[bytes]) -> Literal["lines", "json", "memories"]:
    """Say which of the files that can be imported this is, by what is in it.

    Returns:
        "lines" and "json" for what `export_lines` and `export_json` write, else "memories".

    Raises:
        InvalidArgument: It is none of them.
    """
    value = beginning(file)[1]
    if isinstance(value, dict):
        if value.get("format") == FORMAT:
            return "lines"
        if "engram_export_version" in value:
            return "json"
        if "memories" in value or "content" in value:
            return "memories"
    message = "the file holds no memories that can be imported"
    raise InvalidArgument(message, "see `engram import --help` for what can")


def beginning(file: IO[bytes]) -> tuple[str | None, Any]:
    """Return which line a file begins with and its value; None and the file's if it is no JSON.

    Raises:
        InvalidArgument: Neither is JSON.
    """
    file.seek(0)
    where, first = next(filled(file), ("line 1", b""))
    try:
        return where, parse(first, where)
    except NamedTwiceError:
        raise
    except InvalidArgument:
        file.seek(0)
    try:
        return None, parse(file.read(), "the file")
    except NamedTwiceError:
        raise
    except InvalidArgument:
        message = f"neither {where} nor the file as a whole is JSON"
        raise InvalidArgument(message, "NaN and infinities are not JSON either") from None


def filled(file: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file that are not blank, with their places."""
    return ((f"line {at}", line) for at, line in enumerate(file, start=1) if line.strip())
