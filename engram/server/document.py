"""The files of settings, `engram.toml`: their values by dotted name, as TOML reads them."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import tomllib
from typing import TYPE_CHECKING, Any, Final, NoReturn

from engram.server.failures import CONFIG_PARSE, Failure
from engram.server.sections import SECTIONS

if TYPE_CHECKING:
    from pathlib import Path

FILE: Final = "engram.toml"

_MAX_BYTES: Final = 1 << 20

# A misspelt name is shown; what looks like anything else may be a secret in the wrong place.
_NAME: Final = re.compile(r"[a-z]+(_[a-z0-9]+){0,4}")
# Of what is wrong with a document only the place is shown: the rest may quote.
_PLACE: Final = re.compile(r"\(at (line [0-9]+, column [0-9]+|end of document)\)")


def read(path: Path) -> dict[str, object]:
    """Return what a file sets, by dotted name; not yet checked against the rules.

    Raises:
        Failure: It cannot be read, is no TOML, or sets what is no setting.
    """
    values: dict[str, object] = {}
    for section, members in _document(path).items():
        if section not in SECTIONS or not isinstance(members, dict):
            _refuse(f"there is no section{_shown(section)}")
        known = {field.name for field in dataclasses.fields(SECTIONS[section])}  # type: ignore[arg-type]
        for name, value in members.items():
            if name not in known:
                _refuse(f"{section} has no setting{_shown(name)}")
            values[f"{section}.{name}"] = value
    return values


def _document(path: Path) -> dict[str, Any]:
    try:
        # Without waiting for whoever writes to a pipe.
        with open(path, "rb", opener=_at_once) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                _refuse("it is no regular file")
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        _refuse(f"it cannot be read: {error.strerror}")
    if len(content) > _MAX_BYTES:
        _refuse(f"it has more than {_MAX_BYTES} bytes")
    try:
        return tomllib.loads(content.decode())
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        _refuse(f"it is not TOML {place[0] if place else ''}".rstrip())
    except (UnicodeDecodeError, RecursionError):
        _refuse("it is not TOML in UTF-8")


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _refuse(problem: str) -> NoReturn:
    raise Failure(CONFIG_PARSE, f"config parse error: of a file {FILE}, {problem}") from None


def _shown(name: str) -> str:
    return f" {name}" if _NAME.fullmatch(name) else " of such a name"
