"""The parameters of the tools of profile "memory", and their JSON schemas.

Of each tool those that clients made for the reference know, with its defaults. An optional one
that is null is as good as left out, as everywhere in this protocol.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from engram.server.methods import Record, converted

_Text = Annotated[str, Meta(description="At most 10,000 bytes of UTF-8.")]
_Project = Annotated[str, Meta(description="The project that this is about.")]
_Days = Annotated[
    float, Meta(ge=0, le=3650, description="Days after which an unused memory is stale.")
]
_MinScore = Annotated[float, Meta(ge=0, le=1, description="Stale ones have a lower score.")]
_Id = Annotated[str, Meta(description="The id of a memory.")]


class Store(Struct, kw_only=True):
    """Of `memory_store`."""

    context: _Text
    action: _Text
    result: _Text
    memory_type: Literal["decision", "pattern", "bugfix", "context", "antipattern"] = "decision"
    tags: list[str] | UnsetType = UNSET
    project: _Project | UnsetType = UNSET


class Search(Struct, kw_only=True):
    """Of `memory_search`."""

    query: Annotated[str, Meta(description="At most 5,000 bytes of UTF-8.")]
    limit: Annotated[float, Meta(description="A whole number: how many come back at most.")] = 10
    project: (
        Annotated[str, Meta(description="Memories of other projects count for less.")] | UnsetType
    ) = UNSET
    tags: Annotated[list[str], Meta(description="All of these must be there.")] | UnsetType = UNSET


class Judge(Struct, kw_only=True):
    """Of `memory_judge`."""

    memory_id: _Id
    query: (
        Annotated[
            str, Meta(description="What was searched for: without a score one is made of it.")
        ]
        | UnsetType
    ) = UNSET
    score: (
        Annotated[float, Meta(ge=0, le=1, description="How useful the memory was.")] | UnsetType
    ) = UNSET


class One(Struct, kw_only=True):
    """Of tools about one memory."""

    id: _Id


class Nothing(Struct, kw_only=True):
    """Of tools without parameters."""


class Config(Struct, kw_only=True):
    """Of `memory_config`."""

    action: Literal["get", "set"] = "get"


class ImportedMemory(Record, kw_only=True):
    """One memory of an import."""

    tags: str | list[str] | None = None


class Import(Struct, kw_only=True):
    """Of `memory_import`."""

    version: Annotated[int, Meta(ge=0, description="Of the export; this server has 1.")]
    memories: Annotated[list[ImportedMemory], Meta(description="As an export has them.")]


class Candidates(Struct, kw_only=True):
    """Of `memory_consolidate_preview` and `memory_consolidate`."""

    stale_days: _Days | UnsetType = UNSET
    min_score: _MinScore | UnsetType = UNSET


class Apply(Candidates, kw_only=True):
    """Of `memory_consolidate_apply`."""

    min_confidence: (
        Annotated[float, Meta(ge=0, le=1, description="What is less sure is left undone.")]
        | UnsetType
    ) = UNSET


class Log(Struct, kw_only=True):
    """Of `memory_consolidate_log`."""

    limit: Annotated[int, Meta(ge=1, description="How many steps; left out: 50.")] | UnsetType = (
        UNSET
    )


class Insights(Struct, kw_only=True):
    """Of `memory_insights`."""

    action: Literal["list", "generate", "delete"] = "list"
    id: Annotated[str, Meta(description="Of the insight to delete.")] | UnsetType = UNSET


_LISTS: Final = ("tags", "memories")
_REFERENCE: Final = "#/$defs/{name}"


def schema_of(parameters: type[Struct]) -> dict[str, Any]:
    """Return the JSON schema of a tool's parameters, whole: many clients follow no `$ref`."""
    (_,), parts = msgspec.json.schema_components([parameters], ref_template=_REFERENCE)
    found: dict[str, Any] = _whole(parts[parameters.__name__], parts)
    return found


def _whole(part: Any, parts: dict[str, Any]) -> Any:
    """Return a part of a schema with what it refers to, and without the names of our types."""
    if isinstance(part, list):
        return [_whole(one, parts) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return _whole(parts[part["$ref"].rpartition("/")[2]], parts)
    ours = ("title", "description") if part.get("type") == "object" else ()
    typed = {"type": "string"} if "enum" in part else {}
    return typed | {name: _whole(one, parts) for name, one in part.items() if name not in ours}


def given(sent: dict[str, Any], parameters: type[Struct]) -> dict[str, Any]:
    """Return parameters that a client sent, checked, with the defaults of those left out.

    Args:
        sent: As they came; unknown ones are ignored.
        parameters: The type that checks them.

    Raises:
        Failure: One is missing, or of another type; the text names it and quotes nothing.
    """
    present = {name: _read(name, value) for name, value in sent.items() if value is not None}
    found: dict[str, Any] = msgspec.to_builtins(converted(present, parameters))
    return found


def _read(name: str, value: object) -> object:
    """Return a value; a list that some clients send as a text of JSON is read."""
    if name in _LISTS and isinstance(value, str):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
