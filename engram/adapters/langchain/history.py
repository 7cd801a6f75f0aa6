"""`EngramChatMessageHistory`: the turns of a conversation, kept as episodes."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.runnables.config import run_in_executor

from engram import arguments
from engram.adapters.conversation import Conversation, place
from engram.adapters.langchain.messages import from_episode, to_episode
from engram.engine import Engram
from engram.errors import InvalidType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from langchain_core.messages import BaseMessage

__all__ = ["EngramChatMessageHistory"]

_MOST: Final = 100_000
_PASSING: Final = 100


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
        self._engram = engram
        self._conversation = Conversation(engram, session_id)
        self._limit = arguments.integer(limit, "limit", 1, _MOST)
        # Without a session, any number of others' messages may have to be passed over.
        self._page = self._limit if session_id is not None else max(self._limit, _PASSING)
        # The newest message that `clear` took out of view.
        self._cleared: tuple[datetime, str] | None = None

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # assigned to by nobody
        """The newest messages, oldest first; a list of the caller's own.

        Raises:
            Closed, Busy, CorruptStore: The store cannot be read. A conversation that cannot be read
                is never taken for one that is empty.
        """
        return list(islice(self._in_view(), self._limit))[::-1]

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
        tags = self._conversation.tags
        self._engram.observe_many([to_episode(message, tags) for message in messages])

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Remember messages without holding up the event loop."""
        await run_in_executor(None, self.add_messages, messages)

    def clear(self) -> None:
        """Begin anew: `messages` of this object leaves out what was said so far.

        The memory keeps everything, and another history object shows it; `erase` erases.
        """
        newest = next(self._conversation.messages(self._page), None)
        if newest is not None:
            self._cleared = place(newest)

    async def aclear(self) -> None:
        """Begin anew without holding up the event loop, see `clear`."""
        await run_in_executor(None, self.clear)

    def erase(self) -> int:
        """Erase every message of the conversation from the store, all or none; return how many.

        There is no way back: the text, vectors and full-text entries are overwritten, as by
        `Engram.forget`.
        """
        return self._conversation.erase()

    async def aerase(self) -> int:
        """Erase the conversation without holding up the event loop, see `erase`."""
        return await run_in_executor(None, self.erase)

    def _in_view(self) -> Iterator[BaseMessage]:
        """Yield the messages, newest first, read as far as they are asked for."""
        for episode in self._conversation.messages(self._page):
            if self._cleared is not None and place(episode) <= self._cleared:
                return
            yield from_episode(episode)
