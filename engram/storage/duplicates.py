"""Experiences that say what a new one says: finding them, and using one again in its place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engram.storage.agents import OWNED
from engram.storage.standing import INELIGIBLE
from engram.storage.training import TRAINER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.storage.connection import Connection
    from engram.storage.triplets import NewExperience

# The same owner, kind and project, not hidden from searches, and no trainer's: those come and go.
_LIKE = (
    "x.memory_type = :type AND x.project IS :project"
    f" AND {OWNED.format('e')} AND NOT {INELIGIBLE.format('e')}"
    f" AND e.source_type IS NOT '{TRAINER}'"
)


class Duplicates:
    """What a store's experiences have in common; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def identical(self, new: NewExperience, agent: str | None) -> int | None:
        """Return the key of the oldest of an agent's experiences that says the same, if any.

        It has the type, the project and byte for byte the three texts of the new one.
        """
        found: int | None = self._connection.execute(
            "SELECT x.episode FROM experience AS x CROSS JOIN episode AS e ON e.id = x.episode"  # noqa: S608
            f" WHERE x.digest = :digest AND {_LIKE} AND e.content = :content"
            " AND x.context_bytes = :context AND x.action_bytes = :action"
            " ORDER BY x.episode LIMIT 1",
            {
                **_bindings(new, agent),
                "digest": new.digest,
                "content": new.content,
                "context": len(new.context.encode()),
                "action": len(new.action.encode()),
            },
        ).get
        return found

    def comparable(
        self, episodes: Iterable[int], new: NewExperience, agent: str | None
    ) -> set[int]:
        """Return which of some episodes a new experience of an agent may be the same as."""
        rows = self._connection.execute(
            "SELECT x.episode FROM json_each(:episodes) AS k"  # noqa: S608
            " CROSS JOIN experience AS x ON x.episode = k.value"
            f" CROSS JOIN episode AS e ON e.id = x.episode WHERE {_LIKE}",
            {**_bindings(new, agent), "episodes": json.dumps(list(episodes))},
        )
        return {key for (key,) in rows}

    def use_again(self, episode: int, at: int) -> None:
        """Note that an experience was stored once more.

        Args:
            episode: Its key.
            at: The time, in microseconds.
        """
        self._connection.execute(
            "UPDATE experience SET used_count = used_count + 1, last_used_at = ?,"
            " given_times = nullif(json_remove(given_times, '$.last_used_at'), '{}')"
            " WHERE episode = ?",
            (at, episode),
        )


def _bindings(new: NewExperience, agent: str | None) -> dict[str, object]:
    return {"type": new.memory_type, "project": new.project, "agent": agent}
