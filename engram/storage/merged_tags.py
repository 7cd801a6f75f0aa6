"""Tags that experiences have from those that were merged into them, and giving them back."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engram.storage import uids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engram.storage.connection import Connection
    from engram.storage.labels import Labels

ADDED: Final = "added"
"""What a step of a merge calls the tags that its survivor got by it."""

_HIDDEN: Final = "memories ->> '$[#-1]'"
_SURVIVOR: Final = "memories ->> '$[0]'"
# The merges that hid some memories, by public ids, and hold.
_MERGES: Final = (
    f"SELECT s.id, s.{_SURVIVOR}, s.before FROM json_each(?) AS k"  # noqa: S608
    f" CROSS JOIN consolidation_step AS s ON s.{_HIDDEN} = k.value"
    " WHERE s.action = 'merge' AND s.undone_at IS NULL ORDER BY s.id"
)
_BEARERS: Final = (
    "SELECT e.uid, n.name FROM experience AS x CROSS JOIN episode AS e ON e.id = x.episode"
    " CROSS JOIN episode_label AS l ON l.episode = x.episode"
    " CROSS JOIN label AS n ON n.id = l.label"
    " WHERE x.superseded_by = ? AND n.kind = 'tag' AND n.name IN (SELECT value FROM json_each(?))"
    " ORDER BY x.episode DESC"
)

Brought = dict[str, set[str]]
"""Tags by the public id of the survivor that got them."""


class MergedTags:
    """The tags that survivors have from what they absorbed; runs in the caller's transaction.

    Args:
        connection: The store's connection.
        labels: The store's labels.
        retag: Replaces an episode's tags, given its key, the tags and the time.
    """

    def __init__(
        self,
        connection: Connection,
        labels: Labels,
        retag: Callable[[int, Sequence[str], int], None],
    ) -> None:
        self._connection = connection
        self._labels = labels
        self._retag = retag

    def give(self, survivor: int, absorbed: Sequence[int], at: int) -> list[list[str]]:
        """Give a survivor the tags of what it absorbs; return those that each brings first.

        Args:
            survivor: Its key.
            absorbed: The keys of what it absorbs.
            at: The time, in microseconds.
        """
        tags = self._tags([survivor, *absorbed])
        kept = tags.get(survivor, [])
        known = set(kept)
        brought = []
        for key in absorbed:
            new = [tag for tag in dict.fromkeys(tags.get(key, ())) if tag not in known]
            known.update(new)
            brought.append(new)
        if len(known) > len(set(kept)):
            self._retag(survivor, [*kept, *chain.from_iterable(brought)], at)
        return brought

    def _tags(self, episodes: Iterable[int]) -> dict[int, list[str]]:
        labels = self._labels.of(np.array(sorted(set(episodes)), dtype=np.int64))
        return {key: tags for key, (_, tags) in labels.items()}

    def brought(self, memories: Iterable[str]) -> Brought:
        """Return what some memories brought to those that they are merged into."""
        found: Brought = defaultdict(set)
        for _, survivor, before in self._merges(memories):
            found[survivor].update(json.loads(before).get(ADDED, ()))
        return found

    def _merges(self, memories: Iterable[str]) -> list[Any]:
        return self._connection.execute(_MERGES, (json.dumps(list(memories)),)).fetchall()

    def take(self, brought: Mapping[str, set[str]], at: int) -> None:
        """Take tags from survivors whose merges hold no more.

        What another one has that is merged into the same survivor stays, as brought by that one.
        What goes from a survivor goes from what it was merged into itself.

        Args:
            brought: What the merges brought; survivors that are gone are left out.
            at: The time, in microseconds.
        """
        left = {survivor: set(tags) for survivor, tags in brought.items() if tags}
        while left:
            survivor, tags = left.popitem()
            tags -= self._hand_on(survivor, tags)
            key = self._connection.execute(
                "SELECT id FROM episode WHERE uid = ?", (uids.to_stored(survivor),)
            ).get
            had = [] if key is None else self._tags([key]).get(key, [])
            if tags.isdisjoint(had):
                continue
            self._retag(key, [tag for tag in had if tag not in tags], at)
            for step, further, before in self._merges([survivor]):
                added = json.loads(before).get(ADDED, [])
                gone = tags.intersection(added)
                if gone:
                    self._note(step, [tag for tag in added if tag not in gone])
                    left.setdefault(further, set()).update(gone)

    def _hand_on(self, survivor: str, tags: Iterable[str]) -> set[str]:
        """Note of what a survivor absorbed that it brought some tags, as far as it has them.

        Returns:
            Those that stay.
        """
        rows: Any = self._connection.execute(
            _BEARERS, (uids.to_stored(survivor), json.dumps(sorted(tags)))
        )
        # Of several the first one, which comes last.
        bearers = {tag: uids.from_stored(uid) for uid, tag in rows}
        brings: Brought = defaultdict(set)
        for tag, bearer in bearers.items():
            brings[bearer].add(tag)
        for bearer, more in brings.items():
            for step, merged_into, before in self._merges([bearer])[-1:]:
                added = json.loads(before).get(ADDED, [])
                if merged_into == survivor:
                    self._note(step, [*added, *sorted(more.difference(added))])
        return bearers.keys() & set(tags)

    def _note(self, step: int, added: Sequence[str]) -> None:
        self._connection.execute(
            "UPDATE consolidation_step SET before = json_set(before, '$.added', json(?))"
            " WHERE id = ?",
            (json.dumps(added, ensure_ascii=False), step),
        )
