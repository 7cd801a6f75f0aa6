"""Upkeep of an index: merging segments, leaving forgotten episodes out, keeping what was made.

Nothing here makes a write wait. Merging reads what never changes, without a transaction; putting
the result in its place takes one short transaction, and so does naming the new manifest.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.errors import EngramError
from engram.index.mapped import Damaged
from engram.index.merging import Stopped, merge
from engram.index.segment import Segment
from engram.index.shelf import Contents

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engram.index.episode_index import EpisodeIndex

_RATIO: Final = 3
"""A segment is merged with the newer ones once they hold more than a third of its episodes: every
episode is copied a few times in its life, and a store has a few segments."""

_KEPT_FROM: Final = 512
"""Episodes of a tail that closing a store with segments makes another one of."""

_AT_CLOSE: Final = 131_072
"""Episodes that closing may merge; more are left to the background."""


def due(found: Sequence[Segment], most: int | None = None) -> list[Segment]:
    """Return the segments to merge next, none when all is well.

    Args:
        found: The segments of an index, in order.
        most: Episodes to merge at most.
    """
    for one in found:
        if one.documents * 4 < one.rows * 3 and (most is None or one.documents <= most):
            return [one]
    newer = sum(one.documents for one in found)
    for at, one in enumerate(found):
        total, newer = newer, newer - one.documents
        if one.documents < _RATIO * newer and (most is None or total <= most):
            return list(found[at:])
    return []


def _never() -> bool:
    return False


class Upkeep:
    """Keeps one index in shape.

    Thread-safe: one thread works at a time.

    Args:
        index: The index.
    """

    def __init__(self, index: EpisodeIndex) -> None:
        self._index = index
        # Held while segments are merged and published; taken before any transaction.
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        # The segments that were merged and published as far as they can be.
        self._seen_to: list[Segment] = []

    def start(self) -> None:
        """Work in the background if there is anything to do; called outside any transaction."""
        if self._working.locked() or self._stop.is_set():
            return
        index = self._index
        # What is kept in a file tells no other process that something is missing.
        if index.store.embeddings.damaged:
            return
        if index.segments != self._seen_to or index.graphs.due() is not None:
            self._thread = threading.Thread(target=self._run, name="engram-upkeep", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        # A store that is busy, full, closed: whoever needs the index meets that, or starts anew.
        with suppress(EngramError, Stopped):
            self._repairing(lambda: self._work(None, self._stop.is_set))

    def stop(self) -> None:
        """Let the background give up what it does, and do no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def maintain(self) -> None:
        """Bring the index up to date, merge what should be and keep it; outside a transaction."""
        self._repairing(self._maintain)

    def _maintain(self) -> None:
        index = self._index
        with index.store.reading():
            index.refresh()
            index.store.embeddings.refuse_damage()
            if index.tail.rows and index.segments:
                index.seal()
        self._work()

    def _repairing(self, work: Callable[[], None]) -> None:
        """Do some work, and once more with an index made anew if a file is not what it was."""
        try:
            work()
        except Damaged:
            with self._index.store.reading():
                self._index.start_over()
            work()

    def finish(self) -> None:
        """Keep what was made, before the store is closed; outside a transaction."""
        index = self._index
        if not index.segments or not index.shelf.keeps:
            return
        with index.store.reading():
            index.refresh()
            if index.tail.rows >= _KEPT_FROM:
                index.seal()
        # What is damaged is found, and made anew, by who needs it next.
        with suppress(Damaged):
            self._work(_AT_CLOSE)

    def scrub(self, erased: int) -> bool:
        """Leave nothing of a forgotten episode in any file; outside a transaction.

        Where no new manifest can be named, all files go: they are derived.

        Args:
            erased: The change of the last erasure.

        Returns:
            Whether that was possible.
        """
        with self._working:
            with suppress(EngramError, Damaged):
                # A second time if another process named a manifest meanwhile.
                if self._scrubbed(erased) or self._scrubbed(erased):
                    return True
            return self._index.shelf.clear()

    def _scrubbed(self, erased: int) -> bool:
        index = self._index
        with index.store.reading():
            index.refresh()
            old = [one for one in index.segments if one.live is not None]
            index.graphs.drop_older(erased)
        for one in old:
            self._merge([one], _never)
        return self._publish(everything=True)

    def _work(self, most: int | None = None, stop: Callable[[], bool] = _never) -> None:
        with self._working:
            while old := due(self._index.segments, most):
                self._merge(old, stop)
            while most is None and (agent := self._index.graphs.due()) is not None:
                self._index.graphs.make(self._index, agent, stop)
            if self._unpublished():
                self._publish()
            self._seen_to = list(self._index.segments)

    def _merge(self, old: list[Segment], stop: Callable[[], bool]) -> None:
        index = self._index
        with index.store.reading():
            before = [None if one.live is None else one.live.copy() for one in old]
        path, identity = index.shelf.room()
        try:
            new = merge(old, before, path, identity, stop)
        except OSError:
            index.shelf.give_up()
            new = merge(old, before, None, identity, stop)
        with index.store.reading():
            if new is not None:
                new = _without_forgotten(new, old, before)
            index.put(old, new)

    def _unpublished(self) -> bool:
        """Say whether the index has segments or graphs that no manifest names."""
        index, shelf = self._index, self._index.shelf
        graphs = [one.identity for one in index.graphs.kept.values()]
        return shelf.keeps and not (
            all(map(shelf.has, index.segments)) and all(map(shelf.has_graph, graphs))
        )

    def _publish(self, *, everything: bool = False) -> bool:
        """Write a manifest and name it in the store; return whether that was possible.

        Args:
            everything: See `Shelf.settle`.
        """
        index, shelf = self._index, self._index.shelf
        with shelf.locked() as held:
            if not held:
                return False
            with index.store.reading():
                index.refresh()
                live = [None if one.live is None else one.live.copy() for one in index.segments]
                contents = Contents(
                    index.covered, index.tail.first - 1, list(index.segments), index.graphs.kept
                )
                if index.store.snapshot() != shelf.based_on:
                    # Another process was quicker: its segments are as good.
                    shelf.discard(index.segments)
                    index.clear()
                    return False
                model = index.model
            name = shelf.write_manifest(contents, model, live)
            if name is None:
                # No room, or somebody took the folder away.
                shelf.give_up()
                return False
            with index.store.writing():
                index.store.set_snapshot(name)
            with index.store.reading():
                settled = shelf.settle(name, contents, index.segments, everything=everything)
            return settled or not everything


def _without_forgotten(
    new: Segment, old: Sequence[Segment], before: Sequence[np.ndarray | None]
) -> Segment:
    """Mark in a merged segment what was forgotten while it was made."""
    masks = []
    for one, mask in zip(old, before, strict=True):
        now = np.ones(one.rows, dtype=np.bool_) if one.live is None else one.live
        masks.append(now if mask is None else now[mask])
    live = np.concatenate(masks)
    return new if live.all() else Segment(new.arrays, live)
