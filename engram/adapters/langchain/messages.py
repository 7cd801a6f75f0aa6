"""LangChain messages as episodes: what is searched, what is kept, and how they come back."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)

from engram import arguments
from engram.adapters.conversation import LANGCHAIN, ROLES, provenance_of, role_of, said_in
from engram.errors import InvalidArgument, InvalidType
from engram.models import ObserveInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from engram.models import Episode

__all__ = ["from_episode", "to_episode"]

_CHUNK = "MessageChunk"
_PLAIN: Final[dict[str, Callable[[str], BaseMessage]]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}

_LOG = logging.getLogger("engram.adapters.langchain")


def to_episode(message: object, tags: list[str]) -> ObserveInput:
    """Return a message as what is to be remembered.

    Args:
        message: Any message but a `RemoveMessage`.
        tags: What the episode is tagged with beside its role.

    Raises:
        InvalidType: It is no message of a conversation, or holds what JSON has no form for.
        InvalidArgument: It holds NaN, an infinity or lone surrogates, or nests too deep.
    """
    if not isinstance(message, BaseMessage) or isinstance(message, RemoveMessage):
        refused = f"each of messages must be what somebody said, not {type(message).__name__}"
        raise InvalidType(refused)
    kept = message.model_dump()
    content = _searched(message)
    if kept["content"] == content:
        # The episode's text is the message's: kept once.
        del kept["content"]
    if not _fits_json(kept.get("artifact")):
        _LOG.warning("the artifact of a tool message is not kept: JSON has no form for it")
        kept["artifact"] = None
    role = message.type.removesuffix(_CHUNK).lower()
    return ObserveInput(
        content=content,
        tags=[role, *tags],
        provenance=provenance_of(message.role if isinstance(message, ChatMessage) else role),
        metadata={LANGCHAIN: {"type": message.type, "data": kept}},
    )


def _searched(message: BaseMessage) -> str:
    """Return the text by which a message is found; of a mere tool call, what it calls."""
    content = message.content if isinstance(message.content, str) else str(message.text)
    if not content and isinstance(message, AIMessage):
        calls = (
            f"{call['name']} {json.dumps(call['args'], ensure_ascii=False, default=str)}"
            for call in message.tool_calls
        )
        return "\n".join(calls)
    return content


def _fits_json(value: object) -> bool:
    try:
        arguments.json_object({"value": value}, "artifact")
    except (InvalidArgument, InvalidType):
        return False
    return True


def from_episode(episode: Episode) -> BaseMessage:
    """Return the message of an episode that has a role, exactly as it was given.

    What another adapter wrote becomes a message of its role with its tool calls, an episode of any
    other face a plain message of its role.
    """
    role = role_of(episode) or "unknown"
    kept: Any = episode.metadata.get(LANGCHAIN)
    try:
        if kept is None:
            return _from_another(role, episode)
        whole = cast("dict[str, Any]", kept)
        data = {"content": episode.content} | whole["data"]
        return messages_from_dict([whole | {"data": data}])[0]
    except (ValueError, TypeError, KeyError, AttributeError):
        # Of a version of LangChain that this one cannot read, or written by hand.
        _LOG.warning("a stored message is not one that langchain-core can read; its text is used")
        return _plain(role, episode.content, _answered(kept))


def _answered(kept: Any) -> str | None:
    """Return the call that a message which cannot be read answers, as far as it says so."""
    try:
        named = kept["data"]["tool_call_id"]
    except (TypeError, KeyError):
        return None
    return named if isinstance(named, str) else None


def _from_another(role: str, episode: Episode) -> BaseMessage:
    said = said_in(episode)
    if said.calls and said.answers is None:
        return AIMessage(
            said.text, tool_calls=[{**one._asdict(), "type": "tool_call"} for one in said.calls]
        )
    return _plain(role, said.text, said.answers)


def _plain(role: str, content: str, answers: str | None) -> BaseMessage:
    """Return a message of a role; what a tool said names the call that it answers, if any."""
    if answers is not None:
        return ToolMessage(content, tool_call_id=answers)
    speaker = ROLES[role]
    if speaker in _PLAIN:
        return _PLAIN[speaker](content)
    return ChatMessage(content=content, role=role if speaker == "unknown" else speaker)
