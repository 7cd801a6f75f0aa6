"""JSON as the standard has it, and errors that say where."""

from __future__ import annotations

import json
from typing import Any

from engram.errors import InvalidArgument


def _refuse(constant: str) -> None:
    message = f"{constant} is no JSON number"
    raise ValueError(message)


def parse(text: str | bytes, where: str) -> Any:
    """Return what a JSON text says.

    Raises:
        InvalidArgument: It is no UTF-8 or no JSON, holds NaN or an infinity, or nests too deep.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        message = f"{where} is not JSON"
        raise InvalidArgument(message, "NaN and infinities are not JSON either") from None


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
