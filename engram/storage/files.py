"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engram.errors import CannotOpen, NotAStore

if TYPE_CHECKING:
    from collections.abc import Iterator


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_what_is_no_file(path: Path) -> None:
    """Refuse a folder, and above all a device or a pipe: one would be replaced, the other hang.

    Raises:
        CannotOpen: `path` is there and no regular file.
    """
    if "\0" in str(path):
        message = "the path holds a NUL character"
        raise CannotOpen(message, "name a file")
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a device, a pipe or a socket"
        message = f"the path is {kind}, not a file"
        raise CannotOpen(message, "name a file")


def refuse_what_is_not_there(path: Path) -> None:
    """Refuse a path where no store can be: nothing is there, or an empty file.

    Raises:
        CannotOpen: Nothing is there.
        NotAStore: An empty file is, which SQLite would turn into a database.
    """
    try:
        size = path.stat().st_size
    except OSError:
        message = "there is no store at the path"
        raise CannotOpen(message, "make one, or name another path") from None
    if not size:
        message = "the file is empty"
        raise NotAStore(message, "name a store")


def put_in_place(ready: Path, dest: Path) -> None:
    """Give a finished file its name; a reader finds the old file or the new one, whole."""
    sync(ready)
    ready.replace(dest)
    sync(dest.parent)


@contextmanager
def replacing(dest: str | os.PathLike[str], *, mode_of: Path | None = None) -> Iterator[Path]:
    """Yield the name of a file to write that takes the place of `dest` once the block ends.

    When the block fails, or the process dies in it, `dest` is what it was before.

    Args:
        dest: The file to replace; a link is followed. Its permissions stay.
        mode_of: The file whose permissions a new one gets; None leaves them to the umask.

    Raises:
        CannotOpen: The folder is missing or may not be written to, or `dest` is no regular file.
    """
    target = Path(os.path.realpath(dest))
    refuse_what_is_no_file(target)
    try:
        # The folder is this process's own, so nobody can slip a link in.
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:64]}.", dir=target.parent))
    except OSError:
        message = "the destination's folder is missing or may not be written to"
        raise CannotOpen(message, "check the path") from None
    try:
        ready = folder / "partial"
        yield ready
        model = target if target.exists() else mode_of
        if model is not None:
            shutil.copymode(model, ready)
        put_in_place(ready, target)
    finally:
        with suppress(OSError):
            shutil.rmtree(folder)
