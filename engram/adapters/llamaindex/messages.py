"""LlamaIndex messages as episodes: what is searched, what is kept, and how they come back."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock

from engram.adapters.conversation import LLAMA_INDEX, ROLES, provenance_of, role_of, said_in
from engram.errors import InvalidType
from engram.models import ObserveInput
from engram.provenance import PROVENANCES, least_trusted

if TYPE_CHECKING:
    from engram.models import Episode

__all__ = ["from_episode", "recalled", "to_episode"]

_OWN: Final = frozenset(role.value for role in MessageRole)
_LOG = logging.getLogger("engram.adapters.llamaindex")


def to_episode(message: object, tags: list[str]) -> ObserveInput:
    """Return a message as what is to be remembered.

    Where it carries the marks of a recalled message, `provenance` and `quarantined` among its
    `additional_kwargs`, they hold: what was read from elsewhere does not become the user's own.

    Args:
        message: The message.
        tags: What the episode is tagged with beside its role.

    Raises:
        InvalidType: It is no `ChatMessage`, or holds what JSON has no form for.
    """
    if not isinstance(message, ChatMessage):
        refused = f"message must be a ChatMessage, not {type(message).__name__}"
        raise InvalidType(refused)
    try:
        kept = message.model_dump(mode="json")
    except ValueError as error:
        refused = "message holds something that JSON has no form for"
        raise InvalidType(refused) from error
    content = _searched(message)
    if kept["blocks"] == _blocks(content):
        # The episode's text is the message's: kept once.
        del kept["blocks"]
    marks = message.additional_kwargs
    own = provenance_of(message.role.value)
    given = marks.get("provenance", own)
    return ObserveInput(
        content,
        tags=[message.role.value, *tags],
        provenance=least_trusted([own, given if given in PROVENANCES else PROVENANCES[-1]]),
        quarantined=marks.get("quarantined") is True,
        metadata={LLAMA_INDEX: kept},
    )


def _searched(message: ChatMessage) -> str:
    """Return the text by which a message is found; of a mere tool call, what it calls."""
    if message.content:
        return message.content
    return "\n".join(
        f"{block.tool_name} {json.dumps(block.tool_kwargs, ensure_ascii=False, default=str)}"
        for block in message.blocks
        if isinstance(block, ToolCallBlock)
    )


def from_episode(episode: Episode) -> ChatMessage:
    """Return the message of an episode, exactly as it was given.

    An episode that another face wrote becomes a message of its role, the user's where it has none.
    """
    kept = episode.metadata.get(LLAMA_INDEX)
    try:
        if isinstance(kept, dict):
            return ChatMessage.model_validate({"blocks": _blocks(episode.content)} | kept)
        return _from_another(episode)
    except (ValueError, TypeError, KeyError, AttributeError):
        # Of a version that this one cannot read, or written by hand.
        _LOG.warning("a stored message is not one that can be read; its text is used")
    return ChatMessage(content=episode.content, role=_role(episode))


def _blocks(text: str) -> list[dict[str, str]]:
    return [{"block_type": "text", "text": text}]


def _role(episode: Episode) -> MessageRole:
    word = role_of(episode) or "unknown"
    own = word if word in _OWN else ROLES[word]
    return MessageRole(own) if own in _OWN else MessageRole.USER


def _from_another(episode: Episode) -> ChatMessage:
    """Return a message that another adapter wrote, or none, with its tool calls."""
    said = said_in(episode)
    message = ChatMessage(content=said.text, role=_role(episode))
    message.blocks += [
        ToolCallBlock(tool_call_id=one.id, tool_name=one.name, tool_kwargs=one.args)
        for one in said.calls
    ]
    if said.answers is not None:
        message.additional_kwargs["tool_call_id"] = said.answers
    return message


def recalled(episode: Episode) -> ChatMessage:
    """Return the message of an episode that a recall found, marked with how far to trust it."""
    message = from_episode(episode)
    message.additional_kwargs |= {
        "provenance": episode.provenance,
        "quarantined": episode.quarantined,
    }
    return message
