"""Public ids: how new ones are made, and how the store keeps them.

A new id is a UUID of version 7: it sorts by the time it was made, so that the index over the ids
grows at its end instead of being rewritten all over by every batch. What is stored takes 16 bytes
for a UUID of any version, and text for anything else.
"""

from __future__ import annotations

import os
import secrets
from array import array

_FREE_BITS = 122
"""What version and variant leave of a UUID; the first 48 of them are milliseconds."""
_COUNTER_BITS = _FREE_BITS - 48
_LOW_BITS = 62
_LOW = (1 << _LOW_BITS) - 1
_MIDDLE = (1 << 12) - 1
_MARKS = 7 << 76 | 2 << 62
"""The version and the variant in their places."""


def following(last: bytes | str | None, at: int, count: int) -> list[bytes]:
    """Return new ids in their stored form: each is larger than the one before.

    Behind the milliseconds stand a random number and, from id to id, random steps of up to 2**32,
    so that ids of stores that know nothing of each other do not meet.

    Args:
        last: The newest id of the store. Where it is ahead of the clock, the new ones follow it:
            their order holds whatever the clock does.
        at: The time, in microseconds.
        count: How many.
    """
    steps = array("I", os.urandom(4 * count))
    number = max(at // 1000, 0) << _COUNTER_BITS | secrets.randbits(_COUNTER_BITS - 1)
    newest = _number(last)
    if newest is not None and (newest + (count << 32)).bit_length() <= _FREE_BITS:
        number = max(number, newest)
    made = []
    for step in steps:
        number += step + 1
        made.append(_stored(number))
    return made


def _stored(number: int) -> bytes:
    """Spread the free bits of a UUID around the marks."""
    high = number >> _LOW_BITS
    bits = high >> 12 << 80 | (high & _MIDDLE) << 64 | number & _LOW | _MARKS
    return bits.to_bytes(16, "big")


def _number(stored: bytes | str | None) -> int | None:
    """Return the free bits of a stored UUID of version 7, None for any other id."""
    if not isinstance(stored, bytes) or len(stored) != 16:
        return None
    bits = int.from_bytes(stored, "big")
    if bits & (0xF << 76 | 3 << 62) != _MARKS:
        return None
    return bits >> 80 << _COUNTER_BITS | (bits >> 64 & _MIDDLE) << _LOW_BITS | bits & _LOW


def to_stored(uid: str) -> bytes | str:
    """Return the stored form of a public id; no two ids share one."""
    try:
        raw = bytes.fromhex(uid.replace("-", ""))
    except ValueError:
        return uid
    # Only the canonical spelling comes back as it went in.
    return raw if len(raw) == 16 and from_stored(raw) == uid else uid


def from_stored(value: bytes | str) -> str:
    """Return the public id of a stored one."""
    if isinstance(value, str):
        return value
    digits = value.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


TYPED = "typeof({0}.uid), CAST({0}.uid AS BLOB)"
"""SQL of what `from_typed` reads, over a row with a uid: in a damaged file it can be anything."""


def from_typed(kind: str, value: bytes | None) -> str:
    """Return the public id of a stored one, given what `TYPED` selects.

    Raises:
        ValueError: It is no id.
    """
    if value is None or kind not in {"blob", "text"}:
        message = "a stored id is damaged"
        raise ValueError(message)
    return from_stored(value if kind == "blob" else value.decode())
