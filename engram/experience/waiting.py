"""Texts that were kept while they could not be embedded, and embedding them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.engine.embedding_parts import Parts, embed_parts
from engram.engine.session import Session
from engram.experience.results import Embedded

if TYPE_CHECKING:
    from engram.embedding import Embedder
    from engram.storage import Texts

    _Texts = list[tuple[int, Texts]]

_MOST: Final = 4096
_TRIES: Final = 3
"""Texts tried one by one when an embedder refuses all at once, before it counts as down."""


class Waiting(Session):
    """The call that embeds what waits for it."""

    def embed_waiting(self, limit: int = 64) -> int:
        """Embed texts that were kept while there was no way to, those of every agent.

        From then on searches of every process find them by meaning. Nothing is locked while they
        are embedded.

        Args:
            limit: How many episodes at most, 1 to 4096.

        Returns:
            How many were embedded; 0 when nothing waits. A text that the embedder refuses goes on
            waiting, and is in the way of no other.

        Raises:
            InvalidArgument, InvalidType: The limit is refused.
            ModelMissing, ModelMismatch: They cannot be embedded as the store's episodes were.
                Other errors of an embedder come as they are, when it embeds none of them.
            Busy, StoreFull, Closed: The store cannot be written.
        """
        most = arguments.integer(limit, "limit", 1, _MOST)
        while True:
            with self._store.reading():
                stored, waiting = self._store.model(), self._store.embeddings.waiting(most)
            if not waiting:
                return 0
            embedder = self._the_embedder(stored)
            self._check_model(embedder, stored)
            embedded, parts = _embedded(embedder, waiting)
            keys = np.array(embedded, dtype=np.int64)
            with self._store.writing():
                current = self._store.model()
                # Of another model they are embedded again, and so is what is left of them when
                # another call like this one was quicker.
                if self._same_model(embedder, current):
                    key = self._model_key(embedder, current)
                    done = self._store.embeddings.add_late(
                        keys, parts.vectors, parts.counts, key, parts.fields
                    )
                    if done:
                        self._store.changed("embed", done[0], done[-1], self._now())
                        return len(done)

    def embedded(self) -> Embedded:
        """Return how many experiences are embedded; costs time in how many there are."""
        with self._store.reading():
            return Embedded(*self._store.experiences.embedded(self._agent))


def _embedded(embedder: Embedder, waiting: _Texts) -> tuple[list[int], Parts]:
    """Embed what some episodes are made of and return which that was possible of, by key.

    Raises:
        Exception: Whatever the embedder raised, when that was none.
    """
    try:
        return [key for key, _ in waiting], embed_parts(embedder, [texts for _, texts in waiting])
    except Exception:
        found = _one_by_one(embedder, waiting) if len(waiting) > 1 else []
        if not found:
            raise
        columns = zip(*(parts for _, parts in found), strict=True)
        return [key for key, _ in found], Parts(*map(np.concatenate, columns))


def _one_by_one(embedder: Embedder, waiting: _Texts) -> list[tuple[int, Parts]]:
    found: list[tuple[int, Parts]] = []
    for tried, (key, texts) in enumerate(waiting):
        if tried == _TRIES and not found:
            break
        with suppress(Exception):
            found.append((key, embed_parts(embedder, [texts])))
    return found
