"""Files of JSON, packed or not, that are what they should be or are refused by their names."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import msgspec

from engram.cli.failures import BadFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime
    from pathlib import Path

__all__ = ["Content", "moment", "read", "refused", "unique"]

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
# What msgspec raises for text that is not the JSON asked for; too deep a nesting is the last.
_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

_Type = TypeVar("_Type")


@dataclass(frozen=True)
class Content:
    """What a file holds.

    Attributes:
        name: What messages call the file.
        sha256: Of the file as it is, in hexadecimal.
        text: What is in it, unpacked.
    """

    name: str
    sha256: str
    text: bytes

    @property
    def is_list(self) -> bool:
        """Whether it begins as a JSON list does."""
        return self.text.lstrip()[:1] == b"["

    def decoded(
        self, type_: type[_Type], what: str, raw: bytes | msgspec.Raw | None = None
    ) -> _Type:
        """Return the content as a type.

        Args:
            type_: The type.
            what: What the file should be, for the message.
            raw: A part of the content to read instead of the whole.

        Raises:
            BadFileError: It is something else; the message names the place and quotes nothing.
        """
        try:
            return msgspec.json.decode(self.text if raw is None else raw, type=type_)
        except _NOT_JSON as error:
            raise refused(self.name, what, str(error)) from None


def read(path: Path) -> Content:
    """Return what a file holds, a gzip file unpacked.

    Raises:
        BadFileError: It begins as a gzip file and is none.
        OSError: It cannot be read.
    """
    packed = path.read_bytes()
    digest = hashlib.sha256(packed).hexdigest()
    if not packed.startswith(_GZIP):
        return Content(str(path), digest, packed.removeprefix(_BOM))
    try:
        return Content(str(path), digest, gzip.decompress(packed).removeprefix(_BOM))
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise refused(str(path), "gzip file", "it is damaged or cut off") from None


def refused(name: str, what: str, reason: str) -> BadFileError:
    """Return the error for a file that is not what it should be."""
    message = f"{name} is no {what}: {reason}"
    return BadFileError(message)


def moment(
    text: str, parsed: Callable[[str], datetime], name: str, what: str, where: str
) -> datetime:
    """Return the time that a text of the data means.

    Raises:
        BadFileError: It means none.
    """
    try:
        return parsed(text)
    except ValueError:
        raise refused(name, what, f"the date of {where} cannot be read") from None


def unique(ids: Iterable[str], name: str, what: str, of: str) -> None:
    """Refuse ids that come twice.

    Raises:
        BadFileError: One does.
    """
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise refused(name, what, f"two {of} have the same id")
        seen.add(one)
