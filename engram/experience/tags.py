"""Tags in the forms in which clients give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from engram import arguments
from engram.errors import InvalidType


def read_tags(value: object, argument: str = "tags") -> tuple[str, ...]:
    """Return the tags that a value stands for, in its order.

    Blank ones are left out. Those of a list, or of the text of a JSON list, stay as they are
    written, also where they come twice; those between commas lose the space around them.

    Args:
        value: None, a list of `str`, or a `str`: a JSON list, tags between commas, or one tag.
        argument: Its name, for messages.

    Raises:
        InvalidType: It is something else, or holds something that is no `str`.
        InvalidArgument: A tag is not Unicode text.
    """
    if isinstance(value, Mapping):
        message = f"{argument} must be a list of str, not {type(value).__name__}"
        raise InvalidType(message)
    if not isinstance(value, str):
        return _filled(arguments.names(value, argument))
    text = arguments.text(value, argument)
    listed = _listed(text)
    if listed is not None:
        return _filled(arguments.names(listed, argument))
    return _filled(name.strip() for name in text.split(","))


def _listed(text: str) -> list[str] | None:
    """Return the texts of a JSON list, None where it is no list of nothing but texts."""
    if not text.lstrip().startswith("["):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(name, str) for name in found) else None


def _filled(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.strip())
