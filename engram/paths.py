"""Whose a memory is: canonical project paths, decided against the file system as it is now."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram.errors import InvalidArgument, InvalidType

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_LENGTH: Final = 4096
"""Characters that a path may have."""

OWNER_KEYS: Final = ("project_path", "project_root")
"""The members of a memory's metadata that say which project it belongs to."""


@dataclass(frozen=True, slots=True)
class Ownership:
    """Which project a memory belongs to.

    Attributes:
        project: The canonical path of the project it names.
        conflict: It names a project that is none, or two of them: it belongs to nobody.
        source: The canonical path of the file it came from; where it names no project, it belongs
            to every folder above that.
    """

    project: str | None = None
    conflict: bool = False
    source: str | None = None


def at_home(path: str, home: str | os.PathLike[str] | None = None) -> str:
    """Return a path with the home that "~" or "~somebody" at its beginning stands for.

    The home of nobody stays as it is written.

    Args:
        path: Any path; one without "~" comes back as it is.
        home: What "~" stands for; None: the home of who runs this.
    """
    first, _, rest = path.partition("/")
    if first == "~" and home is not None:
        return os.path.join(home, rest.lstrip("/")) if rest else os.fspath(home)  # noqa: PTH118
    return os.path.expanduser(path)  # noqa: PTH111 - Path's raises


def expanded(
    path: str | os.PathLike[str],
    *,
    home: str | os.PathLike[str] | None = None,
    folder: Path | None = None,
) -> Path:
    """Return a path made absolute, "~" being somebody's home.

    The file's name is UTF-8, whatever the locale.

    Args:
        path: Any path.
        home: As for `at_home`.
        folder: Where a relative one begins; None: the working folder.
    """
    # What no UTF-8 text has came from bytes of the command line or the environment.
    name = os.fsdecode(os.fspath(path).encode("utf-8", "surrogateescape"))
    return Path(folder or "", at_home(name, home)).absolute()


def canonical(value: object, argument: str = "project_id") -> str:
    """Return the one spelling of an absolute path: no links, no dots, no spare slashes.

    "~" is somebody's home. What does not exist is kept as it is written; case and Unicode
    normalisation are always kept, for to a file system they may be different files.

    Raises:
        InvalidType: `value` is no `str`.
        InvalidArgument: It is relative, empty, longer than `MAX_LENGTH`, holds a NUL character or
            lone surrogates, names an unknown home or leads round in links.
    """
    if not isinstance(value, str):
        message = f"{argument} must be a str, not {type(value).__name__}"
        raise InvalidType(message)
    if not 1 <= len(value) <= MAX_LENGTH:
        message = f"{argument} must have 1 to {MAX_LENGTH} characters"
        raise InvalidArgument(message)
    if "\0" in value or not _is_text(value):
        message = f"{argument} holds a character that no path has"
        raise InvalidArgument(message)
    # Names of files are UTF-8, whatever the locale says that Python reads them in.
    path = at_home(os.fsdecode(value.encode()))
    if not path.startswith("/"):
        message = f"{argument} must be an absolute path"
        raise InvalidArgument(message)
    # POSIX leaves the meaning of two leading slashes open, and realpath keeps them.
    resolved = _resolved("/" + path.lstrip("/"), argument)
    try:
        spelling = os.fsencode(resolved).decode()
    except UnicodeDecodeError:
        spelling = ""
    if not 1 <= len(spelling) <= MAX_LENGTH:
        message = f"{argument} leads to a path that is too long, or not Unicode text"
        raise InvalidArgument(message)
    return spelling


def spelled(value: str, argument: str) -> str:
    """Return a path that has the form of a canonical one, without asking the file system.

    Raises:
        InvalidArgument: No call of `canonical` could have returned it.
    """
    normal = value == os.path.normpath("/" + value.lstrip("/"))
    if not normal or len(value) > MAX_LENGTH or "\0" in value or not _is_text(value):
        message = f"{argument} must be an absolute path without dots, spare slashes and NUL"
        raise InvalidArgument(message, f"of at most {MAX_LENGTH} characters")
    return value


def _is_text(path: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in path)


def _resolved(path: str, argument: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            message = f"{argument} leads round in symbolic links"
            raise InvalidArgument(message) from None
    return os.path.realpath(path)


class Resolver:
    """Canonical paths, each distinct one looked up once: whoever asks again gets the same."""

    def __init__(self) -> None:
        self._known: dict[str, str | None] = {}

    def canonical(self, value: object) -> str | None:
        """Return what the function of this name does, None for what it refuses."""
        if not isinstance(value, str):
            return None
        if value not in self._known:
            try:
                self._known[value] = canonical(value)
            except InvalidArgument:
                self._known[value] = None
        return self._known[value]


def ownership(
    metadata: Mapping[str, object], source: object = None, resolver: Resolver | None = None
) -> Ownership:
    """Return whose a memory is, by its metadata or else by the file it came from.

    Args:
        metadata: Every one of `OWNER_KEYS` that is there must name the same project; what it names
            must be a path, or the memory belongs to nobody.
        source: The path of the file as the caller has it; a relative one says nothing.
        resolver: Looks paths up; None does so anew.
    """
    paths = Resolver() if resolver is None else resolver
    named = [metadata[key] for key in OWNER_KEYS if key in metadata]
    is_absolute = isinstance(source, str) and source.startswith("/")
    origin = paths.canonical(source) if is_absolute else None
    if not named:
        return Ownership(source=origin)
    projects = {paths.canonical(name) for name in named}
    project = projects.pop()
    if projects or project is None:
        return Ownership(conflict=True, source=origin)
    return Ownership(project, source=origin)
