"""Memories that are kept for a project: one at a time, and from files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engram import arguments
from engram.embedding.registry import registered
from engram.engine.importing import Importing
from engram.engine.transfer import file_path
from engram.errors import InvalidArgument
from engram.models import StoredModel
from engram.paths import OWNER_KEYS, canonical
from engram.storage import uids
from engram.transfer.memories import ArgumentRow, MemoryFile, memory_record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from os import PathLike

    from engram.engine.importing import Progress


class Remembering(Importing):
    """The calls that write memories of projects."""

    def remember(
        self,
        content: str,
        *,
        project: str | PathLike[str] | None = None,
        source_path: str | PathLike[str] | None = None,
        source_type: str | None = None,
        layer: str = "episodic",
        memory_type: str | None = None,
        importance: float = 0.5,
        metadata: Mapping[str, object] | None = None,
        memory_id: str | None = None,
        created_at: datetime | float | str | None = None,
        status: str | None = None,
    ) -> str:
        """Remember something for a project and return its id.

        What is remembered is an episode as `observe` makes one, found by every search; beside that
        `Ledger.recent` lists it for the project that owns it. Whose it is is decided now, against
        the file system as it is: it belongs to `project`, or to what the metadata's `project_path`
        and `project_root` name, which must be the same; where neither is there, to every folder
        above the file it came from.

        Args:
            content: The text.
            project: The absolute path of the project's folder, kept as the metadata's
                `project_path`.
            source_path: The file it came from; a relative path is kept and says nothing of whose
                the memory is.
            source_type: How it came here; "remember:human" says that these are the user's own
                words, and nothing else is trusted like that.
            layer: Such as "working", "episodic", "semantic", "procedural" or "codebase".
            memory_type: "narrative", "fact" or "procedure"; None takes it from the metadata's
                `type` ("factual", "procedural", "experiential") or from the layer.
            importance: From 0 to 1.
            metadata: A JSON object to keep with it; a true `invalidated` in it invalidates the
                memory.
            memory_id: Any text of up to 200 characters that begins with neither "evidence-" nor
                "fact:"; None makes a new id.
            created_at: When it was learned: a datetime, Unix seconds or ISO 8601 text; None is
                now.
            status: Any but "active" keeps it out of all searches and lists.

        Raises:
            InvalidArgument, InvalidType: An argument is refused, or the id is taken; nothing is
                written.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `observe`.
        """
        now = self._now()
        new = uids.from_stored(uids.following(None, now, 1)[0])
        values = {
            "id": new if memory_id is None else memory_id,
            "content": content,
            "source_file": None if source_path is None else file_path(source_path, "source_path"),
            "source_type": source_type,
            "layer": layer,
            "memory_type": memory_type,
            "importance": importance,
            "metadata": metadata if project is None else _owned(metadata, project),
            "created_at": created_at,
            "status": status,
        }
        record = memory_record(ArgumentRow(values, "", now), agent=self._agent, model=None)
        with self._store.reading():
            if self._store.episodes.key(record["uid"], None) is not None:
                message = "memory_id is that of another memory"
                raise InvalidArgument(message, "leave it out for a new one")
        self._import(lambda: [("episode", "memory_id", record)], None, merge=False)
        return str(record["uid"])

    def import_memories(
        self,
        src: str | PathLike[str],
        *,
        merge: bool = False,
        vectors_of: str | None = None,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Bring in a file of memories that another program wrote: all of it, or nothing.

        The file is a JSON document with `memories` and, if it likes, `entities`, `relationships`
        and `entity_mentions`, or JSON Lines with a memory on each line. Everything is checked
        before anything is written. Memories become this instance's agent's; whose project they
        belong to is decided as by `remember`, and one whose owner is no path belongs to nobody.

        Args:
            src: The file.
            merge: Skip memories whose ids the store has, instead of refusing the import.
            vectors_of: The name of the model that made the file's vectors, which itself does not
                say. They are taken as they are where this is the store's model; otherwise, and
                with None, the texts are embedded anew.
            progress: Called now and then with the records written and all there are.

        Returns:
            How many were written: `memories`, `entities`, `edges`.

        Raises:
            InvalidArgument, InvalidType: It is no such file, a value is refused or an id taken;
                the message names the place. Nothing is written.
            OSError: The file cannot be read.
            ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As for `observe`.
        """
        path, merging = file_path(src, "src"), arguments.flag(merge, "merge")
        model = None if vectors_of is None else self._model_named(vectors_of)
        with Path(path).open("rb") as file:
            memories = MemoryFile(file, agent=self._agent, now=self._now(), model=model)
            written = self._import(
                memories.read,
                model,
                merge=merging,
                total=memories.count(),
                progress=progress,
            )
        return {
            "memories": written["episode"],
            "entities": written["entity"],
            "edges": written["edge"],
        }

    def _model_named(self, name: str) -> StoredModel | None:
        """Return the store's model, or the one it is going to have, if that is its name."""
        given = arguments.text(name, "vectors_of")
        known = registered(given)
        wanted = given if known is None else known.name
        with self._store.reading():
            stored = self._store.model()
        if stored is None:
            embedder = self._the_embedder(None)
            if wanted not in (getattr(embedder, "name", None), embedder.fingerprint):
                return None
            return StoredModel(0, *self._description(embedder))
        return stored if wanted in (stored.name, stored.fingerprint) else None


def _owned(
    metadata: Mapping[str, object] | None, project: str | PathLike[str]
) -> dict[str, object]:
    """Return metadata that name a project as the owner.

    Raises:
        InvalidArgument: The project is no absolute path, or the metadata name an owner already.
        InvalidType: An argument has the wrong type.
    """
    path = canonical(file_path(project, "project"), "project")
    arguments.json_object(metadata, "metadata")
    given = dict(metadata or {})
    if any(key in given for key in OWNER_KEYS):
        message = "project was given, and metadata name an owner"
        raise InvalidArgument(message, "pass one of them")
    return given | {"project_path": path}
