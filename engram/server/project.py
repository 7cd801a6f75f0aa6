"""Which project a server is for, and where its socket and its store are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram.paths import at_home, expanded
from engram.server.failures import INIT_FAILED, NO_PROJECT, SOCKET, Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER: Final = ".engram"
"""The folder that makes a project of the one it is in."""

STORE: Final = "engram.db"
"""The name of a project's store; the reference server's database has the same."""

MAX_SOCKET_BYTES: Final = 103
"""The longest path that every system can bind a socket to."""

_ROOT: Final = "ENGRAM_PROJECT_DIR"
_SOCKET: Final = "ENGRAM_SOCKET_PATH"
_STORE: Final = "ENGRAM_DB_PATH"


def home(environ: Mapping[str, str]) -> Path:
    """Return the user's home."""
    return Path(environ.get("HOME") or at_home("~"))


def find_root(environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the folder of the project that a server started in `cwd` is for.

    That is `ENGRAM_PROJECT_DIR` if it is absolute, else the first folder from `cwd` upwards that
    has a folder `.engram`.

    Raises:
        Failure: There is none.
    """
    given = environ.get(_ROOT, "")
    if given.startswith("/"):
        return Path(given)
    for folder in (cwd, *cwd.parents):
        if _is_folder(folder / FOLDER):
            return folder
    text = (
        "project directory not found: make a folder .engram in it, or set ENGRAM_PROJECT_DIR to"
        " its absolute path"
    )
    raise Failure(NO_PROJECT, text)


def root_or_store(environ: Mapping[str, str], cwd: Path) -> Path:
    """Return the folder of the project, for who needs no socket in it.

    Programs that start others do so in any folder: where that is in no project, the folder of the
    store that `ENGRAM_DB_PATH` names is one.

    Raises:
        Failure: There is none, or `ENGRAM_PROJECT_DIR` names what is no folder.
    """
    try:
        root = find_root(environ, cwd)
    except Failure:
        if not environ.get(_STORE):
            raise
        return store_path(environ, cwd, cwd).parent
    if environ.get(_ROOT, "").startswith("/") and not _is_folder(root):
        text = f"project directory not found: {_ROOT} names no folder"
        raise Failure(NO_PROJECT, text)
    return root


def store_path(environ: Mapping[str, str], cwd: Path, root: Path) -> Path:
    """Return where the project's store is, or is to be made."""
    given = environ.get(_STORE)
    return expanded(given, home=home(environ), folder=cwd) if given else root / FOLDER / STORE


def socket_path(environ: Mapping[str, str], cwd: Path, root: Path, configured: str) -> Path:
    """Return where the project's socket is, or is to be.

    Args:
        environ: `ENGRAM_SOCKET_PATH` comes first.
        cwd: Where a relative path of the environment begins.
        root: Of the project; the socket is in its folder `.engram` if there is one.
        configured: Where it is otherwise; a relative path begins at the root. Blank: nowhere.

    Raises:
        Failure: It would be nowhere, or its path is longer than a socket's may be.
    """
    given = environ.get(_SOCKET)
    if given:
        path = expanded(given, home=home(environ), folder=cwd)
    elif _is_folder(root / FOLDER):
        path = own_socket(root)
    elif configured.strip():
        path = expanded(configured, home=home(environ), folder=root)
    else:
        text = f"socket error: the project has no folder {FOLDER}, and no socket_path is set"
        raise Failure(SOCKET, text)
    if len(os.fsencode(path)) > MAX_SOCKET_BYTES:
        text = (
            f"init failed: the path of the socket has more than {MAX_SOCKET_BYTES} bytes; set"
            f" {_SOCKET} to a shorter one"
        )
        raise Failure(INIT_FAILED, text)
    return path


def own_socket(root: Path) -> Path:
    """Return where a project has its socket unless something else is said."""
    return root / FOLDER / "engram.sock"


def left_behind(environ: Mapping[str, str], root: Path) -> Path | None:
    """Return the file that may be a database which a server would leave unseen; None for none.

    It is in the home, where the project has none and none is named by `ENGRAM_DB_PATH`: the
    reference server kept all projects together there.
    """
    path = legacy_path(environ)
    unseen = not environ.get(_STORE) and not os.path.lexists(root / FOLDER / STORE)
    return path if unseen and os.path.isfile(path) else None  # noqa: PTH113 - never raises


def legacy_path(environ: Mapping[str, str]) -> Path:
    """Return where the reference server kept the memories of all projects."""
    return home(environ) / FOLDER / STORE


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises where it may not look
