"""Time as the store keeps it: integer microseconds since the epoch, always UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from engram.errors import InvalidArgument, InvalidType

DAY = 86_400_000_000
"""A day in microseconds."""

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""The English names of the months."""

_LONGEST_LIMIT = 86_400.0

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def utc_now() -> datetime:
    """Return the time by the system's clock."""
    return datetime.now(UTC)


def to_micros(moment: datetime, argument: str = "timestamp") -> int:
    """Return microseconds since the epoch; a naive datetime is UTC.

    Raises:
        InvalidType: `moment` is no datetime.
        InvalidArgument: In UTC it falls outside the years 1 to 9999.
    """
    if not isinstance(moment, datetime):
        message = f"{argument} must be a datetime, not {type(moment).__name__}"
        raise InvalidType(message)
    if moment.tzinfo is not UTC and moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    micros = (moment - _EPOCH) // _MICROSECOND
    if not _FIRST <= micros <= _LAST:
        message = f"{argument} is outside the years 1 to 9999 in UTC"
        raise InvalidArgument(message)
    return micros


def from_micros(micros: int) -> datetime:
    """Return the UTC datetime of `micros` microseconds since the epoch."""
    return _EPOCH + timedelta(microseconds=micros)


def from_iso(text: str) -> datetime:
    """Return the UTC datetime that ISO 8601 text means; without an offset it is UTC.

    A date alone is its midnight.

    Raises:
        ValueError: It is no such date, or in UTC it is outside the years 1 to 9999.
    """
    moment = datetime.fromisoformat(text)
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(*error.args) from None


def time_limit(timeout: object) -> float:
    """Return `timeout` if it is seconds that a request may be given.

    Raises:
        InvalidType: It is no number.
        InvalidArgument: It is not positive, or more than a day.
    """
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        message = f"timeout must be a number, not {type(timeout).__name__}"
        raise InvalidType(message)
    if not 0 < timeout <= _LONGEST_LIMIT:
        message = f"timeout must be above 0 and at most {_LONGEST_LIMIT:g}"
        raise InvalidArgument(message)
    return timeout
