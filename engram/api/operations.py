"""The catalogue: what may be asked for, with the types that both check and describe arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from engram.arguments import MAX_QUERY, MAX_RESULTS
from engram.entries import (
    LONGEST_ITEM,
    LONGEST_LABEL,
    LONGEST_REFERENCE,
    LONGEST_SUMMARY,
    LONGEST_TASK,
    MOST_ITEMS,
    MOST_REFERENCES,
)
from engram.ledger.dormancy import LONGEST_ID, MAX_EVENTS
from engram.ledger.evidence import MAX_EVIDENCE
from engram.ledger.projects import MAX_MEMORIES
from engram.paths import MAX_LENGTH

__all__ = ["CATALOGUE", "Operation", "catalogue"]

Action = Literal["save", "clear"]
Outcome = Literal["unknown", "supported", "contradicted"]
Category = Literal["useful", "irrelevant", "dismissed"]

# A text with something in it. The pattern is checked and not published: what is published is the
# contract's, and has no word for it.
_FILLED = r"\S"
_Label = Annotated[str, Meta(min_length=1, max_length=LONGEST_LABEL, pattern=_FILLED)]
_Task = Annotated[str, Meta(min_length=1, max_length=LONGEST_TASK, pattern=_FILLED)]
_Event = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=_FILLED)]
_Project = Annotated[str, Meta(min_length=1, max_length=MAX_LENGTH, pattern=_FILLED)]
_Query = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY, pattern=_FILLED)]
_Item = Annotated[str, Meta(min_length=1, max_length=LONGEST_ITEM, pattern=_FILLED)]
_Items = Annotated[list[_Item], Meta(max_length=MOST_ITEMS)]
_Reference = Annotated[str, Meta(max_length=LONGEST_REFERENCE)]
_References = Annotated[list[_Reference], Meta(max_length=MOST_REFERENCES)]
_Memories = Annotated[int, Meta(ge=1, le=MAX_MEMORIES)]
_Results = Annotated[int, Meta(ge=1, le=MAX_RESULTS)]
_Observations = Annotated[int, Meta(ge=1, le=MAX_EVIDENCE)]
_Events = Annotated[int, Meta(ge=1, le=MAX_EVENTS)]


class Arguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """The arguments of an operation; one that may be null is as good as left out then."""


class NoArguments(Arguments):
    """Of operations that take none."""


class Recall(Arguments):
    """Of `recall`."""

    project_id: _Project
    limit: _Memories = 8


class Search(Arguments):
    """Of `search` and `search_explain`."""

    query: _Query
    top_k: _Results | None = None


class DormantReview(Arguments):
    """Of `dormant_review`."""

    limit: _Events = 20


class DormantInspect(Arguments):
    """Of `dormant_inspect`."""

    event_id: _Event


class DormantFeedback(Arguments):
    """Of `dormant_feedback`."""

    event_id: _Event
    category: Category


class SessionResume(Arguments):
    """Of `session_resume`."""

    project_id: _Project
    task: _Task | None = None
    limit: _Memories = 8


class SessionCheckpoint(Arguments):
    """Of `session_checkpoint`."""

    project_id: _Project
    task: _Task
    summary: Annotated[str, Meta(max_length=LONGEST_SUMMARY)] = ""
    action: Action = "save"
    decisions: _Items | None = None
    next_steps: _Items | None = None
    blockers: _Items | None = None


class EvidencePut(Arguments):
    """Of `evidence_put`; times in Unix seconds."""

    project_id: _Project
    session_id: _Label
    assumption_id: _Label
    evidence_id: _Label
    outcome: Outcome
    observed_at: float
    expires_at: float
    observation: dict[str, Any]
    provenance: dict[str, Any]
    source_refs: _References | None = None


class EvidenceGet(Arguments):
    """Of `evidence_get`."""

    project_id: _Project
    id: _Label


class EvidenceList(Arguments):
    """Of `evidence_list`."""

    project_id: _Project
    session_id: _Label | None = None
    assumption_id: _Label | None = None
    limit: _Observations = 20


@dataclass(frozen=True, slots=True)
class Operation:
    """Something to ask for.

    Attributes:
        arguments: The type of its arguments.
        description: What it does, for whoever reads the catalogue.
        writes: Whether it may change the store.
        alias_for: The operation it is another name of.
    """

    arguments: type[Arguments]
    description: str
    writes: bool = False
    alias_for: str | None = None


_SAVE = Operation(
    SessionCheckpoint,
    "Save where a task of a project stands, in the place of what was saved before; or clear it.",
    writes=True,
)
_RESUME = Operation(
    SessionResume,
    "A project's newest memories and the checkpoint of one task, or its three latest ones.",
)


def _alias(name: str, operation: Operation) -> Operation:
    return Operation(
        operation.arguments, f"Another name of {name}.", writes=operation.writes, alias_for=name
    )


CATALOGUE: Final[dict[str, Operation]] = {
    "operations": Operation(NoArguments, "This list. Needs no store."),
    "status": Operation(
        NoArguments, "What the store holds, if it is there, and how this process runs."
    ),
    "config_show": Operation(
        NoArguments, "The settings in force and where each is from, secrets hidden. No store."
    ),
    "recall": Operation(Recall, "A project's newest memories and its three latest checkpoints."),
    "search": Operation(
        Search,
        "Memories of the whole store that answer a query, the best first. Counts as an access.",
        writes=True,
    ),
    "search_explain": Operation(
        Search, "The same, with a report on what was found and left out. Leaves no trace."
    ),
    "dormant_review": Operation(
        DormantReview, "The latest evaluations of dormant memories, without what they say."
    ),
    "dormant_inspect": Operation(
        DormantInspect, "Show the memory an evaluation chose, and record that.", writes=True
    ),
    "dormant_feedback": Operation(
        DormantFeedback, "Say what an inspected memory was good for; once.", writes=True
    ),
    "session_resume": _RESUME,
    "session_checkpoint": _SAVE,
    "checkpoint": _alias("session_checkpoint", _SAVE),
    "resume": _alias("session_resume", _RESUME),
    "evidence_put": Operation(
        EvidencePut, "Keep what a check of yours observed. Nothing is checked here.", writes=True
    ),
    "evidence_get": Operation(EvidenceGet, "An observation as it stands now."),
    "evidence_list": Operation(EvidenceList, "A project's latest observations as they stand now."),
}
"""Every operation by its name, in the order of the list."""

_ORDER = (*get_args(Action), *get_args(Outcome), *get_args(Category))


def catalogue() -> list[dict[str, object]]:
    """Return what a client is told of every operation."""
    return [_entry(name, operation) for name, operation in CATALOGUE.items()]


def _entry(name: str, operation: Operation) -> dict[str, object]:
    entry: dict[str, object] = {
        "name": name,
        "description": _description(operation),
        "inputSchema": input_schema(operation.arguments),
        "writes": operation.writes,
    }
    if operation.alias_for is not None:
        entry["alias_for"] = operation.alias_for
    return entry


def _description(operation: Operation) -> str:
    if not (names := nullable(operation.arguments)):
        return operation.description
    return f"{operation.description} Null is as good as leaving out: {', '.join(names)}."


def nullable(arguments: type[Arguments]) -> list[str]:
    """Return the names of the arguments that may be null, which means the same as leaving out."""
    return [field.name for field in msgspec.structs.fields(arguments) if field.default is None]


def input_schema(arguments: type[Arguments]) -> dict[str, object]:
    """Return the JSON schema of arguments, in the contract's form.

    It has no word for null: see `nullable`.
    """
    schema = msgspec.json.schema(arguments)["$defs"][arguments.__name__]
    return {
        "type": "object",
        "properties": {name: _shaped(part) for name, part in schema["properties"].items()},
        "required": schema["required"],
        "additionalProperties": False,
    }


def _shaped(part: dict[str, Any]) -> dict[str, Any]:
    default = part.get("default")
    part = part.get("anyOf", [part])[0]
    shaped = {name: value for name, value in part.items() if name not in {"pattern", "default"}}
    if default:
        shaped["default"] = default
    if "items" in shaped:
        shaped["items"] = _shaped(shaped["items"])
    if "enum" in shaped:
        shaped |= {"type": "string", "enum": sorted(shaped["enum"], key=_ORDER.index)}
    return shaped
