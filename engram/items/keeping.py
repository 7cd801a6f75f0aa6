"""Keeping items: putting, erasing and sweeping them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engram import arguments
from engram.engine.forgetting import Forgetting
from engram.errors import InvalidArgument, InvalidType
from engram.items.models import ItemPut
from engram.items.namespaces import Name, checked_name
from engram.storage import NewEpisode, NewItem, Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        gone = [checked_name(namespace, key) for namespace, key in deleted]
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

    def _clear(self, names: Sequence[Name], now: int) -> tuple[list[str], list[int | None]]:
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
