"""What the trainer says: one JSON object a line, told apart by its member `type`."""

from __future__ import annotations

import math
from typing import Annotated, Final

import msgspec

# Beyond that SQLite, which keeps them, has no whole numbers.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Said(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """A message; members that it does not know are ignored."""


class Progress(_Said, frozen=True):
    """How far the run got.

    Attributes:
        stage: What begins, or what failed or was left out, and why.
        percent: How much of the whole is done, 0 to 100.
    """

    stage: str
    percent: float


class Insight(_Said, frozen=True):
    """What several memories show together, to be kept as a memory of its own.

    Attributes:
        id: The same for the same memories in every run.
        context: In what situations; with some of the memories as evidence.
        action: What was done in them.
        result: What came of it.
        insight_type: "cluster", "temporal" or "causal".
        tags: What most of the memories are tagged with, a comma between each.
        source_ids: The memories, a comma between each.
    """

    id: str
    context: str
    action: str
    result: str
    insight_type: str
    tags: str | None = None
    source_ids: str | None = None


class Recommendation(_Said, frozen=True):
    """What should become of a memory.

    Attributes:
        target_id: The memory.
        action: "archive" or "merge".
        reasoning: Why.
    """

    target_id: str
    action: str
    reasoning: str


class Metric(_Said, frozen=True):
    """A number about the whole."""

    name: str
    value: float


class Artifact(_Said, frozen=True):
    """A file that was written.

    Attributes:
        path: Its absolute path.
        size_bytes: How large it is.
    """

    path: str
    size_bytes: _Count


class Complete(_Said, frozen=True):
    """The end of a run that did not fail as a whole.

    Attributes:
        insights_generated: How many insights it printed.
        duration_secs: How long it took.
    """

    insights_generated: _Count
    duration_secs: float


class Error(_Said, frozen=True):
    """The end of a run that failed."""

    message: str


Message = Progress | Insight | Recommendation | Metric | Artifact | Complete | Error

_NUMBERS: Final = ("percent", "value", "duration_secs")
_DECODER: Final = msgspec.json.Decoder(Message)
_ENCODER: Final = msgspec.json.Encoder()


def decode(line: bytes) -> Message:
    """Return the message that a line holds.

    Raises:
        ValueError: It holds none: no JSON, no known type, a member missing or of another type. The
            line is not quoted.
    """
    try:
        # Members that nobody reads are not looked at, but the line must be text as a whole.
        line.decode()
        message: Message = _DECODER.decode(line)
    except UnicodeDecodeError:
        problem = "not UTF-8"
    except msgspec.ValidationError:
        problem = "not one of the trainer's messages"
    except (msgspec.DecodeError, RecursionError):
        problem = "not JSON"
    else:
        return message
    raise ValueError(problem)


def encode(message: Message) -> bytes:
    r"""Return the line that says a message, its "\n" included.

    Raises:
        ValueError: A number in it is not finite, which JSON has no word for.
    """
    if not all(math.isfinite(getattr(message, name, 0.0)) for name in _NUMBERS):
        problem = f"a number of a {type(message).__name__} is not finite"
        raise ValueError(problem)
    return _ENCODER.encode(message) + b"\n"
