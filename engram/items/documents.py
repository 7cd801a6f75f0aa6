"""`DocumentMemory`: items found by a text or a vector, with the vectors that found them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engram import arguments
from engram.errors import InvalidArgument, InvalidType
from engram.items.filters import value_test
from engram.items.memory import ItemMemory, item_of
from engram.items.namespaces import checked_labels
from engram.items.operations import DOCUMENTS
from engram.storage import as_stored
from engram.tracing import traced
from engram.vectors import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex
    from engram.items.models import Item

__all__ = ["DocumentMemory", "Nearby"]

_MOST = 100_000


class Nearby(NamedTuple):
    """What is near a query.

    Attributes:
        items: n items, the nearest first, each with its score.
        query: float32[dim], the query's vector, unit length.
        vectors: float32[n, dim], of each item the one that is nearest to the query.
    """

    items: list[Item]
    query: NDArray[np.float32]
    vectors: NDArray[np.float32]


@traced(DOCUMENTS, "items.")
class DocumentMemory(ItemMemory):
    """An `ItemMemory` that is searched by vectors too, and shows them."""

    def nearby(
        self,
        prefix: Sequence[str],
        query: str | Sequence[float] | NDArray[np.floating],
        k: int,
        *,
        filter: Mapping[str, object] | None = None,  # noqa: A002 - as in `search`
    ) -> Nearby:
        """Return the items nearest to a query; unlike `search`, only those with a text.

        Args:
            prefix: Labels that their namespaces begin with.
            query: Any text, or a vector that the store's embedder made.
            k: How many at most, 1 to 100,000.
            filter: Members that the value has to have; see `ItemMemory.search`.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch: The query cannot be embedded as the texts were.
            Busy, Closed, CorruptStore: The store cannot be read.
        """
        labels = checked_labels(prefix, "prefix")
        wanted = value_test(filter) if filter else None
        last = arguments.integer(k, "k", 1, _MOST)
        now = self._now()
        asked = (
            self._searching(arguments.query(query))
            if isinstance(query, str)
            else self._searching_at(_vector(query))
        )
        with asked as near:
            if near is None:
                return Nearby([], np.empty(0, np.float32), np.empty((0, 0), np.float32))
            found = [
                (one, score)
                for one, score in self._nearest(near, labels, wanted, now, 0, last)
                if score is not None
            ]
            keys = np.array([one.episode for one, _ in found], dtype=np.int64)
            vectors = self._nearest_vectors(keys, *near)
        if self._upkeep is not None:
            self._upkeep.start()
        return Nearby([item_of(one, score) for one, score in found], near[0], vectors)

    @contextmanager
    def _searching_at(
        self, vector: NDArray[np.float32]
    ) -> Iterator[tuple[NDArray[np.float32], EpisodeIndex] | None]:
        """Hold one snapshot of the store: the vector as it is searched with, and the index."""
        with self._store.reading():
            stored = self._store.model()
            if stored is None:
                yield None
                return
            if vector.shape != (stored.dim,) or not np.isfinite(vector).all():
                message = f"query must have {stored.dim} finite numbers"
                raise InvalidArgument(message)
            yield as_stored(normalise(vector)), self._current_index()

    def _nearest_vectors(
        self, keys: NDArray[np.int64], query: NDArray[np.float32], index: EpisodeIndex
    ) -> NDArray[np.float32]:
        """Return of each of some episodes the vector nearest to a query, in a transaction."""
        batch = self._store.embeddings.of(np.sort(keys), index.model)
        order = np.lexsort((batch.vectors @ query, batch.episodes))
        # The last of an episode's chunks in this order is its nearest.
        last = np.searchsorted(batch.episodes[order], keys, side="right") - 1
        vectors: NDArray[np.float32] = batch.vectors[order[last]]
        return vectors


def _vector(query: object) -> NDArray[np.float32]:
    try:
        return np.asarray(query, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        # From None: the errors quote what they cannot read.
        message = "query must be a text or a list of numbers"
        raise InvalidType(message) from None
