"""Objects of the files that are imported, and the checks of what is in them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from engram import arguments
from engram.errors import InvalidArgument
from engram.storage.lifecycle import EVIDENCE
from engram.storage.projects import FACT
from engram.times import from_micros, to_micros
from engram.transfer.strict_json import items, parse

_LONGEST_ID = 200


def memory_id(value: object, where: str) -> str:
    """Return the id of a memory: the ids of check observations and facts are others.

    It may be any other text that no call refuses for its length: stores hold such from imports.

    Raises:
        InvalidType: It is no text.
        InvalidArgument: It is empty or too long, or the id of something else.
    """
    uid = arguments.text(value, where)
    if not 0 < len(uid) <= _LONGEST_ID:
        message = f"{where} must have 1 to {_LONGEST_ID} characters"
        raise InvalidArgument(message)
    if uid.startswith((EVIDENCE, FACT)):
        message = f"{where} must not begin with {EVIDENCE!r} or {FACT!r}"
        raise InvalidArgument(message, "those are ids of check observations and facts")
    return uid


class Row:
    """An object of a file, whose members are checked as they are asked for.

    Each method takes a member's name and raises `InvalidArgument` or `InvalidType`, naming the
    place, where its value is refused.

    Args:
        values: The object.
        where: Its place in the file.
        now: The time, in microseconds.
    """

    def __init__(self, values: dict[str, Any], where: str, now: int) -> None:
        self._values = values
        self.where = where
        self.now = now

    def _get(self, name: str) -> tuple[Any, str]:
        return self._values.get(name), self.place(name)

    def place(self, name: str) -> str:
        """Return what messages call a member."""
        return f"{self.where}.{name}"

    def has(self, name: str) -> bool:
        """Say whether a member is there and not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Return a text."""
        return arguments.text(*self._get(name))

    def id(self, name: str) -> str:
        """Return a public id: any text but the empty one."""
        uid = self.text(name)
        if not uid:
            message = f"{self.place(name)} must not be empty"
            raise InvalidArgument(message)
        return uid

    def memory_id(self, name: str) -> str:
        """Return the id of a memory."""
        return memory_id(*self._get(name))

    def optional(self, name: str) -> str | None:
        """Return a text; None where there is none."""
        return self.text(name) if self.has(name) else None

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """Return a number from `low` to `high`, the default where there is none."""
        value, where = self._get(name)
        return default if value is None else arguments.number(value, where, low, high)

    def count(self, name: str) -> int:
        """Return a whole number, 0 where there is none."""
        value, where = self._get(name)
        return 0 if value is None else arguments.integer(value, where, 0, 2**62)

    def flag(self, name: str) -> int | None:
        """Return 0, 1 or, where there is none, None."""
        value, where = self._get(name)
        if value is not None and (not isinstance(value, int) or value not in (0, 1)):
            message = f"{where} must be 0, 1 or null"
            raise InvalidArgument(message)
        return None if value is None else int(value)

    def time(self, name: str) -> int:
        """Return the microseconds of a date and time in ISO 8601."""
        text = self.text(name)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            message = f"{self.place(name)} must be a date and time in ISO 8601"
            raise InvalidArgument(message) from None
        return to_micros(moment, self.place(name))

    def optional_time(self, name: str) -> int | None:
        """Return what `time` does; None where there is none."""
        return self.time(name) if self.has(name) else None

    def moment(self, name: str) -> int | None:
        """Return the microseconds of Unix seconds, a `datetime` or ISO 8601; None where none is."""
        value, where = self._get(name)
        if value is None or isinstance(value, str):
            return self.optional_time(name)
        if isinstance(value, datetime):
            return to_micros(value, where)
        micros = round(arguments.number(value, where) * 1e6)
        try:
            from_micros(micros)
        except OverflowError:
            message = f"{where} must be Unix seconds, of a time in the years 1 to 9999"
            raise InvalidArgument(message) from None
        return micros

    def names(self, name: str) -> list[str]:
        """Return names: a list of texts, or such a list as JSON text."""
        value, where = self._get(name)
        if isinstance(value, str):
            value = parse(value, where)
            # The reference stored the text where a caller passed one name for a list of names.
            value = [value] if isinstance(value, str) else value
        return list(arguments.names([] if value is None else items(value, where), where))
