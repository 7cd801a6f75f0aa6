"""The tools' parameters, described for the model, and how their values are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

from pydantic import BeforeValidator, Field

from engram.errors import InvalidArgument, ScopeError
from engram.times import from_iso

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["check_scope", "moment"]

MOST: Final = 1000
"""What a call returns at most."""


def _whole(value: object) -> object:
    """Return an integer for a number that is one: JSON has no two kinds."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Text: TypeAlias = str | None
Names: TypeAlias = list[str] | None

Identity = Annotated[Text, Field(description="The server's own agent id; null means the same.")]

Content = Annotated[Text, Field(description="Episodic: the text.")]
WrittenKind = Annotated[str, Field(description="episodic or semantic.")]
Subject = Annotated[Text, Field(description="Semantic: what it is about.")]
Predicate = Annotated[Text, Field(description="Semantic: the relation.")]
Value = Annotated[Text, Field(description="Semantic: the value.")]
Claim = Annotated[
    Text, Field(description="Episodic: tool or external, to trust it less than the server does.")
]
Shared = Annotated[
    bool, Field(strict=True, description="Semantic: whether other agents of the file see it.")
]
ReadUntrusted = Annotated[
    bool,
    Field(strict=True, description="It follows content from a tool, a page or another agent."),
]
Happened = Annotated[
    Text, Field(description="ISO 8601: when it happened, or began to hold; null is now.")
]
Labels = Annotated[Names, Field(description="Episodic: labels to filter by.")]
Participants = Annotated[Names, Field(description="Episodic: who took part.")]
Source = Annotated[
    Text, Field(description="Semantic: id of an episode of this agent that the fact rests on.")
]

MemoryId = Annotated[str, Field(description="The id that a tool returned.")]
Query = Annotated[str, Field(description="A question or keywords, in natural language.")]
Limit = Annotated[
    int,
    BeforeValidator(_whole),
    Field(strict=True, ge=1, le=MOST, description="How many at most."),
]
Mode = Annotated[
    str,
    Field(description="hybrid: meaning and words; cosine: meaning; spreading: and what is linked."),
]
FoundKind = Annotated[str, Field(description="any, episodic or semantic.")]
Tags = Annotated[Names, Field(description="Only episodes with all of these tags.")]
Actors = Annotated[Names, Field(description="Only episodes with all of these actors.")]
Since = Annotated[Text, Field(description="ISO 8601: the earliest event time, inclusive.")]
Until = Annotated[Text, Field(description="ISO 8601: the latest event time, inclusive.")]
AsOf = Annotated[Text, Field(description="ISO 8601: what had happened, or held, at that time.")]
KnownAt = Annotated[Text, Field(description="ISO 8601: as it was known at that time.")]
TrustedOnly = Annotated[
    bool,
    Field(
        strict=True,
        description="Only the user's own unquarantined words; the session stays trusted.",
    ),
]
EntityName = Annotated[str, Field(description="The subject, exactly as stated, or its alias.")]
Cursor = Annotated[Text, Field(description="The cursor of the page before; null starts.")]


def check_scope(given: str | None, own: str | None) -> None:
    """Refuse a call that names an agent, unless that is the server.

    Args:
        given: The agent that the caller names.
        own: The server's identity; None is nobody in particular, so no name is right.

    Raises:
        ScopeError: It is another agent; it is a PermissionError.
    """
    if given is None or given == own:
        return
    message = "agent_id is not this server's"
    raise ScopeError(message, "leave it out: the server serves its own agent alone")


def moment(text: str | None, argument: str) -> datetime | None:
    """Return the UTC time that a parameter's text means; without an offset it is UTC.

    Raises:
        InvalidArgument: It is no ISO 8601 date, or outside the years 1 to 9999.
    """
    if text is None:
        return None
    try:
        return from_iso(text)
    except ValueError:
        message = f"{argument} is no ISO 8601 date"
        raise InvalidArgument(message, "such as 2026-03-01T09:30:00+02:00") from None
