"""`ItemMemory`: items read, found and listed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from engram import arguments
from engram.index import nearest_of
from engram.items.filters import value_test
from engram.items.keeping import Keeping
from engram.items.models import Item
from engram.items.namespaces import checked_labels, checked_name, listed
from engram.items.operations import OPERATIONS
from engram.retrieval.recall import refreshed
from engram.times import from_micros
from engram.tracing import traced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex
    from engram.items.filters import ValueTest
    from engram.storage import StoredItem

_MOST: Final = 2**31


@traced(OPERATIONS, "items.")
class ItemMemory(Keeping):
    """Values in a store, each under a namespace and a key.

    An item is an episode, whose text is what is searched of the item: `Engram` recalls and erases
    it, and what `Engram` keeps is in the same store. Each put makes a new episode and erases the
    one before. An agent has its own namespaces, and so has nobody.

    An item with a lifetime is not there any more once that is over. It is erased by the next `put`
    or `delete_many` of the same agent, or by `sweep`; until then `Engram` and other faces find its
    episode. One without a text is no other face's to find, and takes no embedding model.

    Arguments are those of `Engram`. One instance may be used from many threads.
    """

    def get(self, namespace: Sequence[str], key: str, *, prolong: bool = False) -> Item | None:
        """Return an item, None where there is none.

        Args:
            namespace: Labels.
            key: Its name there.
            prolong: Let it live as long again as after a put.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, StoreFull, Closed, CorruptStore: The store cannot be read, or not written where
                it has to be.
        """
        return self.get_many([(namespace, key)], prolong=prolong)[0]

    def get_many(
        self, names: Iterable[tuple[Sequence[str], str]], *, prolong: bool = False
    ) -> list[Item | None]:
        """Return items as of one moment, by their names, None for each that is not there.

        Raises:
            InvalidArgument, InvalidType, Busy, StoreFull, Closed, CorruptStore: As for `get`.
        """
        wanted = [checked_name(namespace, key) for namespace, key in names]
        refresh = arguments.flag(prolong, "prolong")
        now = self._now()
        with self._store.reading():
            owner = self._owner()
            found = [self._store.items.get(owner, *name, now) for name in wanted]
        if refresh:
            self._prolong([one for one in found if one is not None])
        return [None if one is None else item_of(one) for one in found]

    def search(
        self,
        prefix: Sequence[str] = (),
        *,
        query: str | None = None,
        filter: Mapping[str, object] | None = None,  # noqa: A002 - what everybody calls it
        limit: int = 10,
        offset: int = 0,
        prolong: bool = False,
    ) -> list[Item]:
        """Return the items whose namespaces begin with some labels.

        With a query the nearest in meaning come first, and after them those of which no text is
        searched; without one, what was put last. The filter applies before the choice.

        Args:
            prefix: Labels; none at all are every namespace.
            query: Any text; "" is none.
            filter: Members that the value has to have, see `engram.items.filters.value_test`.
            limit: How many at most.
            offset: How many to leave out before.
            prolong: Let those that are returned live as long again as after a put.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            ModelMissing, ModelMismatch: The query cannot be embedded as the texts were.
            Busy, StoreFull, Closed, CorruptStore: As for `get`.
        """
        labels = checked_labels(prefix, "prefix")
        text = None if query is None else arguments.query(query)
        wanted = value_test(filter) if filter else None
        first = arguments.integer(offset, "offset", 0, _MOST)
        last = first + arguments.integer(limit, "limit", 0, _MOST)
        refresh = arguments.flag(prolong, "prolong")
        now = self._now()
        if text:
            with self._searching(text) as near:
                found = self._nearest(near, labels, wanted, now, first, last)
        else:
            with self._store.reading():
                found = [(one, None) for one in self._latest(labels, wanted, now, first, last)]
        if self._upkeep is not None:
            self._upkeep.start()
        if refresh:
            self._prolong([one for one, _ in found])
        return [item_of(one, score) for one, score in found]

    def _latest(
        self,
        labels: tuple[str, ...],
        wanted: ValueTest | None,
        now: int,
        first: int,
        last: int,
    ) -> list[StoredItem]:
        """Return what was put last, in a transaction."""
        items, owner = self._store.items, self._owner()
        if wanted is None:
            return items.page(owner, labels, now, last - first, first)
        return items.fetch(self._passing(labels, wanted, now)[::-1][first:last])

    def _passing(self, labels: tuple[str, ...], wanted: ValueTest, now: int) -> NDArray[np.int64]:
        """Return the keys of the items that pass a filter, ascending."""
        decode = msgspec.json.Decoder().decode
        rows = self._store.items.values(self._owner(), labels, now, wanted.fragments)
        passing = [key for key, value in rows if wanted.passes(decode(value))]
        keys = np.array(passing, dtype=np.int64)
        return np.sort(keys)

    def _nearest(
        self,
        near: tuple[NDArray[np.float32], EpisodeIndex] | None,
        labels: tuple[str, ...],
        wanted: ValueTest | None,
        now: int,
        first: int,
        last: int,
    ) -> list[tuple[StoredItem, float | None]]:
        """Return the items nearest to a query, then those without a text, in a transaction."""
        items, owner = self._store.items, self._owner()
        searched = items.searched(owner, labels, now)
        passing = None if wanted is None else self._passing(labels, wanted, now)
        if passing is not None:
            searched = np.intersect1d(searched, passing, assume_unique=True)
        keys, distances = np.empty(0, dtype=np.int64), np.empty(0)
        if near is not None and last:
            vector, index = near
            keys, distances = refreshed(index, lambda: nearest_of(index, vector, last, searched))
            self._store.embeddings.refuse_damage()
        scores: list[float | None] = (1.0 - distances * distances / 2.0).tolist()
        if len(keys) < last:
            every = items.beneath(owner, labels, now) if passing is None else passing
            rest = every[~np.isin(every, keys)][::-1]
            keys = np.concatenate((keys, rest))
            scores += [None] * len(rest)
        return list(zip(items.fetch(keys[first:last]), scores[first:last], strict=True))

    def namespaces(
        self,
        *,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Return the namespaces that have items, sorted.

        Args:
            prefix: Labels that they begin with; "*" is any one label.
            suffix: Labels that they end with, likewise.
            max_depth: Leave out the labels after so many, and what is twice then; at least 1.
            limit: How many at most.
            offset: How many to leave out before.

        Raises:
            InvalidArgument, InvalidType: An argument is refused.
            Busy, Closed, CorruptStore: The store cannot be read.
        """
        conditions = [
            (kind, checked_labels(path, kind))
            for kind, path in (("prefix", prefix), ("suffix", suffix))
            if path is not None
        ]
        return self.namespaces_that_match(
            conditions, max_depth=max_depth, limit=limit, offset=offset
        )

    def namespaces_that_match(
        self,
        conditions: Sequence[tuple[str, Sequence[str]]],
        *,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        """Return the namespaces that match every condition, sorted; see `namespaces`.

        Args:
            conditions: "prefix" or "suffix", and labels.
            max_depth: As for `namespaces`.
            limit: Likewise.
            offset: Likewise.

        Raises:
            InvalidArgument, InvalidType, Busy, Closed, CorruptStore: As for `namespaces`.
        """
        checked = [
            (
                arguments.one_of(kind, ("prefix", "suffix"), "condition"),
                checked_labels(path, "path"),
            )
            for kind, path in conditions
        ]
        depth = None if max_depth is None else arguments.integer(max_depth, "max_depth", 1, _MOST)
        first = arguments.integer(offset, "offset", 0, _MOST)
        last = first + arguments.integer(limit, "limit", 0, _MOST)
        now = self._now()
        with self._store.reading():
            texts = self._store.items.namespaces(self._owner(), now)
        return listed([tuple(json.loads(text)) for text in texts], checked, depth)[first:last]

    def _prolong(self, found: Sequence[StoredItem]) -> None:
        mortal = [one.episode for one in found if one.lifetime is not None]
        if mortal:
            with self._store.writing():
                self._store.items.prolong(mortal, self._now())


def item_of(one: StoredItem, score: float | None = None) -> Item:
    """Return a stored item as callers see it, with the score of a search."""
    return Item(
        namespace=tuple(json.loads(one.namespace)),
        key=one.key,
        value=json.loads(one.value),
        created_at=from_micros(one.created_at),
        updated_at=from_micros(one.updated_at),
        id=one.id,
        score=score,
    )
