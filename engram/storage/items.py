"""Items: episodes that hold a value under a namespace and a key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw
import numpy as np

from engram.storage import uids
from engram.storage.standing import TEXTLESS, UNAVAILABLE, WITHDRAWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from engram.storage.connection import Connection

NOBODY: Final = 0
"""The owner of items that are no agent's."""

_COLUMNS = "i.episode, e.uid, i.namespace, i.key, i.value, i.created_at, i.updated_at, i.lifetime"
# Its other end is where the namespace itself lies: after the last label come "," or "]".
_BENEATH = "i.owner = :owner AND i.namespace BETWEEN :prefix AND :prefix || ']'"
# What another face has hidden, and what has expired and was not swept yet. Both are few, and each
# has an index of its own, so that nothing has to be looked up for all others.
_THERE = (
    f"i.episode NOT IN ({WITHDRAWN} UNION ALL SELECT x.episode FROM item AS x"  # noqa: S608
    " WHERE x.owner = :owner AND x.expires_at <= :now)"
)


class NewItem(NamedTuple):
    """An item on its way into the store; times in microseconds, everything checked.

    The value is as `arguments.json_object` writes it, for fragments of that text are searched for.
    Without a `created_at` it is put for the first time.
    """

    namespace: tuple[str, ...]
    key: str
    value: str
    texts: tuple[str, ...]
    lifetime: int | None = None
    created_at: int | None = None

    @property
    def content(self) -> str:
        """The text of its episode."""
        return "\n".join(self.texts)


class StoredItem(NamedTuple):
    """An item as it is kept; times in microseconds.

    Attributes:
        episode: The key of its episode.
        id: The public id of that.
        namespace: The labels as JSON.
        key: Its name there.
        value: The value as JSON.
        created_at: When it was first put.
        updated_at: When it was last put.
        lifetime: Microseconds that it lives after that, None for ever.
    """

    episode: int
    id: str
    namespace: str
    key: str
    value: str
    created_at: int
    updated_at: int
    lifetime: int | None


def namespace_text(labels: Sequence[str]) -> str:
    """Return a namespace as the store keeps it."""
    return json.dumps(list(labels), ensure_ascii=False, separators=(",", ":"))


class Items:
    """The items of a store; every method runs in the caller's transaction.

    An owner is the key of an agent, or `NOBODY`. Items whose episode another face has hidden, and
    those that have expired, are not there but for `held` and `expired`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self,
        episodes: Sequence[int],
        new: Sequence[NewItem],
        owner: int,
        now: int,
    ) -> None:
        """Say of new episodes, by their keys, that they are an owner's items."""
        self._connection.executemany(
            "INSERT INTO item (episode, owner, namespace, key, value, parts, created_at,"
            " updated_at, lifetime, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    key,
                    owner,
                    namespace_text(one.namespace),
                    one.key,
                    one.value,
                    json.dumps([len(t.encode()) for t in one.texts]) if one.texts else None,
                    now if one.created_at is None else one.created_at,
                    now,
                    one.lifetime,
                    None if one.lifetime is None else now + one.lifetime,
                )
                for key, one in zip(episodes, new, strict=True)
            ],
        )

    def held(self, owner: int, namespace: Sequence[str], key: str) -> tuple[int, int] | None:
        """Return the key of the episode that a name is taken by, and when it was first put."""
        found: tuple[int, int] | None = self._connection.execute(
            "SELECT episode, created_at FROM item AS i"
            " WHERE owner = ? AND namespace = ? AND key = ?",
            (owner, namespace_text(namespace), key),
        ).get
        return found

    def get(self, owner: int, namespace: Sequence[str], key: str, now: int) -> StoredItem | None:
        """Return an item, None where there is none."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM item AS i JOIN episode AS e ON e.id = i.episode"  # noqa: S608
            " WHERE i.owner = :owner AND i.namespace = :namespace AND i.key = :key"
            f" AND {UNAVAILABLE.format('e')} IS NULL AND coalesce(i.expires_at > :now, TRUE)",
            {"owner": owner, "namespace": namespace_text(namespace), "key": key, "now": now},
        )
        return next(_read(rows), None)

    def fetch(self, episodes: NDArray[np.int64]) -> list[StoredItem]:
        """Return the items of some episodes, given by their keys, in that order."""
        if not len(episodes):
            return []
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM carray(?) AS k CROSS JOIN item AS i ON i.episode = k.value"  # noqa: S608
            " CROSS JOIN episode AS e ON e.id = i.episode",
            (apsw.carray(np.ascontiguousarray(episodes)),),
        )
        return list(_read(rows))

    def beneath(self, owner: int, prefix: Sequence[str], now: int) -> NDArray[np.int64]:
        """Return the keys of the items under some labels, ascending: in the order of putting."""
        return self._keys(owner, prefix, now, "TRUE")

    def searched(self, owner: int, prefix: Sequence[str], now: int) -> NDArray[np.int64]:
        """Return those of them of which a text is searched, likewise."""
        return self._keys(owner, prefix, now, f"i.episode NOT IN ({TEXTLESS} AND n.owner = :owner)")

    def _keys(
        self, owner: int, prefix: Sequence[str], now: int, condition: str
    ) -> NDArray[np.int64]:
        # One text, sorted here: a third of the time of rows, and of a plan that walks the table.
        listed = self._connection.execute(
            "SELECT json_group_array(i.episode) FROM item AS i"  # noqa: S608
            f" WHERE {_BENEATH} AND {_THERE} AND {condition}",
            self._where(owner, prefix, now),
        ).get
        return np.sort(np.array(json.loads(listed), dtype=np.int64))

    def values(
        self, owner: int, prefix: Sequence[str], now: int, fragments: Sequence[str] = ()
    ) -> Iterator[tuple[int, str]]:
        """Yield the key and the value of each of them, in any order.

        Args:
            owner: Whose.
            prefix: The labels.
            now: The time.
            fragments: Only values whose text has all of these; see `NewItem.value`.
        """
        held = {f"fragment{at}": one for at, one in enumerate(fragments)}
        having = "".join(f" AND instr(i.value, :{name})" for name in held)
        return self._connection.execute(
            f"SELECT i.episode, i.value FROM item AS i WHERE {_BENEATH} AND {_THERE}{having}",  # noqa: S608
            self._where(owner, prefix, now) | held,
        )

    def page(
        self, owner: int, prefix: Sequence[str], now: int, limit: int, offset: int
    ) -> list[StoredItem]:
        """Return some of them, what was put last first."""
        # The keys come from the index alone, which "+" keeps to; the rest is read of what is shown.
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM (SELECT i.episode AS episode FROM item AS i"  # noqa: S608
            f" WHERE {_BENEATH} AND {_THERE} ORDER BY +i.episode DESC LIMIT :limit OFFSET :offset)"
            " AS k CROSS JOIN item AS i ON i.episode = k.episode"
            " CROSS JOIN episode AS e ON e.id = i.episode",
            self._where(owner, prefix, now) | {"limit": limit, "offset": offset},
        )
        return list(_read(rows))

    def namespaces(self, owner: int, now: int) -> list[str]:
        """Return the namespaces that have items."""
        rows = self._connection.execute(
            f"SELECT DISTINCT i.namespace FROM item AS i WHERE i.owner = :owner AND {_THERE}",  # noqa: S608
            {"owner": owner, "now": now},
        )
        return [namespace for (namespace,) in rows]

    @staticmethod
    def _where(owner: int, prefix: Sequence[str], now: int) -> dict[str, Any]:
        return {"owner": owner, "prefix": namespace_text(prefix)[:-1], "now": now}

    def prolong(self, episodes: Iterable[int], now: int) -> None:
        """Let items that were just read live as long as after a write, if they still do.

        None of them lives shorter for it, also where the clock was set back.
        """
        self._connection.executemany(
            "UPDATE item SET expires_at = max(expires_at, ?1 + lifetime)"
            " WHERE episode = ?2 AND expires_at > ?1",
            [(now, key) for key in episodes],
        )

    def expired(self, owner: int | None, now: int) -> list[int]:
        """Return the keys of the episodes of an owner's items that have expired; None: of all."""
        scope = "" if owner is None else "owner = :owner AND "
        rows = self._connection.execute(
            f"SELECT episode FROM item WHERE {scope}expires_at <= :now ORDER BY episode",  # noqa: S608
            {"owner": owner, "now": now},
        )
        return [key for (key,) in rows]


def _read(rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredItem]:
    for key, uid, *rest in rows:
        yield StoredItem(key, uids.from_stored(uid), *rest)
