"""Working memory: a small scratchpad that lets its least recently used items go."""

from __future__ import annotations

import inspect
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engram import arguments
from engram.errors import InvalidType
from engram.models import ObserveInput
from engram.times import from_micros, to_micros, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from engram.engine import Engram

__all__ = ["WorkingMemory", "WorkingMemoryItem"]

_EVICTION_TAG = "working_memory_eviction"
_CAPACITY_MAX = 2**31


@dataclass
class WorkingMemoryItem:
    """What a working memory held under a key when it was asked.

    Attributes:
        key: The key.
        content: The text.
        metadata: What the caller keeps with it.
        created_at: When the key was first set, in UTC.
        accessed_at: When it was last set or got.
    """

    key: str
    content: str
    metadata: dict[str, object] = field(default_factory=dict)
    created_at: datetime = field(default_factory=utc_now)
    accessed_at: datetime = field(default_factory=utc_now)


class WorkingMemory:
    """A scratchpad of a few items, from the least to the most recently used.

    A new key on a full pad evicts the least recently used item. With a store behind it, an evicted
    or flushed item becomes an episode with the tag "working_memory_eviction", whose `metadata` is
    the item's, and its key under "key". An item leaves the pad only when its episode is committed.

    One pad may be used from many threads; while an item is written, the others wait.

    Args:
        capacity: Items it holds, at least 1.
        engram: Where evicted items go; without one they are dropped.
        clock: Where "now" comes from.

    Raises:
        InvalidArgument, InvalidType: The capacity is refused, or `engram` is an `AsyncEngram`,
            which nobody would await here.
    """

    def __init__(
        self,
        capacity: int = 7,
        engram: Engram | None = None,
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._capacity = arguments.integer(capacity, "capacity", 1, _CAPACITY_MAX)
        if engram is not None and inspect.iscoroutinefunction(engram.observe):
            message = f"engram must be an Engram, not {type(engram).__name__}"
            raise InvalidType(message, "call the working memory in asyncio.to_thread")
        self._engram = engram
        self._clock = clock
        self._items: OrderedDict[str, WorkingMemoryItem] = OrderedDict()
        # Held while an item is written, so that nobody sees it both here and in the store.
        self._lock = threading.RLock()

    @property
    def capacity(self) -> int:
        """How many items fit."""
        return self._capacity

    def set(self, key: str, content: str, **metadata: object) -> None:
        """Put a text under a key and make it the most recently used.

        An item that is there gets the new content and metadata and keeps its `created_at`.

        Raises:
            InvalidArgument, InvalidType: Key or content is no text or, with a store, the metadata
                is no JSON; nothing changes.
            EngramError: The item to evict could not be written; nothing changes.
        """
        key = arguments.text(key, "key")
        content = arguments.text(content, "content")
        if self._engram is not None:
            arguments.json_object(metadata, "metadata")
        with self._lock:
            now = self._now()
            old = self._items.get(key)
            if old is None and len(self._items) >= self._capacity:
                oldest = next(iter(self._items.values()))
                self._store([oldest])
                del self._items[oldest.key]
            created_at = now if old is None else old.created_at
            self._items[key] = WorkingMemoryItem(key, content, metadata, created_at, now)
            self._items.move_to_end(key)

    def get(self, key: str) -> WorkingMemoryItem | None:
        """Return the item of a key and make it the most recently used; None if there is none."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            item = self._items[key] = replace(item, accessed_at=self._now())
            self._items.move_to_end(key)
            return item

    def peek(self, key: str) -> WorkingMemoryItem | None:
        """Return the item of a key, None if there is none; its place stays as it is."""
        with self._lock:
            return self._items.get(key)

    def delete(self, key: str) -> bool:
        """Drop an item, unwritten, and return whether it was there."""
        with self._lock:
            return self._items.pop(key, None) is not None

    def flush(self) -> int:
        """Write all items to the store in one transaction, empty the pad, return how many it had.

        Raises:
            EngramError: They could not be written; all of them are still here.
        """
        with self._lock:
            items = list(self._items.values())
            self._store(items)
            self._items.clear()
            return len(items)

    def clear(self) -> None:
        """Drop everything, unwritten."""
        with self._lock:
            self._items.clear()

    def items(self) -> list[WorkingMemoryItem]:
        """Return the items, the least recently used first."""
        with self._lock:
            return list(self._items.values())

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __repr__(self) -> str:
        return f"WorkingMemory(capacity={self._capacity}, size={len(self)})"

    def _store(self, items: list[WorkingMemoryItem]) -> None:
        if self._engram is not None:
            self._engram.observe_many(
                ObserveInput(
                    item.content, tags=[_EVICTION_TAG], metadata={**item.metadata, "key": item.key}
                )
                for item in items
            )

    def _now(self) -> datetime:
        return from_micros(to_micros(self._clock(), "clock()"))
