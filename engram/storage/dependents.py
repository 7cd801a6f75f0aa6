"""What rests on an episode, and what names it: neither may outlive it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from engram.storage import uids
from engram.storage.triplets import INSIGHT

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

    def hand_on(self, episodes: Iterable[int]) -> None:
        """Have what was drawn from episodes rest on their sources too, before their rows go.

        So what was drawn from a source, over whatever lay between, goes when that is erased.

        Args:
            episodes: Their keys.
        """
        self._connection.executemany(
            "INSERT INTO episode_source SELECT episode,"
            " (SELECT max(position) FROM episode_source AS l WHERE l.episode = more.episode)"
            " + row_number() OVER (PARTITION BY episode ORDER BY position), source"
            " FROM (SELECT d.episode, s.position, s.source FROM episode AS e"
            " CROSS JOIN episode_source AS d ON d.source = e.uid"
            " CROSS JOIN episode_source AS s ON s.episode = e.id"
            " WHERE e.id = ? AND NOT EXISTS (SELECT 1 FROM episode_source AS k"
            " WHERE k.episode = d.episode AND k.source = s.source)) AS more",
            [(key,) for key in episodes],
        )

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
