"""Re-embedding: moving a store to another model, a slice at a time, while it is searched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engram.embedding import check_embedder, resolve
from engram.engine.embedding_parts import embed_parts
from engram.engine.session import Session
from engram.errors import Busy, InvalidArgument, ScopeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.embedding import Embedder
    from engram.models import StoredModel
    from engram.storage import Texts

_EPISODES = 64
"""Episodes embedded per transaction: what is lost when the process is killed."""
_ROWS = 8192
"""Vectors looked at per transaction while old ones are deleted."""


class Reembedding(Session):
    """The call that changes the model of a store."""

    def reembed(
        self,
        embedder_model: str | None = None,
        *,
        embedder: Embedder | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Embed every episode of the file anew, with another model, and return how many that took.

        The new vectors are written beside the old ones, which recalls and writes of every process
        use until all are there. Then one transaction makes the new model the store's, and the old
        vectors are deleted. A call that was interrupted, by `kill -9` too, is taken up where it
        was by the next call with the same model; one with another model gives it up.

        Afterwards this instance uses the new model, and so do open instances that were given none.
        Those opened with the old model by name or as an embedder get `ModelMismatch`.

        Args:
            embedder_model: As for `Engram`.
            embedder: As for `Engram`; exactly one of the two is given.
            progress: Called after each slice with the episodes done by this call and the episodes
                that it has to do.

        Returns:
            How many episodes this call embedded; 0 when the store has the model already.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ScopeError: The instance belongs to one agent, and the model is everybody's.
            ModelMissing: The named model is not on this machine.
            Busy: The store is locked, or is being embedded with a third model by somebody else.
            StoreFull, Closed: The store cannot be written; what is there stays usable.
        """
        if (embedder_model is None) == (embedder is None):
            message = "give either embedder_model or embedder"
            raise InvalidArgument(message)
        if self._agent is not None:
            message = "the embedding model belongs to the whole file, not to one agent"
            raise ScopeError(message, "open the store without agent_id")
        new = resolve(embedder_model) if embedder is None else embedder
        check_embedder(new)
        done = 0
        target = self._stage(new)
        if target is not None:
            self._delete_others()
            done = self._embed_missing(new, target, progress)
        self._embedder = new
        self._delete_others()
        return done

    def _stage(self, new: Embedder) -> StoredModel | None:
        """Make the model the next one; None when it is the current one, or nothing is stored."""
        with self._store.writing():
            current = self._store.model()
            if current is None:
                # Texts may wait for their first model.
                waiting = self._store.embeddings.waiting(1)
                return self._store.models.take("next", *self._description(new)) if waiting else None
            if current.fingerprint == new.fingerprint:
                self._check_model(new, current)
                self._store.models.give_up()
                return None
            return self._store.models.take("next", *self._description(new))

    def _embed_missing(
        self, new: Embedder, target: StoredModel, progress: Callable[[int, int], None] | None
    ) -> int:
        """Embed what lacks the target's vectors until nothing does, and make it current."""
        with self._store.reading():
            total = self._store.embeddings.count_missing(target.id)
        done = after = 0
        while True:
            with self._store.reading():
                batch = self._store.embeddings.missing(target.id, after, _EPISODES)
            if batch:
                done += self._add_slice(new, target, batch)
                after = batch[-1][0]
                if progress is not None:
                    progress(done, max(done, total))
            elif self._switch(new, target):
                return done
            else:
                after = 0

    def _add_slice(self, new: Embedder, target: StoredModel, batch: list[tuple[int, Texts]]) -> int:
        vectors, counts, fields = embed_parts(new, [texts for _, texts in batch])
        keys = np.array([key for key, _ in batch], dtype=np.int64)
        with self._store.writing():
            if not self._still_next(target):
                return 0
            # Meanwhile some may have been forgotten, or embedded by another call like this one.
            still = self._store.embeddings.missing(target.id, int(keys[0]) - 1, len(batch))
            wanted = np.isin(keys, [key for key, _ in still])
            chunks = np.repeat(wanted, counts)
            self._store.embeddings.add(
                keys[wanted].tolist(), vectors[chunks], counts[wanted], target.id, fields[chunks]
            )
        return int(np.count_nonzero(wanted))

    def _switch(self, new: Embedder, target: StoredModel) -> bool:
        """Make the target current unless an episode came in meanwhile; say whether it is."""
        before = self._embedder
        try:
            with self._store.writing():
                if self._still_next(target):
                    if self._store.embeddings.missing(target.id, 0, 1):
                        return False
                    self._store.models.take("current", *self._description(new))
                    self._store.embeddings.nothing_waits()
                    self._store.changed("reembed", target.id, target.id, self._now())
                # While nobody else can ask: other threads' calls must not meet the old one.
                self._embedder = new
        except BaseException:
            self._embedder = before
            raise
        return True

    def _still_next(self, target: StoredModel) -> bool:
        """Say whether the target waits to become current; False when it is that already.

        Raises:
            Busy: Somebody else embeds the store with another model.
        """
        if target == self._store.models.next():
            return True
        current = self._store.model()
        if current is not None and current.id == target.id:
            return False
        message = "the store is being embedded with another model by somebody else"
        raise Busy(message, "wait until that is done")

    def _delete_others(self) -> None:
        """Delete the vectors of every model that is neither current nor next."""
        after: int | None = 0
        while after is not None:
            with self._store.writing():
                models = (self._store.model(), self._store.models.next())
                after = self._store.embeddings.remove_others(
                    [model.id for model in models if model is not None], after, _ROWS
                )
