"""Feedback: what searches decided and showed, so that a judgement can say what that was worth.

A search must not wait to note this: what cannot be written at once waits here for the next one.
Of a process that is killed before that it is lost, and nothing else depends on it.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from engram.errors import Busy
from engram.storage import uids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.storage.connection import Connection

KEPT: Final = 20_000
"""Searches whose feedback the store keeps, the newest ones."""

WAITING_MOST: Final = 1000
"""Searches that wait to be written; beyond that the oldest are dropped."""

SHOWN_MOST: Final = 100
"""Memories that a search is taken to have shown, its best ones."""

PRUNED: Final = 500
"""Searches that one transaction removes at most."""


class RoutedSearch(NamedTuple):
    """A search: how it went about the task, and what it showed; without the query.

    Attributes:
        uid: Its public id.
        routing: The mode of the task and the variant chosen for each of the router's levels, in the
            order of the columns.
        top_k: How many memories it asked for.
        shadow_rewards: What shorter answers would have held, JSON-able.
        at: When, in microseconds.
        episodes: The keys of what it showed.
    """

    uid: str
    routing: tuple[str, ...]
    top_k: int
    shadow_rewards: Sequence[object]
    at: int
    episodes: tuple[int, ...]


class Feedback:
    """The feedback of a store, with what waits to be written.

    Thread-safe. Methods run in the caller's transaction, except where they say otherwise.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: list[RoutedSearch] = []
        # Guards _waiting; never held while waiting for the connection.
        self._lock = threading.Lock()

    def note(self, search: RoutedSearch) -> None:
        """Keep a search, and write it unless another connection writes; outside any transaction."""
        with self._lock:
            self._waiting.append(search._replace(episodes=search.episodes[:SHOWN_MOST]))
            del self._waiting[:-WAITING_MOST]
        with suppress(Busy):
            self.flush(wait=False)

    def flush(self, *, wait: bool = True) -> None:
        """Write what waits, in one transaction of its own; outside any.

        Args:
            wait: Whether to wait while another connection writes.

        Raises:
            Busy: Another connection writes; the searches go on waiting.
        """
        if self._waiting:
            with self._connection.writing(wait=None if wait else 0.0):
                written = self.write()
            self.written(written)

    def write(self) -> Sequence[RoutedSearch]:
        """Write what waits; hand the result to `written` once it is committed."""
        with self._lock:
            searches = tuple(self._waiting)
        for search in searches:
            self._write(search)
        return searches

    def written(self, searches: Sequence[RoutedSearch]) -> None:
        """Stop keeping searches that are in the file now."""
        done = {search.uid for search in searches}
        with self._lock:
            self._waiting = [search for search in self._waiting if search.uid not in done]

    def _write(self, search: RoutedSearch) -> None:
        # Another thread can have written it since it was read from those that wait.
        self._connection.execute(
            "INSERT OR IGNORE INTO routing (uid, mode, search_strategy, llm_selection,"
            " contextualization, proactivity, top_k, shadow_rewards, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                uids.to_stored(search.uid),
                *search.routing,
                search.top_k,
                json.dumps(search.shadow_rewards),
                search.at,
            ),
        )
        if self._connection.changed:
            # Of what was erased meanwhile nothing is kept.
            self._connection.execute(
                "INSERT INTO shown (episode, routing)"
                " SELECT e.id, ? FROM json_each(?) AS k CROSS JOIN episode AS e ON e.id = k.value",
                (self._connection.last_id, json.dumps(search.episodes)),
            )

    def judge(self, episode: int, at: int) -> None:
        """Note of every search that showed an episode that it has been judged."""
        self._connection.execute(
            "UPDATE shown SET judged_at = ? WHERE episode = ? AND judged_at IS NULL", (at, episode)
        )

    def take_unrewarded(self, episode: int) -> tuple[str, ...] | None:
        """Return the routing of the newest search that showed an episode and has no reward for it.

        From now on it has one.
        """
        row = self._connection.execute(
            "SELECT r.id, r.mode, r.search_strategy, r.llm_selection, r.contextualization,"
            " r.proactivity FROM shown AS s JOIN routing AS r ON r.id = s.routing"
            " WHERE s.episode = ? AND NOT s.rewarded ORDER BY s.routing DESC LIMIT 1",
            (episode,),
        ).fetchone()
        if row is None:
            return None
        self._connection.execute(
            "UPDATE shown SET rewarded = 1 WHERE episode = ? AND routing = ?", (episode, row[0])
        )
        routing: tuple[str, ...] = row[1:]
        return routing

    def prune(self) -> int:
        """Remove some of the oldest searches beyond `KEPT`; return how many.

        Their numbers are consecutive, so that counting them costs nothing.
        """
        self._connection.execute(
            "DELETE FROM routing WHERE id IN (SELECT id FROM routing"
            " WHERE id <= (SELECT max(id) FROM routing) - ? ORDER BY id LIMIT ?)",
            (KEPT, PRUNED),
        )
        return self._connection.changed
