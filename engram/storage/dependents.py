"""What rests on an episode, and what names it: neither may outlive it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engram.storage import uids
from engram.storage.experiences import INSIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engram.storage.connection import Connection

# Each step goes from the episodes found last to those that were merged into one of them, and to
# what was made of one: of experiences that are insights, and of others summaries, if asked for.
_RESTING: Final = (
    "WITH RECURSIVE gone (id) AS (SELECT value FROM json_each(:episodes)"  # noqa: S608
    " UNION SELECT x.episode FROM gone CROSS JOIN episode AS e ON e.id = gone.id"
    " CROSS JOIN experience AS x ON x.superseded_by = e.uid"
    " UNION SELECT s.episode FROM gone CROSS JOIN episode AS e ON e.id = gone.id"
    " CROSS JOIN episode_source AS s ON s.source = e.uid"
    " LEFT JOIN experience AS x ON x.episode = s.episode"
    f" WHERE :summaries OR x.memory_type = '{INSIGHT}'"
    ") SELECT e.id, e.uid FROM gone CROSS JOIN episode AS e ON e.id = gone.id ORDER BY e.id"
)

_NAMED_AT: Final = ("$[#-1]", "$[0]")
"""Where a step names the memory it hid, and the one that survived; there is an index on each."""


class Dependents:
    """What depends on a store's episodes; every method runs in the caller's transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of(self, episodes: Iterable[int], *, summaries: bool = False) -> dict[int, str]:
        """Return the episodes that have to go when some do, those included: keys and public ids.

        The others are what was merged into one of them, which says the same, and insights that
        were drawn from one. Ascending.

        Args:
            episodes: Their keys.
            summaries: Also summaries of one.
        """
        rows: Any = self._connection.execute(
            _RESTING, {"episodes": json.dumps(list(episodes)), "summaries": summaries}
        )
        return {key: uids.from_stored(uid) for key, uid in rows}

    def let_go(self, episodes: Sequence[int], ids: Iterable[str]) -> None:
        """Take away what names episodes, before their rows go.

        Experiences that follow from one follow from nothing then; the steps of consolidations that
        changed one cannot be taken back any more, and may quote it.

        Args:
            episodes: Their keys.
            ids: Their public ids.
        """
        self._connection.executemany(
            "UPDATE experience SET parent = NULL"
            " WHERE parent = (SELECT uid FROM episode WHERE id = ?)",
            [(key,) for key in episodes],
        )
        gone = [(uid,) for uid in ids]
        for place in _NAMED_AT:
            self._connection.executemany(
                f"DELETE FROM consolidation_step WHERE memories ->> '{place}' = ?",  # noqa: S608
                gone,
            )
