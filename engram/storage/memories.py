"""Memories: episodes and facts under one roof, as those see them who search for either.

A memory's key is its episode's, or minus its fact's.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from engram.storage import uids
from engram.storage.importance import IMPORTANCE, JOIN, from_stored, share
from engram.storage.projects import FACT
from engram.storage.standing import ACTIVE_FACT, INELIGIBLE, READABLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.storage.connection import Connection

Standing = Literal["eligible", "inactive", "forgotten"]

_STANDING: Final = (
    "CASE WHEN e.forgotten_at IS NOT NULL THEN 'forgotten'"
    f" WHEN {INELIGIBLE.format('e')} OR NOT {READABLE.format('e')} THEN 'inactive'"
    " ELSE 'eligible' END"
)
_EPISODES: Final = (
    f"SELECT e.id, {uids.TYPED.format('e')}, {_STANDING}, CAST(e.content AS BLOB),"  # noqa: S608
    f" CAST(e.layer AS BLOB), CAST(e.memory_type AS BLOB), {IMPORTANCE}, e.recorded_at"
    f" FROM json_each(?) AS k CROSS JOIN episode AS e ON e.id = k.value {JOIN}"
)
_FACT_STANDING: Final = f"iif({ACTIVE_FACT.format('f')}, 'eligible', 'inactive')"
_STANDINGS: Final = (
    f"SELECT e.id, {_STANDING} FROM json_each(:episodes) AS k"  # noqa: S608
    " CROSS JOIN episode AS e ON e.id = k.value UNION ALL"
    f" SELECT -f.id, {_FACT_STANDING} FROM json_each(:facts) AS k"
    " CROSS JOIN fact AS f ON f.id = k.value"
)
_FACTS: Final = (
    f"SELECT f.id, {uids.TYPED.format('f')}, {_FACT_STANDING},"  # noqa: S608
    " CAST(concat_ws(' ', f.subject, f.predicate, f.object) AS BLOB), f.confidence, f.recorded_at"
    " FROM json_each(:facts) AS k CROSS JOIN fact AS f ON f.id = k.value"
)


class Memory(NamedTuple):
    """A memory as a search reads it.

    Attributes:
        key: Its key.
        id: Its public id.
        standing: Whether it may be returned.
        content: All of its text.
        layer: Such as "episodic"; a fact's is "semantic".
        memory_type: Such as "narrative"; a fact's is "fact".
        importance: 0 to 1; of a fact it is how sure it is.
        recorded_at: When the store learned it, in microseconds.
    """

    key: int
    id: str
    standing: Standing
    content: str
    layer: str
    memory_type: str
    importance: float
    recorded_at: int


class Memories:
    """The memories of a store; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, keys: Iterable[int], now: int) -> dict[int, Memory]:
        """Return memories by their keys; those that are gone are left out.

        So are those whose text is damaged: one row costs no search its answer.

        Args:
            keys: The keys.
            now: The time at which a fact has to hold, in microseconds.
        """
        episodes, facts = _apart(keys)
        found: dict[int, Memory] = {}
        rows: Any = self._connection.execute(_EPISODES, (episodes,))
        for key, form, uid, standing, content, layer, kind, stored, recorded in rows:
            with suppress(ValueError):
                found[key] = Memory(
                    key,
                    uids.from_typed(form, uid),
                    standing,
                    content.decode(),
                    layer.decode(),
                    kind.decode(),
                    share(from_stored(stored)),
                    recorded,
                )
        rows = self._connection.execute(_FACTS, {"facts": facts, "now": now})
        for key, form, uid, standing, content, confidence, recorded in rows:
            with suppress(ValueError):
                found[-key] = Memory(
                    -key,
                    FACT + uids.from_typed(form, uid),
                    standing,
                    content.decode(),
                    "semantic",
                    "fact",
                    share(confidence),
                    recorded,
                )
        return found

    def standings(self, keys: Iterable[int], now: int) -> dict[int, Standing]:
        """Return whether memories may be returned, by their keys; those gone are left out.

        Arguments are those of `read`.
        """
        episodes, facts = _apart(keys)
        rows: Any = self._connection.execute(
            _STANDINGS, {"episodes": episodes, "facts": facts, "now": now}
        )
        return dict(rows)


def _apart(keys: Iterable[int]) -> tuple[str, str]:
    """Return the keys of episodes and those of facts, as JSON arrays."""
    wanted = list(keys)
    return (
        json.dumps([key for key in wanted if key > 0]),
        json.dumps([-key for key in wanted if key < 0]),
    )
