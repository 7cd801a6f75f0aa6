"""`ItemMemory`: putting, reading, finding and erasing items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from engram import arguments
from engram.engine.session import Session
from engram.errors import InvalidArgument, InvalidType
from engram.index import nearest_of
from engram.items.filters import value_test
from engram.items.models import Item, ItemPut
from engram.items.namespaces import listed
from engram.retrieval.recall import refreshed
from engram.storage import NewEpisode, NewItem, Origin
from engram.times import from_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from engram.index import EpisodeIndex
    from engram.storage import StoredItem

MAX_NAME_BYTES: Final = 10_000
"""Bytes of UTF-8 that a key may have, and the labels of a namespace together."""

SOURCE_TYPE: Final = "item"
"""The source type of the episodes that items are."""

_MOST: Final = 2**31
_LONGEST: Final = 10 * 366 * 86_400.0
_SECOND: Final = 1_000_000


class ItemMemory(Session):
    """Values in a store, each under a namespace and a key.

    An item is an episode, whose text is what is searched of the item: `Engram` recalls and erases
    it, and what `Engram` keeps is in the same store. Each put makes a new episode and erases the
    one before. An agent has its own namespaces, and so has nobody.

    An item with a lifetime is not there any more once that is over. It is erased by the next `put`
    or `delete_many` of anybody, or by `sweep`; until then `Engram` and other faces find its
    episode.

    Arguments are those of `Engram`. One instance may be used from many threads.
    """

    def put(self, items: Iterable[ItemPut]) -> list[str]:
        """Keep items, all or none, and return the ids of their episodes.

        An item takes the place of one of the same name, whose episode is erased; it keeps the time
        at which that was first put. Of two of the same name the later one counts.

        Raises:
            InvalidArgument, InvalidType: An item is refused; nothing is written.
            ModelMissing, ModelMismatch: There is no way to embed a text; nothing is written.
            Busy, StoreFull, Closed: The store cannot be written; nothing is.
        """
        return self.write(items, ())

    def delete_many(self, names: Iterable[tuple[Sequence[str], str]]) -> None:
        """Erase items, as `Engram.forget` does; what is not there is none.

        Args:
            names: Namespaces and keys.

        Raises:
            InvalidArgument, InvalidType: A name is refused; nothing is erased.
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        self.write((), names)

    def write(
        self, items: Iterable[ItemPut], deleted: Iterable[tuple[Sequence[str], str]]
    ) -> list[str]:
        """Keep items and erase others, in one transaction; see `put` and `delete_many`.

        A name that is in both is erased, then put.

        Raises:
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As
                for `put`.
        """
        places = dict[tuple[tuple[str, ...], str], NewItem]()
        ids = list[tuple[tuple[str, ...], str]]()
        for at, one in enumerate(items):
            new = _new_item(one, f"items[{at}]")
            places[new.namespace, new.key] = new
            ids.append((new.namespace, new.key))
        gone = [_name(namespace, key) for namespace, key in deleted]
        kept = list(places.values())
        if not kept:
            now = self._now()
            with self._store.writing():
                erased = self._clear(gone, now)[0]
            self._forgotten(erased)
            return []
        texts = [one.texts or ("",) for one in kept]
        pieces = [len(one) for one in texts]
        with self._storing([text for one in texts for text in one]) as (model, vectors, chunks):
            now = self._now()
            erased, since = self._clear([*gone, *places], now)
            owners = np.repeat(np.arange(len(kept)), pieces)
            counts = np.bincount(owners, chunks, len(kept)).astype(np.int64)
            again = zip(kept, since[len(gone) :], strict=True)
            made = self._store.add_episodes(
                [_episode(one, now) for one in kept],
                vectors,
                counts,
                model=model,
                agent=self._agent,
                now=now,
                items=[one._replace(created_at=first) for one, first in again],
            )
        self._forgotten(erased)
        self._emit("memory_written", ({"memory_id": uid, "kind": "episodic"} for uid in made))
        by_name = dict(zip(places, made, strict=True))
        return [by_name[name] for name in ids]

    def _clear(
        self, names: Sequence[tuple[tuple[str, ...], str]], now: int
    ) -> tuple[list[str], list[int | None]]:
        """Erase what has names, and what has expired, in a write transaction.

        Returns:
            The public ids of what is gone, and for each name since when it was taken.
        """
        store, owner = self._store, self._owner()
        expired = store.items.expired(now)
        late = set(expired)
        held = [store.items.held(owner, *name) for name in names]
        # What has expired was not there any more: whatever takes its name is new.
        taken = [None if one is None or one[0] in late else one for one in held]
        keys = dict.fromkeys([*expired, *(one[0] for one in taken if one is not None)])
        erased = store.remove_episodes(list(keys), now) if keys else []
        return erased, [None if one is None else one[1] for one in taken]

    def sweep(self) -> int:
        """Erase the items of everybody that have expired, and return how many episodes went.

        Raises:
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        now = self._now()
        with self._store.writing():
            erased = self._clear((), now)[0]
        self._forgotten(erased)
        return len(erased)

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
        wanted = [_name(namespace, key) for namespace, key in names]
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
        labels = _labels(prefix, "prefix")
        text = None if query is None else arguments.query(query)
        passes = value_test(filter) if filter else None
        first = arguments.integer(offset, "offset", 0, _MOST)
        last = first + arguments.integer(limit, "limit", 0, _MOST)
        refresh = arguments.flag(prolong, "prolong")
        now = self._now()
        if text:
            with self._searching(text) as near:
                found = self._nearest(near, labels, passes, now, first, last)
        else:
            with self._store.reading():
                found = [(one, None) for one in self._latest(labels, passes, now, first, last)]
        if self._upkeep is not None:
            self._upkeep.start()
        if refresh:
            self._prolong([one for one, _ in found])
        return [item_of(one, score) for one, score in found]

    def _latest(
        self,
        labels: tuple[str, ...],
        passes: Callable[[object], bool] | None,
        now: int,
        first: int,
        last: int,
    ) -> list[StoredItem]:
        """Return what was put last, in a transaction."""
        items, owner = self._store.items, self._owner()
        if passes is None:
            return items.page(owner, labels, now, last - first, first)
        return items.fetch(self._passing(labels, passes, now)[first:last])

    def _passing(
        self, labels: tuple[str, ...], passes: Callable[[object], bool], now: int
    ) -> NDArray[np.int64]:
        """Return the keys of the items that pass a filter, what was put last first."""
        decode = msgspec.json.Decoder().decode
        rows = self._store.items.values(self._owner(), labels, now)
        return np.array([key for key, value in rows if passes(decode(value))], dtype=np.int64)

    def _nearest(
        self,
        near: tuple[NDArray[np.float32], EpisodeIndex] | None,
        labels: tuple[str, ...],
        passes: Callable[[object], bool] | None,
        now: int,
        first: int,
        last: int,
    ) -> list[tuple[StoredItem, float | None]]:
        """Return the items nearest to a query, then those without a text, in a transaction."""
        items, owner = self._store.items, self._owner()
        searched = items.searched(owner, labels, now)
        passing = None if passes is None else self._passing(labels, passes, now)
        if passing is not None:
            searched = np.intersect1d(searched, passing, assume_unique=True)
        keys, distances = np.empty(0, dtype=np.int64), np.empty(0)
        if near is not None and last:
            vector, index = near
            asked = np.sort(searched)
            keys, distances = refreshed(index, lambda: nearest_of(index, vector, last, asked))
            self._store.embeddings.refuse_damage()
        scores: list[float | None] = (1.0 - distances * distances / 2.0).tolist()
        if len(keys) < last:
            every = items.beneath(owner, labels, now) if passing is None else passing
            rest = every[~np.isin(every, keys)]
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
            (kind, _labels(path, kind))
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
            (arguments.one_of(kind, ("prefix", "suffix"), "condition"), _labels(path, "path"))
            for kind, path in conditions
        ]
        depth = None if max_depth is None else arguments.integer(max_depth, "max_depth", 1, _MOST)
        first = arguments.integer(offset, "offset", 0, _MOST)
        last = first + arguments.integer(limit, "limit", 0, _MOST)
        now = self._now()
        with self._store.reading():
            texts = self._store.items.namespaces(self._owner(), (), now)
        return listed([tuple(json.loads(text)) for text in texts], checked, depth)[first:last]

    def _owner(self) -> int:
        """Return whose the items are, in a transaction; -1 for an agent that never wrote."""
        if self._agent is None:
            return 0
        key = self._store.agent(self._agent)
        return -1 if key is None else key

    def _prolong(self, found: Sequence[StoredItem]) -> None:
        mortal = [one.episode for one in found if one.lifetime is not None]
        if mortal:
            with self._store.writing():
                self._store.items.prolong(mortal, self._now())

    def _forgotten(self, erased: Iterable[str]) -> None:
        self._emit("memory_forgotten", ({"memory_id": uid, "kind": "episodic"} for uid in erased))


def _new_item(one: ItemPut, where: str) -> NewItem:
    if not isinstance(one, ItemPut):
        message = f"{where} must be an ItemPut, not {type(one).__name__}"
        raise InvalidType(message)
    namespace, key = _name(one.namespace, one.key)
    lifetime = None
    if one.lifetime is not None:
        seconds = arguments.number(one.lifetime, f"{where}.lifetime", 0.0, _LONGEST)
        lifetime = max(1, round(seconds * _SECOND))
    if one.value is None:
        message = f"{where}.value must be a mapping, not NoneType"
        raise InvalidType(message)
    value = arguments.json_object(one.value, f"{where}.value") or "{}"
    texts = arguments.names(one.texts, f"{where}.texts")
    return NewItem(namespace, key, value, texts, lifetime)


def _name(namespace: object, key: object) -> tuple[tuple[str, ...], str]:
    labels, name = _labels(namespace, "namespace"), arguments.text(key, "key")
    _check_size(name, "key")
    return labels, name


def _labels(namespace: object, argument: str) -> tuple[str, ...]:
    labels = arguments.names(namespace, argument)
    _check_size("".join(labels), argument)
    return labels


def _check_size(text: str, argument: str) -> None:
    if len(text.encode()) > MAX_NAME_BYTES:
        message = f"{argument} must have at most {MAX_NAME_BYTES} bytes of UTF-8"
        raise InvalidArgument(message)


def _episode(one: NewItem, now: int) -> NewEpisode:
    named = {"namespace": list(one.namespace), "key": one.key}
    return NewEpisode(
        one.content,
        now,
        metadata=arguments.json_object(named, "metadata"),
        origin=Origin(source_type=SOURCE_TYPE),
    )


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
