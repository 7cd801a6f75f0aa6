"""The files `engram ingest` reads: JSON lines of episodes, and LoCoMo-format conversations.

Both are checked from the first byte to the last before the first episode is handed out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Annotated

import msgspec

from engram.cli.failures import BadFileError
from engram.cli.options import parse_moment
from engram.errors import InvalidArgument
from engram.models import ObserveInput
from engram.provenance import DEFAULT_PROVENANCE, check_provenance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Episodes", "read_json_lines", "read_locomo"]

_BOM = b"\xef\xbb\xbf"
# What msgspec raises for text that is not the JSON asked for; too deep a nesting is the last.
_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_SESSION = re.compile(r"session_([0-9]+)")
_SESSION_DATE = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True)
class Episodes:
    """The episodes of one file, found to be sound.

    Attributes:
        format: "jsonl" or "locomo".
        total: How many there are.
        start: Returns them from the first one on, each with the agent the file gives it.
    """

    format: str
    total: int
    start: Callable[[], Iterator[tuple[str | None, ObserveInput]]]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    actors: list[str] = []
    tags: list[str] = []
    salience: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    emotional_valence: Annotated[float, msgspec.Meta(ge=-1, le=1)] = 0.0
    timestamp: str | None = None
    provenance: str = DEFAULT_PROVENANCE
    quarantined: bool = False


class _Turn(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str | None = None


class _Conversation(msgspec.Struct):
    sample_id: str
    conversation: dict[str, msgspec.Raw]


def read_json_lines(stream: IO[bytes], name: str) -> Episodes:
    """Check a file of one JSON object per line, with the fields of `ObserveInput`.

    Blank lines are allowed. The file is read twice, once to check it and once to hand out its
    episodes, so that one larger than memory can be read.

    Args:
        stream: The file, which can go back to its start.
        name: What to call it in messages.

    Raises:
        BadFileError: A line is no such object; the message names its number, never its text.
    """
    total = sum(1 for _ in _lines(stream, name))
    return Episodes("jsonl", total, lambda: ((None, episode) for episode in _lines(stream, name)))


def _lines(stream: IO[bytes], name: str) -> Iterator[ObserveInput]:
    decoder = msgspec.json.Decoder(_Line)
    stream.seek(0)
    for number, line in enumerate(stream, 1):
        text = line.removeprefix(_BOM) if number == 1 else line
        if not text.strip():
            continue
        try:
            yield _episode(decoder.decode(text))
        except (*_NOT_JSON, InvalidArgument) as error:
            reason = error.message if isinstance(error, InvalidArgument) else str(error)
            message = f"{name}, line {number}: {reason}"
            raise BadFileError(message) from None


def _episode(item: _Line) -> ObserveInput:
    given = item.timestamp
    return ObserveInput(
        item.content,
        actors=item.actors,
        tags=item.tags,
        salience=item.salience,
        emotional_valence=item.emotional_valence,
        timestamp=None if given is None else parse_moment(given, "timestamp"),
        provenance=check_provenance(item.provenance),
        quarantined=item.quarantined,
    )


def read_locomo(stream: IO[bytes], name: str) -> Episodes:
    """Check a JSON array of conversations in the format of the LoCoMo data set.

    A turn becomes an episode of the agent `sample_id`: its speaker is the actor, its tags are the
    conversation, the session and the turn, and its time is the session's, read as UTC. The caption
    of a shared picture follows the text.

    Args:
        stream: The file; it is read whole.
        name: What to call it in messages.

    Raises:
        BadFileError: It is no such array; the message names the conversation and the session.
    """
    stream.seek(0)
    try:
        conversations = msgspec.json.decode(
            stream.read().removeprefix(_BOM), type=list[_Conversation]
        )
    except _NOT_JSON as error:
        message = f"{name}: {error}"
        raise BadFileError(message) from None
    seen: set[str] = set()
    episodes: list[tuple[str | None, ObserveInput]] = []
    for conversation in conversations:
        agent = conversation.sample_id
        if agent in seen:
            message = f"{name}: two conversations have the same sample_id"
            raise BadFileError(message, "each becomes an agent of its own")
        seen.add(agent)
        episodes += [(agent, turn) for turn in _turns(conversation, name)]
    return Episodes("locomo", len(episodes), lambda: iter(episodes))


def _turns(conversation: _Conversation, name: str) -> Iterator[ObserveInput]:
    parts = conversation.conversation
    numbers = sorted(int(found[1]) for key in parts if (found := _SESSION.fullmatch(key)))
    for session in (f"session_{number}" for number in numbers):
        where = f"{name}, {conversation.sample_id}, {session}"
        try:
            turns = msgspec.json.decode(parts[session], type=list[_Turn])
        except _NOT_JSON as error:
            message = f"{where}: {error}"
            raise BadFileError(message) from None
        moment = _session_date(parts.get(f"{session}_date_time"), where) if turns else None
        for turn in turns:
            caption = f" [shares {turn.blip_caption}]" if turn.blip_caption else ""
            yield ObserveInput(
                turn.text + caption,
                actors=[turn.speaker],
                tags=[conversation.sample_id, session, turn.dia_id],
                timestamp=moment,
            )


def _session_date(given: msgspec.Raw | None, where: str) -> datetime:
    try:
        text = "" if given is None else msgspec.json.decode(given, type=str)
        return datetime.strptime(text, _SESSION_DATE).replace(tzinfo=UTC)
    except (*_NOT_JSON, ValueError):
        message = f"{where}: its date_time is missing or no date"
        raise BadFileError(message, "it looks like 1:56 pm on 8 May, 2023") from None
