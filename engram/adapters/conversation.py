"""Conversations in a store, marked alike by all adapters, so that each reads what others wrote.

A message is an episode: its text is what is found, its first tag that is one of `ROLES` says who
speaks, in the framework's own word, and a tag `session:<id>` says which conversation it belongs to.
A message without such a tag belongs to the conversation of no session. What the framework's class
holds beside the text is in the episode's metadata, under a member of that framework.
"""

from __future__ import annotations

import heapq
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.errors import InvalidArgument, NotFound
from engram.provenance import DEFAULT_PROVENANCE, TRUSTED_PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from engram.engine import Engram
    from engram.models import Episode

__all__ = ["ROLES", "Conversation", "place", "provenance_of", "role_of"]

ROLES: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "unknown": "unknown",
    "chat": "unknown",
}
"""The frameworks' words for who speaks, and what each comes to."""

_SESSION: Final = "session:"
_PAGE: Final = 1000
_SOURCES: Final = {"user": TRUSTED_PROVENANCE, "tool": "tool"}


class Conversation:
    """The messages of one session, in a store that may hold many.

    Args:
        memory: The store; messages are its agent's.
        session_id: Which conversation; None is that of all messages that belong to no session.

    Raises:
        InvalidArgument, InvalidType: The session id is refused.
    """

    def __init__(self, memory: Engram, session_id: str | None = None) -> None:
        if session_id is not None and not arguments.text(session_id, "session_id"):
            message = "session_id must not be empty"
            raise InvalidArgument(message, "None is the messages that belong to no session")
        self._memory = memory
        self.tags: list[str] = [] if session_id is None else [f"{_SESSION}{session_id}"]
        """What its messages are tagged with beside their role."""

    def messages(self, page: int = _PAGE) -> Iterator[Episode]:
        """Yield its messages, newest first, read as far as they are asked for.

        Args:
            page: How many to read at once, 1 to 1,000.
        """
        if self.tags:
            yield from (one for one in self._pages(self.tags, page) if role_of(one) is not None)
            return
        # There may be any number of other episodes, so those of each role are listed.
        listings = [self._pages([role], page) for role in ROLES]
        last = None
        for episode in heapq.merge(*listings, key=place, reverse=True):
            # One that has the tags of two roles comes twice.
            if episode.id != last and not any(tag.startswith(_SESSION) for tag in episode.tags):
                last = episode.id
                if role_of(episode) is not None:
                    yield episode

    def _pages(self, tags: list[str], page: int) -> Iterator[Episode]:
        cursor = None
        while True:
            found = self._memory.episodes(limit=min(page, _PAGE), cursor=cursor, tags=tags)
            yield from found.episodes
            cursor = found.cursor
            if cursor is None:
                return

    def erase(self) -> int:
        """Erase its messages from the store, as by `Engram.forget`; return how many there were."""
        erased = 0
        for episode in self.messages():
            # Another process may erase them too.
            with suppress(NotFound):
                self._memory.forget(episode.id)
                erased += 1
        return erased


def place(episode: Episode) -> tuple[datetime, str]:
    """Return what orders messages by their time; ids are in the order of writing."""
    return episode.timestamp, episode.id


def role_of(episode: Episode) -> str | None:
    """Return the first tag of an episode that is one of `ROLES`, None where it is no message."""
    # What stands for other episodes was said by nobody.
    return None if episode.summary_of else next((tag for tag in episode.tags if tag in ROLES), None)


def provenance_of(role: str) -> str:
    """Return whose words a message is, by the framework's word for who speaks.

    Those of people are "user", those of tools "tool"; a model's are external.
    """
    return _SOURCES.get(ROLES.get(role, ""), DEFAULT_PROVENANCE)
