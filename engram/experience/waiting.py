"""Texts that were kept while they could not be embedded, and embedding them."""

from __future__ import annotations

from typing import Final

import numpy as np

from engram import arguments
from engram.engine.embedding_parts import embed_parts
from engram.engine.session import Session

_MOST: Final = 4096


class Waiting(Session):
    """The call that embeds what waits for it."""

    def embed_waiting(self, limit: int = 64) -> int:
        """Embed texts that were kept while there was no way to, those of every agent.

        From then on searches of every process find them by meaning. Nothing is locked while they
        are embedded.

        Args:
            limit: How many episodes at most, 1 to 4096.

        Returns:
            How many were embedded; 0 when nothing waits.

        Raises:
            InvalidArgument, InvalidType: The limit is refused.
            ModelMissing, ModelMismatch: They cannot be embedded as the store's episodes were.
                Other errors of an embedder come as they are; the texts go on waiting.
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
            parts = embed_parts(embedder, [texts for _, texts in waiting])
            keys = np.array([key for key, _ in waiting], dtype=np.int64)
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
