"""Actors and tags: each name is kept once and joined to its episodes in order."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import apsw
import numpy as np

from engram.arrays import distinct
from engram.storage.headings import LONGEST_NAMES, MOST_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from engram.storage.connection import Connection

Kind = Literal["actor", "tag"]


class Labels:
    """The labels of a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        episodes: Sequence[int],
        actors: Sequence[Sequence[str]],
        tags: Sequence[Sequence[str]],
    ) -> None:
        """Join the actors and the tags of each of n new episodes to it."""
        actor, tag = self._ids("actor", actors), self._ids("tag", tags)

        def rows() -> Iterator[tuple[int, int, int]]:
            for episode, taking_part, tagged in zip(episodes, actors, tags, strict=True):
                for position, name in enumerate(taking_part):
                    yield episode, position, actor[name]
                for position, name in enumerate(tagged, start=len(taking_part)):
                    yield episode, position, tag[name]

        if actor or tag:
            self._connection.executemany("INSERT INTO episode_label VALUES (?, ?, ?)", rows())

    def _ids(self, kind: Kind, names: Iterable[Sequence[str]]) -> dict[str, int]:
        """Return the key of each name, those that are new included."""
        distinct = dict.fromkeys(chain.from_iterable(names))
        return {name: self._id(kind, name) for name in distinct}

    def _id(self, kind: Kind, name: str) -> int:
        found: int | None = self._connection.execute(
            "SELECT id FROM label WHERE kind = ? AND name = ?", (kind, name)
        ).get
        if found is None:
            self._connection.execute(
                "INSERT INTO label (kind, name, folded) VALUES (?1, ?2, folded(?2))", (kind, name)
            )
            found = self._connection.last_id
        return found

    def of(self, episodes: NDArray[np.int64]) -> dict[int, tuple[list[str], list[str]]]:
        """Return the actors and the tags of each of the given episodes that has any."""
        labels: dict[int, tuple[list[str], list[str]]] = {}
        rows = self._connection.execute(
            "SELECT l.episode, n.kind, n.name FROM carray(?) AS k"
            " CROSS JOIN episode_label AS l ON l.episode = k.value"
            " CROSS JOIN label AS n ON n.id = l.label ORDER BY l.episode, l.position",
            (apsw.carray(episodes),),
        )
        for episode, kind, name in rows:
            actors, tags = labels.setdefault(episode, ([], []))
            (actors if kind == "actor" else tags).append(name)
        return labels

    def actors(self, episodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Return who took part in the given episodes, as far as a heading would name them.

        Returns:
            int64[n, 2], an episode and a label in each row, of the first `MOST_NAMES` labels of
            each episode; and the names of those labels that are actors, by their keys.
        """
        none: NDArray[np.int64] = np.empty((0, 2), dtype=np.int64)
        if not len(episodes):
            return none, {}
        rows = self._connection.execute(
            "SELECT l.episode, l.label FROM carray(?) AS k"
            " CROSS JOIN episode_label AS l ON l.episode = k.value AND l.position < ?",
            (apsw.carray(episodes), MOST_NAMES),
        ).fetchall()
        if not rows:
            return none, {}
        pairs = np.array(rows, dtype=np.int64)
        names: list[Any] = self._connection.execute(
            "SELECT n.id, n.name FROM carray(?) AS k CROSS JOIN label AS n ON n.id = k.value"
            " WHERE n.kind = 'actor'",
            (apsw.carray(distinct(pairs[:, 1])),),
        ).fetchall()
        return pairs, {label: name for label, name in names if len(name) <= LONGEST_NAMES}

    def episodes(self, kind: Kind, name: str, first: int, last: int) -> NDArray[np.int64]:
        """Return which of the episodes `first` to `last`, both included, have a label, ascending.

        Costs time in the number of those that have it.
        """
        return self._labelled("kind = ? AND name = ?", (kind, name), first, last)

    def any_case(self, tag: str, first: int, last: int) -> NDArray[np.int64]:
        """Return which of some episodes have a tag in whatever case; as `episodes`."""
        return self._labelled("kind = 'tag' AND folded = folded(?)", (tag,), first, last)

    def _labelled(
        self, named: str, bindings: tuple[str, ...], first: int, last: int
    ) -> NDArray[np.int64]:
        rows = self._connection.execute(
            "SELECT l.episode FROM label AS n CROSS JOIN episode_label AS l ON l.label = n.id"  # noqa: S608
            f" WHERE {named} AND l.episode BETWEEN ? AND ? ORDER BY l.episode",
            (*bindings, first, last),
        ).fetchall()
        return distinct(np.array(rows, dtype=np.int64).reshape(-1))

    def set_tags(self, episode: int, tags: Sequence[str]) -> None:
        """Put tags in the place of those that an episode has; it keeps its actors."""
        old: list[Any] = self._connection.execute(
            "DELETE FROM episode_label WHERE episode = ?"
            " AND label IN (SELECT id FROM label WHERE kind = 'tag') RETURNING label",
            (episode,),
        ).fetchall()
        keys = self._ids("tag", [tags])
        after: int = self._connection.execute(
            "SELECT coalesce(max(position) + 1, 0) FROM episode_label WHERE episode = ?", (episode,)
        ).get
        self._connection.executemany(
            "INSERT INTO episode_label VALUES (?, ?, ?)",
            [(episode, position, keys[name]) for position, name in enumerate(tags, start=after)],
        )
        self._drop_unused(old)

    def remove(self, episode: int) -> None:
        """Take an episode's labels away, and each name that no other episode has."""
        rows = self._connection.execute(
            "DELETE FROM episode_label WHERE episode = ? RETURNING label", (episode,)
        ).fetchall()
        self._drop_unused(rows)

    def _drop_unused(self, labels: list[Any]) -> None:
        self._connection.executemany(
            "DELETE FROM label WHERE id = ?1"
            " AND NOT EXISTS (SELECT 1 FROM episode_label WHERE label = ?1)",
            set(labels),
        )
