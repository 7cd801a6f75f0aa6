"""Conversations in a store, marked alike by all adapters, so that each reads what others wrote.

A message is an episode: its text is what is found, its first tag that is one of `ROLES` says who
speaks, in the framework's own word, and a tag `session:<id>` says which conversation it belongs to.
A message without such a tag belongs to the conversation of no session. What the framework's class
holds beside the text is in the episode's metadata, under a member of that framework.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engram import arguments
from engram.errors import InvalidArgument
from engram.provenance import DEFAULT_PROVENANCE, TRUSTED_PROVENANCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from engram.engine import Engram
    from engram.models import Episode

__all__ = [
    "LANGCHAIN",
    "LLAMA_INDEX",
    "ROLES",
    "Conversation",
    "Said",
    "ToolCall",
    "place",
    "provenance_of",
    "role_of",
    "said_in",
]

LANGCHAIN: Final = "langchain_message"
LLAMA_INDEX: Final = "llama_index_message"
"""The members of an episode's metadata that hold a framework's message, but for its text."""

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
        """Erase its messages from the store in one transaction; return how many there were."""
        return self._memory.forget_many(episode.id for episode in self.messages())


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


class ToolCall(NamedTuple):
    """A tool that a message asks for.

    Attributes:
        id: What its answer names.
        name: The tool.
        args: What it is given.
    """

    id: str | None
    name: str
    args: dict[str, object]


class Said(NamedTuple):
    """What every framework has a form for.

    Attributes:
        text: The text.
        calls: The tools that it asks for.
        answers: The id of the call that it answers.
    """

    text: str
    calls: list[ToolCall]
    answers: str | None


def said_in(episode: Episode) -> Said:
    """Return what a message says, whichever framework's it is.

    Raises:
        KeyError, TypeError, AttributeError: Its metadata are not what an adapter wrote.
    """
    for member, read in ((LANGCHAIN, _from_langchain), (LLAMA_INDEX, _from_llama_index)):
        kept: Any = episode.metadata.get(member)
        if kept is not None:
            return read(kept, episode.content)
    return Said(episode.content, [], None)


def _from_langchain(kept: Mapping[str, Any], text: str) -> Said:
    data = kept["data"]
    content = data.get("content", text)
    calls = [
        ToolCall(one["id"], one["name"], dict(one["args"])) for one in data.get("tool_calls") or ()
    ]
    # Of blocks the text was made when the message was kept.
    return Said(content if isinstance(content, str) else text, calls, data.get("tool_call_id"))


def _from_llama_index(kept: Mapping[str, Any], text: str) -> Said:
    blocks = kept.get("blocks")
    if blocks is not None:
        text = "\n".join(one["text"] for one in blocks if one["block_type"] == "text")
    calls = []
    for one in blocks or ():
        if one["block_type"] == "tool_call":
            args = one["tool_kwargs"]
            # Arguments may be text that a model wrote.
            given = args if isinstance(args, dict) else {"input": args}
            calls.append(ToolCall(one["tool_call_id"], one["tool_name"], given))
    return Said(text, calls, kept["additional_kwargs"].get("tool_call_id"))
