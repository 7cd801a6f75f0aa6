"""Experiences as an import brings them, which can be equal to each other and of any age."""

from __future__ import annotations

from engram.experience import ImportedExperience

FRESH = "2026-01-01T00:00:00Z"
"""The time of the tests' clock."""


def imported(uid: str, *texts: str, **changes: object) -> ImportedExperience:
    """An experience of an id, context, action and result; those left out are all the same."""
    given = dict(zip(("context", "action", "result"), texts, strict=False))
    return ImportedExperience(
        **{
            "id": uid,
            "memory_type": "decision",
            "context": "the build fails",
            "action": "clear the cache",
            "result": "it passes",
            "score": 0.5,
            "created_at": FRESH,
            "updated_at": FRESH,
            "used_count": 0,
            **given,
            **changes,
        }
    )
