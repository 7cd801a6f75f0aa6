"""Texts that were kept while they could not be embedded, and embedding them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engram import arguments
from engram.engine.embedding_parts import Parts, embed_parts
from engram.engine.session import Session
from engram.experience.results import Embedded

if TYPE_CHECKING:
    from engram.embedding import Embedder
    from engram.storage import Texts

    _Texts = list[tuple[int, Texts]]

_LOG: Final = logging.getLogger("engram.experience")
_MOST: Final = 4096
TRIES: Final = 3
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
            waiting, behind those that it was not tried on as often.

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
            tried = _embedded(embedder, waiting)
            if tried.refused:
                with self._store.writing():
                    self._store.embeddings.refuse(tried.refused)
            if tried.parts is None:
                assert tried.error is not None  # noqa: S101 - why there are none
                raise tried.error
            keys = np.array(tried.keys, dtype=np.int64)
            with self._store.writing():
                current = self._store.model()
                # Of another model they are embedded again, and so is what is left of them when
                # another call like this one was quicker.
                if self._same_model(embedder, current):
                    key = self._model_key(embedder, current)
                    done = self._store.embeddings.add_late(
                        keys, tried.parts.vectors, tried.parts.counts, key, tried.parts.fields
                    )
                    if done:
                        self._store.changed("embed", min(done), max(done), self._now())
                        return len(done)

    def _embed_all(self) -> None:
        """Embed all that waits; what cannot be goes on waiting, and the log says why."""
        try:
            while self.embed_waiting():
                pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the texts are kept
            _LOG.warning("texts were not embedded: %s", type(error).__name__)

    def embedded(self) -> Embedded:
        """Return how many experiences are embedded; costs time in how many there are."""
        with self._store.reading():
            return Embedded(*self._store.experiences.embedded(self._agent))


class _Tried(NamedTuple):
    """What became of some texts.

    Attributes:
        keys: The episodes of those that were embedded.
        parts: Their vectors; None where there are none.
        refused: The episodes of those that the embedder refused.
        error: What it raised, where there are none.
    """

    keys: list[int]
    parts: Parts | None
    refused: list[int]
    error: Exception | None = None


def _embedded(embedder: Embedder, waiting: _Texts) -> _Tried:
    """Embed what some episodes are made of, as far as that is possible.

    Where all at once are refused, one by one; after the first few refusals in a row the embedder
    counts as down, and the others are not tried.
    """
    try:
        parts = embed_parts(embedder, [texts for _, texts in waiting])
    except Exception as error:  # noqa: BLE001 - an embedder can raise anything
        return _one_by_one(embedder, waiting, error)
    return _Tried([key for key, _ in waiting], parts, [])


def _one_by_one(embedder: Embedder, waiting: _Texts, error: Exception) -> _Tried:
    found: dict[int, Parts] = {}
    refused: list[int] = []
    for key, texts in waiting:
        if len(refused) == TRIES and not found:
            break
        try:
            found[key] = embed_parts(embedder, [texts])
        except Exception:  # noqa: BLE001 - the first error is told
            refused.append(key)
    if not found:
        return _Tried([], None, refused, error)
    return _Tried(
        list(found), Parts(*map(np.concatenate, zip(*found.values(), strict=True))), refused
    )
