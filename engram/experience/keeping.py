"""Keeping experiences: storing, reading and deleting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.engine.embedding_parts import embed_parts
from engram.engine.session import Session
from engram.errors import InvalidArgument, NotFound
from engram.experience.results import Stored
from engram.storage import MEMORY_TYPES, NewEpisode, NewExperience

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from engram.embedding import Embedder
    from engram.models import Experience

MAX_BYTES: Final = 10_000
"""Bytes of UTF-8 that context, action and result may have, each."""


class Keeping(Session):
    """The calls that keep experiences."""

    def store(
        self,
        context: str,
        action: str,
        result: str,
        *,
        memory_type: str = "decision",
        tags: Iterable[str] | None = None,
        project: str | None = None,
    ) -> Stored:
        """Keep an experience.

        Args:
            context: The situation.
            action: What was done.
            result: What came of it.
            memory_type: "decision", "pattern", "bugfix", "context", "antipattern" or "insight".
            tags: Labels to filter by.
            project: Whose it is, any text.

        Raises:
            InvalidArgument, InvalidType: An argument is refused; nothing is written.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        texts = [
            _part(value, name)
            for name, value in (("context", context), ("action", action), ("result", result))
        ]
        if memory_type not in MEMORY_TYPES:
            message = f"memory_type must be one of {', '.join(MEMORY_TYPES)}"
            raise InvalidArgument(message)
        now = self._now()
        whose = None if project is None else arguments.text(project, "project")
        new = NewExperience(memory_type, texts[0], texts[1], texts[2], now, whose)
        episode = NewEpisode(new.content, now, tags=arguments.names(tags, "tags"))
        while True:
            embedder, vectors, fields = self._embed_parts(new)
            with self._store.writing():
                stored = self._store.model()
                if self._same_model(embedder, stored):
                    [uid] = self._store.add_episodes(
                        [episode],
                        vectors,
                        np.array([len(vectors)]),
                        model=self._model_key(embedder, stored),
                        agent=self._agent,
                        now=now,
                        fields=fields,
                        experiences=[new],
                    )
                    break
            self._check_model(self._the_embedder(stored), stored)
        self._emit("memory_written", [{"memory_id": uid, "kind": "episodic"}])
        return Stored(uid, indexed=True)

    def get(self, memory_id: str) -> Experience:
        """Return one experience.

        Raises:
            NotFound: No experience has this id, or it is not this agent's.
            InvalidType: The id is no `str`.
        """
        uid = arguments.text(memory_id, "memory_id")
        with self._store.reading():
            key = self._store.episodes.key(uid, self._agent)
            found = {} if key is None else self._store.experiences.read([key])
        if key not in found:
            message = "there is no such experience"
            raise NotFound(message, "it may be erased, or another agent's")
        return found[key]

    def _embed_parts(
        self, new: NewExperience
    ) -> tuple[Embedder, NDArray[np.float32], NDArray[np.int64]]:
        with self._store.reading():
            stored = self._store.model()
        embedder = self._the_embedder(stored)
        parts = embed_parts(embedder, [new.texts])
        return embedder, parts.vectors, parts.fields


def _part(value: object, argument: str) -> str:
    given = arguments.text(value, argument)
    if len(given.encode()) > MAX_BYTES:
        message = f"{argument} exceeds maximum length of {MAX_BYTES} bytes"
        raise InvalidArgument(message)
    return given
