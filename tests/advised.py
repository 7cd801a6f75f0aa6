"""What consolidation recommends, by the memory it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.cognition.recommendations import Recommendation
    from engram.experience import ExperienceMemory


def recommended(memory: ExperienceMemory, **options: object) -> dict[str, Recommendation]:
    """What is recommended; no memory is named twice."""
    found = memory.analyse(**options).recommendations
    named = [one.action.get("memory_id") or one.action["target_id"] for one in found]
    assert len(named) == len(set(named))
    return dict(zip(named, found, strict=True))
