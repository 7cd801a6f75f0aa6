"""Moving memories between files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram import arguments
from engram.engine.importing import Importing
from engram.errors import InvalidArgument, InvalidType
from engram.storage import read_old_store
from engram.transfer import lines, reference
from engram.transfer.strict_json import parse

if TYPE_CHECKING:
    from os import PathLike

    from engram.engine.importing import Progress


class Transfer(Importing):
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
        self._drop_index()

    def export_json(self, dest: str | PathLike[str]) -> dict[str, Any]:
        """Write the documented exchange format, a JSON document, and return it.

        Plain text, also from an encrypted store. An instance scoped to an agent exports that
        agent's episodes and edges, the facts it sees, and all entities; another one everything.
        Vectors, reflections, the access log, what a `Ledger` keeps and what makes an episode an
        experience are not in it: `export_lines` loses nothing.

        Args:
            dest: The file, replaced at once when all is written.

        Raises:
            InvalidType, InvalidArgument: `dest` is no path.
            CannotOpen: `dest` cannot be written.
        """
        path = file_path(dest, "dest")
        with self._store.reading():
            document = reference.to_document(self._store.records(self._agent), self._now())
        with self._store.replacing(path) as file:
            text = json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)
            file.write_text(text + "\n", encoding="utf-8")
        return document

    def import_json(self, src: str | PathLike[str], *, merge: bool = False) -> dict[str, int]:
        """Bring in a document that `export_json` wrote, here or in the reference library.

        Everything is checked, then embedded, then written in one transaction: all of it or
        nothing. Rows keep the agent the document names, which need not be this instance's.

        Values that are null or missing are read as the least trusted: a row without a quarantine
        mark is quarantined and of unknown provenance. An entity whose name the store knows under
        another id becomes that one; an edge that leads nowhere is left out.

        Args:
            src: The file.
            merge: Skip rows whose ids the store has, instead of refusing the import.

        Returns:
            How many rows were written: `episodes`, `facts`, `entities`, `edges`.

        Raises:
            InvalidArgument, InvalidType: The version is not 1, a value is refused or an id taken;
                the message names the place. Nothing is written.
            OSError: The file cannot be read.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `observe`.
        """
        path, merging = file_path(src, "src"), arguments.flag(merge, "merge")
        document = parse(Path(path).read_bytes(), "src")
        return self._import_document(document, merge=merging)

    def import_store(
        self, path: str | PathLike[str], *, key: str | None = None, merge: bool = False
    ) -> dict[str, int]:
        """Bring in a store file of the reference library, which is only read.

        As `import_json` of a document with all that the file holds, reflections and the access log
        included. Vectors are computed anew.

        Args:
            path: The file.
            key: Its passphrase, if it is encrypted.
            merge: As for `import_json`.

        Raises:
            CannotOpen, NotAStore: It cannot be read, or is no such store.
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As
                for `import_json`.
        """
        file, merging = file_path(path, "path"), arguments.flag(merge, "merge")
        secret = None if key is None else arguments.text(key, "key")
        return self._import_document(read_old_store(file, secret), merge=merging)

    def _import_document(self, document: object, *, merge: bool) -> dict[str, int]:
        placed = reference.from_document(document, self._now())
        written = self._import(lambda: placed, None, merge=merge)
        return {
            "episodes": written["episode"],
            "facts": written["fact"],
            "entities": written["entity"],
            "edges": written["edge"],
        }

    def export_lines(
        self, dest: str | PathLike[str], *, progress: Progress | None = None
    ) -> dict[str, int]:
        """Write what a store holds, losslessly, as JSON Lines, in constant memory.

        Vectors, reflections, recalls, metadata, checkpoints and evidence included: importing the
        file into an empty store and exporting that gives the same bytes. Dormant events, how long
        memories rest, what searches of experiences showed, what was learned from that, and the
        runs of trainers are not: they are a passing log of this store, which only `backup` copies.
        Plain text, also from an encrypted store. An instance scoped to an agent exports what that
        agent sees, as in `export_json`; checkpoints, evidence, histories of lifecycles and
        consolidations are no agent's.

        Args:
            dest: The file, replaced at once when all is written.
            progress: Called now and then with the records written and all there are.

        Returns:
            How many records of each kind were written.

        Raises:
            InvalidType, InvalidArgument: `dest` is no path.
            CannotOpen, StoreFull: `dest` cannot be written.
            Busy: The access log cannot be brought up to date.
        """
        path = file_path(dest, "dest")
        self._store.flush()
        with self._store.replacing(path) as target, self._store.reading():
            model = self._store.model()
            about = {
                "agent": self._agent,
                "model": model
                and {"fingerprint": model.fingerprint, "name": model.name, "dim": model.dim},
            }
            with target.open("w", encoding="utf-8", newline="\n") as file:
                reader = self._store.records(self._agent, vectors=True)
                return lines.write(file, reader, about, progress)

    def import_lines(
        self,
        src: str | PathLike[str],
        *,
        merge: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Bring in a file that `export_lines` wrote: all of it, or nothing.

        The file is read twice, to check every value and then to write in one transaction. Where
        the store has the file's model, or none yet, the file's vectors are taken as they are;
        where it has another one, everything is embedded anew, in batches, between the two.

        Args:
            src: The file.
            merge: Skip records whose ids the store has, instead of refusing the import.
            progress: Called now and then with the records written and all there are.

        Returns:
            How many records of each kind were written.

        Raises:
            InvalidArgument, InvalidType: It is no such file or was cut off, a value is refused or
                an id taken; the message names the line. Nothing is written.
            OSError: The file cannot be read.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `observe`.
        """
        path, merging = file_path(src, "src"), arguments.flag(merge, "merge")
        with Path(path).open("rb") as file:
            source = lines.LineFile(file, self._store.record_columns)
            return self._import(
                source.read, source.model, merge=merging, total=source.total, progress=progress
            )


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
