"""JSON as the standard has it, and errors that say where."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from engram.errors import InvalidArgument

# A whole string, even one that never ends, or a bracket. Each part keeps what it took, so that no
# text costs more than one pass.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[\[{]|[\]}]', re.DOTALL)
_OPENING = frozenset("[{")
_CLOSING = frozenset("]}")

MAX_DIGITS: Final = 4300
"""Digits that an integer may have: what Python reads in a time that is linear in practice."""


class NamedTwiceError(InvalidArgument):
    """An object names a member twice, of which readers take the first or the last."""


def _refuse(constant: str) -> None:
    message = f"{constant} is no JSON number"
    raise ValueError(message)


def parse(text: str | bytes, where: str) -> Any:
    """Return what a JSON text says.

    Raises:
        NamedTwiceError: An object in it names a member twice.
        InvalidArgument: It is no UTF-8 or no JSON, holds NaN or an infinity, or nests too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_distinct)
    except NamedTwiceError:
        message = f"{where} names a member of an object twice"
        raise NamedTwiceError(message) from None
    except (ValueError, RecursionError):
        message = f"{where} is not JSON"
        raise InvalidArgument(message, "NaN and infinities are not JSON either") from None


def parse_unambiguous(text: str, max_depth: int) -> Any:
    """Return what a JSON text says to every reader alike.

    Args:
        text: The text.
        max_depth: How many objects and arrays may be open at one place.

    Raises:
        ValueError: It is no JSON, nests deeper, names a member of an object twice, holds a number
            that no float is large enough for, or an integer of more than `MAX_DIGITS` digits.
    """
    _check_depth(text, max_depth)
    return json.loads(
        text,
        parse_constant=_refuse,
        parse_float=_finite,
        parse_int=_integer,
        object_pairs_hook=_distinct,
    )


def _check_depth(text: str, max_depth: int) -> None:
    """Raise `ValueError` for what nests too deep, before a recursive parser sees it."""
    depth = 0
    for token in _TOKEN.finditer(text):
        character = text[token.start()]
        if character in _OPENING:
            depth += 1
            if depth > max_depth:
                message = f"nested deeper than {max_depth} levels"
                raise ValueError(message)
        elif character in _CLOSING:
            depth -= 1


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        message = "a number is too large for a float"
        raise ValueError(message)
    return number


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        message = f"an integer has more than {MAX_DIGITS} digits"
        raise ValueError(message)
    return int(digits)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        message = "a member of an object is named twice"
        raise NamedTwiceError(message)
    return found


def members(value: object, where: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        InvalidArgument: It is something else.
    """
    if not isinstance(value, dict):
        message = f"{where} must be an object, not {type(value).__name__}"
        raise InvalidArgument(message)
    return value


def items(value: object, where: str) -> list[Any]:
    """Return a JSON array.

    Raises:
        InvalidArgument: It is something else.
    """
    if not isinstance(value, list):
        message = f"{where} must be a list, not {type(value).__name__}"
        raise InvalidArgument(message)
    return value
