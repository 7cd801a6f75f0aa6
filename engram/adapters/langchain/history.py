"""`EngramChatMessageHistory`: the turns of a conversation, kept as episodes."""

from __future__ import annotations

import heapq
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.runnables.config import run_in_executor

from engram import arguments
from engram.adapters.langchain.messages import ROLES, from_episode, role_of, to_episode
from engram.engine import Engram
from engram.errors import InvalidArgument, InvalidType, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from langchain_core.messages import BaseMessage

    from engram.models import Episode

__all__ = ["EngramChatMessageHistory"]

SESSION: Final = "session:"
"""What the tag begins with that says which conversation a message belongs to."""

_PAGE: Final = 1000
_MOST: Final = 100_000


class EngramChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, each an episode that every recall finds.

    `messages` reads the store each time, so that several processes that serve one conversation see
    each other's turns. A message comes back exactly as it was added, whatever its type. The
    episode's text is the message's, its tags are the role and the session, its provenance is "user"
    for what the person said, "tool" for what a tool returned and "external" for the rest.

    Async methods run on a worker thread.

    Args:
        engram: The memory; the history does not close it.
        session_id: The conversation; its messages are tagged `session:<session_id>`. None is the
            conversation of all messages that belong to no session.
        limit: How many of the newest messages `messages` returns, 1 to 100,000.

    Raises:
        InvalidArgument, InvalidType: An argument is refused.
    """

    def __init__(self, engram: Engram, session_id: str | None = None, *, limit: int = 1000) -> None:
        super().__init__()
        if not isinstance(engram, Engram):
            message = f"engram must be an Engram, not {type(engram).__name__}"
            raise InvalidType(message, "the history's async methods use threads of their own")
        if session_id is not None and not arguments.text(session_id, "session_id"):
            message = "session_id must not be empty"
            raise InvalidArgument(message, "None is the messages that belong to no session")
        self._engram = engram
        self._tags = [] if session_id is None else [f"{SESSION}{session_id}"]
        self._limit = arguments.integer(limit, "limit", 1, _MOST)
        # The newest message that `clear` took out of view.
        self._cleared: tuple[datetime, str] | None = None

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # assigned to by nobody
        """The newest messages, oldest first; a list of the caller's own.

        Raises:
            Closed, Busy, CorruptStore: The store cannot be read. A conversation that cannot be read
                is never taken for one that is empty.
        """
        found = (message for _, message in self._newest_first())
        return list(islice(found, self._limit))[::-1]

    async def aget_messages(self) -> list[BaseMessage]:
        """Return `messages` without holding up the event loop."""
        return await run_in_executor(None, lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Remember messages, all or none, in one transaction.

        Args:
            messages: In the order they were said. What JSON has no form for is refused, except in
                the `artifact` of a tool message, which is then left out.

        Raises:
            InvalidArgument, InvalidType, ModelMissing, ModelMismatch, Busy, StoreFull, Closed: As
                for `Engram.observe_many`; nothing is kept.
        """
        self._engram.observe_many([to_episode(message, self._tags) for message in messages])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Remember messages without holding up the event loop."""
        await run_in_executor(None, self.add_messages, messages)

    def clear(self) -> None:
        """Begin anew: `messages` of this object leaves out what was said so far.

        The memory keeps everything, and another history object shows it; `erase` erases.
        """
        newest = next(self._episodes(), None)
        if newest is not None:
            self._cleared = _place(newest)

    async def aclear(self) -> None:
        """Begin anew without holding up the event loop, see `clear`."""
        await run_in_executor(None, self.clear)

    def erase(self) -> int:
        """Erase every message of the conversation from the store and return how many there were.

        There is no way back: the text, vectors and full-text entries are overwritten, as by
        `Engram.forget`.
        """
        erased = 0
        for episode in self._episodes():
            # Another process may erase them too.
            with suppress(NotFound):
                self._engram.forget(episode.id)
                erased += 1
        return erased

    async def aerase(self) -> int:
        """Erase the conversation without holding up the event loop, see `erase`."""
        return await run_in_executor(None, self.erase)

    def _newest_first(self) -> Iterator[tuple[Episode, BaseMessage]]:
        """Yield the messages that are in view, read as far as they are asked for."""
        for episode in self._episodes():
            if self._cleared is not None and _place(episode) <= self._cleared:
                return
            message = from_episode(episode)
            if message is not None:
                yield episode, message

    def _episodes(self) -> Iterator[Episode]:
        """Yield the episodes of the conversation, newest first."""
        if self._tags:
            yield from (e for e in self._pages(self._tags) if role_of(e) is not None)
            return
        # There may be any number of other episodes, so those of each role are listed.
        merged = heapq.merge(*(self._pages([role]) for role in ROLES), key=_place, reverse=True)
        last = None
        for episode in merged:
            # One that has the tags of two roles comes twice.
            if episode.id != last and not any(tag.startswith(SESSION) for tag in episode.tags):
                last = episode.id
                if role_of(episode) is not None:
                    yield episode

    def _pages(self, tags: list[str]) -> Iterator[Episode]:
        cursor = None
        while True:
            size = min(self._limit, _PAGE)
            page = self._engram.episodes(limit=size, cursor=cursor, tags=tags)
            yield from page.episodes
            cursor = page.cursor
            if cursor is None:
                return


def _place(episode: Episode) -> tuple[datetime, str]:
    """Return what orders episodes by their time; ids are in the order of writing."""
    return episode.timestamp, episode.id
