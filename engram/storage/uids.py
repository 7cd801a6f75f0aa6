"""Public ids as the store keeps them: UUIDs in 16 bytes, anything else as text."""

from __future__ import annotations

import uuid


def to_stored(uid: str) -> bytes | str:
    """Return the stored form of a public id; no two ids share one."""
    try:
        parsed = uuid.UUID(uid)
    except ValueError:
        return uid
    # Only the canonical spelling comes back as it went in.
    return parsed.bytes if str(parsed) == uid else uid


def from_stored(value: bytes | str) -> str:
    """Return the public id of a stored one."""
    return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else value
