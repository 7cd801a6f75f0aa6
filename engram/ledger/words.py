"""Bounded texts: what most arguments of a ledger are."""

from __future__ import annotations

from engram import arguments
from engram.errors import InvalidArgument


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
    given = arguments.text(value, argument)
    trimmed = given.strip()
    if not trimmed or len(given) > longest:
        message = f"{argument} must have 1 to {longest} characters, not all of them blank"
        raise InvalidArgument(message)
    return trimmed
