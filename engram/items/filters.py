"""Filters on values: what a member has to equal, or how it has to compare."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from engram import arguments
from engram.errors import InvalidArgument

_Test = Callable[[Any], bool]

_PLAINLY_WRITTEN: Final = 10**16
"""From here on fractions are written with an exponent."""


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Return a comparison of two numbers or two texts; anything else does not compare."""

    def holds(value: Any, wanted: Any) -> bool:
        return (
            (_is_number(value) and _is_number(wanted))
            or (isinstance(value, str) and isinstance(wanted, str))
        ) and compare(value, wanted)

    return holds


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": _ordered(operator.gt),
    "$gte": _ordered(operator.ge),
    "$lt": _ordered(operator.lt),
    "$lte": _ordered(operator.le),
}


class ValueTest(NamedTuple):
    """A filter on values.

    Attributes:
        passes: Whether a value, a JSON object, does.
        fragments: What the compact JSON of each that does has in it: texts of members that have to
            equal a text or a number, if there are any.
    """

    passes: _Test
    fragments: list[str]


def value_test(wanted: object, argument: str = "filter") -> ValueTest:
    """Return what tells whether a value, a JSON object, passes a filter.

    Each member of the filter is met by the value's member of that name, None where it has none: an
    object of operators by all of them, another object by an object whose members meet its own, a
    list by a list of as many that meet it one by one, and anything else by what equals it as Python
    has it: 1 equals 1.0 and true, 0 false. Numbers and texts are ordered among themselves; whatever
    else is compared, true and false too, is in no order.

    Args:
        wanted: The filter.
        argument: Its name, for messages.

    Raises:
        InvalidType: It is no mapping, or holds something that JSON has no form for.
        InvalidArgument: It has an operator that is unknown, or one beside a name.
    """
    arguments.json_object(wanted, argument)
    assert isinstance(wanted, Mapping)  # noqa: S101 - it was just checked
    tests = [(name, _test(one, argument)) for name, one in wanted.items()]
    return ValueTest(
        lambda value: all(meets(value.get(name)) for name, meets in tests), _fragments(wanted)
    )


def _fragments(wanted: Mapping[str, Any]) -> list[str]:
    found = list[str]()
    for name, one in wanted.items():
        if isinstance(one, dict) and not any(inner.startswith("$") for inner in one):
            found += _fragments(one)
        # Yes and no equal 1 and 0; a whole number is how the fraction that equals it begins.
        elif isinstance(one, str) or (type(one) is int and 1 < abs(one) < _PLAINLY_WRITTEN):
            found.append(f"{_json(name)}:{_json(one)}")
    return found


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _test(wanted: Any, argument: str) -> _Test:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return _operators(wanted, argument)
        inner = [(name, _test(one, argument)) for name, one in wanted.items()]
        return lambda value: (
            isinstance(value, dict) and all(meets(value.get(name)) for name, meets in inner)
        )
    if isinstance(wanted, (list, tuple)):
        each = [_test(one, argument) for one in wanted]
        return lambda value: (
            isinstance(value, list)
            and len(value) == len(each)
            and all(meets(one) for meets, one in zip(each, value, strict=True))
        )
    return lambda value: bool(value == wanted)


def _operators(wanted: dict[str, Any], argument: str) -> _Test:
    if not wanted.keys() <= _OPERATORS.keys():
        message = f"{argument} has an operator that is none of {', '.join(_OPERATORS)}"
        raise InvalidArgument(message)
    tests = [(_OPERATORS[name], _plain(one)) for name, one in wanted.items()]
    return lambda value: all(holds(value, one) for holds, one in tests)


def _plain(wanted: Any) -> Any:
    """Return a value as JSON brings it back, which has lists alone."""
    if isinstance(wanted, (list, tuple)):
        return [_plain(one) for one in wanted]
    if isinstance(wanted, dict):
        return {name: _plain(one) for name, one in wanted.items()}
    return wanted
