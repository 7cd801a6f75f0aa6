"""Keeping items: putting, erasing and sweeping them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.engine.forgetting import Forgetting
from engram.errors import InvalidArgument, InvalidType
from engram.items.models import ItemPut
from engram.items.namespaces import Name, checked_name
from engram.storage import NewEpisode, NewItem, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

SOURCE_TYPE: Final = "item"
"""The source type of the episodes that items are."""

LONGEST: Final = 1000 * 366 * 86_400.0
"""Seconds that an item may live."""

_SECOND: Final = 1_000_000


class Keeping(Forgetting):
    """The calls that write items."""

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
        places = dict[Name, NewItem]()
        ids = list[Name]()
        for at, one in enumerate(items):
            new = _new_item(one, f"items[{at}]")
            places[new.namespace, new.key] = new
            ids.append((new.namespace, new.key))
        gone = {checked_name(namespace, key) for namespace, key in deleted}
        kept = list(places.values())
        if not kept:
            now = self._now()
            with self._store.writing():
                erased = self._clear(gone, now)[0]
            self._forgotten(erased)
            return []
        with self._embedded(kept) as (model, vectors, counts):
            now = self._now()
            erased, since = self._clear([*gone, *places], now)
            made = self._store.add_episodes(
                [_episode(one, now) for one in kept],
                vectors,
                counts,
                model=model,
                agent=self._agent,
                now=now,
                items=[
                    one._replace(created_at=None if name in gone else since.get(name))
                    for name, one in places.items()
                ],
            )
        self._forgotten(erased)
        self._emit("memory_written", ({"memory_id": uid, "kind": "episodic"} for uid in made))
        by_name = dict(zip(places, made, strict=True))
        return [by_name[name] for name in ids]

    @contextmanager
    def _embedded(
        self, kept: Sequence[NewItem]
    ) -> Iterator[tuple[int | None, NDArray[np.float32] | None, NDArray[np.int64] | None]]:
        """Embed the texts of items and hold the transaction that stores them.

        Yields the key of their model, the chunks' vectors and the chunks of each item; None for
        all where there is no text, which takes no model.
        """
        texts = [text for one in kept for text in one.texts]
        if not texts:
            with self._store.writing():
                yield None, None, None
            return
        with self._storing(texts) as (model, vectors, chunks):
            owners = np.repeat(np.arange(len(kept)), [len(one.texts) for one in kept])
            counts = np.bincount(owners, chunks, len(kept)).astype(np.int64)
            yield model, vectors, counts

    def _clear(self, names: Iterable[Name], now: int) -> tuple[list[str], dict[Name, int]]:
        """Erase what has names, and what of the own has expired, in a write transaction.

        Returns:
            The public ids of what is gone, and of each name since when it was taken.
        """
        store, owner = self._store, self._owner()
        expired = store.items.expired(owner, now)
        late = set(expired)
        held = {name: store.items.held(owner, *name) for name in names}
        # What has expired was not there any more: whatever takes its name is new.
        taken = {name: one for name, one in held.items() if one is not None and one[0] not in late}
        keys = dict.fromkeys([*expired, *(key for key, _ in taken.values())])
        erased = store.remove_episodes(list(keys), now) if keys else []
        return erased, {name: since for name, (_, since) in taken.items()}

    def sweep(self) -> int:
        """Erase the items that have expired, and return how many episodes went.

        They are this agent's own; without an agent they are everybody's.

        Raises:
            Busy, StoreFull, Closed: The store cannot be written; nothing is erased.
        """
        now = self._now()
        with self._store.writing():
            owner = None if self._agent is None else self._owner()
            keys = self._store.items.expired(owner, now)
            erased = self._store.remove_episodes(keys, now) if keys else []
        self._forgotten(erased)
        return len(erased)

    def check_dim(self, dim: int) -> None:
        """Refuse an embedder whose vectors have another dimension; it is loaded for that.

        Raises:
            InvalidArgument: They have.
            ModelMissing, ModelMismatch: There is no embedder for this store.
        """
        with self._store.reading():
            stored = self._store.model()
        has = self._the_embedder(stored).dim if stored is None else stored.dim
        if has != dim:
            message = f"the embedder has {has} dimensions, not {dim}"
            raise InvalidArgument(message)

    def _owner(self) -> int:
        """Return whose the items are, in a transaction; -1 for an agent that never wrote."""
        if self._agent is None:
            return 0
        key = self._store.agent(self._agent)
        return -1 if key is None else key


def _new_item(one: ItemPut, where: str) -> NewItem:
    if not isinstance(one, ItemPut):
        message = f"{where} must be an ItemPut, not {type(one).__name__}"
        raise InvalidType(message)
    namespace, key = checked_name(one.namespace, one.key)
    lifetime = None
    if one.lifetime is not None:
        seconds = arguments.number(one.lifetime, f"{where}.lifetime", 0.0, LONGEST)
        lifetime = max(1, round(seconds * _SECOND))
    if one.value is None:
        message = f"{where}.value must be a mapping, not NoneType"
        raise InvalidType(message)
    value = arguments.json_object(one.value, f"{where}.value") or "{}"
    texts = arguments.names(one.texts, f"{where}.texts")
    return NewItem(namespace, key, value, texts, lifetime)


def _episode(one: NewItem, now: int) -> NewEpisode:
    named = {"namespace": list(one.namespace), "key": one.key}
    return NewEpisode(
        one.content,
        now,
        metadata=arguments.json_object(named, "metadata"),
        origin=Origin(source_type=SOURCE_TYPE),
    )
