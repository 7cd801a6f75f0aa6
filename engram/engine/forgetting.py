"""Erasing episodes, whichever face they came in by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engram import arguments
from engram.engine.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.errors import NotFound


class Forgetting(Session):
    """What the calls that erase episodes share."""

    def _forget(self, memory_id: str, argument: str, missing: NotFound) -> None:
        """Erase an episode that this agent may see, with what rests on it.

        Args:
            memory_id: Its public id.
            argument: What the caller calls that.
            missing: Raised where there is none.
        """
        uid = arguments.text(memory_id, argument)
        with self._store.writing():
            key = self._store.episodes.key(uid, self._agent)
            if key is None:
                raise missing
            erased = self._store.remove_episodes([key], self._now())
        self._forgotten(erased)

    def _forgotten(self, erased: Iterable[str]) -> None:
        """Say of episodes, by their public ids, that they are erased."""
        self._emit("memory_forgotten", [{"memory_id": one, "kind": "episodic"} for one in erased])
