"""Moving memories between files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from engram import arguments
from engram.engine.session import Session
from engram.errors import InvalidArgument, InvalidType

if TYPE_CHECKING:
    from os import PathLike


class Transfer(Session):
    """The calls that copy a store or part of it."""

    def backup(self, dest: str | PathLike[str]) -> None:
        """Copy the whole store to a file, while it is open and others write to it.

        The copy holds one consistent state: what was committed when it began, logged recalls
        included. It is encrypted as the store is, under the same key. It takes the place of `dest`
        at the end, at once; until then, and when the call fails, `dest` is what it was.

        Args:
            dest: The file to write.

        Raises:
            InvalidArgument: This instance is scoped to an agent, or `dest` is the store itself.
            InvalidType: `dest` is no path.
            Busy: `dest` is a database that is open, or was not closed; or the store is locked.
            CannotOpen, StoreFull: `dest` cannot be written.
        """
        path = file_path(dest, "dest")
        if self._agent is not None:
            message = f"this instance is scoped to agent_id {self._agent!r}, a backup copies all"
            raise InvalidArgument(
                message, "open the store without agent_id, or use export_json() for one agent"
            )
        self._store.backup(path)

    def rekey(self, new_key: str | None) -> None:
        """Encrypt the store under another passphrase, for the first time, or no longer.

        This instance goes on with the new key; the old one opens nothing any more. The store is
        rewritten beside itself and swapped in one step, so it needs its size in free space, and a
        crash leaves it under the old key or the new one.

        Args:
            new_key: The passphrase; None removes encryption.

        Raises:
            InvalidArgument: The key is empty, there is none to remove, or the store is in memory.
            InvalidType: The key is no `str`.
            Busy: Something else has the store open; nothing changed.
            CorruptStore: The copy does not read back; nothing changed.
        """
        key = None if new_key is None else arguments.text(new_key, "new_key")
        self._store.rekey(key)


def file_path(value: object, argument: str) -> str:
    """Return a path as text.

    Raises:
        InvalidType: It is no path.
        InvalidArgument: It is empty, or holds a NUL character.
    """
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        message = f"{argument} must be a path, not {type(value).__name__}"
        raise InvalidType(message)
    path = os.fspath(value)
    if not isinstance(path, str):
        message = f"{argument} must be a path of text, not of {type(path).__name__}"
        raise InvalidType(message)
    if not path or "\0" in path:
        message = f"{argument} is not a file name"
        raise InvalidArgument(message)
    return path
