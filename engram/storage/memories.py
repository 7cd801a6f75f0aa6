"""Memories: episodes and facts under one roof, as those see them who search for either.

A memory's key is its episode's, or minus its fact's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from engram.storage import uids
from engram.storage.importance import IMPORTANCE, JOIN, from_stored
from engram.storage.projects import FACT
from engram.storage.standing import ACTIVE_FACT, INELIGIBLE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.storage.connection import Connection

Standing = Literal["eligible", "inactive", "forgotten"]

_STANDING: Final = (
    "CASE WHEN e.forgotten_at IS NOT NULL THEN 'forgotten'"
    f" WHEN {INELIGIBLE.format('e')} THEN 'inactive'"
    " ELSE 'eligible' END"
)
_EPISODES: Final = (
    f"SELECT e.id, e.uid, {_STANDING}, e.content, e.layer, e.memory_type, {IMPORTANCE},"  # noqa: S608
    f" e.recorded_at FROM json_each(?) AS k CROSS JOIN episode AS e ON e.id = k.value {JOIN}"
)
_FACTS: Final = (
    f"SELECT f.id, f.uid, iif({ACTIVE_FACT.format('f')}, 'eligible', 'inactive'),"  # noqa: S608
    " concat_ws(' ', f.subject, f.predicate, f.object), f.confidence, f.recorded_at"
    " FROM json_each(:keys) AS k CROSS JOIN fact AS f ON f.id = k.value"
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

        Args:
            keys: The keys.
            now: The time at which a fact has to hold, in microseconds.
        """
        wanted = list(keys)
        found: dict[int, Memory] = {}
        episodes = json.dumps([key for key in wanted if key > 0])
        for key, uid, standing, content, layer, kind, stored, recorded in self._connection.execute(
            _EPISODES, (episodes,)
        ):
            importance = min(max(from_stored(stored), 0.0), 1.0)
            found[key] = Memory(
                key, uids.from_stored(uid), standing, content, layer, kind, importance, recorded
            )
        facts = json.dumps([-key for key in wanted if key < 0])
        for key, uid, standing, content, confidence, recorded in self._connection.execute(
            _FACTS, {"keys": facts, "now": now}
        ):
            public = FACT + uids.from_stored(uid)
            found[-key] = Memory(
                -key, public, standing, content, "semantic", "fact", confidence, recorded
            )
        return found
