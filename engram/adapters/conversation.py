"""Conversations in a store, marked alike by all adapters, so that each reads what others wrote.

A message is an episode: its text is the content, its first tag says who speaks, in the framework's
own word, and a tag `session:<id>` says which conversation it belongs to. Its metadata hold the
message exactly, as the framework writes it, and what any framework needs to know of tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from engram import arguments
from engram.models import ObserveInput
from engram.provenance import DEFAULT_PROVENANCE, PROVENANCES, TRUSTED_PROVENANCE, least_trusted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engram.engine import Engram
    from engram.models import Episode

__all__ = ["DEFAULT_SESSION", "HISTORY", "Conversation", "Turn", "provenance_of", "turn_of"]

DEFAULT_SESSION: Final = "default"
HISTORY: Final = 1000
"""Messages that an adapter loads of a conversation, the newest, unless it is told otherwise."""

_LONGEST = 200
_PAGE = 1000
_SESSION = "session:"
_MEMBER = "message"
_ROLES: Final = {
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
_SOURCES: Final = {"user": TRUSTED_PROVENANCE, "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation.

    Attributes:
        speaker: Who speaks, in the framework's word, such as "human" or "user".
        text: What is said.
        framework: The package whose message it is, such as "langchain".
        message: The message exactly, as a JSON object of that package's making; empty where the
            episode was no adapter's.
        tool_calls: The tools it calls, each with `id`, `name` and `args`.
        tool_call_id: The call that it answers.
        provenance: Where it came from.
        quarantined: Whether its writer had read untrusted content before.
    """

    speaker: str
    text: str
    framework: str = ""
    message: Mapping[str, object] = field(default_factory=dict)
    tool_calls: tuple[Mapping[str, object], ...] = ()
    tool_call_id: str | None = None
    provenance: str = DEFAULT_PROVENANCE
    quarantined: bool = False

    @property
    def role(self) -> str:
        """Who speaks, alike in all frameworks: "user", "assistant", "system", "tool", "unknown"."""
        return _ROLES.get(self.speaker, "unknown")


class Conversation:
    """The messages of one session, in a store that may hold many.

    Args:
        memory: The store; messages are its agent's.
        session_id: Which conversation, 1 to 200 characters.

    Raises:
        InvalidArgument, InvalidType: The session id is refused.
    """

    def __init__(self, memory: Engram, session_id: str = DEFAULT_SESSION) -> None:
        self._memory = memory
        self._tag = f"{_SESSION}{arguments.label(session_id, 'session_id', _LONGEST)}"

    @property
    def tag(self) -> str:
        """The tag of its messages, to filter a recall by."""
        return self._tag

    def add(self, turns: Iterable[Turn]) -> list[str]:
        """Write messages, all or none, and return the ids of their episodes.

        Raises:
            InvalidArgument, InvalidType, EngramError: As for `Engram.observe_many`.
        """
        return self._memory.observe_many([self._input(turn) for turn in turns])

    def newest(self, limit: int = HISTORY) -> list[Turn]:
        """Return the newest messages, in the order of the conversation.

        Args:
            limit: How many at most.

        Raises:
            EngramError: The store cannot be read.
        """
        return [turn_of(episode) for episode in reversed(self._episodes(limit))]

    def _episodes(self, limit: int) -> list[Episode]:
        found: list[Episode] = []
        cursor = None
        while len(found) < limit:
            page = self._memory.episodes(
                limit=min(_PAGE, limit - len(found)), cursor=cursor, tags=[self._tag]
            )
            found += page.episodes
            cursor = page.cursor
            if cursor is None:
                break
        return found

    def _input(self, turn: Turn) -> ObserveInput:
        known: dict[str, object] = {"framework": turn.framework, "document": turn.message}
        if turn.tool_calls:
            known["tool_calls"] = list(turn.tool_calls)
        if turn.tool_call_id is not None:
            known["tool_call_id"] = turn.tool_call_id
        return ObserveInput(
            turn.text,
            tags=[turn.speaker, self._tag],
            provenance=turn.provenance,
            quarantined=turn.quarantined,
            metadata={_MEMBER: known},
        )


def provenance_of(speaker: str, marks: Mapping[str, object]) -> str:
    """Return where a message comes from: people and tools by their role, all else is external.

    Args:
        speaker: Who speaks, in the framework's word.
        marks: What the message carries beside its text. A `provenance` in it, which recalled
            messages have, can only make it less trusted.
    """
    by_role = _SOURCES.get(_ROLES.get(speaker, ""), DEFAULT_PROVENANCE)
    marked = marks.get("provenance", by_role)
    return least_trusted([by_role, marked if marked in PROVENANCES else DEFAULT_PROVENANCE])


def turn_of(episode: Episode) -> Turn:
    """Return the message that an episode is; one that no adapter wrote is its text alone.

    The speaker is the first tag that is a role, "unknown" where none is.
    """
    stored = episode.metadata.get(_MEMBER)
    known: Mapping[str, object] = stored if isinstance(stored, Mapping) else {}
    message, framework = known.get("document"), known.get("framework")
    calls, answers = known.get("tool_calls"), known.get("tool_call_id")
    return Turn(
        speaker=next((tag for tag in episode.tags if tag in _ROLES), "unknown"),
        text=episode.content,
        framework=framework if isinstance(framework, str) else "",
        message=message if isinstance(message, Mapping) else {},
        tool_calls=tuple(call for call in calls if isinstance(call, Mapping))
        if isinstance(calls, list)
        else (),
        tool_call_id=answers if isinstance(answers, str) else None,
        provenance=episode.provenance,
        quarantined=episode.quarantined,
    )
