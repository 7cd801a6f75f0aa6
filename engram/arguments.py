"""What callers may pass: every argument is checked here, before anything is read or written.

Messages name the argument and the type of the value, never the value's contents.
"""

from __future__ import annotations

import json
import math
import numbers
import operator
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from engram.errors import InvalidArgument, InvalidType
from engram.provenance import PROVENANCES, UNKNOWN_PROVENANCE
from engram.storage import EpisodeFilter
from engram.times import to_micros

if TYPE_CHECKING:
    from datetime import datetime

    from engram.models import Filters


MAX_QUERY: Final = 4000
"""Characters that the query of a search may have."""

MAX_RESULTS: Final = 20
"""The most that a search returns."""

_JSON_DEPTH = 100


def text(value: object, argument: str) -> str:
    """Return `value` if it is Unicode text that can be stored.

    Raises:
        InvalidType: It is no `str`.
        InvalidArgument: It holds lone surrogates, which no UTF-8 text can.
    """
    # Each of these functions lets the usual value through first: a bulk write asks it for millions.
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        message = f"{argument} must be a str, not {type(value).__name__}"
        raise InvalidType(message)
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"{argument} holds lone surrogates, which are not Unicode text"
        raise InvalidArgument(
            message, "decode the bytes it came from with errors='replace'"
        ) from None
    # A plain str: a subclass would reach SQLite as an unknown type.
    return str.__str__(value)


def label(value: object, argument: str, longest: int) -> str:
    """Return a text without the space around it.

    Args:
        value: The text.
        argument: Its name, for messages.
        longest: Characters it may have, the space around it counted.

    Raises:
        InvalidType: It is no `str`.
        InvalidArgument: It is blank or too long, or not Unicode text.
    """
    given = text(value, argument)
    trimmed = given.strip()
    if not trimmed or len(given) > longest:
        message = f"{argument} must have 1 to {longest} characters, not all of them blank"
        raise InvalidArgument(message)
    return trimmed


def query(value: object, argument: str = "query") -> str:
    """Return `value` as a query: any `str` is one, lone surrogates become U+FFFD.

    Raises:
        InvalidType: It is no `str`.
    """
    if not isinstance(value, str):
        message = f"{argument} must be a str, not {type(value).__name__}"
        raise InvalidType(message)
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def names(value: object, argument: str) -> tuple[str, ...]:
    """Return the names in `value`; None is no names.

    Raises:
        InvalidType: It is a plain `str`, no iterable, or holds something other than `str`.
        InvalidArgument: A name is not Unicode text.
    """
    if value is None:
        return ()
    if type(value) is list:
        for name in value:
            if type(name) is not str or not name.isascii():
                break
        else:
            return tuple(value)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        message = f"{argument} must be a list of str, not {type(value).__name__}"
        raise InvalidType(message)
    return tuple(text(name, f"each of {argument}") for name in value)


def one_of(value: object, known: tuple[str, ...], argument: str) -> str:
    """Return a text that is one of those known.

    Raises:
        InvalidType: It is no `str`.
        InvalidArgument: It is another one.
    """
    given = text(value, argument)
    if given not in known:
        message = f"{argument} must be one of {', '.join(known)}"
        raise InvalidArgument(message)
    return given


def number(value: object, argument: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return `value` as a float within `low` to `high`, both included.

    Raises:
        InvalidType: It is no real number; a bool is none.
        InvalidArgument: It is NaN, infinite or out of range.
    """
    if type(value) is float and low <= value <= high and math.isfinite(value):
        return value
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        message = f"{argument} must be a number, not {type(value).__name__}"
        raise InvalidType(message)
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not math.isfinite(converted):
        message = f"{argument} must be a finite number"
        raise InvalidArgument(message)
    if not low <= converted <= high:
        message = f"{argument} must be between {low:g} and {high:g}"
        raise InvalidArgument(message)
    return converted


def integer(value: object, argument: str, low: int, high: int) -> int:
    """Return `value` as an int within `low` to `high`, both included.

    Raises:
        InvalidType: It is no integer; a bool is none.
        InvalidArgument: It is out of range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        message = f"{argument} must be an int, not {type(value).__name__}"
        raise InvalidType(message)
    converted = operator.index(value)
    if converted < low:
        message = f"{argument} must be at least {low}"
        raise InvalidArgument(message)
    if converted > high:
        message = f"{argument} must be at most {high}"
        raise InvalidArgument(message)
    return converted


def flag(value: object, argument: str) -> bool:
    """Return `value` if it is a bool.

    Raises:
        InvalidType: It is not.
    """
    if not isinstance(value, bool):
        message = f"{argument} must be a bool, not {type(value).__name__}"
        raise InvalidType(message)
    return value


def json_object(value: object, argument: str) -> str | None:
    """Return `value` as the text of a JSON object; None where there is nothing in it.

    Raises:
        InvalidType: It is no mapping, or holds something that JSON has no form for.
        InvalidArgument: It holds NaN, an infinity or lone surrogates, or nests too deep.
    """
    if value is None or (type(value) is dict and not value):
        return None
    members = _json_members(value, argument)
    return json.dumps(members, ensure_ascii=False, separators=(",", ":")) if members else None


def canonical_json(value: object, argument: str, most: int) -> str:
    """Return `value` as the one text of a JSON object: ASCII, keys in order, no spaces.

    Numbers keep their type: 1, 1.0 and true are three values. (RFC 8785 makes 1 of 1.0.)

    Args:
        value: The object.
        argument: Its name, for messages.
        most: Bytes that the text may have.

    Raises:
        InvalidType, InvalidArgument: As for `json_object`, or the text is longer.
    """
    members = _json_members(value, argument)
    canonical = json.dumps(members, sort_keys=True, separators=(",", ":"))
    if len(canonical) > most:
        message = f"{argument} must take at most {most} bytes as compact JSON in ASCII"
        raise InvalidArgument(message)
    return canonical


def _json_members(value: object, argument: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        message = f"{argument} must be a mapping, not {type(value).__name__}"
        raise InvalidType(message)
    members = dict(value)
    _check_json(members, argument, _JSON_DEPTH)
    return members


def _check_json(value: object, argument: str, depth: int) -> None:
    if depth == 0:
        message = f"{argument} nests deeper than {_JSON_DEPTH} levels"
        raise InvalidArgument(message)
    if isinstance(value, dict):
        names(value, f"the keys of {argument}")
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            _check_json(part, argument, depth - 1)
    elif isinstance(value, str):
        text(value, argument)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        number(value, argument)
    elif value is not None and not isinstance(value, bool):
        message = f"{argument} holds a {type(value).__name__}, which JSON has no form for"
        raise InvalidType(message)


@cache
def _filters() -> tuple[str, ...]:
    """Return the names of all filters."""
    from engram.models import Filters  # noqa: PLC0415 - of no use to those who only check a label

    return tuple(Filters.__annotations__)


def allowed(scope: str | None, filters: Filters, as_of: datetime | None = None) -> EpisodeFilter:
    """Return the filter a caller asked for.

    Args:
        scope: The agent whose episodes are seen; None sees all.
        filters: The keyword arguments documented on `Filters`.
        as_of: Latest event time, beside the one in `filters`.

    Raises:
        InvalidType: There is an unknown filter, or one of the wrong type.
        InvalidArgument: A filter's value is refused.
    """
    if unknown := filters.keys() - set(_filters()):
        message = f"unexpected keyword argument {min(unknown)!r}"
        raise InvalidType(message, f"filters are {', '.join(_filters())}")
    latest = [
        to_micros(moment, argument)
        for moment, argument in ((filters.get("until"), "until"), (as_of, "as_of"))
        if moment is not None
    ]
    since = filters.get("since")
    return EpisodeFilter(
        agent=scope,
        since=None if since is None else to_micros(since, "since"),
        until=min(latest, default=None),
        tags=names(filters.get("tags"), "tags"),
        actors=names(filters.get("actors"), "actors"),
        provenances=_sources(filters.get("provenance")),
        exclude_quarantined=flag(filters.get("exclude_quarantined", False), "exclude_quarantined"),
    )


def _sources(value: object) -> tuple[str, ...]:
    sources = names([value] if isinstance(value, str) else value, "provenance")
    known = (*PROVENANCES, UNKNOWN_PROVENANCE)
    if not set(sources) <= set(known):
        message = f"provenance must be of {', '.join(known)}"
        raise InvalidArgument(message)
    return sources
