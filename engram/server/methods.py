"""The catalogue: what may be asked for, with the types that check parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

from engram.server.failures import DISPATCH, Failure

_Count = Annotated[int, Meta(ge=0)]
_Days = Annotated[int, Meta(ge=0, le=3650)]
_Share = Annotated[float, Meta(ge=0, le=1)]

# Of what msgspec finds wrong: the place holds names of ours, and the rest names types and limits.
_PLACE: Final = re.compile(r" - at `\$\.?([^`]*)`$")
_MISSING: Final = re.compile(r"missing required field `(\w+)`")
_EXPECTED: Final = re.compile(r"^Expected [^`]*`[^`]*`( [<>]=? [0-9.]+|, got `\w+`)?")

_NAME: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_DEPTH: Final = 4
_Struct = TypeVar("_Struct", bound=Struct)


class Params(Struct, kw_only=True):
    """The parameters of a method; unknown ones are ignored, null is as good as left out."""


class NoParams(Params):
    """Of methods that need none: what is no object is as good as none."""


class Store(Params):
    """Of `memory_store`; `tags` in any of the forms that tags may have."""

    context: str
    action: str
    result: str
    memory_type: str | None = None
    tags: Any = None
    project: str | None = None


class Search(Params):
    """Of `memory_search`."""

    query: str
    limit: _Count | None = None
    mode: str | None = None
    project: str | None = None
    tags: list[str] | None = None
    memory_type: str | list[str] | None = None


class Judge(Params):
    """Of `memory_judge`."""

    memory_id: str
    score: _Share | None = None
    query: str | None = None


class Config(Params):
    """Of `memory_config`."""

    action: str | None = None


class Import(Params):
    """Of `memory_import`, before it is known whether this version can be read."""

    version: _Count
    memories: Any


class Record(Struct, kw_only=True):
    """One memory of an import; `tags` in any of the forms that tags may have."""

    id: str
    memory_type: str
    context: str
    action: str
    result: str
    score: float
    created_at: str
    updated_at: str
    used_count: _Count
    tags: Any = None
    project: str | None = None
    parent_id: str | None = None
    source_ids: str | None = None
    insight_type: str | None = None
    last_used_at: str | None = None


class Records(Struct, kw_only=True):
    """The memories of an import."""

    memories: list[Record]


class Candidates(Params):
    """Of `memory_consolidate_preview` and `memory_consolidate`."""

    stale_days: _Days | None = None
    min_score: _Share | None = None


class Apply(Candidates):
    """Of `memory_consolidate_apply`."""

    min_confidence: _Share | None = None
    dry_run: bool | None = None


class Log(Params):
    """Of `memory_consolidate_log`."""

    limit: _Count | None = None


class Undo(Params):
    """Of `memory_consolidate_undo`."""

    run_id: str


class One(Params):
    """Of methods about one memory."""

    id: str


class TrainList(NoParams):
    """Of `memory_train_list`; without `recommendations` their `limit` says nothing."""

    recommendations: bool | None = None
    limit: _Count | None = None


class Insights(Params):
    """Of `memory_insights`; what only one action needs says nothing to the others."""

    action: str | None = None
    id: str | None = None
    recommendations: bool | None = None
    limit: _Count | None = None


class Migrate(Params):
    """Of `memory_migrate_preview` and `memory_migrate_apply`."""

    all: bool | None = None
    dry_run: bool | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """What may be asked for.

    Attributes:
        params: The type that checks its parameters.
        about: What it does.
        long: Its work grows with the store, or waits for the trainer or a language model.
        asks_without: The parameter without which a language model is asked, where there is one.
    """

    params: type[Params]
    about: str
    long: bool = False
    asks_without: str | None = None


METHODS: Final = {
    "memory_store": Method(Store, "Keep a memory, unless one that says the same is there."),
    "memory_search": Method(Search, "Find memories by meaning and by words."),
    "memory_judge": Method(
        Judge, "Say how useful a memory was, or have it judged.", asks_without="score"
    ),
    "memory_delete": Method(One, "Erase a memory."),
    "memory_status": Method(NoParams, "Say how much there is, and what should be done."),
    "memory_config": Method(Config, "Say what the settings are, without keys."),
    "memory_export": Method(NoParams, "Return every memory.", long=True),
    "memory_import": Method(Import, "Bring in exported memories, all or none.", long=True),
    "memory_consolidate_preview": Method(
        Candidates, "Find duplicates, and what is stale or broken.", long=True
    ),
    "memory_consolidate": Method(
        Candidates, "Say what should become of them; changes nothing.", long=True
    ),
    "memory_consolidate_apply": Method(Apply, "Do that.", long=True),
    "memory_consolidate_log": Method(Log, "List what consolidations did, newest first."),
    "memory_consolidate_undo": Method(Undo, "Take back what a consolidation did.", long=True),
    "memory_train_generate": Method(
        NoParams, "Run the trainer and keep what it learned.", long=True
    ),
    "memory_train_list": Method(TrainList, "List the insights of the trainer."),
    "memory_train_delete": Method(One, "Erase an insight."),
    "memory_insights": Method(
        Insights, "List, delete or generate insights, by `action`.", long=True
    ),
    "memory_reembed": Method(NoParams, "Embed the texts that still wait for it.", long=True),
    "memory_migrate_preview": Method(
        Migrate, "Count what `memory_migrate_apply` would bring in.", long=True
    ),
    "memory_migrate_apply": Method(
        Migrate, "Bring in memories from the reference server's database.", long=True
    ),
}


def is_long(method: str, params: object, *, asks: bool) -> bool:
    """Return whether a request may take long, so that others must not wait for it.

    Args:
        method: What was asked for, of the catalogue or not.
        params: What came with it, unchecked.
        asks: Whether there is a language model.
    """
    known = METHODS.get(method)
    if known is None:
        return False
    given = params if isinstance(params, dict) else {}
    missing = known.asks_without is not None and given.get(known.asks_without) is None
    return known.long or (asks and missing)


def checked(method: str, params: object) -> Params:
    """Return the parameters of a method, of the type that the catalogue names.

    Args:
        method: What was asked for.
        params: What came with it; None is none.

    Raises:
        Failure: There is no such method, or a parameter is refused; the text names it and quotes
            nothing.
    """
    if method not in METHODS:
        named = f": {method}" if _NAME.fullmatch(method) else ""
        text = f"unknown method{named}"
        raise refused(text)
    kind = METHODS[method].params
    none = params is None or (issubclass(kind, NoParams) and not isinstance(params, dict))
    return converted({} if none else params, kind)


def converted(value: object, kind: type[_Struct]) -> _Struct:
    """Return a value as a struct; numbers with nothing behind the point are whole ones.

    Raises:
        Failure: A member is missing or of another type.
    """
    try:
        return msgspec.convert(_whole(value, _DEPTH), kind)
    except msgspec.ValidationError as error:
        raise refused(_problem(str(error))) from None


def refused(text: str) -> Failure:
    """Return the failure of a request that cannot be carried out as it is."""
    return Failure(DISPATCH, f"dispatch error: {text}")


def _whole(value: object, depth: int) -> object:
    if depth and isinstance(value, dict):
        return {name: _whole(part, depth - 1) for name, part in value.items()}
    if depth and isinstance(value, list):
        return [_whole(part, depth - 1) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _problem(text: str) -> str:
    found = _PLACE.search(text)
    place = found[1] if found else ""
    missing = _MISSING.search(text)
    if missing:
        name = f"{place}.{missing[1]}" if place else missing[1]
        return f"missing field `{name}`"
    expected = _EXPECTED.match(text)
    said = expected[0].replace("Expected", "expected", 1) if expected else "a value is refused"
    return f"invalid type or value of {place or 'params'}: {said}"
